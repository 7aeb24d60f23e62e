/** What a notebook's front end knows and says: pure decisions, no JupyterLab in here. */

import { Death, Flow, Held, State, Step, counted, isChanged, isRestorable, isSaved, savedSeconds } from './view/model';
import { clock, duration, named, size } from './view/words';

/** How things stand between this notebook and its kernel. */
export type Link = 'plain' | 'no-kernel' | 'connecting' | 'busy' | 'ready' | 'missing' | 'gone';

export type BannerKind = 'died' | 'recovered' | 'gave-up' | 'untrusted' | 'held';
export type BannerAction = 'recover' | 'show' | 'dismiss' | 'continue' | 'trust';

export interface Banner {
  kind: BannerKind;
  text: string;
  actions: { action: BannerAction; word: string }[];
  /** What is being done: it waits for a pause, where a loss interrupts who listens. */
  quiet?: boolean;
}

export interface Recovered {
  restored: string[];
  missing: { name: string; type: string; reason: string }[];
  took_s: number;
}

const RECOVER = { action: 'recover', word: 'Recover' } as const;
/** The way back where a kernel cannot restore without running: plain cells run, steps replay. */
const CONTINUE = { action: 'continue', word: 'Continue' } as const;
const SHOW = { action: 'show', word: 'Show' } as const;

/** The banner after a death nobody asked for. */
export function diedBanner(flow: Flow | null, death: Death | null, running: readonly string[], canRecover: boolean): Banner {
  const during = death?.running[0] ?? running[0];
  const where = during === undefined ? 'The kernel died' : `The kernel died during ${named(during)}`;
  const memory = death && death.memory > 0 ? `memory last seen ${size(death.memory)}` : '';
  const reason = death?.out_of_memory ? 'probably out of memory' : '';
  const said = [memory, reason].filter(Boolean).join(', ');
  return {
    kind: 'died',
    text: `${where}${said ? ` (${said})` : ''}. ${savedText(flow)}`,
    actions: flow?.steps.some(isRestorable) ? [canRecover ? RECOVER : CONTINUE, SHOW] : [SHOW]
  };
}

/** `7 of 9 steps saved (48 min of work); changed since: load; not saved: train`. */
export function savedText(flow: Flow | null): string {
  if (!flow || flow.steps.length === 0) {
    return 'What is saved is not known yet.';
  }
  const saved = flow.steps.filter(isSaved).length;
  const changed = listed('; changed since: ', flow.steps.filter(isChanged));
  const lost = listed('; not saved: ', lostSteps(flow));
  const work = savedSeconds(flow);
  const worth = work >= 1 ? ` (${duration(work)} of work)` : '';
  return `${saved} of ${counted(flow.steps.length, 'step')} saved${worth}${changed}${lost}.`;
}

/** Steps of which nothing that holds is in the journal. */
export function lostSteps(flow: Flow): Step[] {
  return flow.steps.filter(step => !isSaved(step) && !isChanged(step));
}

function listed(what: string, steps: readonly Step[]): string {
  const names = steps.slice(0, 3).map(step => named(step.name));
  return names.length === 0 ? '' : what + names.join(', ') + (steps.length > 3 ? ` and ${steps.length - 3} more` : '');
}

export function recoveredBanner(flow: Flow, report: Recovered): Banner {
  const next = firstUnsaved(flow);
  const lost = report.missing.slice(0, 3).map(item => (item.reason ? `${item.name} (${brief(item.reason)})` : item.name));
  const without = lost.length > 0 ? ` Not restored: ${lost.join(', ')}${report.missing.length > 3 ? ' …' : ''}.` : '';
  const then = next ? ` ${named(next.name)} runs next.` : '';
  return {
    kind: 'recovered',
    text: `Recovered ${counted(report.restored.length, 'name')} in ${duration(report.took_s)}, ${duration(savedSeconds(flow))} of work saved.${then}${without}`,
    actions: [CONTINUE, SHOW]
  };
}

function brief(reason: string): string {
  const line = reason.split('\n', 1)[0]!;
  return line.length > 48 ? `${line.slice(0, 47)}…` : line;
}

/** `deaths`: how often it was restarted by itself; none where it was ended from elsewhere, as idle kernels are. */
export function gaveUpBanner(running: readonly string[], deaths: number): Banner {
  const what = running[0] === undefined ? '' : ` ${named(running[0])} was running.`;
  return {
    kind: 'gave-up',
    text: `${deaths > 0 ? 'Jupyter stopped restarting the kernel after several deaths.' : 'The kernel was ended, and Jupyter does not restart it.'}${what} A new one brings back what is saved.`,
    actions: [{ action: 'recover', word: 'Start and recover' }, SHOW]
  };
}

/** Banners that stand for as long as something is so: they give way to news, and go when it is over. */
export const STANDING: ReadonlySet<BannerKind> = new Set(['untrusted', 'held']);

/** Records of somebody else, or a lease that another kernel holds. */
export function standingBanner(flow: Flow): Banner | null {
  if (flow.untrusted > 0) {
    return {
      kind: 'untrusted',
      text: `${counted(flow.untrusted, 'record')} of this journal ${flow.untrusted === 1 ? 'was' : 'were'} not written with your key: listed, never replayed.`,
      actions: [{ action: 'trust', word: 'Trust this journal' }, SHOW]
    };
  }
  return flow.held ? heldBanner(flow.held, flow.now) : null;
}

/** Another kernel holds the flow: who, since when, and what did not run here because of it (E030). */
function heldBanner(held: Held, now: number): Banner {
  const refused = held.refused.length > 0 ? ` Not run here: ${held.refused.map(named).join(', ')}.` : '';
  return {
    kind: 'held',
    text: `Held by ${held.by} since ${clock(held.since, now)}: steps that must not run twice wait until it is done.${refused}`,
    actions: [SHOW]
  };
}

/** The first step, from the top of the notebook, that is not in the journal. */
export function firstUnsaved(flow: Flow): Step | null {
  return flow.steps.find(step => !isSaved(step)) ?? null;
}

/** How many cells Continue runs: up to and including the first step that is not saved. `names`: step of each cell. */
export function continueUpTo(names: readonly (string | null)[], flow: Flow): number {
  const saved = new Set(flow.steps.filter(isSaved).map(step => step.name));
  const first = names.findIndex(name => name !== null && !saved.has(name));
  return first < 0 ? names.length : first + 1;
}

/** The flow as it stands the moment a kernel is gone, before a new one tells. */
export function afterDeath(flow: Flow): Flow {
  const state = (step: Step): State => {
    switch (step.state) {
      case 'running':
      case 'waiting':
        return 'interrupted';
      case 'recorded':
      case 'replayed':
      case 'saving':
        return 'saved';
      default:
        return step.state;
    }
  };
  return { ...flow, steps: flow.steps.map(step => ({ ...step, state: state(step) })) };
}

/** The flow with what the front end sees before the journal does: which step's cell is running now. */
export function withRunning(flow: Flow, running: ReadonlySet<string>): Flow {
  if (running.size === 0) {
    return flow;
  }
  const known = new Set(flow.steps.map(step => step.name));
  const fresh = [...running].filter(name => !known.has(name)).map(unmet);
  const steps = flow.steps.map(step => (running.has(step.name) && !WAITS.has(step.state) ? { ...step, state: 'running' as const } : step));
  return { ...flow, steps: [...steps, ...fresh] };
}

/** What a running step may be doing that is worth more than that it runs (FRONTEND.md, Badge). */
const WAITS: ReadonlySet<State> = new Set(['waiting', 'sleeping']);

/** A flow of which nothing is known yet. */
export const NOTHING: Flow = {
  flow: '',
  status: 'new',
  run: 0,
  holder: null,
  saved_s: 0,
  notebook: '',
  now: 0,
  steps: [],
  notes: [],
  untrusted: 0,
  died: null
};

function unmet(name: string): Step {
  return {
    name,
    state: 'running',
    decision: null,
    attempts: 0,
    recorded_at: null,
    took_s: null,
    replay_s: null,
    bytes: 0,
    differs: [],
    why: '',
    not_stored: [],
    reads: [],
    run: null
  };
}

/** The text of the status item; empty where there is nothing to say. */
export function statusText(flow: Flow | null): string {
  return flow && flow.steps.length > 0 ? `keel ${flow.steps.filter(isSaved).length}/${flow.steps.length} saved` : '';
}

/** The mark beside replayed outputs: `from 09:41`. */
export function ageMark(step: Step, now: number): string {
  return step.state === 'replayed' && step.recorded_at !== null ? `from ${clock(step.recorded_at, now)}` : '';
}

/** One sentence for people who listen, for all that changed at once; empty where nothing worth saying did. */
export function announcement(before: Flow | null, after: Flow): string {
  const was = new Map(before?.steps.map(step => [step.name, step.state]));
  const counts = new Map<State, string[]>();
  for (const step of after.steps) {
    if (before && was.get(step.name) !== step.state && SPOKEN.has(step.state)) {
      counts.set(step.state, [...(counts.get(step.state) ?? []), step.name]);
    }
  }
  return [...counts].map(([state, names]) => (names.length === 1 ? `${named(names[0]!)} ${state}` : `${names.length} steps ${state}`)).join(', ');
}

const SPOKEN: ReadonlySet<State> = new Set(['dead', 'ambiguous', 'failed', 'interrupted', 'diverged', 'waiting', 'replayed', 'recorded', 'saved']);

/** A flow that nobody's memory holds: what the record says, and nothing of what is now. */
export function recordedOnly(flow: Flow): Flow {
  return { ...afterDeath(flow), alone: true, held: null };
}

/** The reason why there is nothing to show, in words. */
export function linkText(link: Link): string {
  switch (link) {
    case 'plain':
      return 'This notebook has no steps yet.';
    case 'no-kernel':
      return 'No kernel: start one to compare with the record.';
    case 'connecting':
      return 'Asking the kernel …';
    case 'busy':
      return 'Waiting for the kernel: it is busy.';
    case 'missing':
      return 'keel is not installed in this kernel: %pip install keel-notebook';
    case 'gone':
      return 'The kernel is gone.';
    case 'ready':
      return '';
  }
}

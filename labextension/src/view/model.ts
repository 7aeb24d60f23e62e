/**
 * What the kernel tells about a flow, as the view reads it (`keel_notebook/front/lineage.py` writes it).
 *
 * Plain values only: names, digests' verdicts, sizes and short previews. Never a payload.
 */

import { named } from './words';

/** Output of `%keel lineage` that holds a flow. */
export const MIME = 'application/vnd.keel.lineage.v1+json';

/** The states of a badge, the one that is shown first in front (FRONTEND.md, Behaviour). */
export const PRECEDENCE = [
  'dead',
  'ambiguous',
  'failed',
  'interrupted',
  'diverged',
  'stale',
  'waiting',
  'sleeping',
  'running',
  'saving',
  'saved',
  'replayed',
  'resource',
  'recorded'
] as const;

export type State = (typeof PRECEDENCE)[number];

/** A value of the step that could not be recorded. */
export interface NotStored {
  name: string;
  type: string;
  reason: string;
}

/** One step: its record beside what it is now. Times are seconds since the epoch, durations seconds, sizes bytes. */
export interface Step {
  name: string;
  state: State;
  decision: 'executed' | 'replayed' | 'skipped' | 'refused' | null;
  attempts: number;
  recorded_at: number | null;
  took_s: number | null;
  replay_s: number | null;
  bytes: number;
  differs: string[];
  why: string;
  not_stored: NotStored[];
  /** Steps whose values it read. */
  reads: string[];
  /** Number of the run that left its record; null without one. */
  run: number | null;
}

/** What was found of the kernel that ran before this one. */
export interface Death {
  /** Steps that were running. */
  running: string[];
  /** Bytes of memory last seen; 0 if never seen. */
  memory: number;
  /** Whether that is so near to what the machine allows that the memory was probably the reason. */
  out_of_memory: boolean;
  ended_at: number | null;
}

/** A flow: what `keel.status().to_dict()` gives, and what the view needs beside it. */
export interface Flow {
  flow: string;
  status: string;
  run: number;
  holder: string | null;
  saved_s: number;
  notebook: string;
  now: number;
  steps: Step[];
  notes: string[];
  /** Records that were not written with the owner's key. */
  untrusted: number;
  died: Death | null;
  /** Auto mode: seconds from which on a cell is a step. Null or missing while it is off. */
  auto?: number | null;
  /** What people call the steps that have only a cell's id: `cell 5 (model = fit(…)`. */
  labels?: Readonly<Record<string, string>>;
  /** Lanes of its records, in the order in which they began; missing or empty where there is only one. */
  lanes?: Lane[];
  /** Another kernel that holds the flow. */
  held?: Held | null;
  /** No kernel compares: only the recorded side is known. */
  alone?: boolean;
}

export interface Lane {
  name: string;
  current: boolean;
  /** How many steps it recorded by itself. */
  steps: number;
  /** The lane that it left, at which step and why; empty for the first one. */
  left: string;
  step: string;
  why: string;
}

export interface Held {
  /** `pid 4711 on host`. */
  by: string;
  since: number;
  /** Steps that did not run here because of it. */
  refused: string[];
}

export interface InputPair {
  name: string;
  recorded: string;
  current: string;
  same: boolean | null;
  weak: boolean;
  producer: string;
}

export interface Output {
  kind: string;
  text: string;
  /** Characters of the text that are left out here, where it is long. */
  cut?: number;
  /** A picture as base64, where it is small and its record is the owner's. */
  png?: string;
}

/** One step in full: asked for when somebody looks at it. */
export interface Details {
  step: string;
  sentence: string;
  recorded_source: string;
  current_source: string;
  format_only: boolean;
  differs: { part: string; name: string; recorded: string; current: string; detail: string; producer: string }[];
  inputs: InputPair[];
  recorded_outputs: Output[];
  current_outputs: Output[];
  not_stored: NotStored[];
  notes: string[];
}

/** One attempt on the time line. `end` is an entry status, or how the kernel of an open attempt ended. */
export interface Attempt {
  entry: string;
  step: string;
  run: number;
  attempt: number;
  end: string;
  started_at: number;
  took_s: number | null;
  /** When the kernel that died in it was last seen to live. */
  until?: number | null;
}

/** `at`: when the kernel was last seen to live; `until`: when the next one came. */
export interface RunDeath {
  run: number;
  at: number;
  until?: number | null;
}

export interface TimelineAnswer {
  attempts: Attempt[];
  deaths: RunDeath[];
  older: number;
  now: number;
}

export interface StorageAnswer {
  folder: string;
  objects: number;
  segments: number;
  duckdb: number;
  steps: { name: string; bytes: number; records: number; not_stored: NotStored[] }[];
}

/** What a deletion lets go, or would. */
export interface RoomAnswer {
  bytes: number;
  /** Bytes of all other values. */
  left: number;
  /** Superseded records that lose their values. */
  records: number;
  /** Objects that no record names. */
  orphans: number;
  objects: number;
}

export interface Wait {
  name: string;
  step: string;
  kind: 'promise' | 'sleep';
  since: number;
  until: number | null;
  /** What an answer is addressed to; empty for a timer. No secret: that is the token, which is never told. */
  id: string;
}

export interface WaitingAnswer {
  waits: Wait[];
  /** The newest promises that were answered, the newest first. */
  answered: { name: string; step: string; at: number; by: string }[];
  now: number;
}

/** The sentence at the head of the view: `3 of 41 differ; first at load (code)`. */
export function headline(flow: Flow): string {
  const total = flow.steps.length;
  if (total === 0) {
    return 'No steps yet';
  }
  const differing = flow.steps.filter(isDifferent);
  if (differing.length === 0) {
    const open = flow.steps.filter(step => !isSaved(step)).length;
    return `${counted(total, 'step')}, ${open === 0 ? 'all as recorded' : `none differs; ${open} not recorded yet`}`;
  }
  const first = differing[0]!;
  const part = first.differs.length > 0 ? first.differs.join(', ') : first.state;
  return `${differing.length} of ${total} ${differing.length === 1 ? 'differs' : 'differ'}; first at ${named(first.name)} (${part})`;
}

const UNLIKE: ReadonlySet<State> = new Set(['dead', 'ambiguous', 'failed', 'interrupted', 'diverged', 'stale']);
const KEPT: ReadonlySet<State> = new Set(['recorded', 'replayed', 'saved', 'saving', 'resource']);

/** Whether a step is worth a look: it differs from its record, or did not end as one would wish. */
export function isDifferent(step: Step): boolean {
  return step.differs.length > 0 || UNLIKE.has(step.state);
}

/** Whether everything that a step left is in the journal. */
export function isSaved(step: Step): boolean {
  return KEPT.has(step.state);
}

/** Whether a step has a record, of a cell or of inputs that are other ones now. */
export function isChanged(step: Step): boolean {
  return step.recorded_at !== null && (step.state === 'diverged' || step.state === 'stale');
}

/** Whether a step is in the journal and not in memory: what Recover brings back. */
export function isRestorable(step: Step): boolean {
  return step.state === 'saved';
}

/** Seconds of work that the records of the saved steps stand for. */
export function savedSeconds(flow: Flow): number {
  return flow.steps.filter(isSaved).reduce((sum, step) => sum + (step.took_s ?? 0), 0);
}

/** `1 step`, `7 steps`. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

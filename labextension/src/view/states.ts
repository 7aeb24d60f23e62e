/** How each state looks and reads: word, icon, shape of the outline and full text. Never colour alone. */

import { State, Step, counted } from './model';
import { clock, duration, named, shortDuration, size } from './words';

/** Tone picks the colour, shape the outline: both are named in `style/view.css`. */
export interface Look {
  word: string;
  /** Path of a 16 x 16 icon. */
  icon: string;
  tone: 'bad' | 'warn' | 'brand' | 'good' | 'quiet';
  shape: 'solid' | 'dashed' | 'dotted' | 'double' | 'bare' | 'filled';
}

const TICK = 'M3 8.5l3.2 3.2L13 4.8';
const CROSS = 'M4 4l8 8M12 4l-8 8';
const AGAIN = 'M12.5 8a4.5 4.5 0 1 1-1.6-3.4M11.5 2v3h-3';
const CUT = 'M2 8h3.5M10.5 8H14M9.500 3.500L6.500 12.500';
const UNEQUAL = 'M3 6h10M3 10h10M10.5 3l-5 10';
const UP = 'M8 13V4M4.5 7.5L8 4l3.5 3.5M3 13h10';
const GLASS = 'M4.5 3h7M4.5 13h7M5 3c0 3 3 3.6 3 5s-3 2-3 5M11 3c0 3-3 3.6-3 5s3 2 3 5';
const CLOCK = 'M8 2.5a5.5 5.5 0 1 0 .01 0M8 5v3.2l2.2 1.6';
const DISK = 'M3 3h8l2 2v8H3zM5.5 3v3h4V3M5.5 13v-3.5h5V13';
const DOWN = 'M8 2.5v7M4.8 6.5L8 9.7l3.2-3.2M3 13h10';
const PLAY = 'M5 3.5l7 4.5-7 4.5z';
const PLUG = 'M6 2.5v3M10 2.5v3M4.5 5.5h7v2a3.5 3.5 0 0 1-7 0zM8 11v3';
const ASK = 'M5.6 6a2.4 2.4 0 1 1 3.3 2.3c-.6.3-.9.7-.9 1.5M8 12.4v.4';
const BANG = 'M8 3v6.2M8 12v.5';

export const LOOKS: Readonly<Record<State, Look>> = {
  dead: { word: 'dead', icon: CROSS, tone: 'bad', shape: 'filled' },
  ambiguous: { word: 'check?', icon: ASK, tone: 'warn', shape: 'double' },
  failed: { word: 'fail', icon: BANG, tone: 'bad', shape: 'solid' },
  interrupted: { word: 'cut', icon: CUT, tone: 'bad', shape: 'dashed' },
  diverged: { word: 'diff', icon: UNEQUAL, tone: 'warn', shape: 'dashed' },
  stale: { word: 'stale', icon: UP, tone: 'warn', shape: 'dotted' },
  waiting: { word: 'wait', icon: GLASS, tone: 'brand', shape: 'double' },
  sleeping: { word: 'sleep', icon: CLOCK, tone: 'brand', shape: 'dotted' },
  running: { word: 'runs', icon: PLAY, tone: 'brand', shape: 'solid' },
  saving: { word: 'saving', icon: DOWN, tone: 'brand', shape: 'dashed' },
  saved: { word: 'saved', icon: DISK, tone: 'good', shape: 'dashed' },
  replayed: { word: 'replay', icon: AGAIN, tone: 'good', shape: 'solid' },
  resource: { word: 'live', icon: PLUG, tone: 'quiet', shape: 'dotted' },
  recorded: { word: 'done', icon: TICK, tone: 'quiet', shape: 'bare' }
};

/** The at most six characters of a pill. */
export function pillWord(step: Step): string {
  if (step.state === 'replayed' && gained(step) >= 1) {
    return `−${shortDuration(gained(step))}`;
  }
  return LOOKS[step.state].word;
}

/** What a running step took last time, for a second line in its pill: `of 4m`. */
export function lastWord(step: Step): string {
  return step.state !== 'running' || step.took_s === null || step.took_s < 1 ? '' : `of ${shortDuration(step.took_s)}`;
}

/** The whole truth about a step in one or two sentences: tooltip and accessible name. */
export function fullText(step: Step, now: number): string {
  const why = step.why ? `: ${step.why}` : '';
  return `Step ${named(step.name)}: ${sentence(step, now)}${needsWhy(step.state) ? why : ''}`;
}

function needsWhy(state: State): boolean {
  return !['recorded', 'replayed', 'running', 'saved', 'resource', 'saving'].includes(state);
}

function sentence(step: Step, now: number): string {
  switch (step.state) {
    case 'dead':
      return 'gave up; `%keel revive` lets it try again';
    case 'ambiguous':
      return 'was started, and nobody knows whether it happened';
    case 'failed':
      return step.attempts > 1 ? `failed, attempt ${step.attempts}` : 'failed';
    case 'interrupted':
      return 'did not end; it will run again';
    case 'diverged':
      return step.differs.length > 0 ? `differs from its record (${step.differs.join(', ')})` : 'differs from its record';
    case 'stale':
      return 'would run again';
    case 'waiting':
      return 'waits for an approval';
    case 'sleeping':
      return 'sleeps, also through a restart';
    case 'running':
      return step.took_s === null ? 'is running' : `is running; last time it took ${duration(step.took_s)}`;
    case 'saving':
      return 'is being written to the disk';
    case 'saved':
      return `in the journal${at(step, now)}, not in memory: Recover brings it back`;
    case 'replayed':
      return `replayed${from(step, now)}${gained(step) >= 0.001 ? `, saved ${duration(gained(step))}` : ''}`;
    case 'resource':
      return 'is made anew in every run';
    case 'recorded':
      return `recorded${at(step, now)}${kept(step)}`;
  }
}

/** Seconds that the replay of a step saved in this run. */
export function gained(step: Step): number {
  return step.decision === 'replayed' ? Math.max(0, (step.took_s ?? 0) - (step.replay_s ?? 0)) : 0;
}

function at(step: Step, now: number): string {
  return step.recorded_at === null ? '' : ` since ${clock(step.recorded_at, now)}`;
}

function from(step: Step, now: number): string {
  return step.recorded_at === null ? '' : ` from ${clock(step.recorded_at, now)}`;
}

function kept(step: Step): string {
  const parts = [step.took_s === null ? '' : `took ${duration(step.took_s)}`, step.bytes ? size(step.bytes) : ''];
  const lost = step.not_stored.length > 0 ? `${counted(step.not_stored.length, 'value')} not stored` : '';
  const said = [...parts, lost].filter(Boolean).join(', ');
  return said ? ` (${said})` : '';
}

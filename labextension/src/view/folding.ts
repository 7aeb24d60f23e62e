/** The time line: attempts over time, with the hours in which nothing happened folded to a sliver. */

import { Attempt, RunDeath } from './model';

export interface Bar {
  attempt: Attempt;
  /** Left edge and width, as parts of the whole line. */
  left: number;
  width: number;
}

export interface Mark {
  at: number;
  text: string;
}

export interface Folded {
  bars: Bar[];
  gaps: (Mark & { seconds: number })[];
  deaths: (Mark & { run: number })[];
}

/** Longer than this nothing ran: folded. So is a shorter while beside which what ran would be slivers. */
const IDLE_S = 60;
const SHORT_S = 2;
const GAP_PART = 0.05;
/** What took next to no time is a sliver, also where it is the last one. */
const THIN = 0.015;

/** Lay attempts and deaths out between 0 and 1. Gaps in which nothing ran for long take 5 % each. */
export function folded(attempts: readonly Attempt[], deaths: readonly RunDeath[], now: number): Folded {
  const ordered = [...attempts].sort((a, b) => a.started_at - b.started_at);
  const spans = ordered.map(one => [one.started_at, one.started_at + Math.max(0, lasted(one, now))] as const);
  const ran = spans.reduce((sum, [from, to]) => sum + to - from, 0);
  const idle = Math.min(IDLE_S, Math.max(SHORT_S, ran / 2));
  const busy: [number, number][] = [];
  for (const [from, to] of spans) {
    const last = busy[busy.length - 1];
    if (last && from - last[1] <= idle) {
      last[1] = Math.max(last[1], to);
    } else {
      busy.push([from, to]);
    }
  }
  const total = busy.reduce((sum, [from, to]) => sum + Math.max(to - from, 0.001), 0);
  const room = Math.max(0.1, 1 - GAP_PART * Math.max(0, busy.length - 1));
  const place = placing(busy, total, room);
  const bars = ordered.map((attempt, at) => {
    const [from, to] = spans[at]!;
    const width = Math.max(THIN, place(to) - place(from));
    return { attempt, left: Math.min(place(from), 1 - width), width };
  });
  /** Never within what the kernel did before. */
  const behind = (death: RunDeath): number =>
    Math.max(place(death.at), ...bars.filter(bar => bar.attempt.run === death.run).map(bar => bar.left + bar.width));
  return {
    bars,
    gaps: busy.slice(1).map(([from], at) => ({ at: place(from) - GAP_PART / 2, text: '', seconds: from - busy[at]![1] })),
    deaths: deaths.filter(death => death.at > 0).map(death => ({ at: Math.min(1, behind(death)), text: `Run ${death.run} died`, run: death.run }))
  };
}

/** Seconds that an attempt took, or has taken so far; of one that the kernel died in, until it was last seen. */
export function lasted(one: Attempt, now: number): number {
  const until = one.end === 'running' ? now : (one.until ?? one.started_at);
  return one.took_s ?? until - one.started_at;
}

function placing(busy: readonly [number, number][], total: number, room: number): (at: number) => number {
  return at => {
    let done = 0;
    for (let number = 0; number < busy.length; number += 1) {
      const [from, to] = busy[number]!;
      const base = (done / total) * room + number * GAP_PART;
      if (at <= from) {
        return Math.max(0, base);
      }
      if (at <= to) {
        return base + ((at - from) / total) * room;
      }
      done += Math.max(to - from, 0.001);
    }
    return 1;
  };
}

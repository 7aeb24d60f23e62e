/**
 * Edges between steps as lanes in a narrow gutter, as a git log draws them.
 *
 * A notebook is totally ordered and its edges are few, so each row only needs to know which lanes pass it.
 */

import { Step } from './model';

export interface LaneRow {
  /** The lane of the row's own dot. */
  at: number;
  /** Lanes that go through the row from the one above to the one below. */
  through: number[];
  /** Lanes that end in this row's dot, coming from above. */
  from: number[];
  /** Lanes that start at this row's dot and go down. */
  to: number[];
}

/** How many lanes are drawn at most; what would need more shares the last one. */
export const MOST_LANES = 5;

/** The lanes of every row: O(steps + edges). A value travels in one lane from its maker to its last reader. */
export function lanes(steps: readonly Step[]): LaneRow[] {
  const place = new Map(steps.map((step, at) => [step.name, at]));
  const last = new Map<number, number>();
  steps.forEach((step, at) => {
    for (const name of step.reads) {
      const maker = place.get(name);
      if (maker !== undefined && maker < at) {
        last.set(maker, at);
      }
    }
  });
  const open: ({ maker: number; until: number } | null)[] = [];
  return steps.map((step, at) => {
    const read = new Set(step.reads.map(name => place.get(name)));
    const from = open.flatMap((lane, number) => (lane && read.has(lane.maker) ? [number] : []));
    const through = open.flatMap((lane, number) => (lane && lane.until > at ? [number] : []));
    open.forEach((lane, number) => {
      if (lane && lane.until <= at) {
        open[number] = null;
      }
    });
    const until = last.get(at);
    const free = open.findIndex(lane => lane === null);
    const mine = free === -1 ? open.length : free;
    if (until !== undefined) {
      open[mine] = { maker: at, until };
    }
    const shown = (numbers: number[]): number[] => [...new Set(numbers.map(capped))];
    return { at: capped(mine), from: shown(from), through: shown(through), to: until === undefined ? [] : [capped(mine)] };
  });
}

function capped(lane: number): number {
  return Math.min(lane, MOST_LANES - 1);
}

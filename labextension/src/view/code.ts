/** Two versions of a cell, line by line beside each other, long equal stretches folded. */

import { diffLines } from 'diff';

export interface DiffRow {
  kind: 'same' | 'changed' | 'removed' | 'added' | 'fold';
  recorded: string | null;
  current: string | null;
}

const AROUND = 3;

export function sideBySide(recorded: string, current: string): DiffRow[] {
  const rows: DiffRow[] = [];
  let removed: string[] = [];
  const settle = (added: string[]): void => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      const before = removed[at] ?? null;
      const after = added[at] ?? null;
      const kind = before === null ? 'added' : after === null ? 'removed' : 'changed';
      rows.push({ kind, recorded: before, current: after });
    }
    removed = [];
  };
  for (const part of diffLines(ended(recorded), ended(current))) {
    const lines = part.value.replace(/\n$/, '').split('\n');
    if (part.removed) {
      removed = lines;
    } else if (part.added) {
      settle(lines);
    } else {
      settle([]);
      rows.push(...lines.map((line): DiffRow => ({ kind: 'same', recorded: line, current: line })));
    }
  }
  settle([]);
  return folded(rows);
}

function ended(text: string): string {
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
}

function folded(rows: DiffRow[]): DiffRow[] {
  const near = rows.map((_, at) => rows.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(row => row.kind !== 'same'));
  const out: DiffRow[] = [];
  let hidden = 0;
  rows.forEach((row, at) => {
    if (near[at]) {
      fold();
      out.push(row);
    } else {
      hidden += 1;
    }
  });
  fold();
  return out;

  function fold(): void {
    if (hidden > 0) {
      const said = `${hidden} equal ${hidden === 1 ? 'line' : 'lines'}`;
      out.push({ kind: 'fold', recorded: said, current: said });
      hidden = 0;
    }
  }
}

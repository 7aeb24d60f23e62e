/** The step line of a cell, as `keel_notebook/core/options.py` reads it. Pure text. */

import { Flow, MIME } from './view/model';

const MAGIC = /^%%keel_step(?:[ \t]+(.*))?$/;
const COMMENT = /^#\s*keel:\s*step(?:[ \t]+(.*))?$/;

/** The name of a cell's step: what its line says, else the cell's id. Null for a plain cell. */
export function stepOf(source: string, cellId: string): string | null {
  for (const raw of source.split('\n', 200)) {
    const line = raw.trim();
    const found = MAGIC.exec(line) ?? COMMENT.exec(line);
    if (found) {
      return firstWord(found[1] ?? '') || cellId;
    }
    if (line !== '' && !line.startsWith('#')) {
      return null; // only blank lines and comments may stand above it
    }
  }
  return null;
}

/** In auto mode a cell without a step line goes by its id, once the journal knows a step of that name. */
export function stepIn(source: string, cellId: string, known: ReadonlySet<string>): string | null {
  return stepOf(source, cellId) ?? (known.has(cellId) ? cellId : null);
}

/** The steps that may go by a cell's id: none unless auto mode is on. */
export function automatic(flow: Flow | null): ReadonlySet<string> {
  return new Set(flow?.auto == null ? [] : flow.steps.map(step => step.name));
}

/** The flow that the last of these outputs with a lineage holds. */
export function heldIn(outputs: readonly object[]): Flow | null {
  const flows = outputs.flatMap(output => ('data' in output ? [(output.data as Record<string, unknown> | undefined)?.[MIME]] : []));
  return (flows.filter(Boolean).pop() as Flow | undefined) ?? null;
}

/** Whether a notebook of these cells has anything to do with keel. */
export function usesKeel(sources: Iterable<string>): boolean {
  for (const source of sources) {
    if (/(^|\n)\s*%(%keel_step|load_ext\s+keel_notebook|keel\b)|#\s*keel:\s*step/.test(source)) {
      return true;
    }
  }
  return false;
}

function firstWord(line: string): string {
  const quoted = /^(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+))/.exec(line.trim());
  const word = quoted?.[1]?.replace(/\\(.)/g, '$1') ?? quoted?.[2] ?? quoted?.[3] ?? '';
  const none = word === '#' || word.startsWith('--'); // a comment or an option stands where the name would
  return quoted?.[3] !== undefined && none ? '' : word;
}

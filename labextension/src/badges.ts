/**
 * The pill under the prompt and the age mark below outputs.
 *
 * State lives in the watch, never in the DOM: cells come and go with scrolling, moving, pasting and undo, so every
 * draw starts from the cells that are attached now and leaves exactly what should be there.
 */

import { Cell, CodeCell } from '@jupyterlab/cells';
import { Notebook } from '@jupyterlab/notebook';

import { ageMark } from './model';
import { automatic, stepIn } from './steps';
import { h, icon } from './view/dom';
import { Flow, Step } from './view/model';
import { LOOKS, fullText, lastWord, pillWord } from './view/states';
import { timer } from './view/words';

export interface Drawn {
  flow: Flow | null;
  /** When the running step's cell was sent, milliseconds; null where none runs. */
  since: number | null;
  open: (step: string) => void;
  ages: boolean;
}

export function drawBadges(notebook: Notebook, drawn: Drawn): number {
  const steps = new Map(drawn.flow?.steps.map(step => [step.name, step]));
  const known = automatic(drawn.flow);
  let count = 0;
  for (const cell of notebook.widgets) {
    if (!(cell instanceof CodeCell) || !cell.isAttached || cell.isPlaceholder()) {
      continue;
    }
    const name = stepIn(cell.model.sharedModel.getSource(), cell.model.id, known);
    const step = name === null ? undefined : steps.get(name);
    drawBadge(cell, step, drawn);
    drawAge(cell, drawn.ages ? step : undefined, drawn.flow?.now ?? 0);
    count += step ? 1 : 0;
  }
  return count;
}

export function clearBadges(notebook: Notebook): void {
  notebook.node.querySelectorAll('.keel-badge, .keel-age').forEach(node => node.remove());
}

function drawBadge(cell: Cell, step: Step | undefined, drawn: Drawn): void {
  const home = cell.node.querySelector<HTMLElement>(':scope > .jp-Cell-inputWrapper');
  const there = [...cell.node.querySelectorAll<HTMLButtonElement>('.keel-badge')];
  const kept = there.find(badge => badge.parentElement === home && badge.dataset['keelStep'] === step?.name);
  there.filter(badge => badge !== kept).forEach(badge => badge.remove());
  if (!step || !home) {
    return;
  }
  const badge = kept ?? made(step.name, drawn.open);
  const now = drawn.flow?.now ?? 0;
  const runs = step.state === 'running' && drawn.since !== null;
  const word = runs ? timer((Date.now() - (drawn.since ?? 0)) / 1000) : pillWord(step);
  const full = fullText(step, now);
  if (badge.dataset['keelState'] !== step.state) {
    const look = LOOKS[step.state];
    badge.dataset['keelState'] = step.state;
    badge.className = `keel-badge keel-tone-${look.tone} keel-shape-${look.shape}`;
    badge.replaceChildren(icon(look.icon), h('span', { class: 'keel-badge-word' }), h('span', { class: 'keel-badge-last' }));
  }
  say(badge.children[1]!, word);
  say(badge.children[2]!, lastWord(step));
  if (badge.title !== full) {
    badge.title = full;
    badge.setAttribute('aria-label', full);
  }
  if (!kept) {
    home.append(badge);
  }
}

function say(node: Element, text: string): void {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

function made(name: string, open: (step: string) => void): HTMLButtonElement {
  const badge = h('button', { type: 'button', class: 'keel-badge', 'data-keel-step': name });
  badge.addEventListener('click', event => {
    event.stopPropagation();
    open(name);
  });
  badge.addEventListener('mousedown', event => event.stopPropagation()); // a click is no selection of the cell
  return badge;
}

function drawAge(cell: CodeCell, step: Step | undefined, now: number): void {
  const text = step && cell.model.outputs.length > 0 ? ageMark(step, now) : '';
  const there = cell.node.querySelector<HTMLElement>(':scope > .keel-age');
  if (!text) {
    there?.remove();
  } else if (there) {
    there.textContent = text;
  } else {
    // Beside the outputs and never in them: what is saved and copied stays what the step showed.
    cell.node.append(h('div', { class: 'keel-age' }, text));
  }
}

/** One step in full: why, code recorded | current, inputs old | new, outputs recorded | current, what can be done. */

import { sideBySide } from './code';
import { button, h } from './dom';
import { bits } from './bits';
import { Details, InputPair, NotStored, Output, State, Step, counted } from './model';
import { Action, Source } from './source';
import { named, renamed } from './words';

const WORDS: Readonly<Record<Action, { word: string; title: string }>> = {
  replay: { word: 'Replay', title: 'Run this cell: what is recorded comes back, nothing executes if it is still valid' },
  rerun: { word: 'Re-run from here', title: 'Execute this step anew, then the cells below it; old records stay' },
  accept: { word: 'Accept', title: 'The recorded value is right for the code and inputs as they are now' },
  branch: { word: 'Branch', title: 'What executes from now on is recorded in a lane of its own; what is recorded stays as it is' },
  forget: { word: 'Forget', title: 'Retire every record of this step: it executes next time' },
  revive: { word: 'Revive', title: 'Its deaths are counted anew: it may run again' }
};

/** Its cell has the kernel: whatever is wished now would only wait behind it. */
const UNDER_WAY: ReadonlySet<State> = new Set(['running', 'waiting', 'sleeping']);

export interface Offer {
  actions: readonly Action[];
  press: (action: Action) => void;
}

/** What can be done with a step as it stands: nothing is accepted or branched from where nothing is recorded. */
export function offered(source: Source, step: Step | undefined): Action[] {
  const wanted: Action[] = UNDER_WAY.has(step?.state ?? 'recorded')
    ? []
    : step?.state === 'dead'
      ? ['revive', 'forget']
      : step?.recorded_at == null
        ? ['rerun']
        : step.state === 'diverged' || step.state === 'stale'
          ? ['rerun', 'accept', 'branch']
          : ['replay', 'rerun', 'branch'];
  return wanted.filter(action => source.can.has(action));
}

export function detailsOf(details: Details, offer: Offer): HTMLElement {
  const code = sideBySide(details.recorded_source, details.current_source);
  const differs = code.some(line => line.kind !== 'same' && line.kind !== 'fold');
  return h(
    'section',
    { class: 'keel-details', 'aria-label': `Step ${named(details.step)}` },
    h(
      'div',
      { class: 'keel-details-head' },
      h('p', { class: 'keel-sentence' }, sentence(details.sentence, details.step)),
      h('div', { class: 'keel-actions' }, ...offer.actions.map(action => actionButton(action, offer)))
    ),
    ...details.notes.map(note => h('p', { class: 'keel-note' }, sentence(note, details.step))),
    details.format_only && h('p', { class: 'keel-note' }, 'Only formatting, comments or the step line differ: the code is the same.'),
    heading(differs ? 'Code' : 'Code, the same on both sides'),
    differs ? codeTable(code) : h('pre', { class: 'keel-code', tabindex: 0 }, details.current_source),
    details.inputs.length > 0 && heading('Inputs'),
    details.inputs.length > 0 && inputTable(details.inputs),
    outputs(details),
    ...details.not_stored.map(lost => h('p', { class: 'keel-note keel-lost' }, lostText(lost)))
  );
}

/** With a capital letter, unless it begins with the step's own name. */
function sentence(text: string, step: string): string {
  return renamed(text.startsWith(step) ? text : text.charAt(0).toUpperCase() + text.slice(1), step);
}

function actionButton(action: Action, offer: Offer): HTMLButtonElement {
  return button(WORDS[action].word, action, () => offer.press(action), WORDS[action].title);
}

export function lostText(lost: NotStored): string {
  return `${lost.name} (${lost.type}) is not stored: ${lost.reason}`;
}

function heading(text: string): HTMLElement {
  return h('div', { class: 'keel-heading' }, text);
}

function codeTable(rows: ReturnType<typeof sideBySide>): HTMLElement {
  const table = h(
    'table',
    { class: 'keel-diff' },
    h('caption', { class: 'keel-hidden' }, 'Code, recorded beside current'),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Recorded'), h('th', { scope: 'col' }, 'Current')))
  );
  const body = h('tbody');
  for (const { kind, recorded, current } of rows) {
    if (kind === 'fold') {
      body.append(h('tr', { class: 'keel-fold' }, h('td', { colspan: 2 }, `⋯ ${recorded ?? ''}`)));
    } else {
      body.append(
        h(
          'tr',
          { class: `keel-line-${kind}` },
          side('keel-recorded', recorded, kind === 'same' ? '' : 'Removed: ', current),
          side('keel-current', current, kind === 'same' ? '' : 'Added: ', recorded)
        )
      );
    }
  }
  table.append(body);
  return h('div', { class: 'keel-scroll', tabindex: 0, role: 'region', 'aria-label': 'Code, recorded beside current' }, table);
}

function side(name: string, text: string | null, said: string, other: string | null): HTMLElement {
  if (text === null) {
    return h('td', { class: `${name} keel-absent` });
  }
  return h('td', { class: name }, said !== '' && h('span', { class: 'keel-hidden' }, said), ...(text === '' ? [' '] : said === '' || other === null ? [text] : bits(text, other)));
}

function inputTable(inputs: readonly InputPair[]): HTMLElement {
  const rows = [...inputs].sort((a, b) => Number(a.same !== false) - Number(b.same !== false));
  const body = h('tbody');
  for (const pair of rows) {
    const verdict = pair.same === null ? '' : pair.same ? 'equal' : 'differs';
    const said = [verdict, pair.weak ? 'weakly compared' : '', pair.producer ? `made by ${maker(pair.producer)}` : ''];
    body.append(
      h(
        'tr',
        { class: pair.same === false ? 'keel-line-changed' : '' },
        h('th', { scope: 'row' }, pair.name),
        h('td', { class: 'keel-recorded' }, pair.recorded || '—'),
        h('td', { class: 'keel-current' }, pair.same && pair.recorded === pair.current ? 'same' : pair.current || '—'),
        h('td', {}, said.filter(Boolean).join(', '))
      )
    );
  }
  const head = ['Input', 'Recorded', 'Current', 'Compared'].map(word => h('th', { scope: 'col' }, word));
  return h('table', { class: 'keel-inputs' }, h('caption', { class: 'keel-hidden' }, 'Inputs, old and new'), h('thead', {}, h('tr', {}, ...head)), body);
}

/** `cell 2` or `step load`, a long name shortened. */
function maker(producer: string): string {
  return producer.startsWith('step ') ? `step ${named(producer.slice(5))}` : named(producer);
}

function outputs(details: Details): HTMLElement | null {
  if (details.recorded_outputs.length === 0 && details.current_outputs.length === 0) {
    return null;
  }
  if (same(details.recorded_outputs, details.current_outputs)) {
    const shown = details.current_outputs.map(output);
    return h('div', { class: 'keel-outputs-same' }, heading('Output, the same on both sides'), ...shown);
  }
  const half = (word: string, name: string, shown: readonly Output[]): HTMLElement =>
    h('div', { class: name }, heading(word), ...(shown.length > 0 ? shown.map(output) : [h('p', { class: 'keel-note' }, 'nothing')]));
  return h(
    'div',
    { class: 'keel-outputs' },
    half('Recorded output', 'keel-recorded', details.recorded_outputs),
    half('Current output', 'keel-current', details.current_outputs)
  );
}

function same(recorded: readonly Output[], current: readonly Output[]): boolean {
  return JSON.stringify(recorded) === JSON.stringify(current);
}

function output(one: Output): HTMLElement {
  if (one.png) {
    return h('img', { src: `data:image/png;base64,${one.png}`, alt: one.text || 'a picture that the step showed' });
  }
  const text = h('pre', { class: one.kind === 'stderr' || one.kind === 'error' ? 'keel-note' : '', tabindex: 0 }, one.text);
  if (!one.cut) {
    return text;
  }
  return h('div', {}, text, h('p', { class: 'keel-note' }, `${counted(one.cut, 'character')} more in the record`));
}

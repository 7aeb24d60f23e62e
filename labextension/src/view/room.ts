/**
 * Making room: what would go, and then, asked once more, what goes.
 *
 * Nothing is ever the default: the question has the focus on Cancel, and says how many bytes it is about.
 */

import { button, h } from './dom';
import { RoomAnswer, counted } from './model';
import { size } from './words';

/** What a person can choose, in seconds: how old a value may be that a newer record has taken the place of. */
export const AGES: readonly (readonly [string, number])[] = [
  ['30 days', 30 * 86_400],
  ['7 days', 7 * 86_400],
  ['1 day', 86_400],
  ['any age', 0]
];

export interface Room {
  /** What would go; nothing is touched. */
  dry(keepSeconds: number): Promise<RoomAnswer>;
  /** Let it go, and say in one sentence what went. */
  go(keepSeconds: number): Promise<string>;
}

/** The form. It is made once, so that it stays as it is while the table above it is drawn anew. */
export function roomForm(room: Room): HTMLElement {
  const age = h('select', { class: 'keel-select', title: 'Values whose step has a newer record' }, ...AGES.map(([word, seconds]) => h('option', { value: seconds }, word)));
  const asked = h('div', { class: 'keel-answering' });
  const said = h('p', { class: 'keel-note', role: 'status' });
  const look = button('See what would go', 'dry-run', () => tell(), 'Nothing is touched');
  const tell = (): void => {
    const seconds = Number(age.value);
    said.textContent = 'Looking …';
    room.dry(seconds).then(
      answer => {
        said.textContent = wouldGo(answer);
        asked.replaceChildren(...(answer.objects > 0 ? [button(`Delete ${size(answer.bytes)} …`, 'delete', () => sure(answer, seconds))] : []));
      },
      (problem: unknown) => fail(problem)
    );
  };
  const sure = (answer: RoomAnswer, seconds: number): void => {
    const cancel = button('Cancel', 'cancel', () => {
      asked.replaceChildren();
      said.textContent = '';
      look.focus();
    });
    const question = `Delete ${size(answer.bytes)} for good? What the newest run needs stays.`;
    asked.replaceChildren(h('span', {}, question), button('Delete', 'confirm', () => go(seconds)), cancel);
    cancel.focus();
  };
  const go = (seconds: number): void => {
    asked.replaceChildren();
    look.focus();
    said.textContent = 'Making room …';
    room.go(seconds).then(
      text => (said.textContent = text),
      (problem: unknown) => fail(problem)
    );
  };
  const fail = (problem: unknown): void => {
    asked.replaceChildren();
    said.textContent = problem instanceof Error ? problem.message : String(problem);
  };
  age.addEventListener('change', () => {
    asked.replaceChildren(); // what was found is no answer to another question
    said.textContent = '';
  });
  return h(
    'div',
    { class: 'keel-room' },
    h('div', { class: 'keel-heading' }, 'Make room'),
    h('div', { class: 'keel-answering' }, h('label', {}, 'Replaced values older than ', age), look),
    said,
    asked
  );
}

/** `1.2 MB would go: the values of 3 old records; 40 MB stay.` */
export function wouldGo(answer: RoomAnswer): string {
  if (answer.objects === 0) {
    return `Nothing would go; ${size(answer.left)} stay.`;
  }
  const what = [
    answer.records > 0 ? `the values of ${counted(answer.records, 'old record')}` : '',
    answer.orphans > 0 ? `${counted(answer.orphans, 'object')} that no record names` : ''
  ];
  return `${size(answer.bytes)} would go: ${what.filter(Boolean).join(' and ')}; ${size(answer.left)} stay.`;
}

/**
 * The tab of what waits: promises, answered here by who owns the journal, and timers.
 *
 * An answer is final, so the first press only asks; the second one sends. The token of a promise is not in here.
 */

import { button, h } from './dom';
import { Wait, WaitingAnswer } from './model';
import { clock, named } from './words';

/** Sends an answer and says in one sentence what came of it; null where nobody can answer from here. */
export type Answering = ((promise: string, value: unknown) => Promise<string>) | null;

export function waiting(answer: WaitingAnswer, send: Answering): HTMLElement {
  const { waits, answered, now } = answer;
  return h(
    'div',
    {},
    waits.length === 0 && h('p', { class: 'keel-empty' }, 'Nothing waits: no open promise and no timer.'),
    waits.length > 0 && h('ul', { class: 'keel-waits' }, ...waits.map(wait => waitItem(wait, now, send))),
    answered.length > 0 && h('div', { class: 'keel-heading' }, 'Answered'),
    answered.length > 0 && h('ul', { class: 'keel-answered' }, ...answered.map(one => h('li', {}, answeredText(one, now))))
  );
}

function answeredText(one: WaitingAnswer['answered'][number], now: number): string {
  return `${named(one.name)} (${named(one.step)}) at ${clock(one.at, now)}, ${one.by === 'owner' ? 'by the owner' : 'with its token'}`;
}

function waitItem(wait: Wait, now: number, send: Answering): HTMLElement {
  const until = wait.until === null ? '' : `, until ${clock(wait.until, now)}`;
  const what = wait.kind === 'promise' ? 'waits for an answer' : 'sleeps';
  const item = h(
    'li',
    { 'data-keel-step': wait.step, 'data-keel-wait': wait.name },
    h('div', {}, h('b', {}, named(wait.name)), ` (${named(wait.step)}) ${what} since ${clock(wait.since, now)}${until}`)
  );
  if (wait.kind === 'promise' && send) {
    item.append(answerForm(wait, send));
  }
  return item;
}

function answerForm(wait: Wait, send: NonNullable<Answering>): HTMLElement {
  const text = h('input', {
    type: 'text',
    class: 'keel-answer',
    placeholder: 'value as JSON (optional)',
    'aria-label': `Answer to ${named(wait.name)}, as JSON`,
    spellcheck: 'false'
  });
  const said = h('p', { class: 'keel-note', role: 'status' });
  const form = h('div', { class: 'keel-answering' });
  const ask = (): void => {
    form.replaceChildren(
      text,
      button('Approve', 'approve', () => sure(true), 'Answer true, or the value that you wrote'),
      button('Reject', 'reject', () => sure(false), 'Answer false, or the value that you wrote')
    );
  };
  const sure = (otherwise: boolean): void => {
    const read = answerOf(text.value, otherwise);
    if ('problem' in read) {
      said.textContent = read.problem;
      return text.focus();
    }
    said.textContent = '';
    const yes = button('Answer', 'confirm', () => go(read.value));
    form.replaceChildren(h('span', {}, `Answer ${named(wait.name)} with ${JSON.stringify(read.value)}? It cannot be taken back.`), yes);
    form.append(button('Cancel', 'cancel', ask));
    yes.focus();
  };
  const go = (value: unknown): void => {
    form.querySelectorAll('button').forEach(one => (one.disabled = true));
    said.textContent = 'Writing it down …';
    send(wait.id, value).then(
      text => (said.textContent = text),
      (problem: unknown) => {
        said.textContent = problem instanceof Error ? problem.message : String(problem);
        ask();
      }
    );
  };
  ask();
  return h('div', {}, form, said);
}

/** What a person wrote as the answer; nothing stands for what the button says. */
export function answerOf(text: string, otherwise: boolean): { value: unknown } | { problem: string } {
  if (text.trim() === '') {
    return { value: otherwise };
  }
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return { problem: 'This is no JSON: a text needs its quotes, "like this".' };
  }
}

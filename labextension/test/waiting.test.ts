import { describe, expect, test } from 'vitest';

import { WaitingAnswer } from '../src/view/model';
import { answerOf, waiting } from '../src/view/waiting';
import { NOW } from './flows';

const OPEN: WaitingAnswer = {
  waits: [
    { name: 'deploy', step: 'ship', kind: 'promise', since: NOW - 60, until: null, id: 'f1:0123' },
    { name: '2h', step: 'nap', kind: 'sleep', since: NOW - 60, until: NOW + 7140, id: '' }
  ],
  answered: [{ name: 'budget', step: 'plan', at: NOW - 5, by: 'owner' }],
  now: NOW
};

const settled = (): Promise<void> => new Promise(done => setTimeout(done, 0));

function drawn(outcome: () => Promise<string> = () => Promise.resolve('deploy is answered')) {
  const sent: unknown[][] = [];
  const node = waiting(OPEN, (promise, value) => (sent.push([promise, value]), outcome()));
  const find = <T extends HTMLElement>(what: string): T => node.querySelector<T>(what)!;
  const press = (action: string): void => find<HTMLButtonElement>(`[data-keel-action=${action}]`).click();
  return { node, sent, find, press };
}

describe('what waits', () => {
  test('a timer is no question', () => {
    const { node } = drawn();
    expect(node.querySelectorAll('[data-keel-wait] [data-keel-action=approve]')).toHaveLength(1);
    expect(node.querySelector('.keel-answered')!.textContent).toContain('budget (plan)');
  });

  test.each([
    ['approve', '', true],
    ['reject', '', false],
    ['approve', '{"size": 3}', { size: 3 }],
    ['reject', '"too dear"', 'too dear']
  ])('%s with %s is asked once more and then sent', async (action, text, value) => {
    const { sent, find, press, node } = drawn();
    find<HTMLInputElement>('.keel-answer').value = text;
    press(action);
    expect(sent).toEqual([]);
    expect(node.textContent).toContain(`Answer deploy with ${JSON.stringify(value)}?`);
    press('confirm');
    expect(sent).toEqual([['f1:0123', value]]);
    await settled();
    expect(node.textContent).toContain('deploy is answered');
  });

  test('what is no JSON is said and not sent; whoever thinks better of it sends nothing', () => {
    const { sent, find, press, node } = drawn();
    find<HTMLInputElement>('.keel-answer').value = 'yes';
    press('approve');
    expect(node.textContent).toContain('needs its quotes');
    find<HTMLInputElement>('.keel-answer').value = '';
    press('approve');
    press('cancel');
    expect(find('[data-keel-action=approve]')).not.toBeNull();
    expect(sent).toEqual([]);
  });

  test('a refusal is said, and the buttons are back', async () => {
    const { press, find, node } = drawn(() => Promise.reject(new Error('another key sealed it')));
    press('reject');
    press('confirm');
    await settled();
    expect(node.textContent).toContain('another key sealed it');
    expect(find('[data-keel-action=reject]')).not.toBeNull();
  });

  test('where nobody can answer there are no buttons', () => {
    expect(waiting(OPEN, null).querySelector('button')).toBeNull();
    expect(waiting({ waits: [], answered: [], now: NOW }, null).textContent).toContain('Nothing waits');
  });
});

test('nothing written is what the button says', () => {
  expect(answerOf('  ', false)).toEqual({ value: false });
  expect(answerOf('null', true)).toEqual({ value: null });
});

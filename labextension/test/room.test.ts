import { describe, expect, test } from 'vitest';

import { RoomAnswer } from '../src/view/model';
import { roomForm, wouldGo } from '../src/view/room';

const FOUND: RoomAnswer = { bytes: 1_200_000, left: 40_000_000, records: 3, orphans: 0, objects: 4 };
const NOTHING: RoomAnswer = { bytes: 0, left: 40_000_000, records: 0, orphans: 0, objects: 0 };

const settled = (): Promise<void> => new Promise(done => setTimeout(done, 0));

function drawn(answer = FOUND, go: () => Promise<string> = () => Promise.resolve('1.2 MB went; 40 MB are kept')) {
  const asked: [string, number][] = [];
  const node = roomForm({
    dry: seconds => (asked.push(['dry', seconds]), Promise.resolve(answer)),
    go: seconds => (asked.push(['go', seconds]), go())
  });
  document.body.replaceChildren(node);
  const find = <T extends HTMLElement>(what: string): T | null => node.querySelector<T>(what);
  const press = (action: string): void => find<HTMLButtonElement>(`[data-keel-action=${action}]`)!.click();
  const choose = (value: string): void => {
    const select = find<HTMLSelectElement>('select')!;
    select.value = value;
    select.dispatchEvent(new Event('change'));
  };
  return { node, asked, find, press, choose };
}

describe('making room', () => {
  test('says what would go, asks once more with the focus on Cancel, and then does it', async () => {
    const { node, asked, press, choose } = drawn();
    choose('0');
    press('dry-run');
    await settled();
    expect(node.textContent).toContain('1.2 MB would go: the values of 3 old records; 40 MB stay.');
    press('delete');
    expect(asked).toEqual([['dry', 0]]);
    expect((document.activeElement as HTMLElement).dataset['keelAction']).toBe('cancel');
    press('confirm');
    await settled();
    expect(asked).toEqual([
      ['dry', 0],
      ['go', 0]
    ]);
    expect(node.textContent).toContain('1.2 MB went');
  });

  test('whoever thinks better of it deletes nothing', async () => {
    const { asked, press, find } = drawn();
    press('dry-run');
    await settled();
    press('delete');
    press('cancel');
    expect(find('[data-keel-action=delete]')).toBeNull();
    expect(asked).toEqual([['dry', 30 * 86_400]]);
  });

  test('another age is another question', async () => {
    const { press, find, choose } = drawn();
    press('dry-run');
    await settled();
    choose('86400');
    expect(find('[data-keel-action=delete]')).toBeNull();
  });

  test('where nothing would go there is nothing to press', async () => {
    const { node, press, find } = drawn(NOTHING);
    press('dry-run');
    await settled();
    expect(node.textContent).toContain('Nothing would go');
    expect(find('[data-keel-action=delete]')).toBeNull();
  });

  test('a refusal is said', async () => {
    const { node, press } = drawn(FOUND, () => Promise.reject(new Error('a kernel works with it (pid 7 on here)')));
    press('dry-run');
    await settled();
    press('delete');
    press('confirm');
    await settled();
    expect(node.textContent).toContain('pid 7 on here');
  });
});

test('objects that no record names are told apart', () => {
  expect(wouldGo({ ...FOUND, records: 0, orphans: 1 })).toContain('1 object that no record names');
});

import { beforeEach, describe, expect, test, vi } from 'vitest';

import { offered } from '../src/view/details';
import { Details, Flow, Lane } from '../src/view/model';
import { Source } from '../src/view/source';
import { LineageView } from '../src/view/view';
import { flow, step } from './flows';

const DETAILS: Details = {
  step: 'load',
  sentence: 'load executed: code',
  recorded_source: 'a = 1\nb = 2',
  current_source: 'a = 1\nb = 3',
  format_only: false,
  differs: [],
  inputs: [{ name: 'n', recorded: '7', current: '9', same: false, weak: false, producer: 'cell 2' }],
  recorded_outputs: [{ kind: 'stdout', text: '<img src=x onerror=alert(1)>' }],
  current_outputs: [],
  not_stored: [{ name: 'conn', type: 'Connection', reason: 'it is live' }],
  notes: []
};

let left: (string | null)[];
let acted: string[];

function shown(what: Flow): LineageView {
  left = [];
  acted = [];
  const source: Source = {
    can: new Set(['replay', 'rerun', 'accept', 'branch']),
    useLane: lane => Promise.resolve((acted.push(`use ${lane}`), `${lane} is in use`)),
    details: () => Promise.resolve(DETAILS),
    timeline: () => Promise.reject(new Error('not asked')),
    storage: () => Promise.reject(new Error('not asked')),
    waiting: () => Promise.reject(new Error('not asked')),
    act: (action, name) => Promise.resolve((acted.push(`${action} ${name}`), `${action} done`)),
    leave: name => left.push(name)
  };
  const view = new LineageView(source);
  document.body.append(view.node);
  view.update(what);
  return view;
}

const rows = (view: LineageView): HTMLElement[] => [...view.node.querySelectorAll<HTMLElement>('[role=row][data-keel-step]')];
const names = (view: LineageView): string[] => rows(view).map(row => row.dataset['keelStep']!);
const press = (key: string): boolean => document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const settled = (): Promise<void> => new Promise(done => setTimeout(done, 0));
const focus = (): string | undefined => (document.activeElement as HTMLElement).dataset['keelStep'];

beforeEach(() => document.body.replaceChildren());

const THREE = flow(step('read'), step('load', 'diverged', { differs: ['code', 'input'] }), step('fit', 'stale', { reads: ['load'] }));

test('where there is nothing to show that is said once, and a step that was asked for opens when it comes', async () => {
  const view = shown(THREE);
  view.show('load');
  await settled();
  view.update(null, 'keel is not installed in this kernel');
  await settled();
  expect(view.node.querySelector('.keel-details')).toBeNull();
  expect(view.node.textContent!.match(/not installed/g)).toHaveLength(1);
  view.update(THREE);
  await settled();
  expect(view.node.querySelector('.keel-details')).not.toBeNull();
});

describe('the tree grid', () => {
  test('has the pinned names', () => {
    const view = shown(THREE);
    expect(view.node.className).toBe('keel-lineage');
    expect(names(view)).toEqual(['read', 'load', 'fit']);
    expect(rows(view)[1]!.dataset['keelDiffers']).toBe('code input');
    expect(rows(view)[1]!.querySelector('.keel-recorded')).not.toBeNull();
    expect(rows(view)[1]!.querySelector('.keel-current')).not.toBeNull();
  });

  test('one tab stop: the selected row, and the arrows move it', () => {
    const view = shown(THREE);
    view.focus();
    expect(rows(view).filter(row => row.tabIndex === 0)).toHaveLength(1);
    expect(focus()).toBe('read');
    press('ArrowDown');
    expect(focus()).toBe('load');
    press('End');
    expect(focus()).toBe('fit');
    press('ArrowDown');
    expect(focus()).toBe('fit');
    press('Home');
    expect(focus()).toBe('read');
  });

  test('d and D go from one divergence to the next, around the end', () => {
    const view = shown(THREE);
    view.focus();
    press('d');
    expect(focus()).toBe('load');
    press('d');
    expect(focus()).toBe('fit');
    press('d');
    expect(focus()).toBe('load');
    press('D');
    expect(focus()).toBe('fit');
  });

  test('f shows what changed only, Enter the diff, Escape closes it and then goes back to the cell', async () => {
    const view = shown(THREE);
    view.focus();
    press('f');
    expect(names(view)).toEqual(['load', 'fit']);
    press('Enter');
    await settled();
    expect(view.node.querySelector('.keel-diff .keel-line-changed .keel-current')!.textContent).toContain('b = 3');
    press('Escape');
    expect(view.node.querySelector('.keel-diff')).toBeNull();
    press('Escape');
    expect(left).toEqual(['load']);
  });

  test('keys of somebody else pass through', () => {
    const view = shown(THREE);
    view.focus();
    document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key: 'd', ctrlKey: true, bubbles: true }));
    expect(focus()).toBe('read');
  });

  test('a thousand steps are a few rows in the page, and the one in focus stays', () => {
    const many = flow(...Array.from({ length: 1000 }, (_, at) => step(`s${at}`)));
    const made = vi.spyOn(document, 'createElement');
    const view = shown(many);
    expect(made.mock.calls.length).toBeLessThan(1000); // what is made does not grow with the number of steps
    made.mockRestore();
    expect(rows(view).length).toBeLessThan(60);
    view.focus();
    press('End');
    expect(focus()).toBe('s999');
    expect(rows(view).length).toBeLessThan(60);
  });

  test('many steps start with those that differ', () => {
    const steps = Array.from({ length: 40 }, (_, at) => step(`s${at}`, at === 17 ? 'diverged' : 'recorded', { differs: at === 17 ? ['code'] : [] }));
    const view = shown(flow(...steps));
    expect(names(view)).toEqual(['s17']);
    expect(view.node.querySelector('.keel-headline')!.textContent).toBe('1 of 40 differs; first at s17 (code)');
    view.show('s3');
    expect(names(view)).toContain('s4');
    expect(focus()).toBe('s3');
  });
});

describe('one step in full', () => {
  test('what a notebook holds is text, never markup', async () => {
    const view = shown(THREE);
    view.show('load');
    await settled();
    expect(view.node.querySelector('.keel-details img')).toBeNull();
    expect(view.node.querySelector('.keel-outputs pre')!.textContent).toBe('<img src=x onerror=alert(1)>');
  });

  test('inputs old and new, what could not be stored, and what can be done', async () => {
    const view = shown(THREE);
    view.show('load');
    await settled();
    const input = view.node.querySelector('.keel-inputs tbody tr')!;
    expect([...input.children].map(cell => cell.textContent)).toEqual(['n', '7', '9', 'differs, made by cell 2']);
    expect(view.node.querySelector('.keel-lost')!.textContent).toBe('conn (Connection) is not stored: it is live');
    const actions = [...view.node.querySelectorAll<HTMLElement>('.keel-actions [data-keel-action]')];
    expect(actions.map(one => one.dataset['keelAction'])).toEqual(['rerun', 'accept', 'branch']);
    actions[1]!.click();
    await settled();
    expect(acted).toEqual(['accept load']);
    expect(view.node.querySelector('.keel-said')!.textContent).toBe('accept done');
    view.update(THREE);
    expect(view.node.querySelector('.keel-said')!.textContent).toBe('accept done');
  });
});

test.each([
  ['recorded', {}, 'replay rerun branch'],
  ['diverged', {}, 'rerun accept branch'],
  ['dead', {}, 'revive forget'],
  ['interrupted', { recorded_at: null }, 'rerun'],
  ['running', {}, ''],
  ['sleeping', {}, '']
] as const)('a step that is %s is offered what can be done with it', (state, more, actions) => {
  const source = { can: new Set(['replay', 'rerun', 'accept', 'branch', 'forget', 'revive']) } as unknown as Source;
  expect(offered(source, step('fit', state, more)).join(' ')).toBe(actions);
});

describe('lanes', () => {
  const lane = (name: string, current = false, left = ''): Lane => ({ name, current, steps: 2, left, step: 'fit', why: 'code' });

  test('one lane is no choice', () => {
    expect(shown({ ...THREE, lanes: [] }).node.querySelector('select')).toBeNull();
  });

  test('another lane is chosen, and the list stays open while nothing of it changes', async () => {
    const view = shown({ ...THREE, lanes: [lane('main'), lane('lane-2', true, 'main')] });
    const select = view.node.querySelector('select')!;
    expect(select.value).toBe('lane-2');
    expect(select.title).toBe('lane-2: 2 steps, left main at fit (code)');
    view.update({ ...THREE, lanes: [lane('main'), lane('lane-2', true, 'main')] });
    expect(view.node.querySelector('select')).toBe(select);
    select.value = 'main';
    select.dispatchEvent(new Event('change'));
    await settled();
    expect(acted).toEqual(['use main']);
    expect(view.node.querySelector('.keel-said')!.textContent).toBe('main is in use');
  });
});

test('another step opened shows nothing of the one before, and who reads one is left alone while nothing changes', async () => {
  const view = shown(THREE);
  view.show('load');
  await settled();
  const details = view.node.querySelector('.keel-details')!;
  view.update(THREE);
  await settled();
  expect(view.node.querySelector('.keel-details')).toBe(details);
  view.show('fit');
  expect(view.node.querySelector('.keel-details')).toBeNull();
  await settled();
  expect(view.node.querySelector('.keel-details')).not.toBeNull();
});

test('without a kernel the record stands alone', () => {
  const view = shown(flow(step('a')));
  view.update({ ...flow(step('a', 'saved'), step('b', 'failed')), alone: true }, 'No kernel.');
  expect(rows(view).map(row => row.querySelector('.keel-current')!.textContent)).toEqual(['—', 'failed']);
  expect(view.node.querySelector('.keel-reason')!.textContent).toBe('No kernel.');
});

test('no steps yet: what a step is, and one to copy', () => {
  const view = shown(flow());
  expect(view.node.querySelector('.keel-example')!.textContent).toContain('%%keel_step load');
});

test('no kernel: the reason stands where the sentence would', () => {
  const view = shown(flow(step('a')));
  view.update(null, 'No kernel.');
  expect(view.node.querySelector('.keel-headline')!.textContent).toBe('No kernel.');
  expect(rows(view)).toHaveLength(0);
});

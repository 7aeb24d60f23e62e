import { describe, expect, test } from 'vitest';

import {
  afterDeath,
  ageMark,
  announcement,
  continueUpTo,
  diedBanner,
  gaveUpBanner,
  recoveredBanner,
  standingBanner,
  statusText,
  withRunning
} from '../src/model';
import { automatic, stepIn, stepOf, usesKeel } from '../src/steps';
import { bits } from '../src/view/bits';
import { sideBySide } from '../src/view/code';
import { folded } from '../src/view/folding';
import { MOST_LANES, lanes } from '../src/view/lanes';
import { PRECEDENCE, headline } from '../src/view/model';
import { LOOKS, fullText, lastWord, pillWord } from '../src/view/states';
import { scrolledTo, visible } from '../src/view/window';
import { called, clock, duration, named, renamed, shortDuration, size, timer } from '../src/view/words';
import { NOW, flow, step } from './flows';

describe('auto mode', () => {
  const known = automatic({ ...flow(step('id-7'), step('fit')), auto: 1 });

  test.each([
    ['x = 1', 'id-7', 'id-7'],
    ['x = 1', 'id-8', null],
    ['%%keel_step load\nx = 1', 'id-7', 'load']
  ])('names the cell %j with id %s %s', (source, id, name) => {
    expect(stepIn(source, id, known)).toBe(name);
  });

  test('gives plain cells no name while it is off', () => {
    expect(stepIn('x = 1', 'id-7', automatic(flow(step('id-7'))))).toBeNull();
    expect(stepIn('x = 1', 'id-7', automatic(null))).toBeNull();
  });
});

describe('the step line of a cell', () => {
  test.each([
    ['%%keel_step load\nx = 1', 'load'],
    ['# a note\n\n%%keel_step load --ttl 2h', 'load'],
    ['# keel: step fit\nx = 1', 'fit'],
    ['%%keel_step "two words" --always', 'two words'],
    ["%%keel_step 'it is'", 'it is'],
    ['%%keel_step --always\nx = 1', 'id-7'],
    ['%%keel_step', 'id-7'],
    ['%%keel_step load # three hours', 'load'],
    ['%%keel_step # three hours', 'id-7'],
    ['x = 1\n%%keel_step load', null],
    ['%%keel_steps load', null],
    ['', null]
  ])('%j is %j', (source, name) => {
    expect(stepOf(source, 'id-7')).toBe(name);
  });

  test('a notebook uses keel if any cell names it', () => {
    expect(usesKeel(['x = 1', '%load_ext keel_notebook'])).toBe(true);
    expect(usesKeel(['y = 2', '# keel: step a'])).toBe(true);
    expect(usesKeel(['%%time\nkeel = 1', 'print("%keel")'])).toBe(false);
  });
});

describe('states', () => {
  test('every state has a word, an icon and an outline of its own: never colour alone', () => {
    const words = PRECEDENCE.map(state => LOOKS[state].word);
    const icons = PRECEDENCE.map(state => LOOKS[state].icon);
    const shapes = PRECEDENCE.map(state => `${LOOKS[state].shape} ${LOOKS[state].tone}`);
    expect(new Set(words).size).toBe(PRECEDENCE.length);
    expect(new Set(icons).size).toBe(PRECEDENCE.length);
    expect(new Set(shapes).size).toBe(PRECEDENCE.length);
    expect(words.every(word => word.length <= 6)).toBe(true);
  });

  test('a replay tells its age and what it saved', () => {
    const replayed = step('train', 'replayed', { decision: 'replayed', took_s: 720, replay_s: 0.01 });
    expect(pillWord(replayed)).toBe('−12m');
    expect(fullText(replayed, NOW)).toMatch(/^Step train: replayed from \d\d:\d\d, saved 12 min$/);
    expect(ageMark(replayed, NOW)).toMatch(/^from \d\d:\d\d$/);
    expect(ageMark(step('train'), NOW)).toBe('');
  });

  test('a step that runs says what it took last time, where that is known', () => {
    expect(lastWord(step('train', 'running', { took_s: 240 }))).toBe('of 4m');
    expect(lastWord(step('train', 'running', { took_s: null }))).toBe('');
    expect(lastWord(step('train', 'recorded', { took_s: 240 }))).toBe('');
  });

  test('a divergence says what differs', () => {
    expect(fullText(step('load', 'diverged', { differs: ['code'], why: 'code differs' }), NOW)).toBe(
      'Step load: differs from its record (code): code differs'
    );
  });
});

describe('the sentence on top', () => {
  test('counts what differs and names the first', () => {
    const steps = [step('a'), step('load', 'diverged', { differs: ['code'] }), step('fit', 'stale')];
    expect(headline(flow(...steps))).toBe('2 of 3 differ; first at load (code)');
    expect(headline(flow(step('a'), step('fit', 'failed')))).toBe('1 of 2 differs; first at fit (failed)');
    expect(headline(flow(step('a')))).toBe('1 step, all as recorded');
    expect(headline(flow(step('a'), step('b', 'running', { recorded_at: null })))).toBe('2 steps, none differs; 1 not recorded yet');
  });
});

describe('after a death', () => {
  const dead = afterDeath(flow(step('load', 'recorded', { took_s: 2880 }), step('train', 'running', { took_s: null }), step('fit', 'replayed')));

  test('what was in memory is saved, what was running was cut off', () => {
    expect(dead.steps.map(one => one.state)).toEqual(['saved', 'interrupted', 'saved']);
  });

  test('the banner says what was running, what memory was seen, and what is saved', () => {
    const death = { running: ['train'], memory: 31_000_000_000, out_of_memory: true, ended_at: NOW };
    const banner = diedBanner(dead, death, [], true);
    expect(banner.text).toBe(
      'The kernel died during train (memory last seen 31 GB, probably out of memory). 2 of 3 steps saved (48 min of work); not saved: train.'
    );
    expect(banner.actions.map(one => one.action)).toEqual(['recover', 'show']);
  });

  test('a step that was edited is no loss: its record is there, of the cell as it was', () => {
    const edited = flow(step('load', 'diverged'), step('fit', 'stale'), step('pay', 'failed', { recorded_at: null }), step('a', 'saved'));
    expect(diedBanner(edited, null, [], true).text).toBe('The kernel died. 1 of 4 steps saved (2.5 s of work); changed since: load, fit; not saved: pay.');
  });

  test('names of three hundred characters are shortened, and what is written from the right stays among itself', () => {
    const long = 'n'.repeat(300);
    const said = diedBanner(flow(step(long, 'failed', { recorded_at: null })), null, [long], true).text;
    expect(said.length).toBeLessThan(200);
    expect(named('שלום')).toBe('\u2066שלום\u2069');
    expect(named('load')).toBe('load');
    expect(renamed(`${long} did not end`, long)).toBe(`${named(long)} did not end`);
  });

  test('a kernel that cannot restore goes on by running, and where nothing is saved nothing is offered', () => {
    expect(diedBanner(dead, null, ['train'], false).actions.map(one => one.action)).toEqual(['continue', 'show']);
    expect(diedBanner(null, null, [], true).text).toBe('The kernel died. What is saved is not known yet.');
  });

  test('after Jupyter gave up the way out is named', () => {
    expect(gaveUpBanner(['train'], 5).text).toMatch(/^Jupyter stopped restarting .* train was running/);
    expect(gaveUpBanner([], 5).actions[0]!.action).toBe('recover');
    expect(gaveUpBanner([], 0).text).toMatch(/^The kernel was ended, and/);
  });

  test('after a recovery it says what came back, what did not, and what runs next', () => {
    const report = { restored: ['x', 'y'], missing: [{ name: 'conn', type: 'Connection', reason: '' }], took_s: 1.8 };
    const banner = recoveredBanner(flow(step('load', 'replayed'), step('train', 'interrupted')), report);
    expect(banner.text).toBe('Recovered 2 names in 1.8 s, 2.5 s of work saved. train runs next. Not restored: conn.');
    expect(banner.actions.map(one => one.action)).toEqual(['continue', 'show']);
  });

  test('Continue runs up to and including the first step that is not saved (DESIGN 5)', () => {
    const now = flow(step('load', 'replayed'), step('train', 'interrupted'), step('fit', 'saved'));
    expect(continueUpTo([null, 'load', null, 'train', 'fit'], now)).toBe(4);
    expect(continueUpTo([null, 'load', 'fit', null], now)).toBe(4);
    expect(continueUpTo(['load', 'never-met', 'fit'], now)).toBe(2);
  });
});

test('a stranger’s records are said before anything else', () => {
  const banner = standingBanner({ ...flow(step('a')), untrusted: 3 });
  expect(banner?.kind).toBe('untrusted');
  expect(standingBanner(flow(step('a')))).toBeNull();
});

test('another kernel that holds the flow is named, with what it kept from running', () => {
  const held = { by: 'pid 7 on host', since: NOW - 60, refused: ['pay'] };
  const banner = standingBanner({ ...flow(step('pay', 'diverged')), held })!;
  expect(banner.kind).toBe('held');
  expect(banner.text).toMatch(/^Held by pid 7 on host since .*Not run here: pay\.$/);
});

test('a running step that waits is said to wait', () => {
  const shown = withRunning(flow(step('ask', 'waiting'), step('nap', 'sleeping'), step('fit')), new Set(['ask', 'nap', 'fit']));
  expect(shown.steps.map(one => one.state)).toEqual(['waiting', 'sleeping', 'running']);
});

test('a running cell shows before the journal knows of it', () => {
  const shown = withRunning(flow(step('load')), new Set(['train']));
  expect(shown.steps.map(one => [one.name, one.state])).toEqual([
    ['load', 'recorded'],
    ['train', 'running']
  ]);
});

test('the status item counts what is saved', () => {
  expect(statusText(flow(step('a'), step('b', 'failed'), step('c', 'saved')))).toBe('keel 2/3 saved');
  expect(statusText(null)).toBe('');
});

test('one sentence for all changes, and none at the first sight', () => {
  const before = flow(step('a', 'saved'), step('b', 'saved'), step('c', 'running'));
  const after = flow(step('a', 'replayed'), step('b', 'replayed'), step('c', 'diverged'));
  expect(announcement(before, after)).toBe('2 steps replayed, c diverged');
  expect(announcement(null, after)).toBe('');
});

describe('lanes', () => {
  test('a value has a lane from its maker to its last reader', () => {
    const rows = lanes([step('a'), step('b'), step('c', 'recorded', { reads: ['a'] })]);
    expect(rows[0]!.to).toEqual([0]);
    expect(rows[1]!.through).toEqual([0]);
    expect(rows[2]!.from).toEqual([0]);
    expect(rows[2]!.through).toEqual([]);
  });

  test('never more lanes than the gutter is wide, and linear in the number of steps', () => {
    const many = Array.from({ length: 2000 }, (_, at) => step(`s${at}`, 'recorded', { reads: at > 7 ? [`s${at - 7}`] : [] }));
    const began = performance.now();
    const rows = lanes(many);
    expect(performance.now() - began).toBeLessThan(500);
    expect(Math.max(...rows.flatMap(row => [row.at, ...row.through, ...row.from]))).toBeLessThan(MOST_LANES);
  });

  test('an edge to a step that is not there, or stands below, is no lane', () => {
    const rows = lanes([step('a', 'recorded', { reads: ['b', 'gone'] }), step('b')]);
    expect(rows.flatMap(row => [...row.from, ...row.through, ...row.to])).toEqual([]);
  });
});

describe('code beside code', () => {
  test('changed lines stand beside each other', () => {
    expect(sideBySide('a\nb\nc', 'a\nB\nc')).toEqual([
      { kind: 'same', recorded: 'a', current: 'a' },
      { kind: 'changed', recorded: 'b', current: 'B' },
      { kind: 'same', recorded: 'c', current: 'c' }
    ]);
  });

  test('what has no partner stands alone', () => {
    expect(sideBySide('a', 'a\nb').map(row => row.kind)).toEqual(['same', 'added']);
    expect(sideBySide('a\nb', 'a').map(row => row.kind)).toEqual(['same', 'removed']);
  });

  test('long equal stretches are folded, equal code to one line', () => {
    const long = Array.from({ length: 40 }, (_, at) => `line ${at}`);
    const rows = sideBySide(long.join('\n'), [...long, 'more'].join('\n'));
    expect(rows[0]).toEqual({ kind: 'fold', recorded: '37 equal lines', current: '37 equal lines' });
    expect(rows).toHaveLength(5);
  });
});

test('only the rows in sight are drawn', () => {
  expect(visible(0, 280, 28, 1000)).toEqual({ first: 0, end: 18 });
  expect(visible(14_000, 280, 28, 1000)).toEqual({ first: 492, end: 518 });
  expect(scrolledTo(500, 0, 280, 28)).toBe(500 * 28 + 28 - 280);
  expect(scrolledTo(3, 0, 280, 28)).toBe(0);
});

test('idle hours are folded to a sliver', () => {
  const attempt = { entry: '1.1', step: 'a', run: 1, attempt: 1, end: 'ok', started_at: NOW, took_s: 10 };
  const late = { ...attempt, entry: '2.1', run: 2, started_at: NOW + 7200 };
  const line = folded([late, attempt], [{ run: 1, at: NOW + 20 }], NOW + 7300);
  expect(line.bars.map(bar => bar.attempt.run)).toEqual([1, 2]);
  expect(line.bars[0]!.width).toBeCloseTo(line.bars[1]!.width, 5);
  expect(line.gaps).toHaveLength(1);
  expect(line.bars[1]!.left + line.bars[1]!.width).toBeLessThanOrEqual(1.0001);
});

test('a kernel that died in a step ends its bar there, and the line of its death stands behind it', () => {
  const attempt = { entry: '1.1', step: 'a', run: 1, attempt: 1, end: 'died', started_at: NOW, took_s: null, until: NOW + 30 };
  const again = { ...attempt, entry: '2.1', run: 2, end: 'ok', started_at: NOW + 32, took_s: 30, until: null };
  const line = folded([attempt, again], [{ run: 1, at: NOW + 30, until: NOW + 32 }], NOW + 70);
  expect(line.bars[0]!.width).toBeCloseTo(line.bars[1]!.width, 5);
  expect(line.deaths[0]!.at).toBeCloseTo(line.bars[0]!.left + line.bars[0]!.width, 5);
  expect(line.deaths[0]!.at).toBeLessThan(line.bars[1]!.left);
});

test('a short pause is folded where it would make slivers of what ran', () => {
  const attempt = { entry: '1.1', step: 'a', run: 1, attempt: 1, end: 'ok', started_at: NOW, took_s: 2 };
  const line = folded([attempt, { ...attempt, run: 2, started_at: NOW + 40 }], [], NOW + 50);
  expect(line.gaps.map(gap => gap.seconds)).toEqual([38]);
  expect(line.bars[0]!.width).toBeGreaterThan(0.4);
});

test('what differs within a line is marked, and a line of which little is left as a whole', () => {
  const marked = (text: string, other: string): string[] => bits(text, other).map(one => (one instanceof HTMLElement ? `[${one.textContent}]` : String(one)));
  expect(marked('for n in range(400):', 'for n in range(300):').join('')).toBe('for n in range([400]):');
  expect(marked('a = 1', 'import numpy as np')).toEqual(['a = 1']);
});

test('a cell without a name goes by what people call it, also within what others wrote', () => {
  called({ '4fe1-22': 'cell 5 (rows = …)' });
  expect(named('4fe1-22')).toBe('cell 5 (rows = …)');
  expect(renamed('4fe1-22 executed: input n changed', '4fe1-22')).toBe('cell 5 (rows = …) executed: input n changed');
  expect(named('load')).toBe('load');
});

test('another day is named, and the year where it is another one', () => {
  expect(clock(NOW, NOW)).toMatch(/^\d\d:\d\d$/);
  expect(clock(NOW - 3 * 86_400, NOW)).toMatch(/^\D*\d+\D+\d\d:\d\d$/);
  expect(clock(NOW - 400 * 86_400, NOW)).toContain('2024');
});

test('numbers as people write them', () => {
  expect([duration(0.34), duration(2.13), duration(720), duration(5400), duration(null)]).toEqual(['340 ms', '2.1 s', '12 min', '1.5 h', '']);
  expect(shortDuration(720)).toBe('12m');
  expect([timer(7), timer(725), timer(3725)]).toEqual(['0:07', '12:05', '1:02:05']);
  expect([size(12), size(2_100_000), size(31e9)]).toEqual(['12 B', '2.1 MB', '31 GB']);
});

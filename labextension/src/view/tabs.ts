/** Two tabs of the panel: time line and storage. Asked for when they are looked at. */

import { button, h } from './dom';
import { folded, lasted } from './folding';
import { lostText } from './details';
import { Attempt, RunDeath, StorageAnswer, TimelineAnswer } from './model';
import { clock, duration, label, named, size } from './words';

export const PAGE = 200;

export function timeline(answer: TimelineAnswer, older: () => void, open: (step: string) => void): HTMLElement {
  if (answer.attempts.length === 0) {
    return h('p', { class: 'keel-empty' }, 'Nothing has run yet.');
  }
  const { bars, gaps, deaths } = folded(answer.attempts, answer.deaths, answer.now);
  const list = h('ol', { class: 'keel-attempts' });
  for (const { attempt, left, width } of bars) {
    const ran = attempt.end === 'running' ? 0 : lasted(attempt, answer.now);
    const took = attempt.took_s !== null ? `, took ${duration(attempt.took_s)}` : ran > 0 ? `, after ${duration(ran)}` : '';
    const again = attempt.attempt > 1 ? `, attempt ${attempt.attempt}` : '';
    const said = `${named(attempt.step)}: ${attempt.end}${again}, ${clock(attempt.started_at, answer.now)}${took}`;
    const bar = h('button', { type: 'button', class: 'keel-bar-row', 'data-keel-step': attempt.step, 'aria-label': said, title: said });
    bar.addEventListener('click', () => open(attempt.step));
    const fill = h('span', { class: `keel-fill keel-end-${attempt.end}` });
    fill.style.left = `${left * 100}%`;
    fill.style.width = `${width * 100}%`;
    const track = h('span', { class: 'keel-track', 'aria-hidden': 'true' });
    for (const gap of gaps) {
      track.append(mark('keel-gap', gap.at, `${duration(gap.seconds)} idle`));
    }
    for (const death of deaths) {
      track.append(mark('keel-death', death.at, death.text));
    }
    track.append(fill);
    bar.append(h('span', { class: 'keel-bar-name', dir: 'ltr' }, label(attempt.step)), track, h('span', { class: 'keel-bar-end' }, attempt.end));
    list.append(h('li', {}, bar));
  }
  const notes = [
    ...gaps.map(gap => `${duration(gap.seconds)} idle`),
    ...deaths.map(death => `${death.text} ${when(answer.deaths.find(one => one.run === death.run)!, answer.now)}`)
  ];
  return h(
    'div',
    {},
    answer.older > 0 && button(`Load older (${answer.older})`, 'older', older),
    axis(bars.map(bar => bar.attempt), answer.now),
    list,
    notes.length > 0 && h('p', { class: 'keel-note' }, notes.join(' · '))
  );
}

/** From when to when, above the bars. */
function axis(attempts: readonly Attempt[], now: number): HTMLElement {
  const from = Math.min(...attempts.map(one => one.started_at));
  const to = Math.max(...attempts.map(one => one.started_at + lasted(one, now)));
  const ends = [clock(from, now), clock(to, now)];
  return h('div', { class: 'keel-bar-row keel-axis', 'aria-hidden': 'true' }, h('span'), h('span', { class: 'keel-axis-ends' }, ...ends.map(end => h('span', {}, end))), h('span'));
}

/** A kernel that was idle leaves no sign of its end: then it is known from when to when that must have been. */
function when(death: RunDeath, now: number): string {
  const [at, until] = [clock(death.at, now), clock(death.until ?? death.at, now)];
  return at === until ? `at ${at}` : `between ${at} and ${until}`;
}

function mark(name: string, at: number, title: string): HTMLElement {
  const made = h('span', { class: name, title });
  made.style.left = `${at * 100}%`;
  return made;
}

export function storage(answer: StorageAnswer): HTMLElement {
  const total = answer.objects + answer.segments + answer.duckdb;
  const steps = [...answer.steps].sort((a, b) => b.bytes - a.bytes);
  const body = h('tbody');
  for (const step of steps) {
    body.append(
      h(
        'tr',
        { 'data-keel-step': step.name },
        h('th', { scope: 'row', title: step.name }, named(step.name)),
        h('td', { class: 'keel-number' }, size(step.bytes)),
        h('td', { class: 'keel-number' }, String(step.records))
      )
    );
  }
  const lost = steps.flatMap(step => step.not_stored.map(item => `${named(step.name)}: ${lostText(item)}`));
  const head = ['Step', 'Size', 'Records'].map(word => h('th', { scope: 'col', class: word === 'Step' ? '' : 'keel-number' }, word));
  return h(
    'div',
    {},
    h('p', {}, `${size(total)} in all: ${size(answer.objects)} values, ${size(answer.segments + answer.duckdb)} journal`),
    h('p', { class: 'keel-note', title: answer.folder }, `in ${lastParts(answer.folder)}`),
    h('table', { class: 'keel-inputs keel-sizes' }, h('caption', { class: 'keel-hidden' }, 'Size of every step'), h('thead', {}, h('tr', {}, ...head)), body),
    lost.length > 0 && h('div', { class: 'keel-heading' }, 'Could not be stored'),
    lost.length > 0 && h('ul', {}, ...lost.map(text => h('li', {}, text)))
  );
}

/** The end of a path, as far as it tells places apart: `penguins/.keel`. The whole of it is in the title. */
function lastParts(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).slice(-2).join('/');
}

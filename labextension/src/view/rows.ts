/** One row of the lineage: gutter, step, recorded side, current side. */

import { Child, h, icon, shape } from './dom';
import { LaneRow } from './lanes';
import { Step, isSaved } from './model';
import { LOOKS, fullText, gained } from './states';
import { clock, duration, label, size } from './words';

export const ROW = 28;
const LANE = 7;

export interface RowAt {
  step: Step;
  lane: LaneRow;
  /** Lanes that the gutter has room for. */
  lanes: number;
  /** Position in the list that is shown, from 0. */
  index: number;
  selected: boolean;
  focusable: boolean;
  expanded: boolean;
  now: number;
  /** No kernel says what is now. */
  alone: boolean;
}

export function row(at: RowAt): HTMLDivElement {
  const { step } = at;
  const look = LOOKS[step.state];
  const element = h(
    'div',
    {
      role: 'row',
      class: 'keel-row',
      'data-keel-step': step.name,
      'data-keel-state': step.state,
      'data-keel-differs': step.differs.join(' '),
      'aria-level': 1,
      'aria-rowindex': at.index + 2,
      'aria-selected': String(at.selected),
      'aria-expanded': String(at.expanded),
      tabindex: at.focusable ? 0 : -1,
      title: fullText(step, at.now)
    },
    h('span', { class: 'keel-gutter', 'aria-hidden': 'true' }, gutter(at.lane, at.lanes, look.tone)),
    h(
      'span',
      { role: 'rowheader', class: 'keel-name' },
      h('span', { class: `keel-state keel-tone-${look.tone}` }, icon(look.icon)),
      h('span', { class: 'keel-name-text', dir: 'ltr' }, label(step.name))
    ),
    h('span', { role: 'gridcell', class: 'keel-recorded' }, ...recorded(step, at.now)),
    h('span', { role: 'gridcell', class: 'keel-current' }, h('span', { class: `keel-word keel-tone-${look.tone}` }, ...current(step, at.alone)))
  );
  element.style.transform = `translateY(${at.index * ROW}px)`;
  return element;
}

/** When, how long, how large; the size gives way where there is little room, and is in the step's details all the same. */
function recorded(step: Step, now: number): Child[] {
  if (step.recorded_at === null) {
    return ['no record'];
  }
  const at = clock(step.recorded_at, now);
  const took = step.took_s === null ? '' : ` · ${duration(step.took_s)}`;
  const held = step.bytes ? ` · ${size(step.bytes)}` : '';
  // Beside a date there is no room for more.
  return at.length > TIME ? [at, roomy(took + held)] : [at + took, roomy(held)];
}

const TIME = 5;

function current(step: Step, alone: boolean): Child[] {
  if (alone && isSaved(step)) {
    return ['—'];
  }
  const parts = step.differs.join(', ');
  if (parts !== '' && step.state === 'diverged') {
    return [`${parts} ${step.differs.length === 1 ? 'differs' : 'differ'}`];
  }
  if (parts !== '' && step.state !== 'dead') {
    return [step.state, roomy(`, ${parts} differed`)];
  }
  if (step.state === 'replayed' && gained(step) >= 0.001) {
    return ['replayed', roomy(`, ${duration(gained(step))} saved`)];
  }
  return [step.state];
}

/** What is shown only where the grid is wide. */
function roomy(text: string): Child {
  return text !== '' && h('span', { class: 'keel-roomy' }, text);
}

/** Width of a gutter with this many lanes, in pixels. */
export function gutterWidth(lanes: number): number {
  return 10 + Math.max(1, lanes) * LANE;
}

function gutter(lane: LaneRow, lanes: number, tone: string): SVGElement {
  const x = (number: number): number => 8 + number * LANE;
  const middle = ROW / 2;
  const width = gutterWidth(lanes);
  const svg = shape('svg', { width, height: ROW, viewBox: `0 0 ${width} ${ROW}` });
  const line = (d: string): void => svg.append(shape('path', { d, class: 'keel-lane' }));
  lane.through.forEach(number => line(`M${x(number)} 0V${ROW}`));
  lane.from.forEach(number =>
    line(`M${x(number)} 0C${x(number)} ${middle * 0.7} ${x(lane.at)} ${middle * 0.4} ${x(lane.at)} ${middle}`)
  );
  if (lane.to.length > 0) {
    line(`M${x(lane.at)} ${middle}V${ROW}`);
  }
  svg.append(shape('circle', { cx: x(lane.at), cy: middle, r: 3, class: `keel-dot keel-tone-${tone}` }));
  return svg;
}

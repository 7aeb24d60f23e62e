/** Which lane of the records is in use, and the way to another one. Nothing where there is only one lane. */

import { h } from './dom';
import { Lane, counted } from './model';

export function lanePicker(lanes: readonly Lane[], use: ((lane: string) => void) | null): HTMLElement | null {
  if (lanes.length < 2) {
    return null;
  }
  if (!use) {
    return h('span', { class: 'keel-lane-in-use' }, `lane ${lanes.find(lane => lane.current)?.name ?? ''}`);
  }
  const options = lanes.map(lane => h('option', { value: lane.name, selected: lane.current, title: laneText(lane) }, lane.name));
  const select = h('select', { class: 'keel-lane-picker', title: laneText(lanes.find(lane => lane.current) ?? lanes[0]!) }, ...options);
  select.addEventListener('change', () => use(select.value));
  return h('label', { class: 'keel-lane-in-use' }, 'lane ', select);
}

/** `lane-2: 3 steps, left main at fit (a person branched here)`. */
export function laneText(lane: Lane): string {
  const left = lane.left ? `, left ${lane.left} at ${lane.step}${lane.why ? ` (${lane.why})` : ''}` : '';
  return `${lane.name}: ${counted(lane.steps, 'step')}${left}`;
}

/**
 * The lineage view: a header sentence, a tree grid of steps (recorded | current), and one step in full below.
 *
 * One module in three homes: the widget, the side panel, and (as plain HTML, written by Python) everywhere else.
 */

import { detailsOf, offered } from './details';
import { h } from './dom';
import { emptyState } from './empty';
import { lanePicker } from './lanepicker';
import { LaneRow, lanes } from './lanes';
import { Details, Flow, Lane, Step, headline, isDifferent } from './model';
import { whileAsked } from './patience';
import { ROW, gutterWidth, row } from './rows';
import { Action, Source } from './source';
import { scrolledTo, visible } from './window';
import { called } from './words';

/** Above this many steps only those that differ are shown until somebody asks for all. */
const MANY = 30;
const TALLEST = 12;

export class LineageView {
  readonly node: HTMLElement;
  private readonly head = h('p', { class: 'keel-headline' });
  /** Why the kernel has no part in what is shown. */
  private readonly reason = h('p', { class: 'keel-reason' });
  /** What came of the last thing that somebody did here. */
  private readonly said = h('p', { class: 'keel-said', role: 'status' });
  private readonly lane = h('span', { class: 'keel-lane-home' });
  private readonly only = h('input', { type: 'checkbox' });
  private readonly filter = h('label', { class: 'keel-filter' }, this.only, ' changed only');
  private readonly grid: HTMLElement;
  private readonly space = h('div', { class: 'keel-space', role: 'presentation' });
  private readonly empty = h('div', { class: 'keel-empty' });
  private readonly below = h('div', { class: 'keel-below' });
  private readonly sized: ResizeObserver | null;
  private flow: Flow | null = null;
  private shown: Step[] = [];
  private laneOf = new Map<string, LaneRow>();
  private lanes = 1;
  /** Rows in the page by their index, as long as nothing but the place that is looked at changes. */
  private drawn = new Map<number, HTMLElement>();
  private drawnState = '';
  private selected: string | null = null;
  private opened: string | null = null;
  private filterTouched = false;
  /** What the opened step's details show now. */
  private detailed = '';
  private frame = 0;

  constructor(
    private readonly source: Source,
    options: { tall?: boolean } = {}
  ) {
    this.grid = h(
      'div',
      { role: 'treegrid', class: options.tall ? 'keel-grid keel-tall' : 'keel-grid', 'aria-label': 'Steps, recorded beside current', 'aria-colcount': 3 },
      h(
        'div',
        { role: 'row', class: 'keel-row keel-row-head', 'aria-rowindex': 1 },
        h('span', { class: 'keel-gutter', 'aria-hidden': 'true' }),
        h('span', { role: 'columnheader', class: 'keel-name' }, 'Step'),
        h('span', { role: 'columnheader', class: 'keel-recorded' }, 'Recorded'),
        h('span', { role: 'columnheader', class: 'keel-current' }, 'Current')
      ),
      this.space
    );
    this.node = h(
      'div',
      { class: 'keel-lineage' },
      h('div', { class: 'keel-bar' }, this.head, this.lane, this.filter),
      this.reason,
      this.said,
      this.grid,
      this.empty,
      this.below
    );
    this.only.addEventListener('change', () => {
      this.filterTouched = true;
      this.refill();
    });
    this.grid.addEventListener('scroll', () => this.later());
    this.grid.addEventListener('keydown', event => this.key(event));
    this.grid.addEventListener('click', event => this.clicked(event));
    this.below.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        this.open(null);
        this.focus();
      }
    });
    this.sized = typeof ResizeObserver === 'undefined' ? null : new ResizeObserver(() => this.later());
    this.sized?.observe(this.grid);
  }

  /** Show a flow; null with a reason where there is none to show. `example`: how a notebook gets its first step. */
  update(flow: Flow | null, reason = '', example = flow !== null): void {
    called(flow?.labels);
    this.flow = flow;
    this.reason.textContent = flow ? reason : '';
    this.filter.hidden = !flow || flow.steps.length === 0;
    if (!this.filterTouched && flow) {
      this.only.checked = flow.steps.length > MANY && flow.steps.some(isDifferent);
    }
    this.laneOf = new Map();
    if (flow) {
      const found = lanes(flow.steps);
      flow.steps.forEach((step, at) => this.laneOf.set(step.name, found[at]!));
    }
    this.head.textContent = flow ? headline(flow) : reason;
    this.drawLanes(flow?.lanes ?? []);
    const empty = example && !flow?.steps.length;
    if (empty !== this.empty.childElementCount > 0) {
      this.empty.replaceChildren(...(empty ? emptyState() : []));
    }
    this.refill();
    if (this.opened !== null) {
      this.open(this.opened);
    }
  }

  /** Only where they changed: a list that somebody has opened stays. */
  private drawLanes(lanes: readonly Lane[]): void {
    const state = JSON.stringify(lanes);
    if (this.lane.dataset['keelLanes'] !== state) {
      this.lane.dataset['keelLanes'] = state;
      const use = this.source.useLane && ((name: string): void => this.say(this.source.useLane!(name)));
      const picker = lanePicker(lanes, use ?? null);
      this.lane.replaceChildren(...(picker ? [picker] : []));
    }
  }

  /** Select a step, bring it into sight, and open it. */
  show(name: string): void {
    if (!this.shown.some(step => step.name === name)) {
      this.only.checked = false;
      this.refill();
    }
    this.select(name);
    this.open(name);
  }

  /** The next (or previous) step that differs; where the end is reached it starts over. */
  next(direction: 1 | -1): string | null {
    const steps = this.shown;
    const from = steps.findIndex(step => step.name === this.selected);
    for (let away = 1; away <= steps.length; away += 1) {
      const at = (((from < 0 && direction < 0 ? 0 : from) + direction * away) % steps.length + steps.length) % steps.length;
      const step = steps[at]!;
      if (isDifferent(step)) {
        this.select(step.name);
        return step.name;
      }
    }
    return null;
  }

  /** Give the keyboard to the selected row. */
  focus(): void {
    this.select(this.selected ?? this.shown[0]?.name ?? null);
  }

  dispose(): void {
    this.sized?.disconnect();
    cancelAnimationFrame(this.frame);
    this.node.remove();
  }

  private refill(): void {
    const steps = this.flow?.steps ?? [];
    this.shown = this.only.checked ? steps.filter(isDifferent) : steps;
    const used = this.only.checked ? [] : [...this.laneOf.values()].flatMap(one => [one.at, ...one.through, ...one.from]);
    this.lanes = 1 + Math.max(0, ...used.slice(0, 20_000));
    this.grid.style.setProperty('--keel-gutter', `${gutterWidth(this.lanes)}px`);
    if (!this.shown.some(step => step.name === this.selected)) {
      this.selected = this.shown[0]?.name ?? null;
    }
    this.grid.hidden = steps.length === 0;
    this.grid.setAttribute('aria-rowcount', String(this.shown.length + 1));
    this.space.style.height = `${this.shown.length * ROW}px`;
    this.grid.style.setProperty('--keel-high', `${(this.shown.length + 1) * ROW + 2}px`);
    if (!this.grid.classList.contains('keel-tall')) {
      this.grid.style.height = `${Math.min(TALLEST, Math.max(1, this.shown.length)) * ROW + ROW}px`;
    }
    this.drawn.clear();
    this.draw();
  }

  private later(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const had = this.space.contains(document.activeElement);
    const { first, end } = visible(this.grid.scrollTop, this.grid.clientHeight, ROW, this.shown.length);
    const state = `${this.selected} ${this.opened}`;
    if (this.drawnState !== state) {
      this.drawn.clear();
      this.drawnState = state;
    }
    const wanted = Array.from({ length: end - first }, (_, at) => first + at);
    const at = this.shown.findIndex(step => step.name === this.selected);
    if (at >= 0 && (at < first || at >= end)) {
      wanted.push(at); // the row that holds the focus is always there
    }
    // While somebody scrolls, a row that was drawn stays: only those that come into sight are made.
    const rows = new Map(wanted.map(index => [index, this.drawn.get(index) ?? this.rowAt(index)]));
    const kept = new Set(rows.values());
    [...this.space.children].filter(row => !kept.has(row as HTMLElement)).forEach(row => row.remove());
    this.space.append(...[...rows.values()].filter(row => row.parentElement !== this.space));
    this.drawn = rows;
    if (had && !this.space.contains(document.activeElement)) {
      this.focused()?.focus({ preventScroll: true });
    }
  }

  private rowAt(index: number): HTMLElement {
    const step = this.shown[index]!;
    const picked = step.name === this.selected;
    const lane = this.only.checked ? LONE : (this.laneOf.get(step.name) ?? LONE);
    const now = this.flow?.now ?? 0;
    const alone = this.flow?.alone ?? false;
    return row({ step, lane, lanes: this.lanes, index, selected: picked, focusable: picked, expanded: step.name === this.opened, now, alone });
  }

  private focused(): HTMLElement | null {
    const rows = [...this.space.children] as HTMLElement[];
    return rows.find(row => row.dataset['keelStep'] === this.selected) ?? null;
  }

  private select(name: string | null): void {
    const at = this.shown.findIndex(step => step.name === name);
    if (at < 0) {
      return;
    }
    this.selected = name;
    const room = Math.max(ROW, this.grid.clientHeight - ROW);
    this.grid.scrollTop = scrolledTo(at, this.grid.scrollTop, room, ROW);
    this.draw();
    this.focused()?.focus({ preventScroll: true });
  }

  private clicked(event: Event): void {
    const hit = (event.target as Element).closest<HTMLElement>('[data-keel-step]');
    const name = hit?.dataset['keelStep'];
    if (name !== undefined) {
      this.select(name);
      this.open(this.opened === name ? null : name);
    }
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const at = this.shown.findIndex(step => step.name === this.selected);
    const to = (index: number): void => this.select(this.shown[Math.max(0, Math.min(this.shown.length - 1, index))]?.name ?? null);
    const page = Math.max(1, Math.floor(this.grid.clientHeight / ROW) - 2);
    const keys: Record<string, () => void> = {
      ArrowDown: () => to(at + 1),
      ArrowUp: () => to(at - 1),
      ArrowRight: () => this.open(this.selected),
      ArrowLeft: () => this.open(null),
      PageDown: () => to(at + page),
      PageUp: () => to(at - page),
      Home: () => to(0),
      End: () => to(this.shown.length - 1),
      Enter: () => this.open(this.opened === this.selected ? null : this.selected),
      d: () => this.next(1),
      D: () => this.next(-1),
      f: () => this.only.click(),
      Escape: () => (this.opened === null ? this.source.leave(this.selected) : this.open(null))
    };
    const press = keys[event.key];
    if (press) {
      event.preventDefault();
      event.stopPropagation();
      press();
    }
  }

  private open(name: string | null): void {
    if (name !== this.opened || this.flow === null) {
      this.said.textContent = '';
      this.below.replaceChildren(); // what another step was is not shown as this one
      this.detailed = '';
    }
    this.opened = name;
    this.draw();
    if (name === null || this.flow === null) {
      return; // why there is nothing to show is said above, once
    }
    const note = (text: string, role?: string): void => {
      this.detailed = '';
      this.below.replaceChildren(h('p', { class: 'keel-note', role }, text));
    };
    const answered = whileAsked(text => this.opened === name && this.detailed === '' && note(text));
    this.source
      .details(name)
      .then(
        details => this.opened === name && this.detail(name, details),
        (problem: unknown) => this.opened === name && note(words(problem), 'alert')
      )
      .finally(answered);
  }

  /** Only where it is news: who reads, scrolls or has the focus on a button in there is left alone. */
  private detail(name: string, details: Details): void {
    const actions = offered(
      this.source,
      this.flow?.steps.find(step => step.name === name)
    );
    const news = JSON.stringify([details, actions]);
    if (news !== this.detailed) {
      this.detailed = news;
      this.below.replaceChildren(detailsOf(details, { actions, press: action => this.press(action, name) }));
    }
  }

  private press(action: Action, name: string): void {
    this.say(this.source.act(action, name));
  }

  private say(outcome: Promise<string>): void {
    outcome.then(
      said => (this.said.textContent = said),
      (problem: unknown) => (this.said.textContent = words(problem))
    );
  }
}

const LONE: LaneRow = { at: 0, through: [], from: [], to: [] };

export function words(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}

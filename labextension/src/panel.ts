/** The side panel: four tabs about the notebook in front. */

import { Widget } from '@lumino/widgets';

import { Companion } from './companion';
import { linkText, recordedOnly } from './model';
import { h } from './view/dom';
import { Details, RoomAnswer, StorageAnswer, TimelineAnswer, WaitingAnswer } from './view/model';
import { whileAsked } from './view/patience';
import { roomForm } from './view/room';
import { Action, Source } from './view/source';
import { PAGE, storage, timeline } from './view/tabs';
import { LineageView, words } from './view/view';
import { waiting } from './view/waiting';
import { keelIcon } from './icon';

const NO_NOTEBOOK = 'no notebook is open';
/** A whole journal is read, of every notebook of the folder. */
const ROOM_MS = 60_000;

const TABS = ['steps', 'timeline', 'waiting', 'storage'] as const;
type Tab = (typeof TABS)[number];
const WORDS: Readonly<Record<Tab, string>> = { steps: 'Steps', timeline: 'Timeline', waiting: 'Waiting', storage: 'Storage' };

export class Panel extends Widget implements Source {
  readonly view = new LineageView(this, { tall: true });
  private readonly tabs = new Map<Tab, HTMLButtonElement>();
  private readonly bodies = new Map<Tab, HTMLElement>();
  private current: Companion | null = null;
  private tab: Tab = 'steps';
  private most = PAGE;
  private room: HTMLElement = this.newRoom();
  /** What each tab shows: what has not changed is not drawn anew, under the hands of who writes an answer. */
  private readonly told = new Map<Tab, string>();

  constructor() {
    super();
    this.id = 'keel-panel';
    this.title.icon = keelIcon;
    this.title.caption = 'keel: steps of this notebook';
    const list = h('div', { role: 'tablist', class: 'keel-tabs', 'aria-label': 'keel' });
    for (const tab of TABS) {
      const button = h(
        'button',
        { type: 'button', role: 'tab', class: 'keel-tab', id: `keel-tab-${tab}`, 'data-keel-tab': tab, 'aria-controls': `keel-body-${tab}` },
        WORDS[tab]
      );
      button.addEventListener('click', () => this.select(tab));
      this.tabs.set(tab, button);
      list.append(button);
      this.bodies.set(
        tab,
        h('div', { role: 'tabpanel', class: `keel-tab-body keel-${tab}`, id: `keel-body-${tab}`, 'aria-labelledby': `keel-tab-${tab}` })
      );
    }
    list.addEventListener('keydown', event => this.arrow(event));
    this.bodies.get('steps')!.append(this.view.node);
    this.node.setAttribute('aria-label', 'keel');
    this.node.append(list, ...this.bodies.values());
    this.select('steps');
  }

  get can(): ReadonlySet<Action> {
    return (this.current?.watch.can ?? new Set()) as ReadonlySet<Action>;
  }

  /** The notebook in front has changed; null where none is. */
  follow(companion: Companion | null): void {
    this.current?.watch.changed.disconnect(this.refresh, this);
    this.current = companion;
    this.told.clear();
    this.room = this.newRoom();
    companion?.watch.changed.connect(this.refresh, this);
    this.refresh();
  }

  select(tab: Tab): void {
    this.tab = tab;
    for (const [name, button] of this.tabs) {
      button.setAttribute('aria-selected', String(name === tab));
      button.tabIndex = name === tab ? 0 : -1;
      this.bodies.get(name)!.hidden = name !== tab;
    }
    this.refresh();
  }

  /** Open a step; without a name the list as it is. */
  open(step: string | null): void {
    this.select('steps');
    this.draw(); // also where the panel is only about to be shown
    if (step !== null) {
      this.view.show(step);
    }
  }

  details(step: string): Promise<Details> {
    return this.ask('why', { step });
  }

  timeline(most: number): Promise<TimelineAnswer> {
    return this.ask('timeline', { most });
  }

  storage(): Promise<StorageAnswer> {
    return this.ask('storage', {});
  }

  waiting(): Promise<WaitingAnswer> {
    return this.ask('waiting', {});
  }

  act(action: Action, step: string): Promise<string> {
    return this.current ? this.current.act(action, step) : Promise.reject(new Error(NO_NOTEBOOK));
  }

  useLane(lane: string): Promise<string> {
    return this.current ? this.current.useLane(lane) : Promise.reject(new Error(NO_NOTEBOOK));
  }

  leave(step: string | null): void {
    const companion = this.current;
    const cell = step === null ? null : companion?.watch.cellOf(step);
    if (companion && cell) {
      companion.panel.content.activeCellIndex = companion.panel.content.widgets.indexOf(cell);
    }
    companion?.panel.activate();
  }

  protected override onAfterShow(): void {
    this.refresh();
  }

  protected override onActivateRequest(): void {
    if (this.tab === 'steps') {
      this.view.focus();
    } else {
      this.tabs.get(this.tab)!.focus();
    }
  }

  override dispose(): void {
    this.view.dispose();
    super.dispose();
  }

  private ask<T>(what: string, more: Readonly<Record<string, unknown>>, patience?: number): Promise<T> {
    const watch = this.current?.watch;
    if (!watch) {
      return Promise.reject(new Error(NO_NOTEBOOK));
    }
    if (!watch.client.connected) {
      return Promise.reject(new Error(linkText(watch.link) || linkText('gone')));
    }
    return watch.client.ask<T>(what, more, patience);
  }

  private refresh(): void {
    if (this.isVisible) {
      this.draw();
    }
  }

  private draw(): void {
    if (this.tab === 'steps') {
      return this.drawSteps();
    }
    const tab = this.tab;
    const body = this.bodies.get(tab)!;
    const answered = whileAsked(text => this.told.has(tab) || body.replaceChildren(h('p', { class: 'keel-empty' }, text)));
    void this.content(tab)
      .finally(answered)
      .then(
      ({ told, made }) => {
        if (this.told.get(tab) !== told) {
          this.told.set(tab, told);
          const had = body.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
          body.replaceChildren(made());
          had?.isConnected && had.focus({ preventScroll: true });
        }
      },
      (problem: unknown) => {
        this.told.delete(tab);
        body.replaceChildren(h('p', { class: 'keel-empty' }, words(problem)));
      }
    );
  }

  private drawSteps(): void {
    const watch = this.current?.watch;
    if (!watch) {
      return this.view.update(null, 'Open a notebook to see its steps.');
    }
    const { link } = watch;
    // Without a kernel only the recorded side is known: as it told last, or as the notebook itself holds it.
    const alone = link === 'no-kernel' || link === 'missing';
    const flow = watch.flow ?? (alone ? watch.held() : null);
    const empty = link === 'plain' || (flow !== null && link === 'ready');
    this.view.update(flow && alone ? recordedOnly(flow) : flow, linkText(link), empty);
  }

  /** What a tab has to tell, and how it is drawn where that is news. */
  private async content(tab: Exclude<Tab, 'steps'>): Promise<{ told: string; made: () => HTMLElement }> {
    const told = (answer: object): string => JSON.stringify({ ...answer, now: 0 });
    switch (tab) {
      case 'timeline': {
        const answer = await this.timeline(this.most);
        const older = (): void => {
          this.most += PAGE;
          this.refresh();
        };
        return { told: told(answer), made: () => timeline(answer, older, step => this.open(step)) };
      }
      case 'waiting': {
        const answer = await this.waiting();
        const companion = this.current;
        const send = companion?.watch.can.has('approve') ? (id: string, value: unknown) => companion.approve(id, value) : null;
        return { told: told(answer), made: () => waiting(answer, send) };
      }
      case 'storage': {
        const answer = await this.storage();
        return { told: told(answer), made: () => h('div', {}, storage(answer), this.room) };
      }
    }
  }

  private newRoom(): HTMLElement {
    return roomForm({
      dry: keep => this.ask<RoomAnswer>('room', { keep_s: keep }, ROOM_MS),
      go: keep => (this.current ? this.current.makeRoom(keep) : Promise.reject(new Error(NO_NOTEBOOK)))
    });
  }

  private arrow(event: KeyboardEvent): void {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (way !== undefined) {
      const to = TABS[(TABS.indexOf(this.tab) + way + TABS.length) % TABS.length]!;
      this.select(to);
      this.tabs.get(to)!.focus();
      event.preventDefault();
    }
  }
}

/** Everything that belongs to one notebook: badges, banner, live region, recovery. Goes with its notebook. */

import { Notebook, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { clearBadges, drawBadges } from './badges';
import { BannerRow } from './banner';
import { LateError } from './client';
import { log } from './log';
import {
  Banner,
  BannerAction,
  Recovered,
  STANDING,
  announcement,
  continueUpTo,
  diedBanner,
  gaveUpBanner,
  linkText,
  lostSteps,
  recoveredBanner,
  standingBanner
} from './model';
import { h } from './view/dom';
import { Flow, isRestorable } from './view/model';
import { Action } from './view/source';
import { words } from './view/view';
import { Fate, NotebookWatch } from './watch';

export interface Settings {
  autoRecover: boolean;
  badges: boolean;
  ageMarks: boolean;
  loadSilently: boolean;
}

const UNLOADED = 'keel is not loaded in this kernel. Run %load_ext keel_notebook, then Recover.';
/** Writing an answer down takes a process of its own, and a slow disk takes its time. */
const APPROVE_MS = 30_000;

export const DEFAULTS: Settings = { autoRecover: false, badges: true, ageMarks: true, loadSilently: true };

export class Companion implements IDisposable {
  readonly watch: NotebookWatch;
  private readonly banner = new BannerRow((action, kind) => void this.pressed(action, kind));
  private readonly live = h('div', { class: 'keel-live keel-hidden', 'aria-live': 'polite', role: 'status' });
  private readonly dismissed = new Set<string>();
  private settings = DEFAULTS;
  private died = false;
  private spoken: Flow | null = null;
  private frame = 0;
  private tick: ReturnType<typeof setInterval> | null = null;
  private speak: ReturnType<typeof setTimeout> | null = null;
  private _isDisposed = false;

  constructor(
    readonly panel: NotebookPanel,
    private readonly open: (step: string | null) => void
  ) {
    this.watch = new NotebookWatch(panel);
    this.watch.changed.connect(this.draw, this);
    this.watch.fate.connect(this.onFate, this);
    panel.content.modelContentChanged.connect(this.draw, this);
    panel.content.cellInViewportChanged.connect(this.draw, this);
    panel.content.node.addEventListener('scroll', this.onScroll, { passive: true, capture: true });
    panel.contentHeader.addWidget(this.banner);
    panel.node.append(this.live);
    panel.disposed.connect(this.dispose, this);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  set(settings: Settings): void {
    this.settings = settings;
    this.watch.loadSilently = settings.loadSilently;
    if (!settings.badges) {
      clearBadges(this.panel.content);
    }
    this.draw();
  }

  /** Bring back everything that is saved, in one request. Waits for the kernel's hello, and says what came of it. */
  async recover(): Promise<void> {
    this.banner.display({ kind: 'died', text: 'Recovering: waiting for the kernel …', actions: [], quiet: true });
    try {
      await this.haveKernel();
      if (!(await this.watch.ready())) {
        throw new Error(this.watch.link === 'missing' ? linkText('missing') : UNLOADED);
      }
      if (!this.watch.can.has('recover')) {
        // This kernel cannot bring values back without running: its way is plain cells run, steps replay.
        return this.say(diedBanner(this.watch.flow, this.watch.flow?.died ?? null, this.watch.cutOff, false));
      }
      this.banner.busy('Recovering …');
      const report = await this.watch.client.ask<Recovered & { flow: Flow }>('recover', {}, 0);
      this.died = false;
      this.watch.take(report.flow);
      this.watch.refresh(0);
      this.say(recoveredBanner(report.flow, report));
      log('recovered', report);
    } catch (problem) {
      this.say({ kind: 'died', text: words(problem), actions: [{ action: 'recover', word: 'Try again' }] });
      log('recover-failed', words(problem));
    }
  }

  /** After Jupyter gave up there is none that could be restarted: a new one of the same kind. */
  private async haveKernel(): Promise<void> {
    const context = this.panel.sessionContext;
    const kernel = context.session?.kernel;
    if (!kernel || kernel.status === 'dead') {
      const spec = this.panel.model?.getMetadata('kernelspec') as { name?: string } | undefined;
      const name = spec?.name ?? context.prevKernelName ?? context.specsManager.specs?.default;
      const start = (): Promise<unknown> => context.changeKernel(name === undefined ? {} : { name });
      // The server only finds out now that the old session's kernel is gone, and forgets it: then a new one is made.
      await start().catch(start);
    }
  }

  /** Go on from the top: plain cells run, steps replay, up to and including the first step that is not saved. */
  async continue_(): Promise<void> {
    const flow = this.watch.flow;
    if (flow) {
      const upTo = continueUpTo(this.watch.stepNames(), flow);
      await this.runCells(0, upTo);
      log('continued', upTo);
    }
  }

  /** Auto mode on where it is off, and the other way round; loads keel where the notebook does not use it yet. */
  async toggleAuto(): Promise<void> {
    if (await this.watch.ready(true)) {
      await this.watch.client.ask('auto', {}, 0);
      this.watch.refresh(0);
    } else {
      this.say({ kind: 'died', text: linkText('missing'), actions: [] });
    }
  }

  async act(action: Action, step: string): Promise<string> {
    const at = this.watch.stepNames().indexOf(step);
    if (action === 'replay' || action === 'rerun') {
      if (at < 0) {
        throw new Error(`${step} has no cell in this notebook`);
      }
      if (action === 'rerun') {
        await this.watch.client.ask('rerun', { step });
      }
      await this.runCells(at, action === 'rerun' ? undefined : at + 1);
      return `${step} ran`;
    }
    const answer = await this.watch.client.ask<{ said: string }>(action, { step });
    this.watch.refresh(0);
    return answer.said;
  }

  /** Answer an open promise; the kernel hears it while a cell runs only where its server has subshells. */
  async approve(promise: string, value: unknown): Promise<string> {
    try {
      const answer = await this.watch.client.ask<{ said: string }>('approve', { promise, value }, APPROVE_MS);
      this.watch.refresh(0);
      return answer.said;
    } catch (problem) {
      if (problem instanceof LateError) {
        throw new Error(`The kernel cannot hear this before its cell ends. From a terminal: keel resolve ${promise} --as-owner --value …`);
      }
      throw problem;
    }
  }

  /** Delete what no record needs; a large journal takes its time. */
  async makeRoom(keepSeconds: number): Promise<string> {
    const answer = await this.watch.client.ask<{ said: string }>('gc', { keep_s: keepSeconds }, 0);
    this.watch.refresh(0);
    return answer.said;
  }

  async useLane(lane: string): Promise<string> {
    const answer = await this.watch.client.ask<{ said: string }>('use', { lane });
    this.watch.refresh(0);
    return answer.said;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    cancelAnimationFrame(this.frame);
    clearTimeout(this.speak ?? undefined);
    clearInterval(this.tick ?? undefined);
    this.panel.content.node.removeEventListener('scroll', this.onScroll, { capture: true });
    this.watch.dispose();
    this.banner.dispose();
    Signal.clearData(this);
  }

  private runCells(from: number, to?: number): Promise<boolean> {
    const content: Notebook = this.panel.content;
    const cells = this.watch.codeCells().slice(from, to);
    return NotebookActions.runCells(content, cells, this.panel.sessionContext);
  }

  private readonly onScroll = (): void => this.draw();

  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.drawNow());
    const flow = this.watch.flow;
    if (flow) {
      this.listen(flow);
      this.stands(flow);
    }
    const runs = this.watch.since !== null;
    if (runs && this.tick === null) {
      this.tick = setInterval(() => this.panel.isVisible && this.draw(), 1000);
    } else if (!runs && this.tick !== null) {
      clearInterval(this.tick);
      this.tick = null;
    }
  }

  private drawNow(): void {
    if (this.isDisposed || !this.panel.isVisible || !this.settings.badges) {
      return;
    }
    const { flow, since } = this.watch;
    drawBadges(this.panel.content, { flow, since, open: step => this.open(step), ages: this.settings.ageMarks });
  }

  /** One sentence for all that changed within a second. */
  private listen(flow: Flow): void {
    this.spoken ??= flow; // what is there at first sight is no news
    if (this.speak === null) {
      this.speak = setTimeout(() => {
        this.speak = null;
        const now = this.watch.flow ?? flow;
        const said = announcement(this.spoken, now);
        this.spoken = now;
        if (said) {
          this.live.textContent = said;
        }
      }, 1000);
    }
  }

  /** What is so for a while: said when it begins and taken back when it ends; news are never covered by it. */
  private stands(flow: Flow): void {
    const { shown } = this.banner;
    if (this.watch.link !== 'ready' || (shown && !STANDING.has(shown.kind))) {
      return;
    }
    const standing = standingBanner(flow);
    if (shown && shown.kind !== standing?.kind) {
      this.banner.hide();
    }
    STANDING.forEach(kind => kind !== standing?.kind && this.dismissed.delete(kind));
    if (standing && standing.text !== shown?.text) {
      this.say(standing);
    }
  }

  private onFate(_: NotebookWatch, fate: Fate): void {
    const { watch } = this;
    const can = watch.can.has('recover');
    switch (fate) {
      case 'died':
        this.died = true;
        this.dismissed.delete('died');
        this.say(diedBanner(watch.flow, null, watch.cutOff, can));
        return;
      case 'gave-up':
        this.died = true;
        this.dismissed.clear();
        this.say(gaveUpBanner(watch.cutOff, watch.deaths));
        return;
      case 'ready':
        return this.met();
    }
  }

  /** A kernel has said hello: what it knows of the one before, and of whose records these are. */
  private met(): void {
    const flow = this.watch.flow;
    if (!flow) {
      return;
    }
    const standing = standingBanner(flow);
    if (standing) {
      this.say(standing);
    } else if (this.died) {
      this.say(diedBanner(flow, flow.died, this.watch.cutOff, this.watch.can.has('recover')));
      if (this.settings.autoRecover && this.watch.can.has('recover') && flow.steps.some(isRestorable)) {
        void this.recover();
      }
    }
  }

  private say(banner: Banner): void {
    if (!this.dismissed.has(banner.kind)) {
      this.banner.display(banner);
      log('banner', { kind: banner.kind, text: banner.text });
    }
  }

  private async pressed(action: BannerAction, kind: Banner['kind']): Promise<void> {
    switch (action) {
      case 'recover':
        return this.recover();
      case 'continue':
        this.banner.hide();
        return this.continue_();
      case 'show':
        return this.open((this.watch.flow && lostSteps(this.watch.flow)[0]?.name) ?? null);
      case 'dismiss':
        this.dismissed.add(kind);
        this.banner.hide();
        return this.panel.content.activate();
      case 'trust':
        try {
          const answer = await this.watch.client.ask<{ said: string }>('trust', {}, 0);
          this.say({ kind: 'recovered', text: answer.said, actions: [] });
        } catch (problem) {
          this.say({ kind: 'untrusted', text: words(problem), actions: [] });
        }
        return this.watch.refresh(0);
    }
  }
}

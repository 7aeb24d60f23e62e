/**
 * One notebook and its kernel: keeps the link, asks what the journal says, and tells who shows it.
 *
 * Nothing is asked while the notebook is hidden, or while it does not use keel.
 */

import { ISessionContext } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import { Kernel, KernelMessage } from '@jupyterlab/services';
import { IDisposable } from '@lumino/disposable';
import { IMessageHandler, Message, MessageLoop } from '@lumino/messaging';
import { ISignal, Signal } from '@lumino/signaling';

import { Client, MissingError } from './client';
import { Hello, sayHello } from './hello';
import { Loading } from './kernel';
import { log } from './log';
import { Link, NOTHING, afterDeath, withRunning } from './model';
import { automatic, heldIn, stepIn, usesKeel } from './steps';
import { Timers } from './timers';
import { Flow } from './view/model';
import { called } from './view/words';

const CALM_MS = 150;
const TYPING_MS = 500;
const SLOW_MS = 2000;
/** While a cell runs, what its step waits for is asked now and then; also what is about to change by itself. */
const LOOK_MS = 2000;
const LOOK_AGAIN_MS = 5000;

/** What happened to the kernel, as far as people have to know. */
export type Fate = 'died' | 'gave-up' | 'ready';

export class NotebookWatch implements IDisposable {
  readonly client = new Client(() => this.gone());
  can: ReadonlySet<string> = new Set();
  link: Link = 'plain';
  /** Cells that were sent and have not ended, in order: the first one runs. */
  readonly sent: { id: string; since: number }[] = [];
  /** Steps that were running when the kernel died. */
  cutOff: string[] = [];
  /** How often this kernel was restarted without anybody asking. */
  deaths = 0;
  private mayLoad = false;
  private readonly loading = new Loading();
  /** Whether questions are answered while a cell runs. */
  private beside = false;
  private wanted = false;
  private told: Flow | null = null;
  private signature = '';
  private readonly timers = new Timers();
  /** Counts the lives of kernels: an attempt to link belongs to one of them. */
  private life = 0;
  private linking: { life: number; done: Promise<void> } | null = null;
  private readonly _changed = new Signal<this, void>(this);
  private readonly _fate = new Signal<this, Fate>(this);
  private _isDisposed = false;

  constructor(readonly panel: NotebookPanel) {
    const context = panel.sessionContext;
    context.statusChanged.connect(this.onStatus, this);
    context.kernelChanged.connect(this.onKernel, this);
    context.iopubMessage.connect(this.onMessage, this);
    panel.content.modelContentChanged.connect(this.onContent, this);
    NotebookActions.executionScheduled.connect(this.onSent, this);
    NotebookActions.executed.connect(this.onDone, this);
    panel.disposed.connect(this.dispose, this);
    MessageLoop.installMessageHook(panel, this.shown);
    void Promise.all([panel.revealed, context.ready]).then(() => this.link_());
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get fate(): ISignal<this, Fate> {
    return this._fate;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The flow as it is shown: what the journal says, and which step's cell runs now. */
  get flow(): Flow | null {
    const running = new Set(this.runningSteps());
    return this.told || running.size > 0 ? withRunning(this.told ?? NOTHING, running) : null;
  }

  get since(): number | null {
    return this.sent[0]?.since ?? null;
  }

  get kernel(): Kernel.IKernelConnection | null {
    return this.panel.sessionContext.session?.kernel ?? null;
  }

  /** Whether keel is loaded by itself where the notebook uses it; false until a person's settings are known. */
  set loadSilently(may: boolean) {
    const news = may && !this.mayLoad;
    this.mayLoad = may;
    if (news) {
      this.loadEarly();
      if (this.link === 'missing') {
        void this.link_();
      }
    }
  }

  codeCells(): CodeCell[] {
    return this.panel.content.widgets.filter((cell): cell is CodeCell => cell instanceof CodeCell);
  }

  /** The step of each code cell, from the top. */
  stepNames(): (string | null)[] {
    const known = automatic(this.told);
    return this.codeCells().map(cell => stepIn(cell.model.sharedModel.getSource(), cell.model.id, known));
  }

  cellOf(step: string): CodeCell | null {
    return this.codeCells()[this.stepNames().indexOf(step)] ?? null;
  }

  /** The flow that an output of `%keel lineage` in the notebook holds, the last one: what is known without a kernel. */
  held(): Flow | null {
    return heldIn(this.codeCells().flatMap(cell => cell.model.outputs.toJSON()));
  }

  /** Ask anew; several wishes within a moment are one question. */
  refresh(after = CALM_MS): void {
    this.timers.soon('refresh', after, () => void this.ask(), true);
  }

  /**
   * Resolves once the kernel has said hello; connects where that is needed. Never races the loading of keel.
   * `wanted`: a person asks for keel, although the notebook does not use it yet.
   */
  async ready(wanted = false): Promise<boolean> {
    this.wanted ||= wanted;
    if (this.link !== 'ready') {
      await this.link_();
    }
    return this.client.connected && this.link === 'ready';
  }

  take(flow: Flow): void {
    called(flow.labels);
    this.told = flow;
    if (flow.held || flow.steps.some(step => step.state === 'saving')) {
      this.timers.soon('look', flow.held ? LOOK_AGAIN_MS : LOOK_MS, () => void this.ask());
    }
    log('flow', flow);
    this._changed.emit();
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this.timers.dispose();
    this.client.disconnect(new MissingError());
    MessageLoop.removeMessageHook(this.panel, this.shown);
    NotebookActions.executionScheduled.disconnect(this.onSent, this);
    NotebookActions.executed.disconnect(this.onDone, this);
    Signal.clearData(this);
  }

  /** What happened while the notebook was hidden was not asked for. */
  private readonly shown = (_: IMessageHandler, message: Message): boolean => {
    if (message.type === 'after-show') {
      this.refresh();
    }
    return true;
  };

  private runningSteps(): string[] {
    const first = this.sent[0];
    const cell = first && this.codeCells().find(one => one.model.id === first.id);
    const name = cell ? stepIn(cell.model.sharedModel.getSource(), cell.model.id, automatic(this.told)) : null;
    return name === null ? [] : [name];
  }

  /** Link to this life of the kernel; who asks while that is under way waits for the same attempt. */
  private link_(): Promise<void> {
    if (this.linking?.life !== this.life) {
      const mine = { life: this.life, done: this.tryLink() };
      this.linking = mine;
      void mine.done.finally(() => {
        if (this.linking === mine) {
          this.linking = null;
        }
      });
    }
    return this.linking!.done;
  }

  private uses(): boolean {
    return this.wanted || usesKeel(Array.from(this.panel.model?.cells ?? [], cell => cell.sharedModel.getSource()));
  }

  /** Before anything else is sent to a kernel that only comes up: Run All may be pressed before it answers. */
  private loadEarly(): void {
    const { kernel } = this;
    if (kernel && this.mayLoad && !this.isDisposed && this.panel.isVisible && this.uses()) {
      void this.loading.in(kernel);
    }
  }

  /** Open the comm and say hello; load keel first where the notebook uses it and the kernel does not have it yet. */
  private async tryLink(): Promise<void> {
    const kernel = this.kernel;
    if (this.isDisposed || !this.uses()) {
      return this.stand('plain');
    }
    if (!kernel) {
      return this.stand('no-kernel');
    }
    const mine = this.life;
    this.stand('connecting');
    this.timers.soon('slow', SLOW_MS, () => this.link === 'connecting' && this.stand('busy'));
    try {
      await kernel.info; // the kernel is there and has answered once
      let hello = await this.hello(kernel);
      if (!hello && this.mayLoad) {
        await this.loading.in(kernel);
        hello = await this.hello(kernel);
      }
      if (mine !== this.life || this.isDisposed) {
        return;
      }
      if (!hello) {
        log('missing');
        return this.stand('missing');
      }
      this.can = new Set(hello.can);
      this.link = 'ready';
      this.take(hello.flow);
      log('hello', hello.version);
      this._fate.emit('ready');
    } catch {
      if (mine === this.life && !this.isDisposed) {
        this.stand('gone'); // the kernel went away meanwhile: its next status brings us back
      }
    } finally {
      this.timers.drop('slow');
    }
  }

  /** What the kernel says to a hello; null where it does not know keel. */
  private async hello(kernel: Kernel.IKernelConnection): Promise<Hello | null> {
    const mine = this.life;
    const { cells, signature } = this.cells();
    const met = await sayHello(kernel, this.client, cells, () => mine === this.life && !this.isDisposed);
    this.beside = met?.beside ?? false;
    this.signature = met ? signature : this.signature;
    return met?.hello ?? null;
  }

  /** Tell the kernel the steps as they stand in the notebook where they changed, and take what it says of them. */
  private async ask(): Promise<void> {
    if (!this.client.connected || this.link !== 'ready' || !this.panel.isVisible) {
      return;
    }
    const { cells, signature } = this.cells();
    const changed = signature !== this.signature;
    try {
      const flow = changed ? await this.client.ask<Flow>('cells', { cells }) : await this.client.ask<Flow>('status');
      this.signature = signature;
      this.take(flow);
    } catch (problem) {
      log('late', String(problem)); // what was known stays; the next idle asks again
    }
  }

  private cells(): { cells: { name: string; source: string }[]; signature: string } {
    const names = this.stepNames();
    const cells = this.codeCells().flatMap((cell, at) => {
      const name = names[at] ?? null;
      return name === null ? [] : [{ name, source: cell.model.sharedModel.getSource() }];
    });
    return { cells, signature: JSON.stringify(cells) };
  }

  private stand(link: Link): void {
    if (this.link !== link) {
      this.link = link;
      this._changed.emit();
    }
  }

  private gone(): void {
    if (this.link === 'ready') {
      this.stand('missing');
    }
  }

  private cut(): void {
    this.life += 1;
    this.loading.forget();
    this.timers.soon('load', 0, () => this.loadEarly()); // only now what was sent before has been let go
    const running = this.runningSteps();
    if (this.link !== 'gone') {
      this.cutOff = running;
    }
    const shown = this.flow;
    this.sent.length = 0;
    this.client.disconnect(new MissingError());
    this.link = 'gone';
    this.told = shown && afterDeath(shown);
    this._changed.emit();
  }

  private onStatus(_: ISessionContext, status: Kernel.Status): void {
    log('status', status);
    switch (status) {
      case 'restarting':
        return this.cut();
      case 'autorestarting':
      case 'dead':
        if (this.link !== 'gone') {
          this.cut();
        }
        this.deaths += status === 'dead' ? 0 : 1;
        this._fate.emit(status === 'dead' ? 'gave-up' : 'died');
        return;
      case 'idle':
        if (this.link === 'gone' || this.link === 'no-kernel') {
          this.timers.soon('link', CALM_MS, () => void this.link_());
        }
        return;
      default:
        return;
    }
  }

  /** A cell has ended, whoever sent it. Our own questions make the kernel busy and idle, too: they do not count. */
  private onMessage(_: ISessionContext, message: KernelMessage.IMessage): void {
    const parent = message.parent_header as { msg_type?: string };
    if (this.link === 'ready' && parent.msg_type === 'execute_request' && KernelMessage.isStatusMsg(message)) {
      if (message.content.execution_state === 'idle') {
        this.refresh();
      }
    }
  }

  /** Another kernel, or none any more: whatever this one had in memory went with it. */
  private onKernel(): void {
    this.deaths = 0;
    this.cut();
    this.loadEarly();
    this.timers.soon('link', CALM_MS, () => void this.link_());
  }

  private onContent(): void {
    this.timers.soon('typing', TYPING_MS, () => {
      if (this.link === 'ready') {
        this.refresh();
      } else if (this.link === 'plain') {
        void this.link_();
      }
      this._changed.emit();
    });
  }

  private onSent(_: unknown, { notebook, cell }: { notebook: unknown; cell: { model: { id: string } } }): void {
    if (notebook === this.panel.content) {
      this.sent.push({ id: cell.model.id, since: Date.now() });
      this.timers.soon('draw', 0, () => this._changed.emit());
      this.timers.soon('meanwhile', LOOK_MS, () => void this.meanwhile());
    }
  }

  private async meanwhile(): Promise<void> {
    if (this.sent.length > 0 && this.beside) {
      await this.ask();
      this.timers.soon('meanwhile', LOOK_AGAIN_MS, () => void this.meanwhile());
    }
  }

  private onDone(_: unknown, { notebook, cell }: { notebook: unknown; cell: { model: { id: string } } }): void {
    if (notebook !== this.panel.content) {
      return;
    }
    const at = this.sent.findIndex(one => one.id === cell.model.id);
    if (at >= 0) {
      this.sent.splice(at, 1);
      if (this.sent[0]) {
        this.sent[0].since = Date.now(); // it starts only now
      }
    }
    this._changed.emit();
    if (this.link === 'ready') {
      this.refresh();
    } else if (this.link === 'missing' || this.link === 'plain') {
      this.timers.soon('link', CALM_MS, () => void this.link_()); // this cell may have been the one that loads keel
    }
  }
}

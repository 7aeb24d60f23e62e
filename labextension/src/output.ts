/**
 * The lineage in a notebook's output: drawn from what the output itself holds, so it is there without a kernel, and
 * kept up to date from the kernel where there is one.
 */

import { IRenderMime } from '@jupyterlab/rendermime';
import { Widget } from '@lumino/widgets';

import { Companion } from './companion';
import { Details, Flow, MIME, StorageAnswer, TimelineAnswer, WaitingAnswer } from './view/model';
import { Action, Source } from './view/source';
import { LineageView } from './view/view';

/** Which companion an output belongs to is known once it is in the page. */
type CompanionOf = (node: HTMLElement) => Companion | null;

export function lineageFactory(companionOf: CompanionOf): IRenderMime.IRendererFactory {
  // Safe: every text of the output becomes a text node, nothing of it is markup.
  return { safe: true, mimeTypes: [MIME], createRenderer: () => new LineageOutput(companionOf) };
}

class LineageOutput extends Widget implements IRenderMime.IRenderer, Source {
  private readonly view = new LineageView(this);
  private companion: Companion | null = null;

  constructor(private readonly companionOf: CompanionOf) {
    super();
    this.node.append(this.view.node);
  }

  get can(): ReadonlySet<Action> {
    return (this.companion?.watch.can ?? new Set()) as ReadonlySet<Action>;
  }

  renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.view.update(model.data[MIME] as unknown as Flow);
    this.follow();
    return Promise.resolve();
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
    this.follow();
    return this.companion ? this.companion.act(action, step) : Promise.reject(new Error(ALONE));
  }

  leave(): void {
    this.companion?.panel.content.activate();
  }

  override dispose(): void {
    this.companion?.watch.changed.disconnect(this.live, this);
    this.view.dispose();
    super.dispose();
  }

  protected override onAfterAttach(): void {
    this.follow();
  }

  private follow(): void {
    if (!this.companion) {
      this.companion = this.companionOf(this.node);
      this.companion?.watch.changed.connect(this.live, this);
      this.live();
    }
  }

  private live(): void {
    const flow = this.companion?.watch.flow;
    if (flow && flow.steps.length > 0 && this.isAttached) {
      this.view.update(flow);
    }
  }

  private ask<T>(what: string, more: Readonly<Record<string, unknown>>): Promise<T> {
    this.follow();
    const client = this.companion?.watch.client;
    return client?.connected ? client.ask<T>(what, more) : Promise.reject(new Error(ALONE));
  }
}

const ALONE = 'No kernel answers: this is what was known when the cell ran.';

/** The view as an anywidget: what the kernel keeps is in `flow`; everything else is asked for over messages. */

import { Flow } from './model';
import { Source } from './source';
import { LineageView } from './view';

interface Model {
  get(name: 'flow'): Flow;
  on(event: string, listener: (...args: never[]) => void): void;
  off(event: string, listener: (...args: never[]) => void): void;
  send(content: unknown): void;
}

interface Reply {
  id?: number;
  ok?: boolean;
  answer?: unknown;
  error?: { text: string };
}

const PATIENCE_MS = 5000;

/** One number line for all widgets of a page: a kernel answers every view of a model. */
let asked = 0;

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const open = new Map<number, { done: (answer: never) => void; failed: (problem: Error) => void }>();
  const hear = (reply: Reply): void => {
    const waits = open.get(reply.id ?? -1);
    if (waits) {
      open.delete(reply.id ?? -1);
      if (reply.ok) {
        waits.done(reply.answer as never);
      } else {
        waits.failed(new Error(reply.error?.text ?? 'the kernel refused'));
      }
    }
  };
  const ask = <T>(what: string, more: object): Promise<T> =>
    new Promise((done, failed) => {
      const id = ++asked;
      open.set(id, { done, failed });
      const late = (): void => {
        if (open.delete(id)) {
          failed(new Error('No kernel answers: this shows what was known when the notebook was saved.'));
        }
      };
      setTimeout(late, PATIENCE_MS);
      try {
        model.send({ id, ask: what, ...more });
      } catch {
        late();
      }
    });
  const source: Source = {
    can: new Set(['accept', 'forget', 'revive']),
    details: step => ask('why', { step }),
    timeline: most => ask('timeline', { most }),
    storage: () => ask('storage', {}),
    waiting: () => ask('waiting', {}),
    act: (action, step) => ask<{ said: string }>(action, { step }).then(answer => answer.said),
    leave: () => (document.activeElement as HTMLElement | null)?.blur()
  };
  const view = new LineageView(source);
  const changed = (): void => view.update(model.get('flow'));
  model.on('change:flow', changed);
  model.on('msg:custom', hear);
  el.append(view.node);
  changed();
  return () => {
    model.off('change:flow', changed);
    model.off('msg:custom', hear);
    view.dispose();
  };
}

export default { render };

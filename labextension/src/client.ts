/** Questions to the kernel over the comm target `keel`: every one has an id and a time-out (FRONTEND.md). */

/** What the client needs of a comm; JupyterLab's is one. */
export interface CommLike {
  open(): unknown;
  send(message: { id: number; ask: string }): unknown;
  close(): unknown;
  readonly isDisposed: boolean;
  onMsg: (message: never) => void;
  onClose: (message: never) => void;
}

/** The kernel closed the comm: it does not know keel. */
export class MissingError extends Error {
  constructor() {
    super('keel is not loaded in this kernel');
  }
}

/** No answer in time: the kernel is busy in native code, or gone. */
export class LateError extends Error {
  constructor() {
    super('The kernel does not answer. It may be busy in native code; what is shown is what was known before.');
  }
}

/** keel said no, with a code. */
export class RefusedError extends Error {
  constructor(
    readonly code: string,
    text: string
  ) {
    super(text);
  }
}

interface Reply {
  id?: number;
  ok?: boolean;
  answer?: unknown;
  error?: { code: string; text: string };
}

interface Open {
  done: (answer: never) => void;
  failed: (problem: Error) => void;
  timer: ReturnType<typeof setTimeout>;
}

export class Client {
  private comm: CommLike | null = null;
  private readonly open = new Map<number, Open>();
  private asked = 0;

  constructor(private readonly lost: (problem: Error) => void) {}

  get connected(): boolean {
    return this.comm !== null && !this.comm.isDisposed;
  }

  /** Open a new comm, and give what its opening gives. One that was open before is let go: after a restart it is dead. */
  connect(comm: CommLike): unknown {
    this.disconnect(new MissingError());
    this.comm = comm;
    comm.onMsg = (message: never): void => this.hear((message as { content: { data: Reply } }).content.data);
    comm.onClose = (): void => {
      if (this.comm === comm) {
        this.disconnect(new MissingError());
        this.lost(new MissingError());
      }
    };
    return comm.open();
  }

  /** Ask, and wait at most `patience` milliseconds; 0 waits for as long as it takes. */
  ask<T>(ask: string, more: Readonly<Record<string, unknown>> = {}, patience = 10_000): Promise<T> {
    const comm = this.comm;
    if (!comm || comm.isDisposed) {
      return Promise.reject(new MissingError());
    }
    this.asked += 1;
    const id = this.asked;
    return new Promise<T>((done, failed) => {
      const late = (): void => {
        this.open.delete(id);
        failed(new LateError());
      };
      const timer = patience > 0 ? setTimeout(late, patience) : setTimeout(() => undefined, 0);
      this.open.set(id, { done, failed, timer });
      comm.send({ ...more, id, ask });
    });
  }

  /** Let go of the comm; open questions fail. */
  disconnect(problem: Error): void {
    const comm = this.comm;
    this.comm = null;
    for (const { failed, timer } of this.open.values()) {
      clearTimeout(timer);
      failed(problem);
    }
    this.open.clear();
    if (comm && !comm.isDisposed) {
      comm.onMsg = (): void => undefined;
      comm.onClose = (): void => undefined;
    }
  }

  private hear(reply: Reply): void {
    const waits = this.open.get(reply.id ?? -1);
    if (!waits) {
      return; // too late: its asker has given up
    }
    this.open.delete(reply.id ?? -1);
    clearTimeout(waits.timer);
    if (reply.ok) {
      waits.done(reply.answer as never);
    } else {
      waits.failed(new RefusedError(reply.error?.code ?? 'E040', reply.error?.text ?? 'keel refused'));
    }
  }
}

/** What has to be known of kernels and comms to talk to keel in one. */

import { CommsOverSubshells, Kernel } from '@jupyterlab/services';

/** Run in the kernel where the notebook has steps and keel is not loaded. An environment without it stays as it is. Not by
    `%load_ext`: IPython would answer the notebook's own `%load_ext` with "already loaded". */
const LOAD = `
try:
    __import__('keel_notebook').load_ipython_extension(get_ipython())
except ModuleNotFoundError:
    pass
`;

/** Loading keel into the lives of one notebook's kernel: once in each, in front of what a person sends next. */
export class Loading {
  private under: Promise<unknown> | null = null;

  /** Another life: whatever was loaded went with the one before. */
  forget(): void {
    this.under = null;
  }

  /** Ends when keel is there, or is not going to be. A kernel that is not there yet gets this before any cell. */
  in(kernel: Kernel.IKernelConnection): Promise<unknown> {
    this.under ??= load(kernel);
    return this.under;
  }
}

async function load(kernel: Kernel.IKernelConnection): Promise<void> {
  try {
    await kernel.requestExecute({ code: LOAD, silent: true, store_history: false, allow_stdin: false }).done;
  } catch {
    // The kernel went away before it came to that: its next life has a loading of its own.
  }
}

/** How long the start of a subshell is waited for: without one, questions wait for the cell that runs. */
const SUBSHELL_MS = 2000;

/**
 * Wait until the comm has the subshell that it is going to use, before it is opened: then its opening does not wait for
 * the cells that were sent before, and ipykernel answers all its messages from there. Gives whether there is one.
 */
export async function ownShell(kernel: Kernel.IKernelConnection, comm: Kernel.IComm): Promise<boolean> {
  const { subshellStarted, commsOverSubshells } = comm as { subshellStarted?: Promise<void>; commsOverSubshells?: string };
  if (kernel.supportsSubshells && subshellStarted && commsOverSubshells !== CommsOverSubshells.Disabled) {
    const started = subshellStarted.then(() => true);
    return Promise.race([started, new Promise<boolean>(done => setTimeout(() => done(false), SUBSHELL_MS))]);
  }
  return false;
}

/** Resolves when the kernel is not busy (any more). */
export function calm(kernel: Kernel.IKernelConnection): Promise<void> {
  return new Promise(done => {
    const look = (): void => {
      if (kernel.isDisposed || kernel.status !== 'busy') {
        kernel.statusChanged.disconnect(look);
        done();
      }
    };
    kernel.statusChanged.connect(look);
    look();
  });
}

/**
 * Wait until a comm is open: its first message goes another way and would overtake. Where the opening got lost with a
 * kernel that was just going, this ends all the same; the question that follows is then asked again.
 */
export async function opened(kernel: Kernel.IKernelConnection, future: unknown): Promise<void> {
  const done = (future as Kernel.IShellFuture).done.then(
    () => undefined,
    () => undefined
  );
  await Promise.race([done, new Promise(late => setTimeout(late, SUBSHELL_MS)).then(() => calm(kernel))]);
}

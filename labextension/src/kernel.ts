/** What has to be known of kernels and comms to talk to keel in one. */

import { CommsOverSubshells, Kernel } from '@jupyterlab/services';

/** Run in the kernel where the notebook has steps and keel is not loaded. An environment without it stays as it is. Not by
    `%load_ext`: IPython would answer the notebook's own `%load_ext` with "already loaded". */
export const LOAD = `
try:
    __import__('keel_notebook').load_ipython_extension(get_ipython())
except ModuleNotFoundError:
    pass
`;

/** How long the start of a subshell is waited for: without one, questions wait for the cell that runs. */
const SUBSHELL_MS = 2000;

/**
 * Wait until the comm has the subshell that it is going to use. ipykernel keeps sending a comm's messages to where its
 * last answer came from: a first one that is answered by the main shell would leave the next waiting for the cell.
 * Gives whether there is such a subshell.
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

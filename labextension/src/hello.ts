/** The first words with a kernel: a comm, and what keel in there says of this notebook. */

import { Kernel } from '@jupyterlab/services';

import { Client, CommLike, LateError, MissingError } from './client';
import { calm, opened, ownShell } from './kernel';
import { Flow } from './view/model';

const HELLO_MS = 4000;

export interface Hello {
  version: string;
  can: string[];
  flow: Flow;
}

/** `beside`: questions are answered while a cell runs. */
export interface Met {
  hello: Hello;
  beside: boolean;
}

/** Open a comm and say hello. Null where the kernel does not know keel; rejects where it is `wanted` no more. */
export async function sayHello(
  kernel: Kernel.IKernelConnection,
  client: Client,
  cells: readonly object[],
  wanted: () => boolean
): Promise<Met | null> {
  for (;;) {
    const comm = kernel.createComm('keel');
    const beside = await ownShell(kernel, comm);
    await opened(kernel, client.connect(comm as unknown as CommLike));
    try {
      return { hello: await client.ask<Hello>('hello', { cells }, HELLO_MS), beside };
    } catch (problem) {
      if (problem instanceof MissingError) {
        return null;
      }
      // Sent to a kernel that was just going, or one that runs a cell: say it again once it is not busy.
      await calm(kernel);
      if (!(problem instanceof LateError) || !wanted()) {
        throw problem;
      }
    }
  }
}

import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { Client, CommLike, LateError, MissingError, RefusedError } from '../src/client';

class FakeComm implements CommLike {
  isDisposed = false;
  opened = 0;
  readonly sent: { id: number; ask: string }[] = [];
  onMsg: (message: never) => void = () => undefined;
  onClose: (message: never) => void = () => undefined;
  open(): void {
    this.opened += 1;
  }
  close(): void {
    this.isDisposed = true;
  }
  send(message: { id: number; ask: string }): void {
    this.sent.push(message);
  }
  reply(data: object): void {
    this.onMsg({ content: { data } } as never);
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function connected(): { client: Client; comm: FakeComm; lost: Error[] } {
  const lost: Error[] = [];
  const client = new Client(problem => lost.push(problem));
  const comm = new FakeComm();
  client.connect(comm);
  return { client, comm, lost };
}

test('answers find their question by its id, in any order', async () => {
  const { client, comm } = connected();
  const one = client.ask<number>('status');
  const two = client.ask<number>('why', { step: 'fit' });
  expect(comm.sent).toEqual([
    { id: 1, ask: 'status' },
    { id: 2, ask: 'why', step: 'fit' }
  ]);
  comm.reply({ id: 2, ok: true, answer: 22 });
  comm.reply({ id: 1, ok: true, answer: 11 });
  expect([await one, await two]).toEqual([11, 22]);
});

test('a question that nobody answers fails in time, and its late answer harms nobody', async () => {
  const { client, comm } = connected();
  const asked = client.ask('status', {}, 2000);
  const failed = expect(asked).rejects.toBeInstanceOf(LateError);
  await vi.advanceTimersByTimeAsync(2001);
  await failed;
  comm.reply({ id: 1, ok: true, answer: 1 });
});

test('a recovery may take as long as it takes', async () => {
  const { client, comm } = connected();
  const asked = client.ask('recover', {}, 0);
  await vi.advanceTimersByTimeAsync(3_600_000);
  comm.reply({ id: 1, ok: true, answer: 'done' });
  expect(await asked).toBe('done');
});

test('a no has its code', async () => {
  const { client, comm } = connected();
  const asked = client.ask('trust');
  comm.reply({ id: 1, ok: false, error: { code: 'E030', text: 'held by pid 7' } });
  const problem = await asked.catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(RefusedError);
  expect(problem).toMatchObject({ code: 'E030', message: 'held by pid 7' });
});

test('a kernel that closes the comm does not know keel: open questions fail at once', async () => {
  const { client, comm, lost } = connected();
  const asked = client.ask('hello', {}, 0);
  comm.onClose({} as never);
  await expect(asked).rejects.toBeInstanceOf(MissingError);
  expect(lost).toHaveLength(1);
  expect(client.connected).toBe(false);
  await expect(client.ask('status')).rejects.toBeInstanceOf(MissingError);
});

test('after a restart the old comm is dead: a new one takes over, and the old one is not heard any more', async () => {
  const { client, comm, lost } = connected();
  const old = client.ask('status');
  const again = new FakeComm();
  const failed = expect(old).rejects.toBeInstanceOf(MissingError);
  client.connect(again);
  await failed;
  comm.onClose({} as never);
  expect(lost).toHaveLength(0);
  const asked = client.ask('status');
  comm.reply({ id: 2, ok: true, answer: 'old' });
  again.reply({ id: 2, ok: true, answer: 'new' });
  expect(await asked).toBe('new');
});

/** What happened, in order, for tests to wait on: only where a page has put a list there before. */

interface Logged {
  event: string;
  detail: unknown;
}

export function log(event: string, detail: unknown = null): void {
  (window as unknown as { keelLog?: Logged[] }).keelLog?.push({ event, detail });
}

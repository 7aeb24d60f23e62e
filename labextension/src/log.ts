/** A list of what happened, for tests to wait on: only where the address asks for it with `keel-test`. */

const wanted = new URLSearchParams(window.location.search).has('keel-test');
const list: { event: string; detail: unknown }[] = [];

if (wanted) {
  Object.assign(window, { keelLog: list });
}

export function log(event: string, detail: unknown = null): void {
  if (wanted) {
    list.push({ event, detail });
  }
}

/** Named timers: what is wished again before it came is one wish. */

export class Timers {
  private readonly running = new Map<string, ReturnType<typeof setTimeout>>();
  private over = false;

  /** Later; a wish of the same name that still waits is put off, or with `keep` stays when it was. */
  soon(what: string, after: number, then: () => void, keep = false): void {
    if (this.over || (keep && this.running.has(what))) {
      return;
    }
    this.drop(what);
    const timer = setTimeout(() => {
      this.running.delete(what);
      then();
    }, after);
    this.running.set(what, timer);
  }

  drop(what: string): void {
    clearTimeout(this.running.get(what));
    this.running.delete(what);
  }

  dispose(): void {
    this.over = true;
    this.running.forEach(timer => clearTimeout(timer));
    this.running.clear();
  }
}

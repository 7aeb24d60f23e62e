/** What is said while the kernel is asked: nothing for a moment, then that it is asked, then that it is busy. */

const MOMENT_MS = 400;
const BUSY_MS = 2000;

/** Calls `say` while nobody has answered; what it gives ends that. */
export function whileAsked(say: (text: string) => void): () => void {
  const timers = [
    setTimeout(() => say('Asking the kernel …'), MOMENT_MS),
    setTimeout(() => say('Waiting for the kernel: it is busy.'), BUSY_MS)
  ];
  return () => timers.forEach(timer => clearTimeout(timer));
}

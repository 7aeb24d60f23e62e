/** Numbers as people write them. */

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86400],
  ['h', 3600],
  ['min', 60]
];

/** A duration: `12 min`, `2.1 s`, `340 ms`. */
export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) {
    return '';
  }
  for (const [unit, size] of UNITS) {
    if (seconds >= size) {
      const whole = seconds / size;
      return `${whole < 10 ? trimmed(whole, 1) : Math.round(whole)} ${unit}`;
    }
  }
  if (seconds >= 1) {
    return `${seconds < 10 ? trimmed(seconds, 1) : Math.round(seconds)} s`;
  }
  return seconds >= 0.001 ? `${Math.round(seconds * 1000)} ms` : '< 1 ms';
}

/** The same in at most five characters, for a pill: `12m`, `2.1s`. */
export function shortDuration(seconds: number): string {
  return duration(seconds).replace('min', 'm').replace(' ', '');
}

/** A running timer: `0:07`, `12:05`, `1:02:05`. */
export function timer(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (value: number): string => String(value).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** Bytes: `2.1 MB`. */
export function size(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 || value >= 10 ? Math.round(value) : trimmed(value, 1)} ${units[at]}`;
}

/** A time of day, with the date where it is not that of `now`. Both in seconds since the epoch. */
export function clock(at: number, now: number): string {
  const there = new Date(at * 1000);
  const time = there.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false });
  const present = new Date(now * 1000);
  if (there.toDateString() === present.toDateString()) {
    return time;
  }
  const day = there.toLocaleDateString([], { day: 'numeric', month: 'short' });
  return there.getFullYear() === present.getFullYear() ? `${day} ${time}` : `${day} ${there.getFullYear()} ${time}`;
}

const LONGEST = 48;
const TURNS = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;

/** What people call the steps that have only a cell's id. Ids are those of cells, one over all notebooks. */
const labels = new Map<string, string>();

export function called(told: Readonly<Record<string, string>> | undefined): void {
  Object.entries(told ?? {}).forEach(([step, label]) => labels.set(step, label));
}

export function label(step: string): string {
  return labels.get(step) ?? step;
}

/**
 * A name as it stands in a sentence: a long one loses its middle, and one that is written from right to left, or turns
 * the writing around, stays among itself.
 */
export function named(step: string): string {
  const name = label(step);
  const letters = [...name];
  const short = letters.length <= LONGEST ? name : `${letters.slice(0, 30).join('')}…${letters.slice(-15).join('')}`;
  return TURNS.test(short) ? `\u2066${short}\u2069` : short;
}

/** A text that others wrote around a name, with the name as `named` has it. */
export function renamed(text: string, name: string): string {
  const shown = named(name);
  return name === '' || shown === name ? text : text.split(name).join(shown);
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.0$/, '');
}

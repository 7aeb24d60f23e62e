/** One line beside its other version: what is in this one only is marked. */

import { diffWordsWithSpace } from 'diff';

import { Child, h } from './dom';

/** A line where next to nothing is the same is marked as a whole, by its row. */
const ALIKE = 0.35;

export function bits(text: string, other: string): Child[] {
  const parts = diffWordsWithSpace(text, other).filter(part => !part.added);
  const same = parts.filter(part => !part.removed).reduce((sum, part) => sum + part.value.trim().length, 0);
  if (same < ALIKE * text.trim().length) {
    return [text];
  }
  return parts.map(part => (part.removed ? h('span', { class: 'keel-bit' }, part.value) : part.value));
}

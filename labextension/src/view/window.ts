/** Which rows of a long list are drawn: all rows have one height, so this is arithmetic. */

export interface Window {
  first: number;
  /** One past the last row that is drawn. */
  end: number;
}

const MARGIN = 8;

export function visible(scrollTop: number, height: number, row: number, count: number): Window {
  const first = Math.max(0, Math.floor(scrollTop / row) - MARGIN);
  const end = Math.min(count, Math.ceil((scrollTop + Math.max(height, row)) / row) + MARGIN);
  return { first: Math.min(first, Math.max(0, count - 1)), end };
}

/** Where to scroll so that a row is in sight; the same place where it is already. */
export function scrolledTo(index: number, scrollTop: number, height: number, row: number): number {
  const top = index * row;
  if (top < scrollTop) {
    return top;
  }
  return top + row > scrollTop + height ? top + row - height : scrollTop;
}

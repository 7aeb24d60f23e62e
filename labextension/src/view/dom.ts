/** Elements without markup: every text is a text node, so nothing of a notebook or journal is ever parsed as HTML. */

export type Child = Node | string | null | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | number | boolean | undefined>> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== false));
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** A 16 x 16 icon drawn with one stroke; the words beside it say what it means. */
export function icon(path: string): SVGSVGElement {
  const svg = shape('svg', { viewBox: '0 0 16 16', class: 'keel-icon', 'aria-hidden': 'true', focusable: 'false' });
  svg.append(shape('path', { d: path }));
  return svg as SVGSVGElement;
}

export function shape(tag: string, attributes: Readonly<Record<string, string | number>>): SVGElement {
  const element = document.createElementNS(SVG, tag) as SVGElement;
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, String(value));
  }
  return element;
}

/** A button with a word on it. */
export function button(word: string, action: string, press: () => void, title = ''): HTMLButtonElement {
  const made = h('button', { type: 'button', class: 'keel-button', 'data-keel-action': action }, word);
  if (title) {
    made.title = title;
  }
  made.addEventListener('click', press);
  return made;
}

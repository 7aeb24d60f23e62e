/** What stands where there are no steps yet: what a step is, and one to copy. */

import { button, h } from './dom';

const EXAMPLE = '%%keel_step load\nrows = fetch_everything()';

export function emptyState(): HTMLElement[] {
  const said = h('span', { role: 'status' });
  const copy = button('Copy', 'copy', () => {
    navigator.clipboard.writeText(EXAMPLE).then(
      () => (said.textContent = 'Copied'),
      () => (said.textContent = 'The browser did not allow it')
    );
  });
  return [
    h('p', {}, 'A step is a cell whose result survives the kernel. Put one line on top of a cell and run it:'),
    h('pre', { class: 'keel-example' }, EXAMPLE),
    h('div', { class: 'keel-answering' }, copy, said)
  ];
}

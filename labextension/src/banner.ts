/** One row above the notebook: what happened, what is saved, what can be done. Never a second dialog. */

import { Widget } from '@lumino/widgets';

import { Banner, BannerAction } from './model';
import { button, h } from './view/dom';

export class BannerRow extends Widget {
  private banner: Banner | null = null;

  constructor(private readonly press: (action: BannerAction, kind: Banner['kind']) => void) {
    super();
    this.addClass('keel-banner');
    this.hide();
  }

  /** What is displayed now; null while there is nothing. */
  get shown(): Banner | null {
    return this.isHidden ? null : this.banner;
  }

  display(banner: Banner): void {
    this.banner = banner;
    this.node.dataset['keelKind'] = banner.kind;
    // A loss interrupts whoever listens; good news waits for a pause.
    this.node.setAttribute('role', banner.kind === 'recovered' ? 'status' : 'alert');
    this.node.replaceChildren(
      h('span', { class: 'keel-banner-text', title: banner.text }, banner.text),
      ...banner.actions.map(({ action, word }) => button(word, action, () => this.press(action, banner.kind))),
      this.dismiss(banner.kind)
    );
    this.show();
  }

  /** While something is done about it, its buttons cannot be pressed again. */
  busy(text: string): void {
    this.node.querySelector('.keel-banner-text')!.textContent = text;
    this.node.querySelectorAll('button').forEach(one => (one.disabled = true));
  }

  private dismiss(kind: Banner['kind']): HTMLButtonElement {
    const close = button('×', 'dismiss', () => this.press('dismiss', kind), 'Dismiss');
    close.setAttribute('aria-label', 'Dismiss');
    return close;
  }
}

/** One row above the notebook: what happened, what is saved, what can be done. Never a second dialog. */

import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { Banner, BannerAction } from './model';
import { button, h } from './view/dom';

export class BannerRow extends Widget {
  private banner: Banner | null = null;
  /** As high as its text needs: what is lost is never behind an ellipsis. */
  private readonly row = h('div', { class: 'keel-banner-row' });

  constructor(private readonly press: (action: BannerAction, kind: Banner['kind']) => void) {
    super();
    this.addClass('keel-banner');
    this.node.append(this.row);
    this.hide();
  }

  /** What is displayed now; null while there is nothing. */
  get shown(): Banner | null {
    return this.isHidden ? null : this.banner;
  }

  display(banner: Banner): void {
    const had = this.node.contains(document.activeElement);
    this.banner = banner;
    this.node.dataset['keelKind'] = banner.kind;
    // A loss interrupts whoever listens; good news and what is being done wait for a pause.
    this.node.setAttribute('role', banner.kind === 'recovered' || banner.quiet ? 'status' : 'alert');
    this.row.replaceChildren(
      h('span', { class: 'keel-banner-text' }, banner.text),
      ...banner.actions.map(({ action, word }) => button(word, action, () => this.press(action, banner.kind))),
      this.dismiss(banner.kind)
    );
    this.show();
    this.grow();
    if (had) {
      this.node.querySelector('button')!.focus(); // whoever pressed a button here goes on from here
    }
  }

  /** While something is done about it, its buttons cannot be pressed again. */
  busy(text: string): void {
    this.node.querySelector('.keel-banner-text')!.textContent = text;
    this.node.querySelectorAll('button').forEach(one => (one.disabled = true));
    this.grow();
  }

  protected override onAfterShow(): void {
    this.grow();
  }

  protected override onResize(): void {
    this.grow();
  }

  /** The layout above gives a row the height that its style asks for, and asks nobody else. */
  private grow(): void {
    const height = `${this.row.offsetHeight + 1}px`;
    if (this.isVisible && this.parent && this.node.style.minHeight !== height) {
      this.node.style.minHeight = this.node.style.maxHeight = height;
      MessageLoop.postMessage(this.parent, Widget.Msg.FitRequest);
    }
  }

  private dismiss(kind: Banner['kind']): HTMLButtonElement {
    const close = button('×', 'dismiss', () => this.press('dismiss', kind), 'Dismiss');
    close.setAttribute('aria-label', 'Dismiss');
    return close;
  }
}

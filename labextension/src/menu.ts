/** The small arrow beside the toolbar button: what else keel can do, and the switch of auto mode with its tick. */

import { MenuSvg, caretDownEmptyThinIcon } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';
import { Menu, Widget } from '@lumino/widgets';

import { h } from './view/dom';

const ITEMS = ['toggle-auto', 'recover', 'show-lineage', 'next-divergence', 'approve'] as const;

/** Opens the menu below itself. Every notebook has one; its menu is made when it is first asked for. */
export class MenuButton extends Widget {
  private readonly button = h('button', {
    type: 'button',
    class: 'keel-menu-button',
    'aria-haspopup': 'menu',
    'aria-expanded': 'false',
    'aria-label': 'keel: auto mode, recover, steps',
    title: 'keel: auto mode, recover, steps'
  });
  private menu: Menu | null = null;

  constructor(private readonly commands: CommandRegistry) {
    super();
    this.addClass('keel-menu-home');
    this.button.append(caretDownEmptyThinIcon.element({ tag: 'span', width: '16px' }));
    this.button.addEventListener('click', () => this.open());
    this.node.append(this.button);
  }

  override dispose(): void {
    this.menu?.dispose();
    super.dispose();
  }

  private open(): void {
    this.menu ??= this.newMenu();
    const box = this.button.getBoundingClientRect();
    this.menu.open(box.left, box.bottom);
    this.menu.activeIndex = 0;
    this.button.setAttribute('aria-expanded', 'true');
  }

  private newMenu(): Menu {
    const menu = new MenuSvg({ commands: this.commands, renderer: new Checked() });
    menu.addClass('keel-menu');
    menu.title.label = 'keel';
    ITEMS.forEach(command => menu.addItem({ command: `keel:${command}` }));
    menu.aboutToClose.connect(() => {
      this.button.setAttribute('aria-expanded', 'false');
      this.button.focus();
    });
    return menu;
  }
}

/** A switch says that it is one, also while it is off. */
class Checked extends MenuSvg.Renderer {
  override createItemARIA(data: Menu.IRenderData): ReturnType<MenuSvg.Renderer['createItemARIA']> {
    const said = super.createItemARIA(data);
    return data.item.isToggleable ? { ...said, role: 'menuitemcheckbox', 'aria-checked': String(data.item.isToggled) } : said;
  }
}

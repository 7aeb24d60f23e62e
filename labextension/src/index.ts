/** The plugin: one companion for every notebook, one panel for the notebook in front, and the commands. */

import { ILabShell, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry, SessionContextDialogs } from '@jupyterlab/apputils';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStatusBar } from '@jupyterlab/statusbar';
import { SplitPanel, Widget } from '@lumino/widgets';

import { Companion, DEFAULTS, Settings } from './companion';
import { keelIcon } from './icon';
import { log } from './log';
import { MenuButton } from './menu';
import { statusText } from './model';
import { lineageFactory } from './output';
import { Panel } from './panel';
import { isDifferent } from './view/model';

const ID = 'keel-notebook:plugin';

const plugin: JupyterFrontEndPlugin<void> = {
  id: ID,
  description: 'Badges, recovery and lineage of durable notebook cells.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, IStatusBar, ISettingRegistry, ILabShell, IRenderMimeRegistry, IToolbarWidgetRegistry],
  activate
};

export default plugin;

function activate(
  app: JupyterFrontEnd,
  tracker: INotebookTracker,
  palette: ICommandPalette | null,
  statusBar: IStatusBar | null,
  registry: ISettingRegistry | null,
  labShell: ILabShell | null,
  rendermime: IRenderMimeRegistry | null,
  toolbars: IToolbarWidgetRegistry | null
): void {
  const began = performance.now();
  const companions = new Map<NotebookPanel, Companion>();
  // Nothing is loaded into a kernel before it is known that a person has nothing against that.
  let settings: Settings = { ...DEFAULTS, loadSilently: registry === null };
  let panel: Panel | null = null;

  const current = (): Companion | null => (tracker.currentWidget && companions.get(tracker.currentWidget)) ?? null;

  const show = (step: string | null): void => {
    panel ??= addPanel(app);
    panel.follow(current());
    reveal(app, labShell, panel);
    panel.open(step);
    app.shell.activateById(panel.id);
  };

  tracker.widgetAdded.connect((_, notebook) => {
    const companion = new Companion(notebook, step => show(step));
    companion.set(settings);
    companions.set(notebook, companion);
    notebook.disposed.connect(() => companions.delete(notebook));
    companion.watch.changed.connect(() => {
      if (current() === companion) {
        status.update_(companion);
        app.commands.notifyCommandChanged('keel:toggle-auto');
      }
    });
  });
  tracker.currentChanged.connect(() => {
    panel?.follow(current());
    status.update_(current());
    current()?.watch.refresh();
    app.commands.notifyCommandChanged();
  });

  // In front of the widget (-10): it needs no kernel, and no model that may be gone.
  rendermime?.addFactory(
    lineageFactory(node => [...companions].find(([notebook]) => notebook.node.contains(node))?.[1] ?? null),
    -20
  );

  const status = new StatusItem(() => show(null));
  statusBar?.registerStatusItem('keel', { item: status, align: 'left', rank: 60 });

  // The panel is made when the shell stands: nothing of it delays the first notebook.
  void app.restored.then(() => {
    panel ??= addPanel(app);
    panel.follow(current());
  });

  const set = (known: Partial<Settings>): void => {
    settings = { ...DEFAULTS, ...known };
    companions.forEach(companion => companion.set(settings));
  };
  void registry?.load(ID).then(
    loaded => {
      const read = (): void => set(loaded.composite as Partial<Settings>);
      loaded.changed.connect(read);
      read();
    },
    () => set({})
  );

  addCommands(app, palette, current, show, () => panel);
  toolbars?.addFactory('Notebook', 'keel-menu', () => new MenuButton(app.commands));
  log('active', performance.now() - began);
}

function addPanel(app: JupyterFrontEnd): Panel {
  const panel = new Panel();
  app.shell.add(panel, 'right', { rank: 900, type: 'keel' });
  return panel;
}

/** Notebook 7 has no `ILabShell`; its right area opens in its own way. */
function reveal(app: JupyterFrontEnd, labShell: ILabShell | null, panel: Panel): void {
  if (labShell) {
    labShell.activateById(panel.id);
  } else {
    (app.shell as unknown as { expandRight?: (id: string) => void }).expandRight?.(panel.id);
    requestAnimationFrame(() => widen(panel));
  }
}

/** Columns that can be read beside each other; JupyterLab takes this from the style sheet. */
const ENOUGH_PX = 360;

/** Notebook 7 gives its right area a share of the page, whatever is in it: give it what the columns need. */
function widen(panel: Panel): void {
  let inside: Widget = panel;
  while (inside.parent && !(inside.parent instanceof SplitPanel)) {
    inside = inside.parent;
  }
  const split = inside.parent as SplitPanel | null;
  const missing = ENOUGH_PX - panel.node.clientWidth;
  if (!split || missing <= 0) {
    return;
  }
  const at = split.widgets.indexOf(inside);
  const widths = split.widgets.map(widget => (widget.isVisible ? widget.node.clientWidth : 0));
  const widest = widths.indexOf(Math.max(...widths.filter((_, other) => other !== at)));
  widths[at]! += missing;
  widths[widest]! -= missing;
  split.setRelativeSizes(widths);
}

class StatusItem extends Widget {
  private readonly button: HTMLButtonElement;

  constructor(press: () => void) {
    super();
    this.button = document.createElement('button');
    this.button.type = 'button';
    this.button.className = 'keel-status';
    this.button.title = 'Show the steps of this notebook';
    this.button.addEventListener('click', press);
    this.node.append(this.button);
    this.hide();
  }

  update_(companion: Companion | null): void {
    const text = statusText(companion?.watch.flow ?? null);
    this.button.textContent = text;
    this.setHidden(text === '');
  }
}

function addCommands(
  app: JupyterFrontEnd,
  palette: ICommandPalette | null,
  current: () => Companion | null,
  show: (step: string | null) => void,
  panel: () => Panel | null
): void {
  /** The step of the active cell, or the one selected in the panel. */
  const stepHere = (): string | null => {
    const companion = current();
    const active = companion?.panel.content.activeCell;
    const at = companion && active ? companion.watch.codeCells().findIndex(cell => cell === active) : -1;
    return at >= 0 ? (companion!.watch.stepNames()[at] ?? null) : null;
  };
  const can = (action: string): boolean => current()?.watch.can.has(action) ?? false;

  app.commands.addCommand('keel:recover', {
    label: 'Recover (keel)',
    caption: 'Bring back what is saved, without running a cell',
    isEnabled: () => current() !== null,
    execute: () => current()?.recover()
  });
  app.commands.addCommand('keel:restart-and-recover', {
    label: args => (args['toolbar'] ? '' : 'Restart Kernel and Recover (keel)'),
    caption: 'Restart the kernel and bring back what is saved',
    icon: keelIcon,
    isEnabled: () => current() !== null,
    execute: async () => {
      const companion = current();
      if (!companion) {
        return;
      }
      // A kernel that has just come up by itself is not restarted once more.
      const fresh = companion.watch.link === 'gone' || companion.watch.flow?.steps.every(step => step.state === 'saved');
      if (fresh || (await new SessionContextDialogs().restart(companion.panel.sessionContext))) {
        await companion.recover();
      }
    }
  });
  app.commands.addCommand('keel:show-lineage', {
    label: 'Show Steps and Lineage (keel)',
    icon: keelIcon,
    execute: () => show(stepHere())
  });
  app.commands.addCommand('keel:next-divergence', {
    label: 'Next Divergence (keel)',
    isEnabled: () => current()?.watch.flow?.steps.some(isDifferent) ?? false,
    execute: () => {
      show(null);
      const name = panel()?.view.next(1) ?? null;
      if (name !== null) {
        panel()?.open(name);
      }
    }
  });
  app.commands.addCommand('keel:rerun-step', {
    label: 'Re-run from This Step (keel)',
    isEnabled: () => stepHere() !== null && can('rerun'),
    execute: () => current()?.act('rerun', stepHere()!)
  });
  app.commands.addCommand('keel:accept-step', {
    label: 'Accept the Record of This Step (keel)',
    isEnabled: () => stepHere() !== null && can('accept'),
    execute: () => current()?.act('accept', stepHere()!)
  });
  app.commands.addCommand('keel:approve', {
    label: 'Approve What Waits (keel)',
    isEnabled: () => current() !== null,
    execute: () => {
      show(null);
      panel()?.select('waiting');
    }
  });
  app.commands.addCommand('keel:toggle-auto', {
    label: args => (args['isMenu'] ? 'Every Cell Is a Step (keel)' : 'Every Cell Is a Step: On or Off (keel)'),
    isToggleable: true,
    caption: 'Auto mode: cells that take long are saved and replayed without a mark',
    isEnabled: () => current() !== null,
    isToggled: () => current()?.watch.flow?.auto != null,
    execute: () => current()?.toggleAuto()
  });
  for (const command of ['recover', 'restart-and-recover', 'show-lineage', 'next-divergence', 'rerun-step', 'accept-step', 'approve', 'toggle-auto']) {
    palette?.addItem({ command: `keel:${command}`, category: 'keel' });
  }
}

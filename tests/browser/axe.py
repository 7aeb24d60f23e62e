"""What axe finds in the parts of the page that are keel's, in every theme."""

from pathlib import Path

AXE = Path(__file__).resolve().parents[2] / "labextension" / "node_modules" / "axe-core" / "axe.min.js"
OURS = [
    ".keel-badge",
    ".keel-banner:not(.lm-mod-hidden)",
    "#keel-panel:not(.lm-mod-hidden)",
    ".jp-OutputArea .keel-lineage",
    ".keel-status",
    ".keel-age",
    ".keel-menu-button",
    ".lm-Menu.keel-menu",
]
THEMES = ["JupyterLab Dark", "JupyterLab Dark High Contrast", "JupyterLab Light"]


def clean(page, *, themes=THEMES):
    """Assert that axe finds nothing, theme by theme. The last one stays."""
    if not page.evaluate("() => 'axe' in window"):
        page.add_script_tag(path=AXE)
    for theme in themes:
        page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        page.wait_for_function("() => [...document.styleSheets].every(sheet => sheet.cssRules !== null)")
        found = page.evaluate(
            "async parts => { const there = parts.filter(part => document.querySelector(part)).map(part => [part]);"
            " const found = await axe.run({ include: there }, { resultTypes: ['violations'] });"
            " return found.violations.map(one => one.id + ': ' + one.nodes.map(node => node.html.slice(0, 160) + ' '"
            " + (node.any[0]?.message ?? '')).join(' | ')); }",
            OURS,
        )
        assert found == [], f"{theme}: {found}"

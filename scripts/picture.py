"""Draw the picture of the README from a real run of the demo: what its terminal showed, as an SVG.

Rich's own frame loads a web font; this one uses what the reader has, so that looking at the README asks nobody else.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from demo import main
from rich.console import Console
from rich.terminal_theme import TerminalTheme

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "img" / "demo.svg"
TITLE = "make demo"
WIDTH = 84

PAPER = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [
        (36, 41, 47),
        (164, 14, 38),
        (17, 99, 41),
        (125, 78, 0),
        (5, 80, 174),
        (130, 80, 223),
        (27, 124, 131),
        (87, 96, 106),
    ],
)
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
     aria-label="Terminal output of make demo">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 16px; fill: #57606a; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""

if __name__ == "__main__":
    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, force_terminal=True)
    failed = main(recorder)
    if failed:
        sys.exit(recorder.export_text())
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    # The same id in every picture: a new one differs from the last only in what was measured.
    PICTURE.write_text(recorder.export_svg(title=TITLE, theme=PAPER, code_format=FRAME, unique_id="demo"), "utf-8")

"""Whole notebooks, with these cells or those as steps: a Run All shows what a plain one shows, and never stops.

``tables/notebooks.txt`` holds the notebooks: cells with ``--`` between them, and edits (``~~ CELL OLD => NEW``). Each
runs twice, once more after each edit and once with the edit taken back, every time in a new shell.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TABLE = Path(__file__).parent / "tables" / "notebooks.txt"
BOOKS = {
    head.strip(): body
    for head, _, body in (part.partition("\n") for part in re.split(r"^== ", TABLE.read_text(), flags=re.M)[1:])
}
STEPS = {
    "all": lambda at, last: True,
    "every second": lambda at, last: at % 2 == 1,
    "the others": lambda at, last: at % 2 == 0,
    "all but the ends": lambda at, last: 0 < at < last,
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", BOOKS)
def test_what_is_shown_is_what_a_plain_run_shows(warm_process, tmp_path, name, steps):
    lines = [line for line in BOOKS[name].splitlines() if not line.startswith("#")]
    edits = [line[3:].partition(" ") for line in lines if line.startswith("~~ ")]
    cells = re.split(r"^--$", "\n".join(line for line in lines if not line.startswith("~~ ")), flags=re.M)
    cells = [cell.strip("\n") for cell in cells]
    versions = [cells, cells]
    for at, _, edit in edits:
        old, _, new = edit.partition(" => ")
        assert old in cells[int(at)]
        changed = [cell.replace(old, new) if place == int(at) else cell for place, cell in enumerate(cells)]
        versions += [changed, cells]
    (tmp_path / "plain").mkdir()
    (tmp_path / "keel").mkdir()
    for version in versions:
        plain = warm_process.run(tmp_path / "plain", ["pass", *version])
        marked = [
            f"# keel: step s{at}\n{cell}" if STEPS[steps](at, len(cells) - 1) else cell
            for at, cell in enumerate(version)
        ]
        kept = warm_process.run(tmp_path / "keel", ["%load_ext keel_notebook", *marked])
        assert (kept.error, kept.printed[1:]) == ("", plain.printed[1:])

"""The page about the journal says what the code does."""

from __future__ import annotations

import re
import struct
from importlib import resources
from pathlib import Path

from keel_notebook.journal import columns, frames
from keel_notebook.journal.folder import Folder

PAGE = (Path(__file__).parents[2] / "docs" / "journal.md").read_text("utf-8")
SCHEMA = resources.files("keel_notebook.journal").joinpath("schema.sql").read_text("utf-8")


def test_every_column_and_view_is_named() -> None:
    views = re.findall(r"CREATE VIEW (\w+)", SCHEMA)
    assert set(views) == {"flows", "steps", "calls", "runs", "lineage", "storage"}
    for name in (*columns.COLUMNS, *views):
        assert f"`{name}`" in PAGE, name


def test_the_table_of_a_frame_is_its_header() -> None:
    table = dict(re.findall(r"^\| (\w+) \| (\d+) \|", PAGE, flags=re.MULTILINE))
    assert list(table) == ["magic", "mark", "length", "fence", "stamp", "chain", "mac", "check"]
    form = frames._HEADER.format + frames._CHECK.format.lstrip("<")
    assert sum(map(int, table.values())) == struct.calcsize(form)
    assert [int(size) for size in table.values()] == [3, 1, 4, 8, 8, 8, 16, 4]
    for mark in frames.Mark:
        assert re.search(rf"\b{mark.value} \w", PAGE), mark


def test_every_place_in_the_folder_is_named() -> None:
    place = Folder("/x/.keel")
    for path in vars(place).values():
        name = path.removeprefix("/x/.keel").strip("/").split("/")[0]
        assert name in PAGE, path

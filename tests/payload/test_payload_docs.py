"""The page about values says what the code does."""

import re
import types
from pathlib import Path

import msgpack
import numpy as np

from keel_notebook.core.ports import Known
from keel_notebook.payload.envelope import SCHEMA
from keel_notebook.payload.memory import LARGE
from keel_notebook.payload.registry import GROUP

PAGE = (Path(__file__).parents[2] / "docs" / "payload.md").read_text("utf-8")


def test_every_field_of_a_payload_is_named_under_its_form(kernel):
    kernel.run("rows = [1]")
    known = {id(kernel.space["rows"]): Known("1.1", "rows", kernel.digest(kernel.space["rows"]).digest)}
    fields = {}
    for form, extra in (("plain", {}), ("pickle", {"ns": types.SimpleNamespace()})):
        packed = kernel.pack({"a": [kernel.space["rows"]], "v": np.zeros(4), **extra}, known=known)
        head = msgpack.unpackb(kernel.journal.read(packed.payload.head), strict_map_key=False)
        assert head["schema"] == SCHEMA
        assert head["payload"]["form"] == form
        fields[form] = set(head["payload"])
    told = dict(re.findall(r"^\| `(\w+)` \| (both|plain|pickle) \|", PAGE, flags=re.MULTILINE))
    assert {name for name, form in told.items() if form in ("both", "plain")} == fields["plain"]
    assert {name for name, form in told.items() if form in ("both", "pickle")} == fields["pickle"]


def test_the_page_names_the_schema_the_group_and_the_size(kernel):
    assert f'"schema": "{SCHEMA}"' in PAGE
    assert f"`{GROUP}`" in PAGE
    assert LARGE == 1 << 20
    assert "Content of 1 MB and more" in PAGE


def test_the_example_of_what_is_left_out_is_what_is_said(kernel):
    packed = kernel.pack({"box": {"items": [1, 2, 3, (i for i in ())]}})
    lost = packed.not_stored[0]
    assert f"{lost.name} ({lost.type}) is not stored: {lost.reason}" in PAGE

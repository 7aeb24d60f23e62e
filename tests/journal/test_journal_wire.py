"""An entry is read as it was written, by the fast road and by the slow one."""

from __future__ import annotations

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from keel_notebook.core.model import Entry, Kind, Status, entry_id
from keel_notebook.errors import InternalError
from keel_notebook.journal import wire
from tests.core.test_model import entries


@given(entries)
def test_both_roads_write_and_read_the_same(entry: Entry) -> None:
    body = wire.pack_entry(entry)
    slow = msgpack.packb(entry.to_map(), unicode_errors="surrogatepass")
    assert wire.entry_in(body) == wire.entry_in(slow) == wire.entry_of(wire.unpack(body)) == entry


@given(entries, st.sampled_from(["step", "call", "source", "why"]))
def test_a_name_that_is_no_utf_8_survives(entry: Entry, field: str) -> None:
    changed = Entry.from_map(entry.to_map() | {field: "caf\udce9"})
    assert wire.entry_in(wire.pack_entry(changed)) == changed


class Text(str):
    __slots__ = ()


class Names(dict):
    pass


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("why", Text("a")),
        ("took_s", np.float64(1.5)),
        ("took_s", 2),
        ("ambient", Names(a=[Text("caf\udce9"), np.float64(2.0)])),
        ("ambient", {"numbers": {1: 2}, 3: "three"}),
    ],
)
def test_plain_data_of_a_type_of_its_own_is_written_as_what_it_is(field: str, value: object) -> None:
    entry = structs.replace(Entry(entry_id(1, 2), "f", 1, 2, "s", Kind.STEP, Status.OK), **{field: value})
    assert getattr(wire.entry_in(wire.pack_entry(entry)), field) == value


@pytest.mark.parametrize("value", [object(), np.arange(2), len])
def test_what_is_no_plain_data_is_refused(value: object) -> None:
    entry = Entry(entry_id(1, 2), "f", 1, 2, "s", Kind.STEP, Status.OK, ambient={"x": value})
    with pytest.raises(InternalError):
        wire.pack_entry(entry)


@pytest.mark.parametrize("raw", [{}, [], 5, {"flow": 5}, {"schema": "keel.entry/v2"}, {"schema": "keel.entry/v1"}])
def test_what_is_no_entry_is_said_to_be_none(raw: object) -> None:
    body = msgpack.packb(raw)
    with pytest.raises(wire.BodyError):
        wire.entry_in(body)
    with pytest.raises(wire.BodyError):
        wire.flow_in(body)


def test_an_entry_of_a_newer_version_still_says_its_flow() -> None:
    body = msgpack.packb({"schema": "keel.entry/v9", "flow": "f", "kind": "dream"})
    assert wire.flow_in(body) == "f"

"""A journal that somebody else wrote or rearranged: nothing of it executes, nothing of it stands for something else.

The attacker may write any file in `.keel/` and knows its salt and its formats, but not the owner's key.
"""

import json
import os
import shutil
from pathlib import Path

import duckdb
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from keel_notebook.core.model import Blob, Digest, Entry, FlowId, Input, Kind, Payload, Status, entry_id
from keel_notebook.core.ports import Seal
from keel_notebook.errors import DamagedError
from keel_notebook.journal import flows, heads, spawn, troubles, wire
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.frames import Mark
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, OTHER, KeySeal, drop, entry, ingested, opened

STRANGER = KeySeal(b"of a stranger")


@pytest.fixture
def two_flows(tmp_path):
    """A folder with one step in each of two flows, in the record file and in heads."""
    folder = tmp_path / ".keel"
    journal = opened(folder)
    journal.append(entry(journal, "mine"))
    journal.append(entry(journal, "theirs", flow=OTHER))
    drop(journal)
    ingested(folder)
    return folder


def steps(folder, flow=FLOW, seal: Seal | None = None):
    return [one.step for one in read_journal(folder, seal=seal or KeySeal()).records(flow).entries]


def test_a_row_that_was_moved_to_another_flow_is_not_a_row_of_it(two_flows):
    place = Folder(two_flows)
    theirs = heads.read_head(place.head(OTHER))
    Path(place.head(FLOW)).write_bytes(heads.encode_head(replace(theirs, flow=FLOW)))
    assert steps(two_flows) == [], "its seal is sound, and it says of itself that it belongs elsewhere"


def test_a_row_whose_columns_were_changed_is_what_its_sealed_body_says(two_flows):
    with duckdb.connect(str(two_flows / "journal.duckdb")) as con:
        con.execute("UPDATE entries SET flow = 'flow-a', step = 'mine', code = 'c0de', run = 1 WHERE flow = 'flow-b'")
    shutil.rmtree(two_flows / "heads")
    spawn.ingest_now(two_flows)
    assert steps(two_flows) == ["mine"]


@pytest.mark.parametrize("mac", [b"", b"\0" * 16, b"x" * 16, b"y" * 400])
def test_a_row_with_a_wrong_seal_is_listed_and_not_trusted(two_flows, mac):
    place = Folder(two_flows)
    head = heads.read_head(place.head(FLOW))
    forged = tuple(item._replace(macs=(mac,)) for item in head.entries)
    Path(place.head(FLOW)).write_bytes(heads.encode_head(replace(head, entries=forged)))
    records = read_journal(two_flows, seal=KeySeal()).records(FLOW)
    assert [one.entry for one in records.entries] == sorted(records.untrusted) != []


def test_a_row_with_one_changed_field_loses_its_seal(two_flows):
    place = Folder(two_flows)
    head = heads.read_head(place.head(FLOW))
    (item,) = head.entries
    for field, value in {"step": "other", "entry": "9.9", "code": "d" * 32, "key": "k", "seq": 7}.items():
        raw = wire.unpack(item.body) | {field: value}
        forged = replace(head, entries=(item._replace(body=wire.pack(raw)),))
        Path(place.head(FLOW)).write_bytes(heads.encode_head(forged))
        records = read_journal(two_flows, seal=KeySeal()).records(FLOW)
        assert len(records.untrusted) == 1, field


MALFORMED = {
    "step": [["fit"], {}, 7, None],
    "took_s": ["long", [], {}],
    "inputs": [[[1, 2]], [["a", 5]]],
    "deleted": [[1]],
    "source": [b"x = 1", 5],
    "run": ["1", None],
    "payload": [[[1, "text", None], [], [], 1]],
    "error": [[5], [{}, []]],
    "ambient": [7, []],
}


@pytest.mark.parametrize("field", list(MALFORMED))
def test_a_row_of_a_stranger_whose_fields_are_not_of_their_types_is_no_row(tmp_path, field):
    folder = tmp_path / ".keel"
    theirs = opened(folder, seal=STRANGER)
    for value in MALFORMED[field]:
        raw = wire.unpack(wire.pack_entry(entry(theirs))) | {field: value}
        theirs._writer.write(Mark.ENTRY, wire.pack(raw))
    theirs.append(entry(theirs, "well formed"))
    drop(theirs)
    for _ in range(2):
        assert steps(folder) == ["well formed"]
        assert len(read_journal(folder, seal=KeySeal()).records(FLOW).untrusted) == 1
        ingested(folder)
    assert spawn.query(folder, "SELECT step FROM steps")[1] == [("well formed",)]


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(Entry.__struct_fields__), PLAIN, max_size=4), st.binary(max_size=60))
def test_any_body_of_a_frame_is_an_entry_or_damage(fields, cut):
    sound = Entry(entry_id(1, 1), FLOW, 1, 1, "fit", Kind.STEP, Status.OK)
    raw = msgpack.packb(sound.to_map() | fields, unicode_errors="surrogatepass")
    for body in (raw, cut, raw[: len(cut)] + cut):
        try:
            found = wire.entry_in(body)
        except wire.BodyError:
            continue
        assert isinstance(found.step, str)
        assert all(isinstance(name, str) for name in wire.objects_of(found))


@pytest.mark.parametrize(
    "body",
    [
        b"\xc6\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff" + b"\x90" * 9,
        b"\x91" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        b"\xc1",
    ],
    ids=["4 GB of bytes", "4 billion items", "100,000 lists in each other", "4 billion keys", "no MessagePack"],
)
def test_a_body_that_promises_more_than_it_has_is_damage(body):
    with pytest.raises(wire.BodyError):
        wire.entry_in(body)


@pytest.mark.parametrize("name", ["../../../etc/hostname", "..", "a/b", "x" * 5000, "", "a\0b", "ü" * 64])
def test_an_object_is_named_by_a_digest_and_by_no_path(tmp_path, name):
    journal = opened(tmp_path / ".keel")
    (tmp_path / "etc").mkdir()
    for read in (journal.map, journal.check, lambda digest: journal.read(Blob(3, object=digest))):
        with pytest.raises(DamagedError):
            read(Digest(name))
    journal.append(entry(journal, payload=Payload(Blob(3, object=Digest(name)), bytes=3)))
    drop(journal)
    ingested(tmp_path / ".keel")
    assert steps(tmp_path / ".keel") == ["fit"]


@pytest.mark.parametrize("ident", ["../../outside", "/abs", "a/b", "", ".", "x" * 500, 7, None, ["f"]])
def test_the_id_of_a_flow_leads_nowhere(tmp_path, ident):
    folder, notebook = tmp_path / "in" / ".keel", tmp_path / "in" / "a.ipynb"
    own = flows.find_flow(folder, notebook=notebook)
    kept = json.loads(Path(own.file).read_text()) | {"flow": ident, "check": None}
    Path(own.file).write_text(json.dumps(kept))
    found = flows.find_flow(folder, notebook=notebook)
    assert found.id.isalnum()
    assert "damaged" in troubles(folder)[0]
    assert os.listdir(tmp_path) == ["in"]


def test_names_and_inputs_of_a_stranger_are_only_text(tmp_path):
    folder = tmp_path / ".keel"
    journal = opened(folder, seal=STRANGER)
    odd = [
        "'; DROP TABLE entries; --",
        "../../x",
        "<script>alert(1)</script>",
        "\x1b[31m",
        "\ud800",
        "😀" * 3,
        "n" * 10_000,
    ]
    for name in odd:
        journal.append(entry(journal, name, inputs=(Input(name, Digest("d" * 32), preview=name),)))
    drop(journal)
    assert steps(folder) == odd
    ingested(folder)
    assert steps(folder) == odd
    assert spawn.query(folder, "SELECT count(*) FROM steps")[1] == [(len(odd),)]
    assert sorted(os.listdir(tmp_path)) == [".keel"]
    assert FlowId("flow-a") in {flow.id for flow in read_journal(folder, seal=KeySeal()).flows()}

"""The entry schema: what is written is what is read."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.core.model import (
    Blob,
    Effect,
    Entry,
    FileSeen,
    Input,
    Kind,
    NotStored,
    Payload,
    Problem,
    Status,
    Write,
    entry_id,
)

texts = st.text(max_size=20)
digests = st.none() | texts
blobs = st.builds(Blob, size=st.integers(0, 2**40), inline=st.none() | st.binary(max_size=30), object=digests)
entries = st.builds(
    Entry,
    entry=texts,
    flow=texts,
    run=st.integers(0, 2**40),
    seq=st.integers(0, 2**40),
    step=texts,
    kind=st.sampled_from(Kind),
    status=st.sampled_from(Status),
    effect=st.sampled_from(Effect),
    inputs=st.lists(st.builds(Input, texts, digests, st.booleans(), texts, texts, texts), max_size=3).map(tuple),
    files=st.lists(
        st.builds(
            FileSeen, texts, texts, digests, st.lists(st.integers(0, 2**60), max_size=4).map(tuple), st.booleans()
        ),
        max_size=2,
    ).map(tuple),
    ambient=st.dictionaries(texts, st.integers().filter(lambda n: -(2**63) <= n < 2**63) | texts, max_size=3),
    writes=st.lists(st.builds(Write, texts, digests, texts, st.integers(0, 2**40), texts), max_size=3).map(tuple),
    deleted=st.lists(texts, max_size=3).map(tuple),
    outputs=st.none() | blobs,
    not_stored=st.lists(st.builds(NotStored, texts, texts, texts), max_size=2).map(tuple),
    payload=st.none()
    | st.builds(
        Payload,
        blobs,
        st.lists(texts, max_size=2).map(tuple),
        st.lists(texts, max_size=2).map(tuple),
        st.integers(0, 2**40),
    ),
    error=st.none() | st.builds(Problem, texts, texts),
    took_s=st.none() | st.floats(allow_nan=False),
)


@given(entries)
def test_an_entry_survives_the_journal(entry):
    assert Entry.from_map(msgpack.unpackb(msgpack.packb(entry.to_map()))) == entry


def test_an_older_reader_ignores_what_a_newer_writer_added():
    entry = Entry(entry_id(1, 2), "f", 1, 2, "s", Kind.STEP, Status.OK)
    assert Entry.from_map(entry.to_map() | {"new_field": 1}) == entry


@pytest.mark.parametrize("wire", [{}, {"schema": "keel.entry/v2"}, {"schema": "keel.entry/v1"}])
def test_what_is_no_entry_is_refused(wire):
    with pytest.raises((KeyError, ValueError, TypeError)):
        Entry.from_map(wire)

"""``keel fsck`` (issue 4, 8): every kind of damage is named; repair loses nothing and invents nothing."""

import os

import pytest

from keel_notebook.journal import collect, heads, spawn
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.fsck import check
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import FLOW, opened, with_object


@pytest.fixture
def place(tmp_path):
    """A journal at rest with two records, one object each."""
    journal = opened(tmp_path / ".keel")
    for content in (b"a" * 40_000, b"b" * 40_000):
        journal.append(with_object(journal, content))
    journal.close(clean=True)
    spawn.ingest_now(tmp_path / ".keel")
    return Folder(tmp_path / ".keel")


def entries(place):
    reader = read_journal(place.path, seal=None)
    try:
        return [one.entry for one in reader.records(FLOW).entries]
    finally:
        reader.close()


def damage_object(place):
    _, path = next(iter(collect.objects_in(place)))
    with open(path, "r+b") as file:
        file.write(b"!")


def lose_object(place):
    _, path = next(iter(collect.objects_in(place)))
    os.unlink(path)


def damage_head(place):
    with open(place.head(FLOW), "r+b") as file:
        file.seek(20)
        file.write(b"!!!!")


def damage_index(place):
    with open(place.index, "r+b") as file:
        file.seek(20)
        file.write(b"!!!!")


def leave_aside(place):
    digest, path = next(iter(collect.objects_in(place)))
    os.makedirs(f"{place.objects}/.going")
    os.rename(path, f"{place.objects}/.going/{digest}")


def cut_salt(place):
    os.truncate(place.salt, 5)


def test_a_sound_journal_is_well(place):
    found = check(place.path, fix=False)
    assert (found.well, found.findings, found.flows, found.entries, found.objects) == (True, (), 1, 2, 2)


@pytest.mark.parametrize(
    ("harm", "what", "mends"),
    [
        (damage_object, "object", True),
        (lose_object, "missing", False),
        (damage_head, "head", True),
        (damage_index, "head", True),
        (leave_aside, "aside", True),
        (cut_salt, "salt", False),
    ],
)
def test_every_kind_of_damage_is_named_and_what_can_be_is_put_right(place, harm, what, mends):
    before = entries(place)
    harm(place)
    found = check(place.path, fix=False)
    assert what in {one.what for one in found.findings}
    assert not found.well
    mended = check(place.path, fix=True)
    assert mended.well is mends
    again = check(place.path, fix=False)
    assert {one.what for one in again.findings} <= {"note", "missing", "salt"}
    assert entries(place) == before, "no entry is lost"
    assert heads.read_head(place.head(FLOW), FLOW).total == 2

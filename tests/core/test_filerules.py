"""What a file is to a step: the rules over everything that can be seen of one, enumerated (DESIGN 6, Files)."""

import itertools

import pytest

from keel_notebook.core.filerules import Kept, Observed, kept_as
from keel_notebook.core.filetexts import Asks

OLD, NEW = (1, 1, 1, 1), (2, 2, 2, 1)
NAMED = {"mentioned": True}
LOOKS, TRIES, STAMPS = Asks(looks=True), Asks(tries=True), Asks(looks=True, stamps=True)

RULES = {
    "read by Python": (Observed(("read",), OLD, OLD), Kept.READ),
    "read while another program wrote it": (Observed(("read",), OLD, NEW), Kept.UNSURE),
    "tried and absent": (Observed(("read",)), Kept.ABSENT),
    "written by Python": (Observed(("write",), None, NEW), Kept.WRITE),
    "written over": (Observed(("write",), OLD, NEW), Kept.WRITE),
    "written, then read back": (Observed(("write", "read"), OLD, NEW), Kept.WRITE),
    "read, then written": (Observed(("read", "write"), OLD, NEW), Kept.CHANGED),
    "tried, then made and removed": (Observed(("read", "write", "remove")), Kept.ABSENT),
    "tried, then made": (Observed(("read", "write"), None, NEW), Kept.WRITE),
    "tried, then made by another": (Observed(("read",), None, NEW, watched=True, written=True), Kept.ABSENT),
    "made and removed": (Observed(("write", "read", "remove")), Kept.NOTHING),
    "removed": (Observed(("remove",), OLD, None), Kept.GONE),
    "read, then removed": (Observed(("read", "remove"), OLD, None), Kept.CHANGED),
    "moved away": (Observed(("rename",), OLD, None), Kept.GONE),
    "appended to": (Observed(("append",), OLD, NEW), Kept.APPEND),
    "read, then appended to": (Observed(("read", "append"), OLD, NEW), Kept.APPEND),
    "appended to, then removed": (Observed(("append", "remove"), None, None), Kept.NOTHING),
    "written elsewhere": (Observed(("write",), None, NEW, home=False), Kept.LEFT),
    "written to a temporary folder": (Observed(("write",), None, NEW, temporary=True), Kept.LEFT),
    "read from a temporary folder": (Observed(("read",), OLD, OLD, temporary=True, home=False), Kept.READ),
    "read from a cache": (Observed(("read",), OLD, OLD, cache=True, home=False), Kept.NOTHING),
    "read from a cache, by name": (Observed(("read",), OLD, OLD, cache=True, mentioned=True), Kept.READ),
    "a database that was only read": (Observed(("database",), OLD, OLD), Kept.READ),
    "a database that only the system saw read": (
        Observed(("database",), None, OLD, known_before=False, opened=True),
        Kept.READ,
    ),
    "a database that only the system saw written": (
        Observed(("database",), None, OLD, known_before=False, opened=True, written=True),
        Kept.BASE,
    ),
    "a database that was written": (Observed(("database",), OLD, NEW), Kept.BASE),
    "a database that was made": (Observed(("database",), None, NEW), Kept.BASE),
    "a folder listed": (Observed(("list",), OLD, OLD, folder=True), Kept.LIST),
    "a folder listed, then filled": (Observed(("list",), OLD, NEW, folder=True, made_inside=True), Kept.LIST),
    "a folder listed, and filled by another": (Observed(("list",), OLD, NEW, folder=True), Kept.UNSURE),
    "a folder made": (Observed(("make",), None, NEW, folder=True), Kept.NOTHING),
    "a pattern": (Observed(("glob",)), Kept.GLOB),
    "named, not seen to be opened": (Observed((), OLD, OLD, **NAMED, watched=True), Kept.NOTHING),
    "named, nobody would see": (Observed((), OLD, OLD, **NAMED), Kept.READ),
    "named, and perhaps read before": (Observed((), OLD, OLD, **NAMED, watched=True, remembered=True), Kept.READ),
    "opened natively": (Observed((), OLD, OLD, **NAMED, watched=True, opened=True), Kept.READ),
    "opened natively while another wrote it": (
        Observed((), OLD, NEW, **NAMED, watched=True, opened=True, written=True, read_first=True),
        Kept.UNSURE,
    ),
    "rewritten natively": (
        Observed((), OLD, NEW, **NAMED, watched=True, opened=True, written=True, read_first=True, ours=True),
        Kept.CHANGED,
    ),
    "made natively": (Observed((), None, NEW, **NAMED, watched=True, written=True, ours=True), Kept.WRITE),
    "made natively, nobody would see": (Observed((), None, NEW, **NAMED, ours=True), Kept.WRITE),
    "made by another program": (Observed((), None, NEW, **NAMED, watched=True, written=True), Kept.NOTHING),
    "only written natively": (
        Observed((), OLD, NEW, **NAMED, watched=True, opened=True, written=True, ours=True, only_written=True),
        Kept.WRITE,
    ),
    "seen by the system alone": (
        Observed((), None, OLD, known_before=False, watched=True, opened=True),
        Kept.READ,
    ),
    "written, seen by the system alone": (
        Observed((), None, NEW, known_before=False, watched=True, opened=True, written=True),
        Kept.NOTHING,
    ),
    "rewritten by a child": (
        Observed(
            (), None, NEW, known_before=False, watched=True, opened=True, written=True, read_first=True, ours=True
        ),
        Kept.CHANGED,
    ),
    "asked for": (Observed((), OLD, OLD, **NAMED, asks=LOOKS, watched=True), Kept.THERE),
    "asked for its size": (Observed((), OLD, OLD, **NAMED, asks=STAMPS, watched=True), Kept.STAT),
    "asked for and absent": (Observed(**NAMED, asks=LOOKS, watched=True), Kept.ABSENT),
    "absent, and the code goes on": (Observed(**NAMED, asks=TRIES, watched=True), Kept.ABSENT),
    "absent": (Observed(**NAMED, watched=True), Kept.NOTHING),
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rules(rule):
    seen, kept = RULES[rule]
    assert kept_as(seen) is kept


DOMAIN = [
    Observed(ways, before, after, known, mentioned=named, watched=watched, opened=opened, written=written, ours=ours)
    for ways, before, after, known, named, watched, opened, written, ours in itertools.product(
        [(), ("read",), ("write",), ("read", "write"), ("write", "read"), ("append",), ("remove",), ("database",)],
        [None, OLD],
        [None, OLD, NEW],
        *[[False, True]] * 6,
    )
    if known or before is None
]


def test_what_changed_while_it_was_read_is_never_kept_as_read():
    for seen in DOMAIN:
        if kept_as(seen) is Kept.READ and seen.known_before:
            assert seen.before == seen.after, seen


def test_what_python_read_and_did_not_make_is_always_an_input():
    inputs = {Kept.READ, Kept.UNSURE, Kept.CHANGED, Kept.ABSENT}
    for seen in DOMAIN:
        if seen.ways[:1] == ("read",) and seen.known_before:
            made = seen.before is None and ("write" in seen.ways or seen.ours)
            assert made or (kept_as(seen) in inputs), seen


def test_a_native_read_that_was_seen_is_always_an_input():
    for seen in DOMAIN:
        if not seen.ways and seen.opened and seen.after is not None and not seen.written and seen.before == seen.after:
            assert kept_as(seen) is Kept.READ, seen


def test_a_product_is_one_that_python_wrote_or_that_the_code_names():
    for seen in DOMAIN:
        if kept_as(seen) is Kept.WRITE:
            assert seen.after is not None
            assert "write" in seen.ways or "remove" in seen.ways or (seen.mentioned and seen.ours), seen

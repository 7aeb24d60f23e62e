"""Whatever shows steps says first that keel is off (`%keel off`, KEEL_MODE=off) and how it is switched on."""

import pytest

ASKED = ["%keel", "%keel status", "%keel plan", "%keel why a", "%keel diff a"]


def first(book, line):
    return str(book.run(line).result).splitlines()[0]


@pytest.mark.parametrize("line", ASKED)
@pytest.mark.parametrize(
    ("off", "on"), [("%keel off", "%keel on"), ("%config Keel.mode = 'off'", '%config Keel.mode = "live"')]
)
def test_off_is_said_first_with_the_way_back_on(book, line, off, on):
    book.ok("%%keel_step a\nx = 1")
    before = first(book, line)
    book.ok(off)
    said = first(book, line)
    assert said.startswith("keel is off in this kernel")
    assert f"`{on}` switches it on" in said
    book.ok("%%keel_step a\nx = 2")
    assert book.shell.user_ns["x"] == 2, "it ran plainly"
    book.ok(on)
    assert "keel is off" not in before + first(book, line)

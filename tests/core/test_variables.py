"""KEEL_… variables: what each one means, and that one which cannot be read is never passed over."""

import re
from pathlib import Path

import pytest

from keel_notebook.core.decide import Mode
from keel_notebook.core.flowstate import MOST_STEPS
from keel_notebook.core.variables import _READ, MODES, check, told
from keel_notebook.core.variables import MOST_STEPS as TOLD_MOST
from keel_notebook.errors import SettingsError
from keel_notebook.front.settings import Keel

READ = (
    ("KEEL_MODE", "", "live"), ("KEEL_MODE", "replay", "replay"), ("KEEL_MODE", " off ", "off"),
    ("KEEL_ACROSS_RUNS", "", "auto"), ("KEEL_ACROSS_RUNS", "execute", "execute"),
    ("KEEL_STRICT", "", False), ("KEEL_STRICT", "1", True), ("KEEL_STRICT", "True", True), ("KEEL_STRICT", "0", False),
    ("KEEL_STRICT", "false", False), ("KEEL_STRICT", "off", False), ("KEEL_FROZEN", "yes", True),
    ("KEEL_MOST_STEPS", "", 10_000), ("KEEL_MOST_STEPS", "0", 0), ("KEEL_MOST_STEPS", "12", 12),
    ("KEEL_BUDGET", "", ""), ("KEEL_BUDGET", "off", "off"), ("KEEL_BUDGET", "5 GB", "5 GB"),
)  # fmt: skip
REFUSED = (
    ("KEEL_MODE", "reply"), ("KEEL_MODE", "Replay"), ("KEEL_ACROSS_RUNS", "never"), ("KEEL_STRICT", "maybe"),
    ("KEEL_FROZEN", "2"), ("KEEL_MOST_STEPS", "abc"), ("KEEL_MOST_STEPS", "-3"), ("KEEL_MOST_STEPS", "1e3"),
    ("KEEL_BUDGET", "abc"), ("KEEL_BUDGET", "5 GiB"), ("KEEL_BUDGET", "1.2.3"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "text", "meant"), READ)
def test_a_variable_is_read_and_is_the_default_of_its_setting(name, text, meant, monkeypatch):
    assert told({name: text}, name) == meant
    monkeypatch.setenv(name, text)
    assert getattr(Keel(), name.removeprefix("KEEL_").lower()) == meant


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_a_variable_that_cannot_be_read_is_refused_with_its_name_and_what_it_takes(name, text, monkeypatch):
    for read in (lambda: told({name: text}, name), lambda: check({name: text})):
        with pytest.raises(SettingsError) as refused:
            read()
        assert name in str(refused.value)
        assert "where the kernel is started" in refused.value.report()
    monkeypatch.setenv(name, text)
    with pytest.raises(SettingsError):
        Keel()


def test_what_is_written_out_for_speed_is_what_holds():
    assert tuple(map(str, Mode)) == MODES
    assert TOLD_MOST == MOST_STEPS
    assert {name for name, _ in REFUSED} == _READ.keys()


def test_no_variable_that_has_a_form_is_read_past_it():
    past = []
    for path in (Path(__file__).resolve().parents[2] / "keel_notebook").rglob("*.py"):
        text = path.read_text("utf-8")
        past += [(path.name, name) for name in _READ if re.search(rf'environ(\.get\(|\[)"{name}"', text)]
    assert not past

"""Durable calls as a person sees them in steps: their tracebacks, their waits, their progress (C74, O24, Z38)."""

import re
import sys
import threading
import time

import pytest

from keel_notebook.core.model import Kind, Status
from keel_notebook.engine import progress
from keel_notebook.session import SystemClock


@pytest.mark.parametrize(
    "how",
    [
        "keel.call(ask, 1)",
        "keel.call(ask, 1, retries=1, timeout=9)",
        "keel.durable(ask)(1)",
        "keel.map(ask, [1])",
        "await keel.gather(keel.defer(ask, 1))",
        "await keel.call(later, 1)",
    ],
)
def test_c74_the_traceback_of_a_call_shows_the_persons_lines_and_none_of_keel(book, how):
    book.ok("def ask(i):\n    raise ValueError(i)\nasync def later(i):\n    ask(i)\n")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", book.run(f"%%keel_step s\nx = 1\nout = {how}\n").out)
    assert "raise ValueError(i)" in shown
    assert f"out = {how}" in shown
    assert "keel_notebook" not in shown


def test_o24_z38_a_sleep_in_a_step_waits_for_the_recorded_instant_over_a_death(book, monkeypatch):
    cell = "%%keel_step nap\nhit('before')\nkeel.sleep('1h')\nhit('after')\n"

    real = time.sleep

    def stopped(seconds):
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        real(seconds)

    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", stopped)
        assert isinstance(book.run(cell).error, KeyboardInterrupt)
    [timer] = book.entries(Kind.SLEEP)
    assert timer.status is Status.RUNNING
    assert timer.ambient["wake_at"] - timer.started_at == pytest.approx(3600, abs=1)
    book.kill()
    book.boot()
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + 3600)
    book.ok(cell)
    assert book.hits == ["before", "before", "after"], "past due: it goes on at once"
    assert [e.status for e in book.entries(Kind.SLEEP)] == [Status.OK]


def test_a_promise_in_a_step_shows_its_token_once_and_is_attached_to_again(book):
    cell = "%%keel_step ask\np = keel.promise('deploy')\nhit(p.id)\nhit('new' if p.token else 'known')\nraise OSError\n"
    for _ in range(2):
        assert isinstance(book.run(cell).error, OSError)
    first, new, second, known = book.hits
    assert (first, new, known) == (second, "new", "known")


class Terminal:
    """A stderr that somebody looks at."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_a_map_shows_one_line_of_progress_in_a_terminal_with_what_the_journal_held(book, monkeypatch):
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    terminal = Terminal()
    monkeypatch.setattr(progress, "sys", type("Sys", (), {"stderr": terminal, "modules": sys.modules}))
    book.ok("def ask(i): return i")
    book.ok("%%keel_step s\nout = keel.map(ask, [1, 2])\n")
    book.ok("%%keel_step s\nout = keel.map(ask, [1, 2, 3], max_workers=1)\n")
    lines = [line.strip() for line in re.split(r"[\r\n]", terminal.text) if line.strip()]
    assert lines[-1].startswith("ask")
    assert "3/3, 2 from the journal" in lines[-1]


def test_the_arguments_of_a_call_stand_in_its_record_short_and_never_secret(book):
    book.ok("def ask(prompt, password='', **more): return 1\ndef login(password): return 2\n")
    canary = "sk-proj-Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
    book.ok(
        "%%keel_step s\n"
        "keel.call(ask, 'why is the sky blue', size=3)\n"
        "keel.call(login, 'hunter2-horse')\n"
        f"keel.call(ask, 'use {canary} now', token={canary!r})\n"
        "keel.call(ask, 'x' * 10_000, table=list(range(1000)))\n"
        "keel.call(ask, *range(1), a=1, b=2, c=3, d=4, e=5)\n"
    )
    shown = [entry.inputs[0].preview for entry in book.entries(Kind.CALL)]
    assert shown[0] == "'why is the sky blue', size=3"
    assert shown[1] == "…"
    assert all(len(text) <= 80 for text in shown)
    assert shown[4] == "0, a=1, b=2, c=3, d=4, …"
    for secret in ("hunter2", canary, canary[8:20]):
        assert secret not in "".join(shown)

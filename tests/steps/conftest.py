"""A notebook in this process: shells without a kernel, one after the other, on one real journal."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from IPython.utils.capture import capture_output

from keel_notebook.core.model import Kind
from keel_notebook.front.magics import load, unload
from keel_notebook.journal.disk import open_journal
from tests.cell.shells import shell

HIT = 'def hit(t):\n    with open("hits.txt", "a") as f: f.write(str(t) + "\\n")\nimport keel_notebook as keel'


class Vanished(BaseException):
    """The kernel is gone."""


@dataclass
class Ran:
    """What a cell came to."""

    error: BaseException | None
    out: str
    err: str
    result: object = None

    @property
    def code(self):
        return getattr(self.error, "code", "")


class Book:
    """One notebook; ``boot`` starts its next kernel after ``kill`` or ``shutdown``."""

    def __init__(self, folder, stack):
        self.folder = folder
        self._stack = stack
        self.shell = None

    def boot(self):
        self.shell = self._stack.enter_context(shell())
        load(self.shell)
        self.run(HIT)
        return self

    @property
    def session(self):
        return self.shell._keel_session

    def run(self, cell):
        with capture_output() as shown:
            result = self.shell.run_cell(cell, store_history=True)
        error = result.error_in_exec or result.error_before_exec
        return Ran(error, shown.stdout, shown.stderr, result.result)

    def ok(self, cell):
        ran = self.run(cell)
        assert ran.error is None, ran.error
        return ran

    def dies_in(self, cell):
        """The kernel vanishes right after the body of a step: the system drops its lock, nothing more is written."""

        def vanish(attempt, outcome):
            if attempt.guard is not None:
                attempt.guard._stop.set()
                attempt.guard._lease.forget_in_child()
            raise Vanished

        self.session.leader().attached.runner.finish = vanish
        with pytest.raises(Vanished):
            self.run(cell)
        self.kill()
        return self.boot()

    def kill(self):
        """The kernel vanishes."""
        self.session.attached().journal.close(clean=False)
        self.shutdown()

    def shutdown(self):
        unload(self.shell)
        self.shell = None

    def again(self, *cells):
        """A kernel that vanished, a fresh one, and its cells from the top; the last one's end."""
        self.kill()
        self.boot()
        return [self.run(cell) for cell in cells][-1] if cells else None

    def entries(self, kind=Kind.STEP, step=None):
        attached = self.session.attached()
        found = attached.journal.records(attached.flow.id).entries
        return [e for e in found if e.kind is kind and step in (None, e.step)]

    @property
    def hits(self):
        path = self.folder / "hits.txt"
        return path.read_text().split() if path.exists() else []

    def __getitem__(self, name):
        return self.shell.user_ns[name]


@pytest.fixture
def book(tmp_path, monkeypatch):
    import functools

    from keel_notebook import wiring

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "a.ipynb"))
    for name in [name for name in os.environ if name.startswith("KEEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(wiring, "open_journal", functools.partial(open_journal, rest_s=None))
    with ExitStack() as stack:
        made = Book(tmp_path, stack)
        yield made.boot()
        if made.shell is not None:
            made.shutdown()

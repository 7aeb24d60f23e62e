"""What `%keel plan` says beside what a real Run All then does, situation by situation (DESIGN 3.1)."""

import json
import os
import sys
import time
from dataclasses import dataclass, field

import pytest

from keel_notebook.core.done import EXECUTED, REFUSED, REPLAYED

MET = {"replays": {REPLAYED}, "executes": {EXECUTED}, "may execute": {EXECUTED, REPLAYED}, "stops": {REFUSED}}
"""What a plan's word allows the Run All to do."""
HELPER = "def double(x): return 2 * x\n"
SAID = "import keel_notebook as keel, os, time, subprocess; from pathlib import Path\n"
NET = "subprocess.run(['true'])"


@dataclass
class Situation:
    """A notebook that ran once, and what happens to it before the next Run All."""

    cells: list
    then: dict = field(default_factory=dict)
    """Cells that are edited since: index to text."""
    ran: tuple = ()
    """Plain cells that run by themselves after the edit, before anybody asks for a plan."""
    change: object = None
    """Called with the folder."""
    plan: dict = field(default_factory=dict)
    """Of some steps what the plan must say: its action, and a part of why."""
    fails: bool = False
    finished: bool = True
    settings: dict = field(default_factory=dict)
    wish: str = ""
    steps: int = 0
    """So many cells the plan knows as steps, where they have no names."""
    here: bool = False
    """In the same kernel: no restart in between."""


def writes(name, text):
    def change(folder):
        (folder / name).write_text(text)

    return change


def removes(name):
    return lambda folder: (folder / name).unlink()


def step(name, body, options=""):
    return f"%%keel_step {name} {options}\n{body}"


READS = [SAID, "import helper", step("a", "x = 1"), step("b", "y = x + 1"), step("c", "z = y + 1")]
KEPT = "def pay(i):\n    if os.path.exists('broken'): raise ValueError(i)\n    return i"
PROMPT, ASK = "PROMPT = 'Classify: {}'", "def ask(item): return PROMPT.format(item)"
SITUATIONS = {
    "nothing changed": Situation(READS, plan={"a": ("replays", ""), "c": ("replays", "")}),
    "an edited cell": Situation(
        READS, {2: step("a", "x = 5")}, plan={"a": ("executes", "code differs"), "b": ("may execute", "made by a")}
    ),
    "an edited cell with equal values": Situation(READS, {2: step("a", "x = 1; q = 2")}, plan={"a": ("executes", "")}),
    "an edited cell that must not differ": Situation(
        [SAID, step("a", "x = 1", "--on-divergence fail")],
        {1: step("a", "x = 5", "--on-divergence fail")},
        plan={"a": ("stops", "KEEL-E031")},
    ),
    "an edited plain cell": Situation(
        [SAID, "n = 1", step("a", "x = n")], {1: "n = 2"}, plan={"a": ("may execute", "cell 2")}
    ),
    "an edited plain cell that ran since": Situation(
        [SAID, "n = 1", step("a", "x = n")], {1: "n = 2"}, ran=(1,), here=True,
        plan={"a": ("may execute", "reads n, made by cell 2, which is not as it was in run 1")},
    ),
    "an edited plain cell that ran since, in a new kernel": Situation(
        [SAID, "n = 1", step("a", "x = n")], {1: "n = 2"}, ran=(1,), plan={"a": ("may execute", "cell 2")}
    ),
    "an edited plain cell behind another one, both ran since": Situation(
        [SAID, "n = 1", "m = [n]\nm.append(n)\nm[0] += n", step("a", "x = m")], {1: "n = 2"}, ran=(1, 2), here=True,
        plan={"a": ("may execute", "reads m, made by cell 2")},
    ),
    "an edited prompt that ran since, read by the function of a durable call": Situation(
        [SAID, PROMPT, ASK, step("a", "x = keel.map(ask, ['one', 'two'])"), step("b", "y = x")],
        {1: "PROMPT = 'Sort: {}'"}, ran=(1,), here=True,
        plan={"a": ("may execute", "reads PROMPT, made by cell 2"), "b": ("may execute", "made by a")},
    ),
    "an edited function that ran since": Situation(
        [SAID, PROMPT, ASK, step("a", "x = ask('one')")], {2: ASK + " + '!'"}, ran=(2,), here=True,
        plan={"a": ("may execute", "reads ask, made by cell 3")},
    ),
    "plain cells that ran again as they were": Situation(
        [SAID, PROMPT, ASK, "m = ask('zero')", step("a", "x = ask(m)")], ran=(1, 3, 1), here=True,
        plan={"a": ("replays", "")},
    ),
    "a new step": Situation(
        [SAID, step("a", "x = 1"), ""], {2: step("new", "w = x")}, plan={"new": ("executes", "no record")}
    ),
    "an edited input file": Situation(
        [SAID, step("a", "x = Path('in.csv').read_text()")], change=writes("in.csv", "other"),
        plan={"a": ("executes", "in.csv changed since")},
    ),
    "an input file written anew with equal content": Situation(
        [SAID, step("a", "x = Path('in.csv').read_text()")], change=writes("in.csv", "1"), plan={"a": ("replays", "")},
    ),
    "a missing input file": Situation(
        [SAID, step("a", "x = os.path.exists('in.csv') and Path('in.csv').read_text()")], change=removes("in.csv"),
        plan={"a": ("executes", "in.csv is gone")},
    ),
    "a missing product": Situation(
        [SAID, step("a", "Path('out.csv').write_text('1')")], change=removes("out.csv"),
        plan={"a": ("executes", "out.csv is gone")},
    ),
    "a helper file edited, in a new kernel": Situation(
        [SAID, "import helper", step("a", "x = helper.double(1)"), step("b", "y = 1")],
        change=writes("helper.py", "def double(x): return x + x + 1\n"),
        plan={"a": ("executes", "helper"), "b": ("replays", "")},
    ),
    "a helper file edited and not reloaded": Situation(
        [SAID, "import helper", step("a", "x = helper.double(1)"), step("b", "y = 1")],
        change=writes("helper.py", "def double(x): return x + x + 1\n"), here=True,
        plan={"a": ("executes", "edited but not reloaded"), "b": ("replays", "")},
    ),
    "a helper file edited where nothing may differ": Situation(
        [SAID, "import helper", step("a", "x = helper.double(1)", "--on-divergence fail")],
        change=writes("helper.py", "def double(x): return x + x + 1\n"), plan={"a": ("stops", "KEEL-E031")},
    ),
    "failed calls that were kept": Situation(
        [SAID, KEPT, step("a", "x = [keel.call(pay, i, on_error='keep') for i in range(2)]"), step("b", "y = 1")],
        change=removes("broken"), plan={"a": ("executes", "2 of its calls failed"), "b": ("replays", "")},
    ),
    "failed calls, accepted": Situation(
        [SAID, KEPT, step("a", "x = [keel.call(pay, i, on_error='keep') for i in range(2)]")],
        wish="%keel accept a", here=True, plan={"a": ("replays", "accepted")},
    ),
    "one name on two cells": Situation(
        [SAID, step("a", "x = 1"), ""], {2: step("a", "x = 2")},
        plan={"a": ("stops", "KEEL-E080")}, fails=True,
    ),
    "the same cell twice": Situation([SAID, step("a", "x = 1"), step("a", "x = 1")], plan={"a": ("replays", "")}),
    "a ttl that has passed": Situation(
        [SAID, step("a", "x = 1", "--ttl 1ms")], plan={"a": ("executes", "--ttl")}
    ),
    "a ttl that has passed where nothing may differ": Situation(
        [SAID, step("a", "x = 1", "--ttl 1ms --on-divergence fail")], plan={"a": ("stops", "KEEL-E031")}
    ),
    "a new run after a finished one": Situation(
        [SAID, step("a", f"{NET}; x = 1"), step("b", "y = x"), step("c", f"{NET}; z = 1", "--ttl 1d")],
        settings={"across_runs": "execute"},
        plan={"a": ("executes", "a new run"), "b": ("may execute", "a"), "c": ("replays", "")},
    ),
    "a run that goes on": Situation(
        [SAID, step("a", f"{NET}; x = 1")], settings={"across_runs": "execute"}, finished=False,
        plan={"a": ("replays", "")},
    ),
    "volatile values in a new run": Situation(
        [SAID, "t0 = time.time()", step("a", "x = t0")], plan={"a": ("may execute", "clock")}
    ),
    "volatile values in a run that goes on": Situation(
        [SAID, "t0 = time.time()", step("a", "x = t0")], finished=False, plan={"a": ("replays", "")}
    ),
    "a slow cell of auto mode": Situation(
        [SAID, "%keel auto on --min-seconds 0.1", "time.sleep(0.15); slow = 1", "quick = 2"], steps=1
    ),
    "a resource": Situation(
        [SAID, step("r", "client = object()", "--always"), step("a", "x = bool(client)")],
        plan={"r": ("executes", "--always"), "a": ("replays", "")},
    ),
    "a promise that nobody answered": Situation(
        [SAID, step("a", "p = keel.promise('deploy')\nif os.path.exists('broken'): raise KeyboardInterrupt\nx = p.id")],
        change=removes("broken"), plan={"a": ("executes", "deploy")}, fails=True,
    ),
    "a value that nobody can store and somebody needs": Situation(
        [SAID, step("a", "g = (i for i in range(3)); x = 1"), step("b", "y = list(g)"), step("c", "z = x")],
        plan={"a": ("executes", "g (generator)"), "c": ("may execute", "")},
    ),
    "a value that nobody can store and nobody needs": Situation(
        [SAID, step("a", "g = (i for i in range(3)); x = 1"), step("c", "z = x")],
        plan={"a": ("replays", ""), "c": ("replays", "")},
    ),
    "a step that failed": Situation(
        [SAID, step("a", "x = 1 / (not os.path.exists('broken'))")], change=removes("broken"),
        plan={"a": ("executes", "failed last time")}, fails=True,
    ),
    "a command whose own journal went on": Situation(
        [SAID, step("a", "Path('j').write_text('did'); x = 1 / (not os.path.exists('broken'))", "--journal-file j")],
        change=removes("broken"), plan={"a": ("stops", "KEEL-E033")}, fails=True,
    ),
    "a rerun that was asked for": Situation(
        READS, wish="%keel rerun b", here=True, plan={"b": ("executes", "a rerun"), "a": ("replays", "")}
    ),
    "a guarded step": Situation(
        [SAID, step("a", "x = 1", "--effect exactly_once")], plan={"a": ("replays", "")}
    ),
    "a guarded step whose code was edited": Situation(
        [SAID, step("a", "x = 1", "--effect exactly_once")], {1: step("a", "x = 2", "--effect exactly_once")},
        plan={"a": ("stops", "KEEL-E031")},
    ),
}  # fmt: skip


class Notebook:
    """The notebook of the book fixture, with its file."""

    def __init__(self, book, situation):
        self.book = book
        self.cells = list(situation.cells)
        for name, text in (("in.csv", "1"), ("helper.py", HELPER), ("broken", "")):
            (book.folder / name).write_text(text)
        for name in ("in.csv", "helper.py", "broken"):  # settled: their stamps tell the next change
            past = time.time() - 60
            os.utime(book.folder / name, (past, past))
        self.save()

    def save(self):
        code = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in self.cells]
        (self.book.folder / "a.ipynb").write_text(json.dumps({"cells": code, "nbformat": 4, "metadata": {}}))

    def run_all(self, stop=True):
        """Every cell from the top, as a front end does: nothing after the first error."""
        done, attached = {}, None
        for cell in self.cells:
            error = self.book.run(cell).error if cell else None
            attached = self.book.session.leader() if self.book.session._leader else None
            if attached is not None:
                for name, one in attached.ledger.done.items():
                    done.setdefault(name, one.decision)
            if error is not None and stop:
                return done, error
        return done, None

    def plan(self):
        rows = self.book.run("%keel plan").result.report.rows
        return [row for row in rows if row.step]


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_plan_says_what_run_all_then_does(book, name, monkeypatch):
    situation = SITUATIONS[name]
    monkeypatch.syspath_prepend(str(book.folder))
    for setting, value in situation.settings.items():
        monkeypatch.setenv(f"KEEL_{setting.upper()}", value)
    book.shutdown()
    book.boot()
    notebook = Notebook(book, situation)
    _, error = notebook.run_all()
    assert (error is not None) == (situation.fails and "two cells" not in name), error
    for at, text in situation.then.items():
        notebook.cells[at] = text
    notebook.save()
    for at in situation.ran:
        assert book.run(notebook.cells[at]).error is None
    if situation.change is not None:
        situation.change(book.folder)
    if not situation.here:
        sys.modules.pop("helper", None)
        book.shutdown() if situation.finished else book.kill()
        book.boot()
    if situation.wish:
        book.ok(situation.wish)
    planned = notebook.plan()
    said = {row.step: (str(row.action), row.why) for row in planned}
    assert len(said) >= situation.steps
    for step_name, (action, why) in situation.plan.items():
        assert said[step_name][0] == action, (step_name, said)
        assert why in said[step_name][1], (step_name, said)
    if situation.here:
        book.session.leader().ledger.done.clear()
    done, error = notebook.run_all()
    met = {row.step: row for row in planned if row.step in done or row.action == "stops"}
    for row in met.values():
        decision = REFUSED if row.action == "stops" and error is not None else done[row.step]
        assert decision in MET[str(row.action)], (row, done, error)
    stops = next((row.step for row in planned if row.action == "stops"), None)
    assert (error is not None) == (stops is not None), (stops, error)
    sys.modules.pop("helper", None)

"""Stories: flows told entry by entry, as a journal would give them."""

import itertools

import pytest

from keel_notebook.capture.outputs import pack_messages
from keel_notebook.core.done import StepDone, decision_entry
from keel_notebook.core.model import Blob, Entry, FlowId, Input, Kind, Payload, Problem, Status, Write, entry_id
from keel_notebook.core.ports import FlowRecords, Message, RunEnd, RunSeen, RunStart

_PACKED = pack_messages([Message("stream", {"name": "stdout", "text": "done\n"})])

T0 = 1_780_000_000.0
"""When every story begins."""

PRINTED = Blob(len(_PACKED), inline=_PACKED)
"""What every step of a story showed."""

HOSTILE = {
    "quotes": "a\"b'c`d",
    "markup": "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "entities": "&lt;b&gt; &amp; </td></table>",
    "newlines": "one\ntwo\r\nthree\u2028four",
    "escapes": "\x1b[2J\x1b[31mred\x07\x9b1m",
    "turned": "\u202egnp.exe\u2066x\u2069",
    "emoji": "fit \N{WOMAN}\u200d\N{MICROSCOPE}\N{VARIATION SELECTOR-16} \u65e5\u672c\u8a9e",
    "combining": "e\u0301\u0301 Z\u0335\u0321",
    "surrogate": "half \ud83d",
    "nul": "a\0b",
    "long": "x" * 5_000 + "MIDDLE" + "y" * 4_994,
    "blank": "   ",
}


class Story:
    """What happened in a flow, in the order in which it was written."""

    def __init__(self, flow="flow-1"):
        self.flow = FlowId(flow)
        self.entries = []
        self.runs = {}
        self.now = T0
        self.untrusted = frozenset()
        self._run = 0
        self._seq = itertools.count(1)

    def run(self, end=RunEnd.DIED, *, rss=0, seen_at=0.0):
        """A new run begins; ``end`` is how it will have ended."""
        self._run += 1
        self.runs[self._run] = RunSeen(RunStart(self._run, "host", 4711, "boot", self.now), end, rss, seen_at)
        return self

    def step(self, name, status=Status.OK, *, reads=None, writes=None, source=None, took=60.0, kind=Kind.STEP, **more):
        """An attempt or record of a step, 10 s after what came before. ``reads`` and ``writes``: name to digest."""
        self.now += 10
        seq = next(self._seq)
        source = f"%%keel_step {name}\n{name} = 1" if source is None else source
        ended = status in (Status.OK, Status.FAILED, Status.INTERRUPTED)
        entry = Entry(
            entry=entry_id(self._run, seq),
            flow=self.flow,
            run=self._run,
            seq=seq,
            step=name,
            kind=kind,
            status=status,
            source=source,
            code=more.pop("code", "code of " + source),
            inputs=tuple(Input(n, d, preview=f"{n} was {d}", type="int") for n, d in (reads or {}).items()),
            writes=tuple(Write(n, d, "int", 8, f"{d}") for n, d in (writes or {}).items()),
            payload=Payload(Blob(100), bytes=2_100_000) if status is Status.OK else None,
            outputs=more.pop("outputs", PRINTED if ended else None),
            started_at=self.now,
            ended_at=self.now + took if ended else None,
            took_s=took if ended else None,
            error=Problem("ValueError") if status is Status.FAILED else None,
            **{"ambient": {"saw": []}} | more,
        )
        self.entries.append(entry)
        return entry

    def plain(self, source):
        """A plain cell ran."""
        return self.step("", kind=Kind.PLAIN, source=source)

    def decided(self, name, decision, **facts):
        """The session wrote down what it decided."""
        done = StepDone(name, decision, **facts)
        seq = next(self._seq)
        self.entries.append(decision_entry(done, flow=self.flow, run=self._run, seq=seq, at=self.now))
        return done

    def retire(self, name, key, like):
        """A person rejected a record: ``rerun``, ``forget``, ``revive``."""
        return self.step(name, kind=Kind.RETIRE, key=key, code=like.code, source=like.source)

    @property
    def records(self):
        """The flow as the journal gives it."""
        return FlowRecords(self.flow, tuple(self.entries), self.runs, self.untrusted)


@pytest.fixture
def story():
    """An empty story."""
    return Story()


@pytest.fixture
def three_steps():
    """load, fit and plot in a kernel that died; a second kernel replayed load and executed fit again."""
    told = Story()
    told.run(RunEnd.DIED)
    told.plain("import math\ncutoff = 3")
    load = told.step("load", writes={"df": "d1"}, took=600.0)
    told.step("fit", reads={"df": "d1", "cutoff": "c3"}, writes={"model": "m1"}, took=7200.0)
    told.step("plot", Status.RUNNING, reads={"model": "m1"})
    told.run(RunEnd.OPEN)
    told.decided("load", "replayed", entry=load.entry, why="code and inputs are those of the record", replay_s=0.02)
    return told

"""A kernel without IPython, for the engine's own tests: a namespace, cells that run in it, and a journal.

``Kernel.step`` runs a text as the body of a step, the way the session does it. ``kill`` is a kernel that vanishes.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import os
import random
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle

from keel_notebook.core.decide import Mode
from keel_notebook.core.fingerprint import definition_digest
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Entry, FlowId, Kind, NotStored, Payload, Status, Write, entry_id
from keel_notebook.core.ports import Definition, Digested, Packed, Unpacked
from keel_notebook.engine import host, scope
from keel_notebook.engine.callparts import CallParts
from keel_notebook.engine.calls import Calls
from keel_notebook.engine.scope import StepScope
from keel_notebook.engine.shared import SharedJournal
from keel_notebook.errors import DamagedError
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.memory import MemoryFolder, MemoryJournal
from keel_notebook.payload.digest import StructuralDigester
from keel_notebook.payload.preview import preview
from keel_notebook.payload.seal import OwnerSeal

SEAL = OwnerSeal(b"k" * 32)


class ManualClock:
    """Time that only the test moves."""

    def __init__(self, at: float = 1_783_728_000.0) -> None:
        self.at = at
        self.ticks = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.ticks

    def advance(self, seconds: float) -> None:
        self.at += seconds
        self.ticks += seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)


class CellDefinitions:
    """``ports.Definitions`` for functions that cells of a ``Kernel`` defined."""

    def __init__(self) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.modules: dict[str, str] = {}

    def belongs(self, thing: Any) -> bool:
        code = getattr(thing, "__code__", None)
        return code is not None and code.co_filename in self.trees

    def is_local(self, module: str) -> bool:
        return module in self.modules

    def of(self, thing: Any) -> Definition | None:
        code = thing.__code__
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        first = [
            node
            for node in ast.walk(self.trees[code.co_filename])
            if isinstance(node, kinds) and node.lineno == code.co_firstlineno
        ]
        if len(first) != 1:
            return None
        reads = {n.id for n in ast.walk(first[0]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        reads -= set(code.co_varnames) | set(code.co_freevars)
        return Definition(definition_digest(first[0]), frozenset(reads), "")

    def module(self, name: str) -> Digested:
        return Digested(text_digest("module", name, self.modules.get(name, "")))

    def modules_at_once(self) -> Callable[[str], Digested]:
        return self.module


class PickleCodec:
    """``ports.Codec`` for tests: one pickle of all names that can be pickled."""

    def __init__(self, journal: Any) -> None:
        self._journal = journal

    def pack(self, names, *, result, known, digested=True):
        good, bad = {}, []
        for name, value in names.items():
            try:
                cloudpickle.dumps(value)
            except Exception as error:  # noqa: BLE001 - any type may refuse in its own way
                bad.append(NotStored(name, type(value).__qualname__, type(error).__name__))
            else:
                good[name] = value
        raw = cloudpickle.dumps(good)
        writes = tuple(Write(name, None, type(value).__qualname__, 0) for name, value in good.items())
        return Packed(Payload(self._journal.blob(raw), (), (), len(raw)), writes, tuple(bad))

    def unpack(self, payload, *, resolve):
        try:
            return Unpacked(cloudpickle.loads(self._journal.read(payload.head)))
        except Exception as error:
            raise DamagedError(what="a payload", step="", detail=type(error).__name__) from error


class Guard:
    """A lease that is always free; ``lost`` makes it lost."""

    def __init__(self) -> None:
        self.held = 0
        self.lost: Exception | None = None

    def take(self) -> None:
        self.held += 1

    def give_back(self) -> None:
        self.held -= 1

    def check(self) -> None:
        if self.lost is not None:
            raise self.lost


class Kernel:
    """One kernel on a journal folder (``MemoryFolder`` or a path)."""

    _cells = itertools.count(1)

    def __init__(
        self,
        folder: MemoryFolder | Path,
        *,
        clock: Any = None,
        flow: str = "f",
        mode: Mode = Mode.LIVE,
        journal: Any = None,
    ) -> None:
        self.clock = clock or ManualClock()
        if journal is None:
            if isinstance(folder, MemoryFolder):
                journal = MemoryJournal(folder, clock=self.clock, seal=SEAL)
            else:
                journal = open_journal(folder, clock=self.clock, seal=SEAL, notebook="", cwd="", rest_s=None)
        self.journal: Any = SharedJournal(journal)
        self.names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
        self.said: list[str] = []
        self.guard = Guard()
        self.definitions = CellDefinitions()
        self.calls = Calls(
            CallParts(
                journal=self.journal,
                codec=PickleCodec(self.journal),
                digester=StructuralDigester(salt=self.journal.salt, definitions=self.definitions),
                definitions=self.definitions,
                clock=self.clock,
                namespace=self.names,
                flow=FlowId(flow),
                guard=self.guard,
                sleep=getattr(self.clock, "sleep", lambda s: None),
                chance=random.Random(1).random,
                entropy=os.urandom,
                mode=mode,
                say=self.said.append,
                preview=preview,
                lock=self.journal.lock,
            )
        )
        host.install(HostOf(self.calls))
        self.run("import keel_notebook.api as keel")

    def run(self, source: str) -> None:
        """A plain cell."""
        text = textwrap.dedent(source)
        name = f"<cell {next(self._cells)}>"
        tree = ast.parse(text, name)
        self.definitions.trees[name] = tree
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(tree, name, "exec"), self.names)

    def step(self, name: str, source: str, *, identity: str = "i", resumed: Any = None, end: bool = True) -> None:
        """The body of a step. ``end``: write that it ended ok, as the runner does."""
        implicit = resumed is not None
        here = StepScope(name, identity, implicit=implicit, resumed=frozenset(resumed or ()))
        token = scope.enter(here)
        try:
            self.run(source)
        finally:
            scope.leave(token)
        if end and not implicit:
            self.mark(name, Kind.STEP, "")

    def mark(self, step: str, kind: Kind, key: str) -> None:
        """An entry about the step itself: its end, or a person's word."""
        seq = self.journal.next_seq()
        run = self.journal.run
        self.journal.append(Entry(entry_id(run, seq), self.calls.parts.flow, run, seq, step, kind, Status.OK, key=key))

    def kill(self) -> None:
        """The process vanishes: nothing more is written."""
        host.install(None)
        self.journal.close(clean=False)

    def shutdown(self) -> None:
        """The kernel ends in order."""
        host.install(None)
        self.journal.close(clean=True)

    def entries(self, kind: Kind = Kind.CALL) -> list[Entry]:
        """What is recorded of the flow."""
        return [entry for entry in self.journal.records(self.calls.parts.flow).entries if entry.kind is kind]


class HostOf:
    """The host that the tests install."""

    def __init__(self, calls: Calls | None) -> None:
        self._calls = calls

    def calls(self, *, needed: bool) -> Calls | None:
        return self._calls

    def plain_scope(self) -> StepScope:
        return StepScope("", "", implicit=True)

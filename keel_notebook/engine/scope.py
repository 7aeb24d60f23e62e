"""Where a durable call stands: the step whose body is running, and the call inside which it is made (DESIGN 3.2).

The session sets the scope right before a body starts and takes it away when the cell has ended. A context variable
carries it into asyncio tasks and into the threads of ``keel.map``; threads that a person starts have a context of
their own, so for them the scope of the running cell is found here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING

from msgspec import Struct, field

from keel_notebook.core.calls import Place, StepCalls
from keel_notebook.core.cellcode import ParsedCell
from keel_notebook.core.model import EntryId

if TYPE_CHECKING:
    from keel_notebook.engine.callparts import Claim


class StepScope(Struct):
    """One body that is running, as its durable calls see it.

    ``identity`` is the step's ``--key``, or the digest of its code and inputs: what makes two attempts attempts of
    the same thing. ``implicit`` marks the step of a plain cell that makes durable calls. ``resumed`` are the runs
    that this kernel goes on with; it matters for implicit steps only. ``idempotency_key`` is the step's own.
    """

    step: str
    identity: str
    implicit: bool = False
    unrecorded: bool = False
    """Whether its cell is a step that runs plainly, because nothing of it can be recorded."""
    resumed: frozenset[int] = frozenset()
    idempotency_key: str = ""
    attempt: str = ""
    """The entry of the step's attempt; empty where there is none."""
    cell: ParsedCell | None = None
    """What its cell says: what it did to a client so far counts as well."""
    records: StepCalls | None = None
    """Read at the first call."""
    untrusted: frozenset[EntryId] = frozenset()
    said: set[str] = field(default_factory=set)
    failed: set[tuple[str, str]] = field(default_factory=set)
    """Calls (name and key) whose failure was kept, and which did not succeed since."""
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def restart(self) -> None:
        """The body starts again from its top: its calls have the places that they had."""
        self._counts.clear()
        self.failed.clear()

    @property
    def called(self) -> bool:
        """Whether the body made a durable call."""
        return bool(self._counts)

    def place(self, call: str, key: str) -> Place:
        """The next place of this call and key. Claimed at the very entry, before any await or I/O (K4, Z1)."""
        place = self.next_place(call, key)
        self.take(place)
        return place

    def next_place(self, call: str, key: str) -> Place:
        """The place that ``place`` would give. Moves nothing."""
        return Place(call, key, self._counts.get((call, key), 0) + 1)

    def take(self, place: Place) -> None:
        """This place is taken, and the one that follows is the next."""
        self._counts[place.call, place.key] = place.occurrence


_scope: ContextVar[StepScope | None] = ContextVar("keel_step", default=None)
_inside: ContextVar[Claim | None] = ContextVar("keel_call", default=None)


class _Process:
    running: StepScope | None = None


def enter(scope: StepScope) -> Token[StepScope | None]:
    """A body starts. Give the token to ``leave``; call both in the context in which the body runs."""
    _Process.running = scope
    return _scope.set(scope)


def leave(token: Token[StepScope | None]) -> None:
    """The body ended. A task of it that lives on keeps its scope; another thread's calls find none any more."""
    _Process.running = None
    try:
        _scope.reset(token)
    except ValueError:  # the cell awaited: it ended in another copy of the context than it began in
        _scope.set(None)


def current() -> StepScope | None:
    """The scope of the caller: of its context, else of the cell that is running."""
    return _scope.get() or _Process.running


def inside() -> Claim | None:
    """The durable call inside which the caller runs."""
    return _inside.get()


def push(claim: Claim) -> Token[Claim | None]:
    """The function of a durable call starts: calls that it makes have places of their own below it."""
    return _inside.set(claim)


def pop(token: Token[Claim | None]) -> None:
    """The function ended."""
    _inside.reset(token)


@contextmanager
def within(claim: Claim) -> Iterator[None]:
    """``push`` and ``pop`` around a block."""
    token = push(claim)
    try:
        yield
    finally:
        pop(token)

"""The nouns of durable calls: what they work with, a call that was made, and one that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct, field

from keel_notebook.core.ambient_ports import Ambient
from keel_notebook.core.calls import CallNow, Place
from keel_notebook.core.decide import Mode
from keel_notebook.core.effects import OnAmbiguous
from keel_notebook.core.model import Effect, Entry, FlowId, NotStored
from keel_notebook.core.ports import Clock, Codec, Definitions, Digester, Journal
from keel_notebook.engine.arguments import Arguments
from keel_notebook.engine.changes import Watched
from keel_notebook.engine.counting import Vouch, nobody_vouches
from keel_notebook.engine.prints import Print
from keel_notebook.engine.scope import StepScope


class Held(Protocol):
    """The lease that guarded calls need."""

    def take(self) -> bool:
        """Have it, or raise LeaseError (E030). True: another may have held it since, so read again."""

    def take_over(self) -> None:
        """Have it although a holder that is stopped, or on another host, did not give it back."""

    def give_back(self) -> None:
        """Not needed any more by this call."""

    def close(self) -> None:
        """Give it back, whoever still needs it."""

    def check(self) -> None:
        """Raise LeaseError (E030) if it was lost."""


class CallParts(Struct, frozen=True):
    """What durable calls work with."""

    journal: Journal
    codec: Codec
    digester: Digester
    """Marks outlines of what has no digest."""
    definitions: Definitions
    clock: Clock
    namespace: dict[str, Any]
    """The notebook's names."""
    flow: FlowId
    flow_key: str = ""
    guard: Held | None = None
    """None: guarded calls are refused, because nobody told which notebook this is."""
    ambient: Ambient | None = None
    """For ``keel.loop``: random state goes on where it was."""
    vouch: Vouch = nobody_vouches
    """Tells what a name's value counts as that has no digest."""
    sleep: Callable[[float], None] = lambda _: None
    chance: Callable[[], float] = lambda: 0.5
    """Numbers from 0 to 1, for jitter."""
    entropy: Callable[[int], bytes] = bytes
    mode: Mode = Mode.LIVE
    say: Callable[[str], None] = lambda _: None
    preview: Callable[[str, Any], str] = lambda _name, _value: ""
    """A short text for a named value, empty for what looks like a credential."""
    lock: AbstractContextManager[Any] = field(default_factory=threading.RLock)
    """Re-entrant; the lock of the journal, where that one is shared between threads."""


class CallOptions(Struct, frozen=True):
    """How a call is made. The defaults are those of DESIGN 3.2."""

    effect: Effect = Effect.IDEMPOTENT
    on_ambiguous: OnAmbiguous = OnAmbiguous.FAIL
    retries: int = 0
    timeout_s: float | None = None
    on_error: str = "raise"
    trust_key: bool = False


PLAIN_OPTIONS = CallOptions()


class Claim(Struct):
    """A call that was made: its place is taken, nothing has run."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    options: CallOptions
    keyed: bool
    """Whether a person gave it a key."""
    scope: StepScope
    place: Place
    arguments: Arguments
    seq: int
    print: Print | None = None
    idempotency_key: str = ""
    shown: str = ""
    """Its arguments, for people."""
    owing: str = ""
    """A call that was made inside this one and whose failure was kept: with it this one is not finished."""

    @property
    def path(self) -> str:
        """Where calls that this call's function makes are placed."""
        return f"{self.place.call}[{self.place.key}#{self.place.occurrence}]"


class Given(Struct):
    """The call need not run: this is its value."""

    value: Any
    awaited: bool = False


class Going(Struct):
    """The call is to run now."""

    claim: Claim
    now: CallNow
    watched: Watched | None
    started: float
    began: float
    entry: Entry | None = None
    """The intent of a guarded call."""
    attempts: int = 1
    awaited: bool = False
    unreplayable: tuple[NotStored, ...] = ()

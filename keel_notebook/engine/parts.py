"""The ports that a runner works with, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.core.ambient_ports import Ambient, AmbientInputs
from keel_notebook.core.atwork import AtWork
from keel_notebook.core.model import (
    Input,
)
from keel_notebook.core.ports import (
    Clock,
    Codec,
    Journal,
    Message,
    Tap,
    Watch,
)
from keel_notebook.core.world_ports import FileSense, World
from keel_notebook.engine.references import References


class Parts(Struct, frozen=True):
    """The ports that a runner works with."""

    journal: Journal
    codec: Codec
    tap: Tap
    watch: Watch
    ambient: Ambient
    ambient_inputs: AmbientInputs
    world: World
    clock: Clock
    namespace: dict[str, Any]
    pack_messages: Callable[[Sequence[Message], Sequence[Message]], bytes]
    unpack_messages: Callable[[bytes], tuple[Message, ...]]
    unpack_live: Callable[[bytes], tuple[Message, ...]]
    files: FileSense
    lane: Callable[[], str]
    """The lane that is written; empty for the first one."""
    references: References
    kept_inputs: Callable[[Sequence[str]], tuple[Input, ...]]
    """Inputs for names that a conditional store may or may not have bound again."""
    about: Callable[[Any], int]
    """About how many bytes a value takes, by a quick look."""
    at_work: Callable[[], AtWork]
    """What live threads and tasks may change right now."""
    changed: Callable[[Iterable[str], str], None]
    """Tell that a step changed objects that nobody can compare, and what stands for its doing."""

"""What a cell showed of live widgets, beside the still picture of it: for a kernel in which they live again (C17)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from keel_notebook.core.ports import Message

VIEW = "application/vnd.jupyter.widget-view+json"
CATCH = "keel_catch"
"""Kind of a message that is none of Jupyter's: an Output widget begins to take what follows, or ends."""


class Live(Struct, frozen=True):
    """The messages of a cell as they were sent, folded, with views of widgets in them."""

    messages: tuple[Message, ...] = ()
    """None of them where the cell showed no widget."""
    made: tuple[str, ...] = ()
    """Ids of the models that the cell itself made and showed."""


def viewed(message: Message, mime: str = VIEW) -> str:
    """The model that a display shows as ``mime``; empty if it shows none."""
    data = message.content.get("data")
    view = data.get(mime) if isinstance(data, Mapping) else None
    comm = view.get("model_id") if isinstance(view, Mapping) else None
    return comm if isinstance(comm, str) else ""


def needed(messages: tuple[Message, ...]) -> frozenset[str]:
    """The models that have to be there before the messages can be shown."""
    shown = {viewed(message) for message in messages}
    filled = {str(message.content["model_id"]) for message in messages if message.kind == CATCH}
    return frozenset((shown | filled) - {""})

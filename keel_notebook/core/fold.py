"""The messages of a cell, folded to what a person saw at its end (DESIGN 6, Outputs).

Neighbouring text of one stream is one message; progress lines are their last state (C16); an update is in the
display that it updates; what was cleared is gone; widgets are still pictures (C17, C18); runaway output has a head,
a tail and a marker (C21). A cell is folded while it runs, so that only what is kept is ever held.
"""

from __future__ import annotations

from collections.abc import Iterable

from keel_notebook.core.live import Live
from keel_notebook.core.ports import Message
from keel_notebook.core.shown import Caps, Shown
from keel_notebook.core.still import Widgets

TEXT_CAP = 1 << 20
"""Bytes of printed text that a cell may leave in the journal."""
RICH_CAP = 64 << 20
"""Bytes of displays (pictures, tables, plots) that a cell may leave in the journal."""

KINDS = frozenset(
    {
        "stream",
        "display_data",
        "update_display_data",
        "execute_result",
        "clear_output",
        "error",
        "comm_open",
        "comm_msg",
        "comm_close",
    }
)
"""The messages that are part of what a cell shows. ``status``, ``execute_input`` and requests for input are not."""


def fold(
    messages: Iterable[Message], *, cap_bytes: int = TEXT_CAP, rich_cap_bytes: int = RICH_CAP
) -> tuple[Message, ...]:
    """All messages of one cell, folded. Folding them again changes nothing.

    ``cap_bytes`` is for printed text, ``rich_cap_bytes`` for displays.
    """
    folding = Fold(caps=Caps(cap_bytes, rich_cap_bytes))
    for message in messages:
        folding.feed(message)
    return folding.finish()


class Fold:
    """Folds the messages of one cell as they come."""

    def __init__(self, *, caps: Caps | None = None) -> None:
        self._caps = caps or Caps(TEXT_CAP, RICH_CAP)
        self._cell = Shown(self._caps)
        self._widgets = Widgets(self._caps)

    def feed(self, message: Message) -> None:
        """Take the next message. Kinds that show nothing are ignored."""
        if message.kind not in KINDS:
            return
        if message.kind.startswith("comm_"):
            self._widgets.feed(message)
            return
        if caught := self._widgets.caught():
            self._cell.stand_in(caught, key=str(caught.content["data"]))
        area = self._widgets.catcher() or self._cell
        match message.kind:
            case "stream":
                area.text(str(message.content["name"]), message.content["text"])
            case "clear_output":
                area.clear(wait=bool(message.content.get("wait")))
            case "update_display_data":
                updated = [shown.update(message) for shown in (self._cell, *self._widgets.areas())]
                if not any(updated):
                    self._cell.update_elsewhere(message)
            case _:
                area.show(message)

    def finish(self) -> tuple[Message, ...]:
        """What was shown in the end. The fold takes nothing more after that."""
        messages = self._cell.messages()
        stills = self._widgets.stills(messages)
        if stills == messages:
            return tuple(messages)
        return fold(stills, cap_bytes=self._caps.text, rich_cap_bytes=self._caps.rich)

    def live(self) -> Live:
        """The same as it was shown, with live widgets; nothing where there were none."""
        return self._widgets.live(self._cell.messages())

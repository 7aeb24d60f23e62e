"""What one output area shows: text and displays in order, folded while they come in, with a cap in the middle.

Memory is bounded however much is shown: the first half of the cap is kept from the beginning, the rest from the
end, and one marker says how much is missing between them (C21). Text and displays (pictures, tables, everything
that is not printed text) have a cap each, so that a chatty cell does not lose its plots.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.ports import Message
from keel_notebook.core.rows import Rows, settled

ENVELOPE = 64
"""Bytes that one message counts beside its content: a million empty displays are not free."""
_MARKERS = 256
"""Bytes set aside for the markers and their envelopes, so that folding what is capped cuts nothing more."""
_LINE = 4096
"""How far from the cap a line end is looked for, at most: a cut between lines reads better than one within."""


class Caps(Struct, frozen=True):
    """How many bytes of text, and of displays, one cell may leave in the journal."""

    text: int
    rich: int


class _Block(Struct, eq=False):
    """Neighbouring text of one stream. ``rows`` holds the row that is still being written."""

    key: int
    name: str
    rows: Rows
    pieces: deque[str] = field(default_factory=deque)


class _Card(Struct, eq=False):
    """One message that is not text."""

    key: int
    message: Message
    weight: int
    display: str = ""


class _Gap(Struct):
    """What the cap took, and the key of the first item that lost something."""

    key: int
    lost: int = 0


class Shown:
    """One output area: a cell's own, or that of an Output widget."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._next = 0
        self._clear_first = False
        self._lasting: dict[str, _Card] = {}  # seen in the area of an earlier cell: no clearing takes that back
        self._final: list[Message] | None = None
        self._empty()

    def _empty(self) -> None:
        self._items: dict[int, _Block | _Card] = {card.key: card for card in self._lasting.values()}
        self._displays: dict[str, deque[_Card]] = {}
        self._block: _Block | None = None
        self._head_room = self._caps.text // 2
        self._text_gap: _Gap | None = None
        self._cut_block: _Block | None = None  # its first part is the last of the head
        self._tail: deque[_Block] = deque()
        self._tail_bytes = 0
        self._cards: deque[_Card] = deque(self._lasting.values())
        self._rich_bytes = sum(card.weight for card in self._cards)
        self._rich_head: int | None = None
        self._rich_gap: _Gap | None = None

    def clear(self, *, wait: bool) -> None:
        """Apply ``clear_output``; with ``wait`` at the next thing shown."""
        self._end_block()
        self._clear_first = wait
        if not wait:
            self._empty()

    def text(self, name: str, text: str) -> None:
        """Add printed text of the stream ``name``."""
        if not text:
            return
        self._before()
        if self._block is None or self._block.name != name:
            self._end_block()
            self._block = self._new_block(name, Rows())
        self._keep(self._block.rows.feed(text))

    def show(self, message: Message) -> None:
        """Add a display, a result or an error."""
        self._before()
        self._end_block()
        display = display_id(message)
        card = self._add(message, display)
        if display:
            self._displays.setdefault(display, deque()).append(card)
        self._trim_cards()

    def update(self, message: Message) -> bool:
        """Fold an update into the displays that it updates; False if none of them is here."""
        cards = self._displays.get(display_id(message), ())
        for card in cards:
            content = {**card.message.content, **_pick(message.content, ("data", "metadata"))}
            self._replace(card, replace(card.message, content=content, buffers=message.buffers))
        self._trim_cards()
        return bool(cards)

    def update_elsewhere(self, message: Message) -> None:
        """Keep the last update of a display that an earlier cell shows."""
        display = display_id(message)
        if display in self._lasting:
            self._replace(self._lasting[display], message)
        else:
            self._lasting[display] = self._add(message, display)
        self._trim_cards()

    def stand_in(self, message: Message, *, key: str) -> None:
        """Add something that is seen elsewhere, once per ``key``: it holds a place, and no clearing takes it away."""
        if key not in self._lasting:
            self._end_block()
            self._lasting[key] = self._add(message, key)

    def messages(self) -> list[Message]:
        """What is shown, as messages. The area takes nothing more after that."""
        if self._final is not None:
            return self._final
        self._end_block()
        if self._text_gap is not None:
            self._trim_text(self._text_gap)
        gaps = sorted((gap for gap in (self._text_gap, self._rich_gap) if gap is not None and gap.lost), key=_key)
        out: list[Message] = []
        for key in sorted(self._items):
            while gaps and gaps[0].key <= key:
                _append(out, _marker(out, gaps.pop(0)))
            item = self._items[key]
            _append(out, item.message if isinstance(item, _Card) else _stream(item.name, "".join(item.pieces)))
        for gap in gaps:
            _append(out, _marker(out, gap))
        self._final = out
        return out

    # ---- text

    def _before(self) -> None:
        if self._clear_first:
            self._clear_first = False
            self._empty()

    def _new_block(self, name: str, rows: Rows) -> _Block:
        self._next += 1
        block = _Block(self._next, name, rows)
        self._items[block.key] = block
        if self._text_gap is None:
            self._head_room -= ENVELOPE
        else:
            self._tail.append(block)
            self._tail_bytes += ENVELOPE
        return block

    def _end_block(self) -> None:
        if self._block is not None:
            self._keep(self._block.rows.rest())
            self._block = None

    def _keep(self, text: str) -> None:
        """Take final text of the current block: into the head while there is room, else into the tail."""
        block = self._block
        if not text or block is None:
            return
        if self._text_gap is None:
            fits, text = _split(text, self._head_room)
            block.pieces.append(fits)
            self._head_room -= _size(fits)
            if not text:
                return
            self._text_gap, self._cut_block = _Gap(self._next + 1), block
            block = self._block = self._new_block(block.name, block.rows)
        block.pieces.append(text)
        self._tail_bytes += _size(text)
        self._drop_pieces(self._text_gap)

    def _drop_pieces(self, gap: _Gap) -> None:
        """Let go of whole pieces as long as more than the tail's share is left. The exact cut comes at the end."""
        share = self._caps.text - self._caps.text // 2
        while self._tail:
            block = self._tail[0]
            if block.pieces:
                size = _size(block.pieces[0])
                if self._tail_bytes - size < share:
                    return
                block.pieces.popleft()
                self._tail_bytes -= size
                gap.lost += size
            elif block is self._block:
                return
            else:
                self._forget_block()

    def _forget_block(self) -> None:
        block = self._tail.popleft()
        self._tail_bytes -= ENVELOPE
        self._items.pop(block.key, None)

    def _trim_text(self, gap: _Gap) -> None:
        over = self._tail_bytes - (self._caps.text - self._caps.text // 2)
        if not gap.lost and over <= max(0, self._head_room):
            return  # all of it fits
        over += _MARKERS
        near = min(_LINE, self._caps.text // 8)
        while over > 0 and self._tail:
            text = "".join(self._tail[0].pieces)
            size = _size(text)
            if size <= over:
                gap.lost += size
                over -= size + ENVELOPE
                self._forget_block()
                continue
            at = len(_split(text, over)[0])
            at = max(at, text.find("\n", max(0, at - 1), at + near) + 1)
            gap.lost += _size(text[:at])
            self._tail[0].pieces = deque([text[at:]])
            break
        if self._cut_block is not None:
            text = "".join(self._cut_block.pieces)
            at = text.rfind("\n", max(0, len(text) - near)) + 1 or len(text)
            gap.lost += _size(text[at:])
            self._cut_block.pieces = deque([text[:at]])

    # ---- displays

    def _add(self, message: Message, display: str) -> _Card:
        self._next += 1
        card = _Card(self._next, message, weight(message), display)
        self._items[card.key] = card
        self._cards.append(card)
        self._rich_bytes += card.weight
        return card

    def _replace(self, card: _Card, message: Message) -> None:
        now = weight(message)
        self._rich_bytes += now - card.weight
        card.message, card.weight = message, now

    def _trim_cards(self) -> None:
        if self._rich_bytes <= self._caps.rich:
            return
        budget = self._caps.rich - _MARKERS
        if self._rich_head is None:
            self._set_head_apart()
        while self._rich_bytes > budget and self._cards:
            card = self._cards.popleft()
            self._rich_bytes -= card.weight
            self._rich_gap = self._rich_gap or _Gap(card.key)
            self._rich_gap.lost += card.weight
            self._items.pop(card.key, None)
            if self._lasting.get(card.display) is card:
                del self._lasting[card.display]
            elif card.display in self._displays:
                self._displays[card.display].remove(card)  # the oldest of its id: found at once

    def _set_head_apart(self) -> None:
        """The first half of the cap stays whatever comes later; the rest may have to go, oldest first."""
        self._rich_head = 0
        while self._cards and self._rich_head + self._cards[0].weight <= self._caps.rich // 2:
            self._rich_head += self._cards.popleft().weight


def display_id(message: Message) -> str:
    """The id under which a display can be updated; empty if it has none."""
    transient = message.content.get("transient")
    found = transient.get("display_id") if isinstance(transient, Mapping) else None
    return found if isinstance(found, str) else ""


def weight(message: Message) -> int:
    """About how many bytes a message takes."""
    return ENVELOPE + _weigh(message.content) + _weigh(message.metadata) + sum(map(len, message.buffers))


def _weigh(value: Any) -> int:
    match value:
        case str():
            return _size(value) + 2
        case bytes():
            return len(value)
        case Mapping():
            return sum(_size(str(key)) + 4 + _weigh(item) for key, item in value.items())
        case list() | tuple():
            if value and isinstance(value[0], int | float):
                return 9 * len(value)  # a column of numbers is not looked through
            return sum(map(_weigh, value)) + len(value)
        case _:
            return 9


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _split(text: str, size: int) -> tuple[str, str]:
    """A text in two, the first part as long as ``size`` bytes allow."""
    if size <= 0:
        return "", text
    if text.isascii():
        return text[:size], text[size:]
    at = len(text[:size].encode("utf-8", "surrogatepass")[:size].decode("utf-8", "ignore"))
    return text[:at], text[at:]


def _pick(content: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: content[key] for key in keys if key in content}


def _key(gap: _Gap) -> int:
    return gap.key


def _stream(name: str, text: str) -> Message:
    return Message("stream", {"name": name, "text": text})


def _marker(before: list[Message], gap: _Gap) -> Message:
    name, line = "stdout", f"… truncated, {gap.lost:,} bytes …\n"
    at = _open_text(before)
    if at is not None:
        name = before[at].content["name"]
        line = line if before[at].content["text"].endswith("\n") else "\n" + line
    return _stream(name, line)


def _append(out: list[Message], message: Message) -> None:
    """Add a message; text goes on in the text before it, as every front end does it."""
    if message.kind != "stream":
        out.append(message)
        return
    at = _open_text(out)
    if at is not None and out[at].content["name"] == message.content["name"]:
        out[at] = _stream(message.content["name"], settled(out[at].content["text"] + message.content["text"]))
    elif message.content["text"]:
        out.append(message)


def _open_text(out: list[Message]) -> int | None:
    """Where the text is to which a front end would add more; updates of displays stand nowhere."""
    for at in range(len(out) - 1, -1, -1):
        if out[at].kind != "update_display_data":
            return at if out[at].kind == "stream" else None
    return None

"""Live widgets as still pictures: a replay never shows a view of a model that is gone (C17).

A widget is a model in the kernel, kept in step with the page by comm messages. Where a new kernel cannot have it again
(``payload/widgets`` brings it back where it can), what is kept of a widget is what it showed last: text, progress bars
and boxes of them as plain text, what an Output widget had caught as ordinary output (C18), and of controls their name
and value with a line that says what was here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.live import CATCH, VIEW, Live, viewed
from keel_notebook.core.ports import Message
from keel_notebook.core.shown import Caps, Shown

_CAUGHT = "application/x-keel-caught"
"""Holds the place at which an Output widget of an earlier cell began to catch."""
_TARGET = "jupyter.widget"
_REFERENCE = "IPY_MODEL_"
_MODELS = 4096
"""Models remembered at once. One that was forgotten is shown by its plain text."""
_WAS_LIVE = "A live widget was here. Run this cell again to bring it back."
_BREAK = re.compile(r"<br\s*/?>|</p>|</div>|</li>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_BARS = frozenset({"FloatProgress", "IntProgress"})
_TEXTS = frozenset({"HTML", "HTMLMath", "Label"})


class _Model(Struct):
    """What is known of a widget: its last state and, of an Output widget, what it caught."""

    state: dict[str, Any]
    caught: Shown | None = None
    made_here: bool = False
    closed: bool = False

    @property
    def name(self) -> str:
        name = self.state.get("_model_name")
        return name.removesuffix("Model") if isinstance(name, str) else ""


class _Still(Struct):
    """What a widget showed: lines of text and whole messages in order; ``live`` if a person could operate it."""

    parts: list[str | Message] = field(default_factory=list)
    live: bool = False


class Widgets:
    """The widgets that a cell made or changed, folded to their last state."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._models: dict[str, _Model] = {}
        self._catching: list[str] = []

    def catcher(self) -> Shown | None:
        """The area of the Output widget that takes what is shown now; None if the cell itself does."""
        return self._models[self._catching[-1]].caught if self._catching else None

    def caught(self) -> Message | None:
        """A stand-in for the Output widget that takes what is shown now.

        Where an earlier cell made it, a person saw it over there; a replay without the widget shows it here, where it
        was printed, rather than nowhere.
        """
        if not self._catching:
            return None
        return Message("display_data", {"data": {_CAUGHT: {"model_id": self._catching[-1]}}, "metadata": {}})

    def areas(self) -> list[Shown]:
        """Every area of an Output widget."""
        return [model.caught for model in self._models.values() if model.caught is not None]

    def feed(self, message: Message) -> None:
        """Fold one comm message."""
        comm, content = message.content.get("comm_id"), message.content
        data = content.get("data")
        if not isinstance(comm, str) or not isinstance(data, Mapping):
            return
        if message.kind == "comm_open" and content.get("target_name") == _TARGET:
            self._forget_some()
            self._models[comm] = _Model({}, made_here=True)
            self._change(comm, data.get("state"))
        elif message.kind == "comm_msg" and data.get("method") in {"update", "echo_update"}:
            self._models.setdefault(comm, _Model({}))
            self._change(comm, data.get("state"))
        elif message.kind == "comm_close" and comm in self._models:
            self._models[comm].closed = True

    def _forget_some(self) -> None:
        if len(self._models) >= _MODELS:
            forgettable = (comm for comm in self._models if comm not in self._catching)
            gone = [comm for comm, _ in zip(forgettable, range(_MODELS // 4), strict=False)]
            for comm in gone:
                del self._models[comm]

    def _change(self, comm: str, state: Any) -> None:
        if not isinstance(state, Mapping):
            return
        model = self._models[comm]
        model.state |= state
        if "msg_id" in state:  # only Output widgets have one: whose messages they catch
            if state["msg_id"]:
                model.caught = model.caught or Shown(self._caps)
                self._catching.append(comm)
            elif comm in self._catching:
                del self._catching[len(self._catching) - 1 - self._catching[::-1].index(comm)]
        outputs = state.get("outputs")
        if isinstance(outputs, list | tuple) and (outputs or model.caught):
            model.caught = Shown(self._caps)  # append_stdout and its kind send all that the widget holds
            for output in outputs:
                _show_output(model.caught, output)

    def live(self, messages: Sequence[Message]) -> Live:
        """The messages as they are, for a kernel in which the widgets live; nothing where there are none."""
        shown = [viewed(message) for message in messages if viewed(message)]
        places = [viewed(message, _CAUGHT) for message in messages]
        if not shown and not any(places):
            return Live()
        out: list[Message] = []
        for message, caught in zip(messages, places, strict=True):
            if not self._is_closed(viewed(message)):  # the page took its view away
                out += self._caught(caught) if caught else [message]
        return Live(tuple(out), tuple(comm for comm in dict.fromkeys(shown) if self._made(comm)))

    def _is_closed(self, comm: str) -> bool:
        return comm in self._models and self._models[comm].closed

    def _made(self, comm: str) -> bool:
        return comm in self._models and self._models[comm].made_here

    def _caught(self, comm: str) -> list[Message]:
        """What an Output widget caught, between the lines that let it catch."""
        caught = self._models[comm].caught if comm in self._models else None
        inside = [] if caught is None else caught.messages()
        return [
            Message(CATCH, {"model_id": comm, "on": True}),
            *inside,
            Message(CATCH, {"model_id": comm, "on": False}),
        ]

    def stills(self, messages: Sequence[Message]) -> list[Message]:
        """The messages with every live widget replaced by what it showed last."""
        shown_here = {viewed(message) for message in messages}
        out: list[Message] = []
        for message in messages:
            caught = viewed(message, _CAUGHT)
            if caught and caught not in shown_here and not self._made(caught):
                out += self._as_messages(message, self._picture(caught, frozenset()), {})
            elif not caught:
                out += self._still(message, frozenset())
        return out

    def _still(self, message: Message, inside: frozenset[str]) -> list[Message]:
        comm = viewed(message)
        if not comm:
            return [message]
        rest = {mime: value for mime, value in message.content["data"].items() if mime != VIEW}
        if any(mime.startswith("image/") or mime == "text/html" for mime in rest):
            return [_with_data(message, rest)]  # it brought a picture of itself
        model = self._models.get(comm)
        if model is None or not (model.name or model.caught) or message.kind == "update_display_data":
            return [_with_data(message, rest | _live_text(str(rest.get("text/plain", "a widget"))))]
        return self._as_messages(message, self._picture(comm, inside), rest)

    def _as_messages(self, message: Message, seen: _Still, rest: Mapping[str, Any]) -> list[Message]:
        out: list[Message] = []
        lines: list[str] = []
        for part in [*seen.parts, None]:
            if isinstance(part, str):
                lines.append(part)
                continue
            if lines:
                text = "\n".join(lines)
                texts = _live_text(text) if seen.live else _plain_text(text)
                out.append(_with_data(message, {**rest, **texts}))
                message = _without_id(message)  # an update of a later cell has one place to go to
                lines = []
            if part is not None:
                out.append(part)
        return out

    def _picture(self, comm: str, inside: frozenset[str]) -> _Still:
        model = self._models.get(comm)
        if model is None or model.closed or comm in inside or self._hidden(model):
            return _Still()
        inside |= {comm}
        if model.name == "Output" or model.caught is not None:
            caught = model.caught.messages() if model.caught is not None else []
            return _Still([part for message in caught for part in self._still(message, inside)])
        if model.name in _TEXTS:
            return _Still([_bare(str(model.state.get("value", "")), marked_up=model.name != "Label")])
        if model.name in _BARS:
            return _Still([_bar(model.state)])
        if isinstance(children := model.state.get("children"), list | tuple):
            return self._box(model, [child for child in children if isinstance(child, str)], inside)
        return _Still([_control(model)], live=True)

    def _box(self, model: _Model, children: list[str], inside: frozenset[str]) -> _Still:
        seen = [self._picture(child.removeprefix(_REFERENCE), inside) for child in children]
        live = any(still.live for still in seen)
        parts = [part for still in seen for part in still.parts]
        texts = [part for part in parts if isinstance(part, str)]
        if model.name == "HBox" and len(texts) == len(parts):
            has_bar = any(self._is_bar(child) for child in children)
            return _Still([("" if has_bar else " ").join(texts).strip()] if texts else [], live)
        return _Still(parts, live)

    def _is_bar(self, child: str) -> bool:
        model = self._models.get(child.removeprefix(_REFERENCE))
        return model is not None and model.name in _BARS

    def _hidden(self, model: _Model) -> bool:
        layout = str(model.state.get("layout", "")).removeprefix(_REFERENCE)
        state = self._models[layout].state if layout in self._models else {}
        return state.get("display") == "none" or state.get("visibility") == "hidden"


def _show_output(area: Shown, output: Any) -> None:
    if not isinstance(output, Mapping):
        return
    kind = output.get("output_type")
    content = {key: value for key, value in output.items() if key != "output_type"}
    if kind == "stream" and isinstance(content.get("text"), str):
        area.text(str(content.get("name", "stdout")), content["text"])
    elif kind in {"display_data", "execute_result"}:
        area.show(Message("display_data", content))
    elif kind == "error":
        area.show(Message("error", content))


def _without_id(message: Message) -> Message:
    return replace(message, content={key: value for key, value in message.content.items() if key != "transient"})


def _with_data(message: Message, data: Mapping[str, Any]) -> Message:
    metadata = message.content.get("metadata")
    kept = {mime: value for mime, value in metadata.items() if mime != VIEW} if isinstance(metadata, Mapping) else {}
    return Message(message.kind, {**message.content, "data": dict(data), "metadata": kept}, message.metadata)


def _plain_text(text: str) -> dict[str, str]:
    return {"text/plain": text}


def _live_text(text: str) -> dict[str, str]:
    return {
        "text/plain": f"{text}\n[{_WAS_LIVE}]",
        "text/html": (
            '<div style="border-left: 3px solid #8888; padding-left: 8px">'
            f'<pre style="margin: 0">{html.escape(text)}</pre><small>{_WAS_LIVE}</small></div>'
        ),
    }


def _bare(text: str, *, marked_up: bool) -> str:
    if marked_up:
        text = html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))
    return text.replace("\xa0", " ").replace("\u2007", " ")


def _bar(state: Mapping[str, Any]) -> str:
    numbers = [state.get(key) for key in ("value", "min", "max")]
    value, least, most = (float(n) if isinstance(n, int | float) else 0.0 for n in numbers)
    share = (value - least) / (most - least) if most > least else 0.0
    return f"|{'█' * round(10 * min(1.0, max(0.0, share))):<10}|"


def _control(model: _Model) -> str:
    keys = ("value", "description", "index") if model.name != "Password" else ("description",)
    shown = ((key, model.state[key]) for key in keys if key in model.state)
    return f"{model.name}({', '.join(f'{key}={value!r}' for key, value in shown if value not in ('', None))})"

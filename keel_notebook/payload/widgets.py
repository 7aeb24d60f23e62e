"""Live widgets: what there is to one in Python, and the way back (C17).

A widget has another half in the page, which finds it by the id of its model. So it comes back under that id, first
without a connection (``Asleep``), and opens one when its values are put back: who only reads a record moves nothing.
There is one widget of an id in a kernel: where it lives already, it gets the state of the record and stays the object
that it is. No code of its class runs for that: no ``__init__``, no observer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from keel_notebook.payload.typename import type_name

_HOME = "ipywidgets.widgets.widget"
_CONNECTION = "comm"
_OF_THE_PROCESS = frozenset({_CONNECTION, "log", "_states_to_send", "_property_lock"})
"""A connection, a logger, what is on its way to the page."""
_NO_STATE = frozenset(
    {"_trait_values", "_trait_notifiers", "_trait_validators", "_cross_validation_lock", "_model_id", "_holding_sync"}
)
_OF_THE_PAGE = frozenset({"_view_count", "keys"})
_OF_ITS_OUTPUT = frozenset({"outputs", "msg_id"})
"""The page tells the kernel what an Output widget shows, some time after: no content to compare."""


def is_widget(cls: type) -> bool:
    """Whether a type is one of ipywidgets', or made from one. Never imported for the question."""
    return any(base.__name__ == "Widget" and base.__module__ == _HOME for base in cls.__mro__)


def is_private(cls: type) -> bool:
    """Whether people type credentials into widgets of a type."""
    return any(base.__name__ == "Password" for base in cls.__mro__)


def state_of(widget: Any) -> tuple[dict[str, Any], dict[str, Any], list[tuple[Any, Any, Any]]]:
    """Its traits, its other attributes, and who observes it, beside what its class makes of itself."""
    traits = {name: None if name == _CONNECTION else value for name, value in widget._trait_values.items()}
    own = {name: value for name, value in vars(widget).items() if name not in _NO_STATE}
    return traits, {name: value for name, value in own.items() if not _is_proxy(value)}, list(_observers(widget))


def compared(widget: Any) -> tuple[Any, ...]:
    """What makes two widgets equal: what they show and hold, who observes them, never which model of the page it is."""
    traits, own, observers = state_of(widget)
    unseen = _OF_THE_PROCESS | _OF_THE_PAGE | (_OF_ITS_OUTPUT if "msg_id" in traits else frozenset())
    return type(widget), _sorted(traits, unseen), _sorted(own, frozenset()), observers


def outlined(widget: Any) -> tuple[Any, ...]:
    """What the page shows of a widget that has more to it than can be compared: a slider still has a value."""
    seen = {name: widget._trait_values[name] for name in widget.keys if name in widget._trait_values}
    return type(widget), _sorted(seen, _OF_THE_PAGE | _OF_ITS_OUTPUT)


def model_id(widget: Any) -> str | None:
    """The id of its model; None for one that was closed."""
    return None if widget.comm is None else str(widget.comm.comm_id)


def _sorted(values: dict[str, Any], without: frozenset[str]) -> dict[str, Any]:
    return {name: values[name] for name in sorted(values.keys() - without)}


def _observers(widget: Any) -> Iterator[tuple[Any, Any, Any]]:
    for name, kinds in widget._trait_notifiers.items():
        for kind, observers in kinds.items():
            yield from ((name, kind, each) for each in observers if not _of_its_class(each))


def _of_its_class(observer: Any) -> bool:
    return any(
        base.__name__ == "EventHandler" and base.__module__ == "traitlets.traitlets" for base in type(observer).__mro__
    )


def _is_proxy(value: Any) -> bool:
    """A weak proxy, like that of a progress bar to who moves it: it holds nothing."""
    return type(value).__name__ in ("weakproxy", "weakcallableproxy", "ProxyType", "CallableProxyType")


class Asleep(Struct):
    """The widgets of one reading: built, or found alive, and not changed yet."""

    waiting: list[tuple[Any, str | None, tuple[Any, ...]]] = field(default_factory=list)
    """A widget, the id of its model, and its state."""

    def build(self, cls: Any, model: str | None) -> Any:
        """The widget of an id: the one that lives, or a new one of that class."""
        living = alive(model)
        return living if type(living) is cls else cls.__new__(cls)

    def fill(self, widget: Any, carried: tuple[str | None, tuple[Any, ...]]) -> None:
        """Give a widget its state: a new one now, one that lives when it is woken."""
        model, state = carried
        if widget is not alive(model):
            _put(widget, state)
            widget._model_id = model
        self.waiting.append((widget, model, state))

    def awake(self, names: Mapping[str, Any]) -> frozenset[str]:
        """The names that stand for one of them."""
        mine = {id(widget) for widget, _, _ in self.waiting}
        return frozenset(name for name, value in names.items() if id(value) in mine)

    def wake(self) -> Sequence[str]:
        """Open their connections, with those of all that they show first. What could not be, in words."""
        failed = []
        waiting = {id(widget): (widget, model, state) for widget, model, state in self.waiting}
        self.waiting = []
        for at in [*waiting]:
            try:
                _wake(at, waiting)
            except Exception as problem:  # noqa: BLE001 - a stranger's class: the rest of the record stands
                failed.append(f"a live widget: {type_name(type(problem))}")
        return failed


def _wake(at: int, waiting: dict[int, tuple[Any, str | None, tuple[Any, ...]]]) -> None:
    found = waiting.pop(at, None)
    if found is None:
        return
    widget, model, state = found
    for each in _widgets_in(state[0].values()):
        _wake(id(each), waiting)
    living = alive(model)
    if living is widget:
        before = widget.get_state()
        _put(widget, state)
        after = widget.get_state()
        widget.send_state([name for name in after if name not in before or not _same(before[name], after[name])])
    elif living is not None:  # of a class that was defined again: the page keeps its model
        connection, living.comm = living.comm, None
        widget.comm = connection
        widget.send_state()
    elif model is not None:
        widget.open()


def _same(one: Any, other: Any) -> bool:
    with contextlib.suppress(Exception):
        return bool(one == other)
    return False


def _widgets_in(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from _widgets_in(value.values())
        elif isinstance(value, list | tuple):
            yield from _widgets_in(value)
        elif is_widget(type(value)):
            yield value


def _put(widget: Any, state: tuple[Any, ...]) -> None:
    traits, own, observers = state
    widget._trait_values = {**traits, _CONNECTION: widget._trait_values.get(_CONNECTION)}
    kept = {name: value for name, value in vars(widget).items() if name in _NO_STATE}
    vars(widget).clear()
    vars(widget).update(kept | own)
    for name, kind, each in list(_observers(widget)):
        widget._trait_notifiers[name][kind].remove(each)
    for name, kind, each in observers:
        widget._trait_notifiers.setdefault(name, {}).setdefault(kind, []).append(each)


def alive(model: str | None) -> Any:
    """The widget of an id in this kernel, or None."""
    home = sys.modules.get(_HOME)
    return None if home is None or model is None else home._instances.get(model)

"""Attributes of instances that pickle forgets: the class derives from a C type that only speaks of its own content.

``class Named(np.ndarray): ...; a.unit = "m"``: what ``ndarray.__reduce__`` tells does not hold ``unit``, nor does that
of ``defaultdict`` or ``datetime``. So the value would come back without it, and an edit of it would not be seen.
"""

from __future__ import annotations

from types import MethodDescriptorType
from typing import Any

_OF_EVERY: tuple[Any, Any] = object.__reduce_ex__, object.__reduce__


def forgets(cls: type) -> bool:
    """Whether pickle asks a C type, and none that Python itself gives every object, about instances of ``cls``."""
    if not cls.__dictoffset__ or issubclass(cls, BaseException):  # which tells of them itself
        return False
    asked: Any = cls.__reduce_ex__
    if asked is _OF_EVERY[0]:
        asked = cls.__reduce__
    return isinstance(asked, MethodDescriptorType) and asked not in _OF_EVERY


def forgotten(value: Any, made: Any) -> dict[str, Any] | None:
    """The attributes of ``value`` that ``made``, what its ``__reduce_ex__`` told, does not hold; None for none."""
    attributes = getattr(value, "__dict__", None)
    if not attributes or not isinstance(made, tuple):
        return None
    state = made[2] if len(made) > 2 else None
    parts = (state, *state) if isinstance(state, tuple) else (state,)
    held = any(isinstance(part, dict) and part.keys() >= attributes.keys() for part in parts)
    return None if held or (len(made) > 5 and made[5] is not None) else attributes


def reduce(value: Any) -> Any:
    """What pickle would make of a value, with its attributes."""
    made = value.__reduce_ex__(5)
    attributes = forgotten(value, made)
    if attributes is None:
        return made
    func, args, state, listed, paired = [*made, None, None, None][:5]
    return func, args, (state, attributes), listed, paired, put_back


def put_back(value: Any, state: tuple[Any, dict[str, Any]]) -> None:
    """Give a value that was made again its state and its attributes."""
    own, attributes = state
    if own is not None:
        value.__setstate__(own)
    if attributes:
        vars(value).update(attributes)

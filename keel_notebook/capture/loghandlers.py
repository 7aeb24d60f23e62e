"""What the handlers of ``logging`` hold of the notebook: a step that logs changes it without naming it (DESIGN 6).

``log.info("…")`` says nothing of the list to which a handler of the notebook appends, nor of the ``StringIO`` to which
one writes. Both are inputs of a step that uses a logger, and are looked at after it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from keel_notebook.capture.parts import MOST, parts
from keel_notebook.core.ports import Definition

_MODULE = "logging"


def logged_into(
    names: Iterable[str], namespace: Mapping[str, Any], definition: Callable[[type], Definition | None]
) -> frozenset[str]:
    """The names of the notebook that handlers hold or use; none where ``names`` hold no logger.

    Args:
        names: what a cell reads, itself or through functions.
        namespace: the notebook's.
        definition: that of a class of the notebook; None for another.
    """
    logging: Any = sys.modules.get(_MODULE)
    if logging is None or not any(_logs(namespace.get(name), logging) for name in names):
        return frozenset()
    own = _handlers(logging)
    classes = (definition(each) for each in {type(handler) for handler in own})
    used = frozenset().union(*(found.reads for found in classes if found is not None))
    return (used & namespace.keys()) | held_by_handlers(namespace)


def held_by_handlers(values: Mapping[str, Any]) -> frozenset[str]:
    """Of these names, those whose very objects a handler holds, so that it would go on with the old one after a
    record was put back."""
    logging: Any = sys.modules.get(_MODULE)
    if logging is None or not values:
        return frozenset()
    held = {id(part) for handler in _handlers(logging) for part, _ in islice(parts(handler), MOST)}
    held -= {id(each) for each in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}
    return frozenset(name for name, value in values.items() if id(value) in held and not _logs(value, logging))


def _logs(value: Any, logging: Any) -> bool:
    return value is logging or issubclass(type(value), logging.Logger | logging.LoggerAdapter)


def _handlers(logging: Any) -> list[Any]:
    """Those of the notebook's classes, and those that write into anything but a file or the screen."""
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    found = {id(each): each for logger in loggers for each in getattr(logger, "handlers", ())}
    return [each for each in found.values() if _may_hold(each, logging)]


def _may_hold(handler: Any, logging: Any) -> bool:
    kind = type(handler)
    if kind in (logging.FileHandler, logging.NullHandler):
        return False
    if kind is logging.StreamHandler:
        return handler.stream not in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return True

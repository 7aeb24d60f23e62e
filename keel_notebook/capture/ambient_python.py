"""The parts of ambient state that Python itself has."""

# ruff: noqa: ARG002 - a part takes what its port gives it; some need less of it

from __future__ import annotations

import decimal
import importlib
import locale
import logging
import os
import random
import re
import struct
import sys
import warnings
from typing import Any

from keel_notebook.capture.ambient_part import Lost, Part
from keel_notebook.core.secrets import looks_secret

_RANDOM_WORDS = 624


def settings(start: str | None) -> tuple[Part, ...]:
    """Everything but the generator."""
    start = start or os.getcwd()
    return Environ(), Cwd(start), SysPath(start), Warnings(), Logging(), Locale(), Decimal(), RecursionLimit()


class Random:
    """The state of the module ``random``."""

    name = "random"

    def look(self) -> Any:
        """The generator's whole state: comparing it costs less than digesting it."""
        return random.getstate()

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """The state after, 2.5 kB."""
        version, words, gauss = after
        return [version, struct.pack(f"<{_RANDOM_WORDS}I", *words[:-1]), words[-1], gauss]

    def put(self, change: Any, lost: Lost) -> None:
        """Go on from the recorded state (C37)."""
        version, words, position, gauss = change
        random.setstate((version, (*struct.unpack(f"<{_RANDOM_WORDS}I", words), position), gauss))


class Environ:
    """``os.environ``. Values that look secret are never kept: only that they were set."""

    name = "environ"

    def look(self) -> Any:
        """A copy, without decoding it where the system's own form can be had."""
        return dict(getattr(os.environ, "_data", os.environ))

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Names set, with their values, and names gone."""
        before, after = ({_text(key): _text(value) for key, value in look.items()} for look in (before, after))
        values: dict[str, str] = {}
        for name in sorted(after):
            if before.get(name) == after[name]:
                continue
            if looks_secret(name, after[name]):
                lost.append(f"os.environ[{name!r}]: it looks like a secret, so its value is not stored")
            else:
                values[name] = after[name]
        return _some({"set": values, "gone": sorted(before.keys() - after.keys())})

    def put(self, change: Any, lost: Lost) -> None:
        """Set and delete. What is there already stays the very object that it is: nobody has set it again."""
        os.environ.update({name: value for name, value in change["set"].items() if os.environ.get(name) != value})
        for name in change["gone"]:
            os.environ.pop(name, None)


class Cwd:
    """The working directory, kept relative to the folder in which the kernel started."""

    name = "cwd"

    def __init__(self, start: str) -> None:
        self._start = start

    def look(self) -> Any:
        """Where we are; empty where that folder is gone."""
        try:
            return os.getcwd()
        except OSError:
            return ""

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """The folder after."""
        if not after:
            lost.append("the working directory: it was removed")
            return None
        return relative(after, self._start)

    def put(self, change: Any, lost: Lost) -> None:
        """Go there."""
        folder = os.path.join(self._start, change)
        try:
            os.chdir(folder)
        except OSError:
            lost.append(f"the working directory: there is no folder {change}")


class SysPath:
    """``sys.path``: what was put in and where, what was taken out."""

    name = "sys_path"

    def __init__(self, start: str) -> None:
        self._start = start

    def look(self) -> Any:
        """A copy."""
        return list(sys.path)

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Insertions as ``[place, path]``; a place in the second half counts from the end."""
        put_in = []
        for at, path in enumerate(after):
            if path not in before:
                place = at if at < len(after) / 2 else at - len(after)
                put_in.append([place, relative(os.fspath(path), self._start)])
        taken = [relative(os.fspath(path), self._start) for path in before if path not in after]
        return _some({"in": put_in, "out": taken})

    def put(self, change: Any, lost: Lost) -> None:
        """Do the same to the list as it is here."""
        for kept in change["out"]:
            path = self._path(kept)
            while path in sys.path:
                sys.path.remove(path)
        for place, kept in change["in"]:
            path = self._path(kept)
            if path not in sys.path:
                sys.path.insert(place if place >= 0 else len(sys.path) + place + 1, path)

    def _path(self, kept: str) -> str:
        return os.path.normpath(os.path.join(self._start, kept)) if kept else kept


class Warnings:
    """The filters of the module ``warnings``."""

    name = "warnings"

    def look(self) -> Any:
        """A copy of the list."""
        return list(warnings.filters)

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Filters put in, with their place, and filters taken out."""
        put_in = [[at, *_filter_wire(item)] for at, item in enumerate(after) if item not in before]
        return _some({"in": put_in, "out": [_filter_wire(item) for item in before if item not in after]})

    def put(self, change: Any, lost: Lost) -> None:
        """Do the same to the list as it is here."""
        filters: list[Any] = warnings.filters  # type: ignore[assignment]  # it is a list; typeshed promises less
        for wire in change["out"]:
            item = _filter(wire, lost)
            if item is not None and item in filters:
                filters.remove(item)
        for place, *wire in change["in"]:
            item = _filter(wire, lost)
            if item is not None and item not in filters:
                filters.insert(place, item)
        with warnings.catch_warnings():
            pass  # leaving it tells the interpreter that the list is another one


class Logging:
    """Levels of loggers, and plain handlers of the root logger that write to the standard streams."""

    name = "logging"

    def look(self) -> Any:
        """Levels that are set, the level that is switched off for all, and the root's handlers."""
        loggers = logging.root.manager.loggerDict
        levels = {name: one.level for name, one in loggers.items() if isinstance(one, logging.Logger) and one.level}
        levels[""] = logging.root.level
        return levels, logging.root.manager.disable, tuple(logging.root.handlers)

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Levels that differ, the switch if it does, and handlers added."""
        (levels, switch, handlers), (levels_now, switch_now, handlers_now) = before, after
        differs = {
            name: levels_now.get(name, 0)
            for name in levels | levels_now
            if levels.get(name, 0) != levels_now.get(name, 0)
        }
        added = []
        for handler in handlers_now:
            if handler not in handlers:
                wire = _handler_wire(handler)
                if wire is None:
                    lost.append(f"logging: a handler of type {type(handler).__name__}")
                else:
                    added.append(wire)
        if any(handler not in handlers_now for handler in handlers):
            lost.append("logging: a handler was taken away")
        return _some(
            {
                "levels": dict(sorted(differs.items())),
                "switch": None if switch == switch_now else [switch_now],
                "handlers": added,
            }
        )

    def put(self, change: Any, lost: Lost) -> None:
        """Set levels, add handlers that are not there."""
        for name, level in change["levels"].items():
            logging.getLogger(name or None).setLevel(level)
        if change["switch"]:
            logging.disable(change["switch"][0])
        for wire in change["handlers"]:
            if wire not in [_handler_wire(handler) for handler in logging.root.handlers]:
                stream, level, fmt, datefmt = wire
                handler = logging.StreamHandler(getattr(sys, stream))
                handler.setLevel(level)
                handler.setFormatter(logging.Formatter(fmt, datefmt) if fmt is not None else None)
                logging.root.addHandler(handler)


class Locale:
    """The locale of the C library."""

    name = "locale"

    def look(self) -> Any:
        """All categories, as the library names them."""
        return locale.setlocale(locale.LC_ALL)

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """All categories after."""
        return after

    def put(self, change: Any, lost: Lost) -> None:
        """Set them, where this machine has them."""
        try:
            locale.setlocale(locale.LC_ALL, change)
        except locale.Error:
            lost.append(f"the locale {change}: this machine does not have it")


class Decimal:
    """The context of the module ``decimal``."""

    name = "decimal"
    _numbers = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")

    def look(self) -> Any:
        """Its settings and signals; it writes them all in its repr."""
        return repr(decimal.getcontext())

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """All of it."""
        context = decimal.getcontext()
        return {
            "settings": {name: getattr(context, name) for name in self._numbers},
            "traps": sorted(signal.__name__ for signal, on in context.traps.items() if on),
            "flags": sorted(signal.__name__ for signal, on in context.flags.items() if on),
        }

    def put(self, change: Any, lost: Lost) -> None:
        """Set all of it in the context that is current here."""
        context = decimal.getcontext()
        for name, value in change["settings"].items():
            setattr(context, name, value)
        for signals, on in ((context.traps, change["traps"]), (context.flags, change["flags"])):
            for signal in signals:
                signals[signal] = signal.__name__ in on


class RecursionLimit:
    """``sys.setrecursionlimit``. Put back, and never an input: a step that ended well did not meet it."""

    name = "recursion_limit"

    def look(self) -> Any:
        """The limit."""
        return sys.getrecursionlimit()

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """The limit after."""
        return after

    def put(self, change: Any, lost: Lost) -> None:
        """Set it."""
        sys.setrecursionlimit(change)


def relative(path: str, start: str) -> str:
    """A path relative to ``start`` where it is in it, so that a moved folder still fits."""
    inside = os.path.relpath(path, start) if os.path.isabs(path) else path
    return path if inside.split(os.sep)[0] == os.pardir else inside


def _some(change: dict[str, Any]) -> dict[str, Any] | None:
    return change if any(change.values()) else None


def _text(value: Any) -> str:
    return os.fsdecode(value)


def _filter_wire(item: Any) -> list[Any]:
    action, message, category, module, line = item
    return [
        action,
        _pattern_wire(message),
        f"{category.__module__}:{category.__qualname__}",
        _pattern_wire(module),
        line,
    ]


def _pattern_wire(pattern: Any) -> Any:
    return pattern if pattern is None or isinstance(pattern, str) else [pattern.pattern, pattern.flags]


def _filter(wire: list[Any], lost: Lost) -> tuple[Any, ...] | None:
    action, message, category, module, line = wire
    where, _, name = category.partition(":")
    try:
        found: Any = importlib.import_module(where)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        lost.append(f"a warnings filter: there is no {where}.{name}")
        return None
    return action, _pattern(message), found, _pattern(module), line


def _pattern(wire: Any) -> Any:
    return re.compile(*wire) if isinstance(wire, list) else wire


def _handler_wire(handler: logging.Handler) -> list[Any] | None:
    """A handler that can be made again: a plain one on a standard stream, with a plain formatter."""
    if type(handler) is not logging.StreamHandler or handler.filters:
        return None
    stream = next((name for name in ("stdout", "stderr") if handler.stream is getattr(sys, name)), None)
    form = handler.formatter
    if stream is None or (form is not None and type(form) is not logging.Formatter):
        return None
    if form is not None and type(form._style) is not logging.PercentStyle:
        return None
    return [stream, handler.level, form._fmt if form else None, form.datefmt if form else None]

"""Settings of the process as short texts, for comparing: only those that are not as they come (DESIGN 6)."""

from __future__ import annotations

import decimal
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from blake3 import blake3

from keel_notebook.capture.ambient_libraries import ERROR_DEFAULTS, NOT_OURS, PRINT_DEFAULTS, flat
from keel_notebook.capture.ambient_python import relative
from keel_notebook.capture.started import locale_at_start

_LONGEST = 80
_FLAGS = re.compile(r", flags=\[[^]]*\]")

PARTS: Mapping[str, str] = {
    "matplotlib": "matplotlib",
    "pandas": "pandas",
    "pandas display": "pandas",
    "numpy print": "numpy",
    "numpy errors": "numpy",
    "torch": "torch",
    "decimal": "decimal",
    "locale": "locale",
    "logging": "logging",
    "warnings": "warnings",
    "cwd": "cwd",
}
"""The part of ambient state that holds each group of settings."""


def settings(group: str, look: Any, names: Iterable[str], start: str) -> dict[str, str]:
    """The settings of a group that are not as they come.

    Args:
        group: one of ``PARTS``.
        look: what its part saw; None where the library is not loaded, so that nobody has changed anything.
        names: for ``pandas display`` the options that count.
        start: the folder in which the kernel started.
    """
    if look is None:
        return {}
    match group:
        case "matplotlib":
            return _matplotlib(look)
        case "pandas" | "pandas display":
            return _pandas(look, frozenset(names), display=group != "pandas")
        case "numpy print":
            return _differing(look[0], PRINT_DEFAULTS)
        case "numpy errors":
            return _differing(look[1], ERROR_DEFAULTS)
        case "torch":
            return {name: text(value) for name, value in look.items()}
        case "decimal":
            return _unless("context", _FLAGS.sub("", look), _FLAGS.sub("", repr(decimal.Context())))
        case "locale":
            return _unless("locale", look, locale_at_start())
        case "logging":
            return _logging(look)
        case "warnings":
            return {"filters": text(sorted(map(repr, look)))}
        case _:
            return {"folder": relative(look, start)}


def text(value: Any) -> str:
    """A value as a short text; a long one by its beginning and a digest."""
    full = repr(value)
    if len(full) <= _LONGEST:
        return full
    return f"{full[: _LONGEST - 12]}… {blake3(full.encode('utf-8', 'surrogatepass')).hexdigest(length=4)}"


def _unless(name: str, value: str, default: str) -> dict[str, str]:
    return {} if value == default else {name: value}


def _differing(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: text(value)
        for name, value in values.items()
        if name not in defaults or type(value) is not type(defaults[name]) or value != defaults[name]
    }


def _matplotlib(look: tuple[Any, ...]) -> dict[str, str]:
    matplotlib = sys.modules["matplotlib"]
    names = list(dict.keys(matplotlib.rcParams))
    now = {name: value for name, value in zip(names, look, strict=True) if name not in NOT_OURS}
    return _differing(now, dict(dict.items(matplotlib.rcParamsOrig)))


def _pandas(look: Mapping[str, Any], names: frozenset[str], *, display: bool) -> dict[str, str]:
    known = sys.modules["pandas._config.config"]._registered_options
    values = flat(look, "")
    wanted = names & values.keys() if display else {n for n in values if not n.startswith(("display.", "styler."))}
    return _differing({n: values[n] for n in wanted}, {n: known[n].defval for n in wanted if n in known})


def _logging(look: Any) -> dict[str, str]:
    levels, disabled, _ = look
    root, named = levels.get("", 30), {name: level for name, level in levels.items() if name and level}
    found = {f"level of {name}": str(level) for name, level in named.items()}
    return found | _unless("level", str(root), "30") | _unless("disabled up to", str(disabled), "0")

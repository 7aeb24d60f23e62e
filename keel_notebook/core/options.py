"""The line of a step: ``%%keel_step NAME [options]`` or ``# keel: step NAME [options]`` (DESIGN 3.1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from keel_notebook.core.words import Effect
from keel_notebook.errors import SettingsError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

MAGIC = re.compile(r"%%keel_step(?:[ \t]+(?P<line>.*))?$")
COMMENT = re.compile(r"#\s*keel:\s*step(?:[ \t]+(?P<line>.*))?$")


class StepOptions(Struct, frozen=True):
    """What a step's line says. The defaults are those of DESIGN 3.1."""

    name: str = ""
    effect: Effect = Effect.IDEMPOTENT
    on_ambiguous: str = ""
    on_divergence: str = ""
    kind: str = ""
    max_attempts: int = 3
    retries: int = 0
    backoff_s: float | None = None
    timeout_s: float | None = None
    ttl_s: float | None = None
    uses: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    journal_files: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    always: bool = False
    key: str = ""


class _Option(Struct, frozen=True):
    field: str
    read: Callable[[str], Any] | None = None
    many: bool = False
    choices: tuple[str, ...] = ()


def duration_s(text: str) -> float:
    """Seconds in ``500ms``, ``2s``, ``10m``, ``2h``, ``7d``. Raises ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("a duration reads like 500ms, 2s, 10m, 2h or 7d")
    return float(match[1]) * _UNITS[match[2]]


def _at_least(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise ValueError(f"a whole number, {least} or more")
        return int(text)

    return read


OPTIONS: Mapping[str, _Option] = {
    "--effect": _Option("effect", Effect, choices=tuple(Effect)),
    "--on-ambiguous": _Option("on_ambiguous", str, choices=("fail", "skip", "rerun")),
    "--on-divergence": _Option("on_divergence", str, choices=("fail", "warn", "branch")),
    "--kind": _Option("kind", str, choices=("destructive", "security", "money", "cost", "custom")),
    "--max-attempts": _Option("max_attempts", _at_least(1)),
    "--retries": _Option("retries", _at_least(0)),
    "--backoff": _Option("backoff_s", duration_s),
    "--timeout": _Option("timeout_s", duration_s),
    "--ttl": _Option("ttl_s", duration_s),
    "--uses": _Option("uses", many=True),
    "--makes": _Option("makes", many=True),
    "--journal-file": _Option("journal_files", many=True),
    "--inputs": _Option("inputs", many=True),
    "--outputs": _Option("outputs", many=True),
    "--ignore": _Option("ignore", many=True),
    "--always": _Option("always"),
    "--key": _Option("key", str),
}


def parse_options(line: str) -> StepOptions:
    """The options of a step line. Raises SettingsError (E001) naming the part that cannot be read."""
    try:
        words = shlex.split(without_comment(line), comments=False)
    except ValueError as error:
        raise SettingsError(where="the step line", detail=str(error).lower()) from None
    found: dict[str, Any] = {}
    name = ""
    at = 0
    if words and not words[0].startswith("--"):
        name, at = words[0], 1
    while at < len(words):
        at = _take(words, at, found)
    if "\0" in name or len(name) > MAX_NAME:
        raise SettingsError(where="the step's name", detail=f"at most {MAX_NAME} characters, no NUL")
    return StepOptions(name=name, **found)


MAX_NAME = 10_000


def without_comment(line: str) -> str:
    """A step line without the ``# comment`` behind its name and options.

    As in a shell it begins with a word of its own, outside of quotes; ``#7`` in the place of the name is a name.
    """
    quote, before = "", " "
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote and before != "\\" else quote
        elif sign in "'\"" and before != "\\":
            quote = sign
        elif sign == "#" and before.isspace() and (line[:at].strip() or line[at + 1 : at + 2] in ("", " ", "\t")):
            return line[:at]
        before = sign
    return line


def _take(words: list[str], at: int, found: dict[str, Any]) -> int:
    word, _, attached = words[at].partition("=") if words[at].startswith("--") else (words[at], "", "")
    option = OPTIONS.get(word)
    if option is None:
        hint = "a step has one NAME (quote it if it has spaces)" if not word.startswith("--") else _known(word)
        raise SettingsError(where=word, detail=f"not an option of a step; {hint}")
    if option.field in found:
        raise SettingsError(where=word, detail="given twice")
    at += 1
    if option.read is None and not option.many:
        if attached:
            raise SettingsError(where=word, detail="takes no value")
        found[option.field] = True
        return at
    values = [attached] if attached else []
    while at < len(words) and not words[at].startswith("--") and (option.many or not values):
        values.append(words[at])
        at += 1
    if not values:
        raise SettingsError(where=word, detail="needs a value")
    found[option.field] = tuple(values) if option.many else _value(word, option, values[0])
    return at


def _known(word: str) -> str:
    import difflib  # noqa: PLC0415 - a kernel that loads keel never needs it

    near = difflib.get_close_matches(word, OPTIONS, n=1)
    return f"did you mean {near[0]}?" if near else "known: " + ", ".join(OPTIONS)


def _value(word: str, option: _Option, text: str) -> Any:
    if option.choices and text not in option.choices:
        raise SettingsError(where=word, detail="one of " + ", ".join(option.choices))
    assert option.read is not None
    try:
        return option.read(text)
    except ValueError as error:
        raise SettingsError(where=word, detail=str(error)) from None


class Marker(Struct, frozen=True):
    """Where a cell says that it is a step: the index of the line, the rest of that line, and its form."""

    at: int
    line: str
    magic: bool
    lines: tuple[str, ...] = field(default=())


def find_marker(cell: str) -> Marker | None:
    """The step line of a cell: its first line that is neither blank nor another comment (C65)."""
    lines = tuple(cell.splitlines(keepends=True))
    for at, text in enumerate(lines):
        bare = text.strip()
        if match := MAGIC.match(bare):
            return Marker(at, (match["line"] or "").strip(), True, lines)
        if match := COMMENT.match(bare):
            return Marker(at, (match["line"] or "").strip(), False, lines)
        if bare and not bare.startswith("#"):
            return None
    return None


def refuse_contradictions(options: StepOptions) -> None:
    """Refuse what cannot be meant, instead of leaving a part of it out.

    Raises SettingsError (E001) for options that contradict each other.
    """
    for word, given in (("--on-ambiguous", options.on_ambiguous), ("--kind", options.kind)):
        if given and options.effect is not Effect.EXACTLY_ONCE:
            raise SettingsError(where=word, detail="it speaks of --effect exactly_once, which is not there")
    if options.backoff_s is not None and not options.retries:
        raise SettingsError(where="--backoff", detail="it is the wait before --retries, which are not there")
    if options.always and options.effect is not Effect.IDEMPOTENT:
        raise SettingsError(where="--always", detail=f"what runs in every run cannot be {options.effect}")

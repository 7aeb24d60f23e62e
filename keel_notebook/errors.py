"""Errors with a code, what happened, why, and what to do next (K45). No payload in any message.

The texts live in ``errors.json``; ``keel explain CODE`` and the docs read the same file. A raise site names
only a class and the facts that fill the text's ``{fields}``: names, types, sizes, paths, never values.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any


@functools.cache
def _texts() -> dict[str, dict[str, str]]:
    text = resources.files("keel_notebook").joinpath("errors.json").read_text("utf-8")
    table: dict[str, dict[str, str]] = json.loads(text)
    return table


@functools.cache
def catalogue() -> dict[str, dict[str, str]]:
    """Every code with its ``title``, ``what``, ``why`` and ``next``."""
    return {code: texts for code, texts in _texts().items() if "/" not in code}


@functools.cache
def cases(code: str) -> dict[str, dict[str, str]]:
    """The cases of a code in which some texts are others: ``when`` it is one, and those texts."""
    of = f"{code}/"
    return {name.removeprefix(of): texts for name, texts in _texts().items() if name.startswith(of)}


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


_OWN = frozenset({"why", "next"})
"""Parts of the text that a raise site may say better than the catalogue."""


class KeelError(Exception):
    """Something that keel will not do, with its code.

    ``facts`` fill the text's fields. ``str(error)`` is one line; ``report()`` is the whole text. Where the usual reason
    or way out is not the one, ``case=`` names a case of the catalogue; what only the raise site knows, it says itself
    (``why=``, ``next=``).
    """

    code = "E040"

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        super().__init__(self._line("what"))

    def _line(self, part: str) -> str:
        text = self._text(part)
        return f"KEEL-{self.code}: {text}" if part == "what" else text

    def _text(self, part: str) -> str:
        if (told := self.facts.get("told")) is not None:
            return str(told[part])
        if part in _OWN and self.facts.get(part):
            return str(self.facts[part])
        try:
            case = cases(self.code).get(self.facts.get("case", ""), {})
            text = case.get(part, catalogue()[self.code][part])
        except OSError as error:  # no file can be opened any more: that must not stop the person's cell
            return f"what it says cannot be read ({error.strerror}); {self.facts}"
        return text.format_map(_Blank(self.facts))

    @property
    def reason(self) -> str:
        """What happened without the code and what it happened to, where that is told apart."""
        return str(self.facts.get("detail") or self._text("what"))

    def report(self) -> str:
        """What happened, why, what to do next: three lines."""
        return f"{self._line('what')}\n  why:  {self._line('why')}\n  next: {self._line('next')}"

    def to_dict(self) -> dict[str, str]:
        """The error for programs: its code, and what, why and next as filled in."""
        return {"code": self.code} | {part: self._text(part) for part in catalogue()[self.code]}

    def _render_traceback_(self) -> list[str]:
        # IPython shows this instead of a traceback through keel's own frames.
        return self.report().split("\n")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.facts))


def retold(error: Mapping[str, str]) -> KeelError:
    """An error as another process of keel told it (``to_dict``), with its own words."""
    kinds = {cls.code: cls for cls in KeelError.__subclasses__()}
    found = kinds.get(error["code"], InternalError)(told=error)
    found.code = error["code"]
    return found


def _rebuild(cls: type[KeelError], facts: dict[str, Any]) -> KeelError:
    return cls(**facts)


NOTED = frozenset({"E010", "E014", "E015"})
"""Codes that stand in a note on the person's own exception, which keel never wraps (docs/calls.md)."""


_CASES = {"%keel": "keel", "keel.": "call", "KEEL_": "variable"}


class SettingsError(KeelError):
    """A magic line or a setting that cannot be read (E001). ``where`` tells which of its cases it is."""

    code = "E001"

    def __init__(self, **facts: Any) -> None:
        where = str(facts.get("where", ""))
        case = next((case for start, case in _CASES.items() if where.startswith(start)), "")
        super().__init__(**{"case": case} | facts)


class NotNowError(KeelError):
    """What was asked needs something that is not there, or another place (E006)."""

    code = "E006"


class QueryError(KeelError):
    """A query that the journal does not answer (E007)."""

    code = "E007"


class WrongFileError(KeelError):
    """A file that is in the way, or is not what it should be (E008)."""

    code = "E008"


class NotStartedError(KeelError):
    """A kernel or another process that could not be started, or gave no answer (E009)."""

    code = "E009"


class UnknownNameError(KeelError):
    """A step, flow, entry or code that is not known (E002). ``what`` names the kind, ``hint`` starts with "; "."""

    code = "E002"


class EnvelopeError(KeelError):
    """A payload that does not decode, or whose schema is of another version (E004)."""

    code = "E004"


class CallTimeoutError(KeelError):
    """A call did not end in time (E011). It may still be running: what it does may have happened."""

    code = "E011"


class UnansweredError(KeelError):
    """Nobody answered before the deadline (E016)."""

    code = "E016"


class AmbiguousError(KeelError):
    """An effect was begun and nobody knows how it ended (E060)."""

    code = "E060"


class UndoFailedError(KeelError):
    """An undo failed, or steps are still being undone and nothing else is executed (E062)."""

    code = "E062"


class StepCapError(KeelError):
    """A run has more steps than the cap allows (E061)."""

    code = "E061"


class PromiseRefusedError(KeelError):
    """The token of a promise is not the one that was shown (E070)."""

    code = "E070"


class UnknownPromiseError(KeelError):
    """A promise that was never made in this journal (E071)."""

    code = "E071"


class CannotStoreError(KeelError):
    """A value that is needed and could not be stored (E020)."""

    code = "E020"


class LeaseError(KeelError):
    """The lease is held by another kernel, or was lost (E030)."""

    code = "E030"


class DivergenceError(KeelError):
    """The notebook differs from the record and the policy says stop (E031)."""

    code = "E031"


class DeadError(KeelError):
    """The step's kernel died too often in it (E032)."""

    code = "E032"


class ActedError(KeelError):
    """An external command failed, and its own journal shows that it did something (E033)."""

    code = "E033"


class VersionError(KeelError):
    """The flow is of another version of the application, which told its own (E034)."""

    code = "E034"


class OutputHeldError(KeelError):
    """Another ``keel run`` writes the same executed notebook (E035)."""

    code = "E035"


class InternalError(KeelError):
    """A fault of keel itself (E040)."""

    code = "E040"


class UntrustedError(KeelError):
    """The journal was written by somebody else (E050)."""

    code = "E050"


class DamagedError(KeelError):
    """A record or payload that does not match its digest (E051)."""

    code = "E051"

    def __init__(self, *, step: str = "", **facts: Any) -> None:
        """``step``: whose it is, where that is known."""
        super().__init__(**facts | ({"what": f"{facts.get('what', '')} of step {step}"} if step else {}))


class DiskFullError(KeelError):
    """No room for the record (E053)."""

    code = "E053"


class JournalUnreachableError(KeelError):
    """The journal's folder cannot be read or written (E054)."""

    code = "E054"


class DefinitionChangedError(DamagedError):
    """A record that needs a class, function or version that is not what it was when it was recorded (E055)."""

    code = "E055"


class DuplicateStepError(KeelError):
    """Two different cells of one pass carry the same step name (E080)."""

    code = "E080"

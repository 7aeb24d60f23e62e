"""The words of an entry that are enumerations. Apart from ``model``, because `%load_ext` needs no more than these."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """What running a step twice does to the world (Z19)."""

    IDEMPOTENT = "idempotent"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Status(StrEnum):
    """How far an entry came. Only ``OK`` is ever replayed."""

    RUNNING = "running"
    INTENT = "intent"
    OK = "ok"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"


class Kind(StrEnum):
    """What an entry records."""

    STEP = "step"
    CALL = "call"
    TIME = "time"
    RANDOM = "random"
    SLEEP = "sleep"
    PROMISE = "promise"
    UNDO = "undo"
    LOOP = "loop"
    MARKER = "marker"
    FOLD = "fold"
    PLAIN = "plain"
    RUN = "run"
    ACCEPT = "accept"
    ADOPT = "adopt"
    RETIRE = "retire"
    COPY = "copy"
    AUDIT = "audit"
    DEATH = "death"

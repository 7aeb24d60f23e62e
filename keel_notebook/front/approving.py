"""Answers a promise as the journal's owner, while the kernel may be in the middle of a cell (FRONTEND.md, Waiting).

A kernel's journal is its main thread's, and that thread is just waiting for the answer. So the answer is written by a
process of its own, ``keel resolve --as-owner``, exactly as it would be from a terminal; the kernel finds it there.
"""

from __future__ import annotations

import json
import subprocess  # our own interpreter and our own module, no shell
from pathlib import Path
from typing import Any

from keel_notebook.errors import InternalError, retold
from keel_notebook.journal.spawn import environment, python_module

PATIENCE_S = 60.0


def approve(journal: Path, promise: str, value: Any, *, key_file: str = "") -> bool:
    """Answer a promise with a plain value. True if this was the answer, False if there was one already.

    Raises UnknownPromiseError (E071), PromiseRefusedError (E070) where another key sealed the promise, or what else
    the command line said; InternalError (E040) where it said nothing that can be read.
    """
    env = environment() | {"KEEL_JOURNAL": str(journal)}
    if key_file:
        env["KEEL_KEY_FILE"] = key_file
    words = ["resolve", promise, "--as-owner", "--value", json.dumps(value), "--json"]
    try:
        ran = subprocess.run(  # noqa: S603 - fixed words, a promise id and JSON
            [*python_module("keel_notebook"), *words],
            env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, cwd="/", check=False,
        )  # fmt: skip
        said = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise InternalError(doing="answered a promise", kind=type(error).__name__) from None
    if "error" not in said:
        return bool(said["first"])
    raise retold(said["error"])

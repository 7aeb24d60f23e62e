"""Subcommands of `%keel` that a process of their own carries out: the kernel only asks and shows (DESIGN 3.1)."""

from __future__ import annotations

import json
import subprocess  # our own interpreter and our own module, no shell
import sys
from collections.abc import Sequence
from typing import Any

from IPython.core.getipython import get_ipython

from keel_notebook.errors import SettingsError
from keel_notebook.front.magics import session_of
from keel_notebook.front.verified import VerifyReport, VerifyTable
from keel_notebook.journal import spawn
from keel_notebook.session import Session
from keel_notebook.wiring import notebook_path


def verify(session: Session, words: list[str]) -> VerifyTable:
    """Execute the notebook, as it was last saved, in a scratch kernel, and compare. Nothing is recorded.

    Raises SettingsError (E001) where nobody tells which notebook this is, and what ``keel verify`` answers.
    """
    notebook = notebook_path(session.shell, session.cwd)
    if notebook is None or not notebook.is_file():
        raise SettingsError(where="%keel verify", detail="nobody tells which notebook this is: `keel verify NOTEBOOK`")
    found = asked(session, ["verify", str(notebook), *words])
    return VerifyTable(VerifyReport(found["notebook"], found["status"], tuple(found["steps"]), found["took_s"]))


def asked(session: Session, words: Sequence[str]) -> Any:
    """What a command of ``keel`` answers about this kernel's journal and flow. Raises SettingsError (E001)."""
    attached, settings = session.attached(), session.settings
    told = {
        "KEEL_MODE": "",
        "KEEL_JOURNAL": str(attached.folder),
        "KEEL_FLOW": attached.flow.name,
        "KEEL_FLOW_KEY": attached.flow.key,
        "KEEL_KEY_FILE": settings.key_file,
    }
    environ = {name: value for name, value in (spawn.environment() | told).items() if value or name not in told}
    done = subprocess.run(  # noqa: S603 - fixed program; the words are no shell's
        [sys.executable, "-P", "-m", "keel_notebook", *words, "--json"],
        env=environ,
        cwd=session.cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found = json.loads(done.stdout)
    except ValueError:
        detail = done.stderr.strip().split("\n")[-1] or f"it ended with {done.returncode}"
        raise SettingsError(where=f"keel {words[0]}", detail=detail) from None
    if isinstance(found, dict) and isinstance(error := found.get("error"), dict):
        raise SettingsError(where=f"keel {words[0]}", detail=str(error["what"]))
    return found


def told() -> str:
    """What this kernel has found so far, as JSON: asked by ``keel verify`` after every cell."""
    return json.dumps([step.to_dict() for step in session_of(get_ipython()).verified])

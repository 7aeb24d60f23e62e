"""Subcommands of `%keel` that a process of their own carries out: the kernel only asks and shows (DESIGN 3.1)."""

from __future__ import annotations

import json
import subprocess  # our own interpreter and our own module, no shell
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from IPython.core.getipython import get_ipython

from keel_notebook.errors import NotNowError, NotStartedError, SettingsError, retold
from keel_notebook.front.cli_open import cells_of
from keel_notebook.front.magics import session_of
from keel_notebook.front.verified import VerifyReport, VerifyTable, must_be_steps
from keel_notebook.journal import spawn
from keel_notebook.session import Session
from keel_notebook.wiring import journal_folder, notebook_path


def verify(session: Session, words: list[str]) -> VerifyTable:
    """Execute the notebook, as it was last saved, in a scratch kernel, and compare. Nothing is recorded.

    Raises NotNowError (E006) where nobody tells which notebook this is, UnknownNameError (E002) for what is no step
    of it, and what ``keel verify`` answers.
    """
    notebook = notebook_path(session.shell, session.cwd)
    if notebook is None or not notebook.is_file():
        raise NotNowError(where="%keel verify", detail="nobody tells which notebook this is", case="which")
    if not any(word.startswith("-") for word in words):  # options are read by the command itself
        must_be_steps(words, cells_of(notebook))
    found = asked(session, ["verify", str(notebook), *words], _about(session))
    return VerifyTable(VerifyReport(found["notebook"], found["status"], tuple(found["steps"]), found["took_s"]))


def export(session: Session, words: list[str]) -> str:
    """Pack this kernel's journal into a file. Raises WrongFileError (E008)."""
    file = _one(words, "%keel export FILE")
    found = asked(session, ["export", file, "--in", "."], _about(session))
    return f"{found['files']} files in {file}"


def import_(session: Session, words: list[str]) -> str:
    """Unpack a packed journal where this notebook has none yet. Raises WrongFileError (E008)."""
    file = _one(words, "%keel import FILE")
    folder = journal_folder(session.settings.journal, notebook_path(session.shell, session.cwd), session.cwd)
    found = asked(session, ["import", file, "--in", "."], {"KEEL_JOURNAL": str(folder)})
    return f"the journal is {found['journal']}"


def _one(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise SettingsError(where="%keel", detail=f"it reads `{usage}`")
    return words[0]


def _about(session: Session) -> dict[str, str]:
    attached, settings = session.attached(), session.settings
    return {
        "KEEL_MODE": "",
        "KEEL_JOURNAL": str(attached.folder),
        "KEEL_FLOW": attached.flow.name,
        "KEEL_FLOW_KEY": attached.flow.key,
        "KEEL_KEY_FILE": settings.key_file,
    }


def asked(session: Session, words: Sequence[str], told: Mapping[str, str]) -> Any:
    """What a command of ``keel`` answers; ``told``: variables to set, or where empty to take away. Raises its error."""
    environ = {name: value for name, value in (spawn.environment() | dict(told)).items() if value or name not in told}
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
        raise NotStartedError(where=f"keel {words[0]}", detail=detail) from None
    if isinstance(found, dict) and isinstance(error := found.get("error"), dict):
        raise retold(error)
    return found


def told() -> str:
    """What this kernel has found so far, as JSON: asked by ``keel verify`` after every cell."""
    return json.dumps([step.to_dict() for step in session_of(get_ipython()).verified])

"""The magics: `%keel …` and `%%keel_step` (DESIGN 3.1). No logic here beyond reading the line.

`%%keel_step` itself does nothing in the usual case: the line is a marker that the session's input transformer finds
before IPython looks for magics. The magic exists for discovery (`%%keel_step?`) and for nested cells.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from keel_notebook.core import lifecycle
from keel_notebook.core.model import Entry
from keel_notebook.core.plans import notebook_cells, plan, recorded_cells
from keel_notebook.core.report import status
from keel_notebook.core.why import why
from keel_notebook.errors import NotYetError, SettingsError
from keel_notebook.front import comm
from keel_notebook.front.settings import Keel
from keel_notebook.front.tables import PlanTable, StatusTable, WhyTable, local_time
from keel_notebook.session import Session, rejected, say_nested
from keel_notebook.wiring import notebook_path

_ATTRIBUTE = "_keel_session"

LATER: Mapping[str, str] = {
    "auto": "auto mode",
    "diff": "side-by-side divergence",
    "restore": "restoring without running",
    "undo": "undo",
    "lanes": "lanes",
    "use": "lanes",
    "verify": "headless runs",
    "trust": "trust",
    "export": "moving journals",
    "import": "moving journals",
    "gc": "upkeep",
}
"""Subcommands that DESIGN pins and that later versions bring: said, not ignored."""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand of `%keel`."""

    run: Callable[[Session, list[str]], Any]
    usage: str
    does: str


def session_of(shell: Any) -> Session:
    """The session of a shell. Raises SettingsError where keel is not loaded in it."""
    session = getattr(shell, _ATTRIBUTE, None)
    if session is None:
        raise SettingsError(where="%keel", detail="keel is not loaded here: run `%load_ext keel_notebook` first")
    assert isinstance(session, Session)
    return session


def load(shell: Any) -> None:
    """Start a session in this shell; nothing happens where one runs already."""
    if getattr(shell, _ATTRIBUTE, None) is not None:
        return
    settings = Keel(parent=shell)
    shell.configurables.append(settings)
    session = Session(shell, settings)
    setattr(shell, _ATTRIBUTE, session)
    shell.register_magics(KeelMagics(shell))
    session.start()
    comm.register(shell, session)


def unload(shell: Any) -> None:
    """End the session of this shell."""
    session = getattr(shell, _ATTRIBUTE, None)
    if session is not None:
        comm.unregister(shell)
        session.stop()
        shell.configurables.remove(session.settings)
        delattr(shell, _ATTRIBUTE)


def current_status() -> StatusTable:
    """The status of the running shell's notebook. Raises SettingsError where keel is not loaded."""
    from IPython.core.getipython import get_ipython  # noqa: PLC0415 the shell is known only when asked

    return _status(session_of(get_ipython()), [])


def _nothing_more(words: list[str], usage: str) -> None:
    if words:
        raise SettingsError(where="%keel", detail=f"`{words[0]}` is too much; it reads `{usage}`")


def _one_name(words: list[str], usage: str) -> str:
    if len(words) != 1:
        raise SettingsError(where="%keel", detail=f"it reads `{usage}`")
    return words[0]


def _status(session: Session, words: list[str]) -> StatusTable:
    _nothing_more(words, "%keel status")
    attached = session.attached()
    records = attached.journal.records(attached.flow.id)
    report = status(
        records,
        done=session.ledger.done,
        now=session.clock.now(),
        live=True,
        notebook=str(notebook_path(session.shell, session.cwd) or ""),
        order=session.ledger.order,
    )
    return StatusTable(report)


def _plan(session: Session, words: list[str]) -> PlanTable:
    _nothing_more(words, "%keel plan")
    attached = session.attached()
    records = attached.journal.records(attached.flow.id)
    notebook = notebook_path(session.shell, session.cwd)
    if notebook is not None and not notebook.is_file():
        notebook = None
    cells = notebook_cells(json.loads(notebook.read_text("utf-8"))) if notebook else recorded_cells(records)
    return PlanTable(plan(cells, records, now=session.clock.now()))


def _why(session: Session, words: list[str]) -> WhyTable:
    attached = session.attached()
    name = _one_name(words, "%keel why NAME")
    records = attached.journal.records(attached.flow.id)
    return WhyTable(why(name, records, session.ledger.done, when=local_time))


def _lineage(session: Session, words: list[str]) -> Any:
    _nothing_more(words, "%keel lineage")
    from keel_notebook.front.widget import Lineage  # noqa: PLC0415 only a shown lineage needs it

    return Lineage(session)


def current_lineage() -> Any:
    """The lineage of the running shell's notebook. Raises SettingsError where keel is not loaded."""
    from IPython.core.getipython import get_ipython  # noqa: PLC0415 the shell is known only when asked

    return _lineage(session_of(get_ipython()), [])


def _known(session: Session, name: str) -> None:
    attached = session.attached()
    records = attached.journal.records(attached.flow.id)
    if not lifecycle.known_step(records, name) and name not in session.ledger.done:
        names = ", ".join(sorted(lifecycle.steps_in(records))) or "none yet"
        raise SettingsError(where=name, detail=f"no step of this notebook has that name (steps: {names})")


def _rerun(session: Session, words: list[str]) -> str:
    name = _one_name(words, "%keel rerun NAME")
    if name.startswith("--"):
        raise NotYetError(what=f"%keel rerun {name}", topic="side-by-side divergence")
    _known(session, name)
    session.ledger.rerun.add(name)
    session.ledger.accept.discard(name)
    return f"{name} will execute when its cell runs next; its records with the same code and inputs are retired then"


def _retired(key: str, usage: str, said: str) -> Callable[[Session, list[str]], str]:
    def run(session: Session, words: list[str]) -> str:
        name = _one_name(words, usage)
        _known(session, name)
        session.retire(name, key)
        return said.format(name=name)

    return run


def _accept(session: Session, words: list[str]) -> str:
    name = _one_name(words, "%keel accept NAME")
    _known(session, name)
    session.ledger.accept.add(name)
    session.ledger.rerun.discard(name)
    return f"the recorded values of {name} will count as right for its code and inputs when its cell runs next"


def _adopt(session: Session, words: list[str]) -> str:
    name = _one_name(words, "%keel adopt NAME")
    entry = session.adopt(name)
    return _adopted(name, entry)


def _adopted(name: str, entry: Entry) -> str:
    held = ", ".join(write.name for write in entry.writes) or "no names"
    lost = "; ".join(f"{item.name} ({item.type}): {item.reason}" for item in entry.not_stored)
    tail = f"; not stored: {lost}" if lost else ""
    return f"recorded as {name}: {held}{tail}. Put `%%keel_step {name}` on top of that cell"


def _on(session: Session, words: list[str]) -> str:
    _nothing_more(words, "%keel on")
    session.on = True
    return "keel is on: steps are recorded and replayed"


def _off(session: Session, words: list[str]) -> str:
    _nothing_more(words, "%keel off")
    session.on = False
    return "keel is off in this kernel: cells run plainly and nothing is recorded"


def _journal(session: Session, words: list[str]) -> str:
    if words:
        session.move_to(_one_name(words, "%keel journal PATH"))
    return f"the journal is {session.attached().folder}"


def _flow(session: Session, words: list[str]) -> str:
    if words and words[0].startswith("--"):
        raise NotYetError(what=f"%keel flow {words[0]}", topic="strict flows and leases")
    if words:
        key = words[2] if len(words) == 3 and words[1] == "--key" else ""
        if len(words) > 1 and not key:
            raise SettingsError(where="%keel flow", detail="it reads `%keel flow [NAME] [--key K]`")
        session.name_flow(words[0], key)
    flow = session.attached().flow
    return f"flow {flow.id}" + (f" ({flow.name})" if flow.name else "")


def _doctor(session: Session, words: list[str]) -> Any:
    _nothing_more(words, "%keel doctor")
    from keel_notebook.front import doctor  # noqa: PLC0415 asked for rarely, and it looks at a lot

    key = Path(session.settings.key_file) if session.settings.key_file else None
    return doctor.DoctorTable(doctor.checkup(session.attached().folder, key=key))


def _sql(session: Session, words: list[str]) -> Any:
    from keel_notebook.front import cli_sql  # noqa: PLC0415 starts a child process with duckdb

    return cli_sql.answer(session.attached().folder, " ".join(words))


def _config(session: Session, words: list[str]) -> str:
    _nothing_more(words, "%keel config")
    settings = session.settings
    names = sorted(settings.traits(config=True))  # type: ignore[attr-defined]
    return "\n".join(f"Keel.{name} = {getattr(settings, name)!r}" for name in names)


COMMANDS: Mapping[str, Command] = {
    "status": Command(_status, "%keel [status]", "every step: state, decision, when, took, saved, size, why"),
    "plan": Command(_plan, "%keel plan", "what Run All would do now, cell by cell; nothing is executed"),
    "why": Command(_why, "%keel why NAME", "why a step replayed, executed or diverged"),
    "lineage": Command(_lineage, "%keel lineage", "every step, recorded beside current, as a widget"),
    "rerun": Command(_rerun, "%keel rerun NAME", "execute the step when its cell runs next"),
    "forget": Command(
        _retired(lifecycle.FORGET, "%keel forget NAME", "the records of {name} are retired: it executes next time"),
        "%keel forget NAME",
        "retire every record of a step",
    ),
    "revive": Command(
        _retired(lifecycle.REVIVE, "%keel revive NAME", "{name} may run again: its deaths are counted anew"),
        "%keel revive NAME",
        "let a dead step try again",
    ),
    "accept": Command(_accept, "%keel accept NAME", "the recorded value is right for the current code and inputs"),
    "adopt": Command(_adopt, "%keel adopt NAME", "record what the last executed cell left, without executing it"),
    "on": Command(_on, "%keel on", "record and replay in this kernel"),
    "off": Command(_off, "%keel off", "run cells plainly in this kernel"),
    "journal": Command(_journal, "%keel journal [PATH]", "show the journal's folder, or use another one"),
    "flow": Command(_flow, "%keel flow [NAME] [--key K]", "show which flow this notebook is, or name it"),
    "sql": Command(_sql, "%keel sql SELECT …", "query the journal"),
    "doctor": Command(_doctor, "%keel doctor", "check the journal and this machine"),
    "config": Command(_config, "%keel config", "the settings of this kernel"),
}


@magics_class
class KeelMagics(Magics):  # type: ignore[misc]  # IPython's Magics carries no types
    """The magics of keel."""

    @line_magic  # type: ignore[untyped-decorator]  # IPython carries no types
    def keel(self, line: str) -> Any:
        """What keel knows and does. `%keel help` lists the subcommands; alone it shows the table of steps."""
        try:
            return self._keel(line)
        except (SettingsError, NotYetError) as error:
            raise error from None

    def _keel(self, line: str) -> Any:
        word, _, rest = line.strip().partition(" ")
        name = word or "status"
        if name == "help":
            return Lines("\n".join(f"{command.usage:32} {command.does}" for command in COMMANDS.values()))
        if name in LATER:
            raise NotYetError(what=f"%keel {name}", topic=LATER[name])
        command = COMMANDS.get(name)
        if command is None:
            raise SettingsError(where=f"%keel {name}", detail="known: " + ", ".join([*COMMANDS, "help"]))
        words = [rest] if name == "sql" else _words(rest)
        answer = command.run(session_of(self.shell), words)
        return Lines(answer) if isinstance(answer, str) else answer

    @cell_magic  # type: ignore[untyped-decorator]  # IPython carries no types
    def keel_step(self, line: str, cell: str) -> None:
        """Make this cell a durable step: `%%keel_step NAME [options]` as its first line.

        Options: --ttl DURATION, --uses FILE …, --makes FILE …, --inputs NAME …, --outputs NAME …,
        --ignore NAME …, --always, --max-attempts N, --on-divergence fail|warn. Durations read 500ms, 2s, 10m, 2h, 7d.

        Reached only where the line is not the cell's own first line (inside another cell magic, or in a nested
        run): the body then runs as a nested cell and is not recorded.
        """
        say_nested(line)
        result = self.shell.run_cell(cell)
        if not result.success:
            raise rejected(SettingsError(where="%%keel_step", detail="the nested cell failed; see above"))


class Lines:
    """Text of a magic, shown as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise SettingsError(where="%keel", detail=str(error).lower()) from None

"""The subcommands of `%keel` (DESIGN 3.1): each reads its words, asks the session, and gives something to show."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.core import lifecycle
from keel_notebook.core.auto import MIN_SECONDS
from keel_notebook.core.ids import default_flow
from keel_notebook.core.model import Entry
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.report import status
from keel_notebook.core.units import count, duration
from keel_notebook.core.why import why
from keel_notebook.errors import SettingsError
from keel_notebook.front import wishes as told
from keel_notebook.front.calledsteps import labels_here, named_steps
from keel_notebook.front.elsewhere import meant
from keel_notebook.front.page import Page, relabelled
from keel_notebook.front.switched import with_switch
from keel_notebook.front.tables import PlanTable, StatusTable, WhyTable, local_time
from keel_notebook.session import Session
from keel_notebook.wiring import notebook_path


class Command(Struct, frozen=True):
    """One subcommand of `%keel`."""

    run: Callable[[Session, list[str]], Any]
    usage: str
    does: str


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
        run=attached.journal.run,  # 0 where nothing can be written: a run before this one is none of its own
        restored=session.ledger.restored,
    )
    return StatusTable(report)


def _plan(session: Session, words: list[str]) -> PlanTable:
    from keel_notebook.front.planned import plan_here  # noqa: PLC0415 only what the command needs

    _nothing_more(words, "%keel plan")
    return PlanTable(plan_here(session))


def _why(session: Session, words: list[str]) -> WhyTable:
    attached = session.attached()
    name = _one_name(words, "%keel why NAME")
    records = attached.journal.records(attached.flow.id)
    run = attached.journal.run or None
    return WhyTable(why(name, records, session.ledger.done, run=run, when=local_time))


def _diff(session: Session, words: list[str]) -> Any:
    from keel_notebook.core.compare import AsItStands, compare  # noqa: PLC0415 only what the command needs
    from keel_notebook.front.difference import DiffTable  # noqa: PLC0415

    attached = session.attached()
    name = _one_name(words, "%keel diff NAME")
    now = AsItStands(attached.file.source_of(name), session.leader().inputs_of)
    records, run = attached.journal.records(attached.flow.id), attached.journal.run or None
    return DiffTable(compare(name, records, session.ledger.done, now, run=run, when=local_time))


def _lineage(session: Session, words: list[str]) -> Any:
    _nothing_more(words, "%keel lineage")
    from keel_notebook.front.widget import Lineage  # noqa: PLC0415 only a shown lineage needs it

    return Lineage(session)


def _rerun(session: Session, words: list[str]) -> str:
    from keel_notebook.front import reruns  # noqa: PLC0415 only what the command needs

    if not {"--all", "--from"}.isdisjoint(words):
        return reruns.several(session, words)
    as_is, new_key = "--as-is" in words, "--new-key" in words
    name = _one_name([word for word in words if word not in {"--as-is", "--new-key"}], reruns.USAGE)
    records = told.records_with(session, name)
    if new_key:
        session.retire(name, lifecycle.NEW_KEY)
    else:
        session.ledger.rerun.add(name)
    if as_is:
        session.ledger.as_is.add(name)
    session.ledger.accept.discard(name)
    return told.anew(name) if new_key else told.rerun(name, records)


def _retired(key: str, usage: str, said: Callable[[str, FlowRecords], str]) -> Callable[[Session, list[str]], str]:
    def run(session: Session, words: list[str]) -> str:
        name = _one_name(words, usage)
        records = told.records_with(session, name)
        session.retire(name, key)
        return said(name, records)

    return run


def _accept(session: Session, words: list[str]) -> str:
    name = _one_name(words, "%keel accept NAME")
    if why := told.accepts(name, told.records_with(session, name)):
        return why
    session.ledger.accept.add(name)
    session.ledger.rerun.discard(name)
    return told.accept(name)


def _adopt(session: Session, words: list[str]) -> str:
    name = _one_name(words, "%keel adopt NAME")
    entry = session.adopt(name)
    return _adopted(name, entry)


def _adopted(name: str, entry: Entry) -> str:
    held = ", ".join(write.name for write in entry.writes) or "no names"
    lost = "; ".join(f"{item.name} ({item.type}): {item.reason}" for item in entry.not_stored)
    tail = f"; not stored: {lost}" if lost else ""
    return f"recorded as {name}: {held}{tail}. Put `%%keel_step {shlex.quote(name)}` on top of that cell"


def _restore(session: Session, words: list[str]) -> Any:
    return session.restore([word for word in words if word != "--run"], run="--run" in words)


def _lanes(session: Session, words: list[str]) -> str:
    _nothing_more(words, "%keel lanes")
    from keel_notebook.front.lanelist import LanesReport  # noqa: PLC0415 only what the command needs

    attached = session.attached()
    records = attached.journal.records(attached.flow.id)
    return "\n".join(LanesReport(attached.stepper.lanes.lanes(records), records.entries).lines())


def _use(session: Session, words: list[str]) -> str:
    attached = session.attached()
    records = attached.journal.records(attached.flow.id)
    lane = attached.stepper.lanes.use(_one_name(words, "%keel use LANE"), records)
    return f"{lane.title} is in use: its records are the newest ones, and what executes is recorded in it"


def _undo(session: Session, words: list[str]) -> str:
    at = words.index("--skip") if "--skip" in words else len(words)
    steps, by_hand = words[:at], words[at + 1 :]
    if (at < len(words) and (steps or not by_hand)) or any(word.startswith("-") for word in (*steps, *by_hand)):
        raise SettingsError(where="%keel undo", detail=f"it reads `{_UNDO_USAGE}`")
    ran = session.undo(steps, by_hand)
    if by_hand:
        kept = f"taken as undone by hand: {', '.join(by_hand)}"
        return kept + (f"; undone, last done first: {'; '.join(ran)}" if ran else "; nothing was left to undo")
    if not ran:
        return "nothing to undo: no step that ran or came back here registered an undo"
    return "undone, last done first: " + "; ".join(ran) + ". Their steps execute when their cells run next"


def _auto(session: Session, words: list[str]) -> str:
    usage = "%keel auto on|off [--min-seconds S]"
    if not words:
        return _auto_said(session.auto_s)
    way, *more = words
    if way not in ("on", "off") or (way == "off" and more):
        raise SettingsError(where="%keel auto", detail=f"it reads `{usage}`")
    session.set_auto(_seconds(more, usage) if way == "on" else None)
    return _auto_said(session.auto_s)


def _auto_said(min_s: float | None) -> str:
    if min_s is None:
        return "auto mode is off: steps are the cells that say so"
    return f"auto mode is on: cells that take {duration(min_s)} or more are saved and replayed, the others run"


def _seconds(words: list[str], usage: str) -> float:
    if not words:
        return MIN_SECONDS
    try:
        option, text = words if len(words) == 2 else words[0].split("=")
        seconds = float(text)
        if option != "--min-seconds" or not 0 <= seconds < float("inf"):
            raise ValueError
    except ValueError:
        raise SettingsError(where="%keel auto", detail=f"it reads `{usage}`, S in seconds") from None
    return seconds


def _trust(session: Session, words: list[str]) -> str:
    _nothing_more(words, "%keel trust")
    sealed = session.trust()
    return f"{count(sealed, 'record')} trusted: from now on they are replayed" if sealed else "every record is yours"


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
    flags = {word for word in words if word in _FLOW_FLAGS}
    rest = [word for word in words if word not in _FLOW_FLAGS]
    key = rest[2] if len(rest) == 3 and rest[1] == "--key" else ""
    if (len(rest) > 1 and not key) or (rest[:1] and rest[0].startswith("--")):
        raise SettingsError(where="%keel flow", detail=f"it reads `{_FLOW_USAGE}`")
    if rest:
        session.name_flow(rest[0], key)
    if flags & {"--strict", "--frozen"}:
        session.keep_flow(strict="--strict" in flags, frozen="--frozen" in flags)
    if "--take" in flags:
        session.take_over()
    if "--new" in flags:
        session.begin_afresh()
    said = [_flow_said(session)]
    return "; ".join(said + [_FLOW_FLAGS[word] for word in words if word in flags])


def _flow_said(session: Session) -> str:
    flow, notebook = session.attached().flow, notebook_path(session.shell, session.cwd)
    if flow.id == default_flow():
        return "the default flow of this folder: nobody tells which notebook runs; `%keel flow NAME` names one"
    which = flow.name or (f"of {notebook}" if notebook is not None else "without a name")
    return f"flow {which}" + (f", key {flow.key}" if flow.key else "") + f" (id {flow.id})"


_UNDO_USAGE = "%keel undo [NAME …] | --skip NAME …"
_FLOW_USAGE = "%keel flow [NAME] [--key K] [--new] [--take] [--strict] [--frozen]"
_FLOW_FLAGS: Mapping[str, str] = {
    "--new": "begun afresh",
    "--take": "this kernel holds its lease now; what its former holder still does is not recorded",
    "--strict": "strict: its steps keep their order, and completed it is only replayed",
    "--frozen": "frozen: completed, it may not grow",
}


def _doctor(session: Session, words: list[str]) -> Any:
    _nothing_more(words, "%keel doctor")
    from keel_notebook.front import doctor  # noqa: PLC0415 asked for rarely, and it looks at a lot

    key = Path(session.settings.key_file) if session.settings.key_file else None
    attached = session.attached()
    own = doctor.Writing(attached.journal.stalls, attached.journal.problem)  # type: ignore[attr-defined]
    return doctor.DoctorTable(doctor.checkup(attached.folder, key=key, own=own))


def _sql(session: Session, words: list[str]) -> Any:
    from keel_notebook.front import cli_sql  # noqa: PLC0415 starts a child process with duckdb

    return cli_sql.answer(session.attached().folder, " ".join(words))


def _outside(name: str) -> Callable[[Session, list[str]], Any]:
    def run(session: Session, words: list[str]) -> Any:
        from keel_notebook.front import outside  # noqa: PLC0415 asked for rarely; starts a process of its own

        return getattr(outside, name)(session, words)

    return run


def _gc(session: Session, words: list[str]) -> Any:
    _nothing_more(words, "%keel gc")
    from keel_notebook.core.retention import Wishes  # noqa: PLC0415 asked for rarely
    from keel_notebook.front.room import RoomReport, RoomTable  # noqa: PLC0415
    from keel_notebook.journal import collect  # noqa: PLC0415

    found = collect.planned(session.attached().folder, Wishes(), clock=session.clock)
    return RoomTable(RoomReport(found, dry=True))


def _config(session: Session, words: list[str]) -> str:
    _nothing_more(words, "%keel config")
    settings = session.settings
    names = sorted(settings.traits(config=True))  # type: ignore[attr-defined]
    return "\n".join(f"Keel.{name} = {getattr(settings, name)!r}" for name in names)


COMMANDS: Mapping[str, Command] = {
    "status": Command(_status, "%keel [status]", "every step: state, decision, when, took, saved, size, why"),
    "plan": Command(_plan, "%keel plan", "what Run All would do now, cell by cell; nothing is executed"),
    "why": Command(_why, "%keel why NAME", "why a step replayed, executed or diverged"),
    "diff": Command(_diff, "%keel diff NAME", "recorded | current: code and inputs of a step"),
    "lineage": Command(_lineage, "%keel lineage", "every step, recorded beside current, as a widget"),
    "rerun": Command(
        _rerun, "%keel rerun NAME|--all|--from NAME [--as-is] [--new-key]", "execute steps when their cells run next"
    ),
    "forget": Command(
        _retired(lifecycle.FORGET, "%keel forget NAME", told.forget),
        "%keel forget NAME",
        "retire every record of a step",
    ),
    "revive": Command(
        _retired(lifecycle.REVIVE, "%keel revive NAME", told.revive),
        "%keel revive NAME",
        "let a dead step try again",
    ),
    "accept": Command(_accept, "%keel accept NAME", "the recorded value is right for the current code and inputs"),
    "adopt": Command(_adopt, "%keel adopt NAME", "record what the last executed cell left, without executing it"),
    "restore": Command(
        _restore, "%keel restore [NAME …] [--run]", "bring variables back; --run: run the cells that are missing"
    ),
    "undo": Command(_undo, _UNDO_USAGE, "take back what steps did to the world, last done first"),
    "lanes": Command(_lanes, "%keel lanes", "the lanes of this notebook, and the one in use"),
    "use": Command(_use, "%keel use LANE", "go on in another lane"),
    "auto": Command(_auto, "%keel auto on|off [--min-seconds S]", "every cell is a step, no annotation"),
    "trust": Command(_trust, "%keel trust", "count records that another key sealed as yours: they are unpickled then"),
    "on": Command(_on, "%keel on", "record and replay in this kernel"),
    "off": Command(_off, "%keel off", "run cells plainly in this kernel"),
    "journal": Command(_journal, "%keel journal [PATH]", "show the journal's folder, or use another one"),
    "flow": Command(_flow, _FLOW_USAGE, "show which flow this notebook is, or name it"),
    "export": Command(_outside("export"), "%keel export FILE", "pack the journal into one file"),
    "import": Command(_outside("import_"), "%keel import FILE", "unpack a journal, where there is none yet"),
    "verify": Command(
        _outside("verify"), "%keel verify [NAME …]", "execute in a scratch kernel (writes files anew), compare"
    ),
    "sql": Command(_sql, "%keel sql SELECT …", "query the journal"),
    "gc": Command(_gc, "%keel gc", "what `keel gc` would let go to make room; nothing is touched"),
    "doctor": Command(_doctor, "%keel doctor", "check the journal and this machine"),
    "config": Command(_config, "%keel config", "the settings of this kernel"),
}


_OF_STEPS = frozenset({"status", "plan", "why", "diff"})


def run(session: Session, line: str) -> Any:
    """What a `%keel` line answers: a page, a text, or None.

    Raises SettingsError (E001) where the line cannot be read, and what the subcommand raises.
    """
    word, _, rest = line.strip().partition(" ")
    name = "status" if not word or word.startswith("#") else word
    rest = "" if word.startswith("#") else rest
    if name == "help":
        return Lines("\n".join(f"{command.usage:32} {command.does}" for command in COMMANDS.values()))
    command = COMMANDS.get(name)
    if command is None:
        raise SettingsError(where=f"%keel {name}", detail="no such subcommand" + meant(name, [*COMMANDS, "help"]))
    answer = command.run(session, [rest] if name == "sql" else named_steps(session, name, _words(rest)))
    known = labels_here(session)
    if isinstance(answer, Page):
        answer = answer.relabelled(known)
        return with_switch(answer, session) if name in _OF_STEPS else answer
    return Lines(relabelled(known)(answer)) if isinstance(answer, str) else answer


class Lines:
    """Text of a magic, shown as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest, comments=True)  # `%keel plan   # what Run All would do`
    except ValueError as error:
        raise SettingsError(where="%keel", detail=str(error).lower()) from None

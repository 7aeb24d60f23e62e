"""``keel run``: a notebook from the top, durable and resumable, without a front end (docs/headless.md)."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from keel_notebook.core import parameters as given
from keel_notebook.core.ids import journal_id, text_digest
from keel_notebook.core.options import duration_s
from keel_notebook.core.plans import notebook_cells
from keel_notebook.core.variables import check
from keel_notebook.core.why import hint
from keel_notebook.errors import KeelError, SettingsError, UnknownNameError, WrongFileError
from keel_notebook.front import cli_open, headless, keeping, outputs_held
from keel_notebook.front.keeping import Asked
from keel_notebook.front.run_log import Records, RunLog, Subject, TellPeople, closing, tell_json
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.jobs import Held

_STDOUT = "-"
_SLIP = "Correct the name. A parameter is bound by the cell tagged `parameters`, or read by any cell."


def run_notebook(
    asked: Asked, *, as_json: bool, environ: Mapping[str, str] = os.environ, held: Held | None = None
) -> int:
    """Run a notebook; the exit code. Raises SettingsError (E001), UnknownNameError (E002), OutputHeldError (E035), and
    WrongFileError (E008) where the executed notebook cannot be written.

    ``held``: the job that this goes on with; without one, the run becomes a job that `keel resume` can go on with.
    """
    path = notebook_of(asked.notebook)
    parameters = given.named(asked.parameters)
    asked = replace(asked, key=asked.key or environ.get("KEEL_FLOW_KEY", ""))
    key = given.flow_key(parameters, asked.key)
    book, notes = parsed_with(path, parameters)
    shown = asked.output == _STDOUT
    if shown and as_json:
        raise SettingsError(where="--output -", detail="its events go to standard output with --json")
    output = Path(os.path.abspath(asked.output)) if asked.output and not shown else default_output(path, key)
    for line in notes:
        _say(line)
    order = headless.Order(
        book=book,
        output=output,
        cwd=Path(os.path.abspath(asked.cwd)) if asked.cwd else path.parent,
        environ=kernel_environ(environ, path, key=key, flow=asked.flow, mode=asked.mode)
        | flags(asked, cli_open.place_of(str(path), environ).journal),
        kernel=asked.kernel,
        timeout_s=seconds(asked.timeout),
    )
    with outputs_held.claimed(output):  # before anything is touched
        code = _as_job(asked, order, path, key, held=held, as_json=as_json)
        if shown:
            sys.stdout.write(output.read_text("utf-8"))
        return code


def _as_job(  # noqa: PLR0913 - what ``run_notebook`` found out
    asked: Asked, order: headless.Order, path: Path, key: str, *, held: Held | None, as_json: bool
) -> int:
    name = order.environ.get("KEEL_FLOW", "")
    journal = cli_open.place_of(str(path), order.environ).journal
    job = held or keeping.begun(journal, asked, order, path, key)
    with contextlib.closing(Records(Subject(journal, path, name, key))) as records, keeping.kept(job) as kept:
        kept.ended, lost = _carried_out(order, path, records, as_json=as_json, on_kernel=kept.kernel)
    for error in lost:
        raise error
    return headless.EXIT_CODES[kept.ended]


def _carried_out(
    order: headless.Order, path: Path, records: Records, *, as_json: bool, on_kernel: Callable[[int], None]
) -> tuple[headless.Ended, list[WrongFileError]]:
    """How it ended, and why its executed notebook is not on disk, where it is not."""
    tell = tell_json if as_json else TellPeople(live=sys.stderr.isatty())
    began = time.monotonic()  # noqa: TID251 - the command line's own clock
    cells = notebook_cells(order.book)
    now = time.time()  # noqa: TID251 - ages of records are seen from here
    log = RunLog(cells, records, now=now, tell=tell, on_kernel=on_kernel)
    where = {"notebook": str(path), "output": str(order.output), "key": order.environ.get("KEEL_FLOW_KEY", "")}
    tell({"event": "started", **where, "cells": len(cells), "left_s": round(log.known_s, 3)})
    lost: list[WrongFileError] = []
    ended = headless.carry_out(order, log, monotonic=time.monotonic, lost=lost.append)  # noqa: TID251 - as above
    took = time.monotonic() - began  # noqa: TID251 - as above
    tell(closing(ended, log.totals, took_s=took, output=order.output))
    return ended, lost


def refused(error: KeelError, exit_code: int) -> dict[str, Any]:
    """The only event of a run that did not begin."""
    return {"event": "stopped", "status": "refused", "exit_code": exit_code, "error": error.to_dict()}


def kernel_environ(environ: Mapping[str, str], path: Path, *, key: str, flow: str, mode: str) -> dict[str, str]:
    """What the kernel is told: which notebook it runs, which flow that is, and that it goes on with it.

    Raises SettingsError (E001) where a variable cannot be read: no kernel is started for that.
    """
    told = dict(environ) | {"JPY_SESSION_NAME": str(path), "KEEL_FLOW_KEY": key, "KEEL_RESUME": "1"}
    if flow:
        told["KEEL_FLOW"] = flow
    if mode:
        told["KEEL_MODE"] = mode
    check(told)
    return told


def flags(asked: Asked, journal: Path) -> dict[str, str]:
    """What the flags of the command line tell the kernel."""
    told = {"KEEL_STRICT": "1"} if asked.strict else {}
    if asked.frozen:
        told["KEEL_FROZEN"] = "1"
    if asked.replay:
        told["KEEL_ACROSS_RUNS"] = "replay"
    salt = Folder(journal).read_salt() if asked.trust else None
    return told if salt is None else told | {"KEEL_TRUST": journal_id(salt)}


def default_output(path: Path, key: str) -> Path:
    """``report.run.ipynb`` beside ``report.ipynb``; each parameter set has a file of its own."""
    slug = re.sub(r"[^\w.=+-]+", "_", key)[:80]
    if slug != key:
        slug += "-" + text_digest("output", key)[:6]
    return path.with_name(f"{path.stem}.run{'-' + slug if key else ''}.ipynb")


def notebook_of(named: str) -> Path:
    """The notebook that a word of the command line means. Raises UnknownNameError (E002)."""
    path = cli_open.place_of(named).notebook
    if path is not None and path.is_file():
        return path
    there = os.path.exists(Path(named).expanduser())
    why = cli_open.NO_NOTEBOOK if there else cli_open.NO_FILE
    raise UnknownNameError(what="notebook", name=named, hint=why, **cli_open.LOOK_AGAIN)


def parsed_with(path: Path, parameters: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The notebook with parameters put in and old outputs taken out, and what a person should know about them.

    Raises SettingsError (E001), UnknownNameError (E002) for a parameter that nothing in it knows.
    """
    book = _parsed(path)
    return book, _with_parameters(book, parameters)


def _parsed(path: Path) -> Any:
    import nbformat  # noqa: PLC0415 - comes with nbclient; no other command needs it

    try:
        book = nbformat.read(path, as_version=4)
    except Exception as error:  # noqa: BLE001 - nbformat raises whatever its validators do
        detail = f"is not a notebook that can be read ({type(error).__name__})"
        raise WrongFileError(where=str(path), detail=detail, case="not_it") from None
    for cell in book.cells:
        if cell.cell_type == "code":  # an old output is never taken for a new one
            cell.outputs, cell.execution_count = [], None
    return book


def _with_parameters(book: Any, parameters: Mapping[str, Any]) -> list[str]:
    """Put the injected cell into the notebook; what a person should know about it.

    Raises UnknownNameError (E002) for a parameter that nothing in it knows.
    """
    import nbformat  # noqa: PLC0415 - as above

    if not parameters:
        return []
    cells = book.cells
    place = given.place([cell.metadata.get("tags", []) for cell in cells])
    fresh = nbformat.v4.new_code_cell(given.cell_source(parameters), metadata={"tags": [given.INJECTED_TAG]})
    fresh.id = given.INJECTED_TAG  # the same in every run: what depends on it must not change by itself
    defaults = cells[place.defaults].source if place.defaults is not None else None
    own = [c.source for c in cells if c.cell_type == "code" and given.INJECTED_TAG not in c.metadata.get("tags", [])]
    if (slip := given.slip(parameters, defaults, own)) is not None:
        name, known = slip
        why = "No cell of the notebook mentions it, so it would change nothing but the name of the run."
        raise UnknownNameError(
            what="parameter", name=name, hint=hint(name, known) if known else "", why=why, next=_SLIP
        )
    cells[place.at : place.at + place.instead] = [fresh]
    if defaults is None:
        return ["no cell is tagged `parameters`: the values stand at the top of the notebook"]
    return [f"the parameters cell does not bind {name}" for name in given.unknown(parameters, defaults)]


def seconds(text: str) -> float | None:
    """A duration of the command line in seconds; None where none is given. Raises SettingsError (E001)."""
    try:
        return duration_s(text) if text else None
    except ValueError as error:
        raise SettingsError(where="--timeout", detail=str(error)) from None


def _say(line: str) -> None:
    sys.stderr.write(f"keel: {line}\n")

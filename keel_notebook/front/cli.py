"""``keel``: the same questions as in a notebook, from a terminal or a script (DESIGN 3.4, docs/cli.md).

Every command has ``--json``. Exit codes: 0 done, 1 keel could not (or ``doctor`` found something to put right),
2 the command line names something that is not known. Nothing here unpickles, and only what a command needs is
imported when it runs: ``keel explain`` must not wait for a database.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

import click

from keel_notebook.errors import KeelError, UnknownNameError
from keel_notebook.front.cli_print import prepare_streams, put_error, put_json, put_page

MODES = ("live", "replay", "verify", "off")
"""``front.settings.MODES``, without importing traitlets."""

DONE, FAILED, UNKNOWN = 0, 1, 2

_TARGET = "NOTEBOOK|FOLDER"


def _command(run: Callable[..., Any]) -> Callable[..., Any]:
    """A command with ``--json`` whose errors are said as errors, never as a traceback."""

    @functools.wraps(run)
    def reported(*, as_json: bool, **options: Any) -> Any:
        try:
            return run(as_json=as_json, **options)
        except KeelError as error:
            put_error(error, as_json=as_json)
            _leave(_exit_code(error))

    shown = click.option("--json", "as_json", is_flag=True, help="One JSON value on standard output.")(reported)
    return keel.command(name=run.__name__)(shown)


def _exit_code(error: KeelError) -> int:
    return UNKNOWN if isinstance(error, UnknownNameError) else FAILED


def _leave(code: int) -> NoReturn:
    raise click.exceptions.Exit(code)


_target = click.argument("target", default=".", metavar=f"[{_TARGET}]")
_inside = click.option("--in", "target", default=".", metavar=_TARGET, help="Where to look; here by default.")
_flow = click.option("--flow", default="", metavar="NAME", help="Only the flow of this name or id.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="keel-notebook", prog_name="keel")
def keel() -> None:
    """Durable notebook cells: what is recorded, and why.

    The journal is KEEL_JOURNAL where that is set, else .keel beside the notebook or in the folder.
    """


@_command
@click.argument("notebook")
@click.option("-p", "--parameter", "typed", nargs=2, multiple=True, metavar="NAME VALUE", help="A parameter.")
@click.option("-r", "--raw", nargs=2, multiple=True, metavar="NAME TEXT", help="A parameter that stays text.")
@click.option("--key", default="", metavar="K", help="Tells runs apart that are not to share a flow.")
@click.option("--flow", default="", metavar="NAME", help="Name of the flow; by default the notebook's path.")
@click.option("-o", "--output", default="", metavar="FILE", help="The executed notebook [NOTEBOOK.run.ipynb].")
@click.option("--cwd", default="", metavar="FOLDER", help="Where the kernel starts [the notebook's folder].")
@click.option("--kernel", default="", metavar="NAME", help="The kernel [the one that the notebook names].")
@click.option("--timeout", default="", metavar="DURATION", help="How long one cell may take [no limit].")
@click.option("--mode", default="", type=click.Choice(("", *MODES)), show_choices=False, help="As KEEL_MODE.")
def run(*, typed: tuple[tuple[str, str], ...], raw: tuple[tuple[str, str], ...], as_json: bool, **asked: str) -> None:
    """Run a notebook from the top, without a front end.

    What had finished replays, so that a run that stopped goes on where it stopped. The executed notebook is written
    after every cell. Exit code: 0 finished, 1 a cell failed, 3 the kernel died, 4 a cell took longer than --timeout.
    """
    from keel_notebook.core.parameters import typed as as_typed  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front.cli_run import Asked, refused, run_notebook  # noqa: PLC0415

    parameters = [*raw, *((name, as_typed(value)) for name, value in typed)]
    try:
        code = run_notebook(Asked(parameters=parameters, **asked), as_json=as_json)
    except KeelError as error:
        if not as_json:
            raise
        code = _exit_code(error)
        put_json(refused(error, code), lines=False)
    _leave(code)


@_command
@_target
@_flow
def status(target: str, flow: str, *, as_json: bool) -> None:
    """Every step: state, decision, when, took, saved, size, why.

    Of a folder, the notebook that ran last comes first; as JSON, the others are under "others".
    """
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415 - only what the command needs

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found = [item.report(_now()) for item in cli_open.flows_of(reader, place, wanted=flow)]
    if as_json:
        first, *others = [report.to_dict() for report in found]
        put_json(first if place.notebook else first | {"others": others})
        return
    for at, report in enumerate(found):
        if at:
            click.echo()
        put_page(tables.StatusTable(report), as_json=False)


@_command
@_target
@_flow
def plan(target: str, flow: str, *, as_json: bool) -> None:
    """What Run All would do now, cell by cell.

    Nothing is executed: the plan reasons over the records, and says what it takes for granted.
    """
    from keel_notebook.core.plans import plan as planned  # noqa: PLC0415 - only what the command needs
    from keel_notebook.core.plans import recorded_cells  # noqa: PLC0415
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found = cli_open.flows_of(reader, place, wanted=flow)[0]
    cells = found.cells or recorded_cells(found.records)
    put_page(tables.PlanTable(planned(cells, found.records, now=_now())), as_json=as_json)


@_command
@_target
@_flow
@click.option("--step", default="", metavar="NAME", help="Only entries of this step.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="The newest so many.")
def log(target: str, flow: str, step: str, limit: int, *, as_json: bool) -> None:
    """Entries in the order in which they were written, newest last."""
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415 - only what the command needs

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found = cli_open.flow_with(flows, step) if step else flows[0]
        entries = reader.history(found.seen.id, step or None)
    put_page(
        tables.LogTable(tables.LogReport(found.title, tuple(entries)[-limit:], found.records.runs)), as_json=as_json
    )


@_command
@click.argument("name", metavar="STEP|ENTRY")
@_inside
@_flow
@click.option("--all", "whole", is_flag=True, help="All lines of output.")
def show(name: str, target: str, flow: str, *, whole: bool, as_json: bool) -> None:
    """One entry in full: the record of a step, or an id like 7.12.

    Names with types, sizes and previews, what was read, files, code, and outputs as text.
    """
    from keel_notebook.front import cli_open, show  # noqa: PLC0415 - only what the command needs

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found, entry = cli_open.entry_meant(cli_open.flows_of(reader, place, wanted=flow), name)
        messages, trouble = cli_open.messages_of(reader, entry)
    trusted = entry.entry not in found.records.untrusted
    report = show.ShowReport(entry, show.outputs_of(messages), trusted, trouble, whole)
    put_page(show.ShowTable(report), as_json=as_json)


@_command
@click.argument("step")
@_inside
@_flow
def why(step: str, target: str, flow: str, *, as_json: bool) -> None:
    """Why a step replayed, executed or was refused.

    One sentence first, then everything behind it: parts that differ, inputs, code, attempts.
    """
    from keel_notebook.core.why import why as reasons  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found = cli_open.flow_with(cli_open.flows_of(reader, place, wanted=flow), step)
    put_page(tables.WhyTable(reasons(step, found.records, {}, when=tables.local_time)), as_json=as_json)


@_command
@click.argument("step")
@_inside
@_flow
def diff(step: str, target: str, flow: str, *, as_json: bool) -> None:
    """A step's record beside what it is now: code and inputs.

    Where the newest run has not met the step, its cell in the notebook stands on the current side.
    """
    from keel_notebook.core.compare import AsItStands, compare  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import cli_open, difference, tables  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found = cli_open.flow_with(cli_open.flows_of(reader, place, wanted=flow), step)
    now = AsItStands(next((cell.source for cell in found.cells if cell.step == step), None))
    put_page(difference.DiffTable(compare(step, found.records, {}, now, when=tables.local_time)), as_json=as_json)


@_command
@click.argument("select", nargs=-1, required=True, metavar="SELECT ...")
@_inside
def sql(select: tuple[str, ...], target: str, *, as_json: bool) -> None:
    """Ask the journal with SQL.

    One SELECT over the views flows, steps, calls, runs, lineage, storage and the table entries.
    """
    from keel_notebook.front import cli_open, cli_sql  # noqa: PLC0415 - only what the command needs

    journal = cli_open.existing(cli_open.place_of(target).journal)
    put_page(cli_sql.answer(journal, " ".join(select)), as_json=as_json)


@_command
@_target
def doctor(target: str, *, as_json: bool) -> None:
    """Check this installation, this machine and the journal.

    The exit code is 1 if something has to be put right.
    """
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import doctor as looks  # noqa: PLC0415

    report = looks.checkup(cli_open.place_of(target).journal)
    put_page(looks.DoctorTable(report), as_json=as_json)
    _leave(DONE if report.well else FAILED)


@_command
@click.argument("code")
def explain(code: str, *, as_json: bool) -> None:
    """What an error code means and what to do next.

    The code may be written E031, e031 or KEEL-E031.
    """
    from keel_notebook.front.explain import explained  # noqa: PLC0415 - only what the command needs

    found = explained(code)
    if as_json:
        put_json(found.to_dict())
    else:
        click.echo(str(found))


@_command
def enable(*, as_json: bool) -> None:
    """Make steps known in every kernel of this environment, without %load_ext."""
    from keel_notebook.front import enable as startup  # noqa: PLC0415 - only what the command needs

    said = "every kernel of this environment knows steps: {file}"
    _told({"file": str(startup.enable()), "enabled": True}, said, as_json=as_json)


@_command
def disable(*, as_json: bool) -> None:
    """Undo `keel enable`: kernels load keel only where a notebook asks for it."""
    from keel_notebook.front import enable as startup  # noqa: PLC0415 - only what the command needs

    was = startup.disable()
    said = "kernels load keel only where a notebook asks for it" + ("" if was else " (it was not enabled)")
    _told({"file": str(startup.startup_file()), "enabled": False, "was_enabled": was}, said, as_json=as_json)


def _told(facts: dict[str, Any], said: str, *, as_json: bool) -> None:
    if as_json:
        put_json(facts)
    else:
        click.echo(said.format_map(facts))


def _now() -> float:
    return time.time()  # noqa: TID251 - the command line's own clock: ages are seen from here


def main() -> None:
    """The entry point of ``keel`` and ``python -m keel_notebook``."""
    prepare_streams()
    keel(prog_name="keel")


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[func-returns-value]

"""``keel``: the same questions as in a notebook, from a terminal or a script (DESIGN 3.4, docs/cli.md).

Every command has ``--json``. Exit codes: 0 done, 1 keel could not (or ``doctor`` found something to put right),
2 the command line names something that is not known; ``run`` has more. Nothing here unpickles, and only what a command
needs is imported when it runs: ``keel explain`` must not wait for a database.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from keel_notebook.front import cli_do, cli_flow, cli_upkeep
from keel_notebook.front.cli_base import DONE, FAILED, chosen_flow, command, inside, keel, leave, now, target, told
from keel_notebook.front.cli_print import prepare_streams, put_json, put_page

if TYPE_CHECKING:
    from keel_notebook.front.cli_open import OpenFlow, Wanted

__all__ = ["cli_do", "cli_flow", "cli_upkeep", "keel", "main"]


@command
@target
@chosen_flow
def status(target: str, flow: Wanted, *, as_json: bool) -> None:
    """Every step: state, decision, when, took, saved, size, why.

    Of a folder, the notebook that ran last comes first; as JSON, the others are under "others".
    """
    from keel_notebook.core.labels import labels  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found = [(item.report(now()), labels(item.records.entries, item.cells)) for item in flows]
    if as_json:
        first, *others = [report.to_dict() for report, _ in found]
        put_json(first if place.notebook else first | {"others": others})
        return
    for at, (report, known) in enumerate(found):
        if at:
            click.echo()
        put_page(tables.StatusTable(report).relabelled(known), as_json=False)


@command
@target
@chosen_flow
def plan(target: str, flow: Wanted, *, as_json: bool) -> None:
    """What Run All would do now, cell by cell.

    Nothing is executed: the plan reasons over the records, and says what it takes for granted.
    """
    from keel_notebook.core.labels import labels  # noqa: PLC0415 - only what the command needs
    from keel_notebook.core.plans import plan as planned  # noqa: PLC0415
    from keel_notebook.core.plans import recorded_cells  # noqa: PLC0415
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415
    from keel_notebook.front.coming import coming_run  # noqa: PLC0415
    from keel_notebook.front.filelook import looker, module_looker  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found = flows[0]
    _tell_which(flows, found, as_json=as_json)
    cells = found.cells or recorded_cells(found.records)
    cwd, at = str((place.notebook or place.journal).parent), now()
    report = planned(
        cells,
        found.records,
        now=at,
        run=coming_run(found.records, now=at, alone=False, auto=found.seen.auto_s is not None),
        look=looker(found.records.runs, cwd),
        module=module_looker(found.records.runs, cwd),
    )
    put_page(tables.PlanTable(report).relabelled(labels(found.records.entries, found.cells)), as_json=as_json)


@command
@target
@chosen_flow
@click.option("--step", default="", metavar="NAME", help="Only entries of this step.")
@click.option("--each", is_flag=True, help="Every entry in a line, also of many calls alike.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="The newest so many.")
def log(target: str, flow: Wanted, step: str, limit: int, *, each: bool, as_json: bool) -> None:  # noqa: PLR0913
    """Entries in the order in which they were written, newest last; many calls alike are one line."""
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front.logtable import LogReport, LogTable  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found = cli_open.flow_with(flows, step) if step else flows[0]
        entries = reader.history(found.seen.id, step or None)
    _tell_which(flows, found, as_json=as_json)
    report = LogReport(found.title, tuple(entries), found.records.runs, limit, each)
    put_page(LogTable(report), as_json=as_json)


@command
@click.argument("name", metavar="STEP|ENTRY")
@inside
@chosen_flow
@click.option("--all", "whole", is_flag=True, help="All lines of output.")
def show(name: str, target: str, flow: Wanted, *, whole: bool, as_json: bool) -> None:
    """One entry in full: the record of a step, or an id like 7.12.

    Names with types, sizes and previews, what was read, files, code, and outputs as text.
    """
    from keel_notebook.front import cli_open, show  # noqa: PLC0415 - only what the command needs

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found, entry = cli_open.entry_meant(flows, name)
        messages, trouble = cli_open.messages_of(reader, entry)
    _tell_which(flows, found, as_json=as_json)
    trusted = entry.entry not in found.records.untrusted
    report = show.ShowReport(entry, show.outputs_of(messages), trusted, trouble, whole)
    put_page(show.ShowTable(report), as_json=as_json)


@command
@click.argument("step")
@inside
@chosen_flow
def why(step: str, target: str, flow: Wanted, *, as_json: bool) -> None:
    """Why a step replayed, executed or was refused.

    One sentence first, then everything behind it: parts that differ, inputs, code, attempts.
    """
    from keel_notebook.core.labels import labels  # noqa: PLC0415 - only what the command needs
    from keel_notebook.core.why import why as reasons  # noqa: PLC0415
    from keel_notebook.front import cli_open, tables  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found = cli_open.flow_with(flows, step)
    _tell_which(flows, found, as_json=as_json)
    page = tables.WhyTable(reasons(step, found.records, {}, when=tables.local_time))
    put_page(page.relabelled(labels(found.records.entries, found.cells)), as_json=as_json)


@command
@click.argument("step")
@inside
@chosen_flow
def diff(step: str, target: str, flow: Wanted, *, as_json: bool) -> None:
    """A step's record beside what it is now: code and inputs.

    Where the newest run has not met the step, its cell in the notebook stands on the current side.
    """
    from keel_notebook.core.compare import AsItStands, compare  # noqa: PLC0415 - only what the command needs
    from keel_notebook.core.labels import labels  # noqa: PLC0415
    from keel_notebook.front import cli_open, difference, tables  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = cli_open.flows_of(reader, place, wanted=flow)
        found = cli_open.flow_with(flows, step)
    _tell_which(flows, found, as_json=as_json)
    now = AsItStands(next((cell.source for cell in found.cells if cell.step == step), None))
    page = difference.DiffTable(compare(step, found.records, {}, now, when=tables.local_time))
    put_page(page.relabelled(labels(found.records.entries, found.cells)), as_json=as_json)


@command
@click.argument("select", nargs=-1, required=True, metavar="SELECT ...")
@inside
def sql(select: tuple[str, ...], target: str, *, as_json: bool) -> None:
    """Ask the journal with SQL.

    One SELECT over the views flows, steps, calls, runs, lineage, storage and the table entries.
    """
    from keel_notebook.front import cli_open, cli_sql  # noqa: PLC0415 - only what the command needs

    journal = cli_open.existing(cli_open.place_of(target).journal)
    put_page(cli_sql.answer(journal, " ".join(select)), as_json=as_json)


def _tell_which(flows: Sequence[OpenFlow], found: OpenFlow, *, as_json: bool) -> None:
    """Say which parameter set the answer is about where a person named none of several."""
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs

    if said := cli_open.which(flows, found):
        click.echo(said, err=as_json)


@command
@target
def doctor(target: str, *, as_json: bool) -> None:
    """Check this installation, this machine and the journal.

    The exit code is 1 if something has to be put right.
    """
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import doctor as looks  # noqa: PLC0415

    report = looks.checkup(cli_open.place_of(target).journal)
    put_page(looks.DoctorTable(report), as_json=as_json)
    leave(DONE if report.well else FAILED)


@command
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


@command
def enable(*, as_json: bool) -> None:
    """Make steps known in every kernel of this environment, without %load_ext."""
    from keel_notebook.front import enable as startup  # noqa: PLC0415 - only what the command needs

    said = "every kernel of this environment knows steps: {file}"
    told({"file": str(startup.enable()), "enabled": True}, said, as_json=as_json)


@command
def disable(*, as_json: bool) -> None:
    """Undo `keel enable`: kernels load keel only where a notebook asks for it."""
    from keel_notebook.front import enable as startup  # noqa: PLC0415 - only what the command needs

    was = startup.disable()
    said = "kernels load keel only where a notebook asks for it" + ("" if was else " (it was not enabled)")
    told({"file": str(startup.startup_file()), "enabled": False, "was_enabled": was}, said, as_json=as_json)


def main() -> None:
    """The entry point of ``keel`` and ``python -m keel_notebook``."""
    prepare_streams()
    keel(prog_name="keel")


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[func-returns-value]

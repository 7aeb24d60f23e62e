"""The commands about a flow as a whole: lanes, dead steps, what it did to the world (docs/cli.md). See ``cli``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import click

from keel_notebook.front.cli_base import (
    DONE,
    FAILED,
    Clock,
    chosen_flow,
    command,
    flow_option,
    inside,
    leave,
    target,
    told,
    with_parameters,
    writing,
)
from keel_notebook.front.cli_print import put_json, put_page

if TYPE_CHECKING:
    from keel_notebook.front.cli_open import Wanted


@command
@target
@chosen_flow
def lanes(target: str, flow: Wanted, *, as_json: bool) -> None:
    """The lanes of a notebook, and the one in use.

    A lane holds the records since a divergence that left another lane. `%keel use LANE` goes on in another one.
    """
    from keel_notebook.core.lanes import lanes_in  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import cli_open  # noqa: PLC0415
    from keel_notebook.front.lanelist import LanesReport, LanesTable  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        entries = cli_open.flows_of(reader, place, wanted=flow)[0].records.entries
    put_page(LanesTable(LanesReport(lanes_in(entries), entries)), as_json=as_json)


@command
@click.argument("step")
@inside
@chosen_flow
def revive(step: str, target: str, flow: Wanted, *, as_json: bool) -> None:
    """Let a dead step try again: its kernel's deaths are counted anew.

    Find out first what killed it: `keel why STEP` shows the memory last seen.
    """
    from keel_notebook.core.lifecycle import REVIVE, steps_in  # noqa: PLC0415 - only what the command needs
    from keel_notebook.core.model import Entry, Kind, Status, entry_id  # noqa: PLC0415
    from keel_notebook.core.states import root_of  # noqa: PLC0415
    from keel_notebook.front import cli_open  # noqa: PLC0415

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found = cli_open.flow_with(cli_open.flows_of(reader, place, wanted=flow), step)
    newest = steps_in(found.records)[step][0]
    with writing(place.journal) as journal:
        seq, now = journal.next_seq(), Clock().now()
        entry = Entry(
            entry=entry_id(journal.run, seq), flow=found.seen.id, run=journal.run, seq=seq, step=step, lane=newest.lane,
            kind=Kind.RETIRE, status=Status.OK, key=REVIVE, ambient={"root": root_of(newest)}, started_at=now,
            ended_at=now, why="asked for by keel revive",
        )  # fmt: skip
        journal.append(entry, synced=True)
    told({"step": step, "revived": True}, "{step} may run again: its deaths are counted anew", as_json=as_json)


@command
@click.argument("notebook")
@click.argument("steps", nargs=-1, metavar="[STEP ...]")
@with_parameters
@click.option("--key", default="", metavar="K", help="As for `keel run`.")
@click.option("--skip", multiple=True, metavar="STEP", help="You took this step back by hand: its undo does not run.")
@flow_option
def undo(*, as_json: bool, **asked: Any) -> None:
    """Take back what the steps of a notebook did to the world, last done first.

    Their records come back in a kernel of its own, which brings their undos back; nothing is executed but plain cells
    and the undos. One that was killed in the middle goes on when it is called again.
    """
    from keel_notebook.front import cli_undo  # noqa: PLC0415

    report = cli_undo.undo(cli_undo.Asked(**asked))
    if as_json:
        put_json(report.to_dict())
    else:
        click.echo(report.said)
    leave(DONE if report.well else FAILED)

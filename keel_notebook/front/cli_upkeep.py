"""The commands that look after what is recorded: compare it, make room (docs/cli.md). See ``cli``."""

from __future__ import annotations

from typing import Any

import click

from keel_notebook.errors import SettingsError
from keel_notebook.front.cli_base import DONE, FAILED, Clock, command, flow_option, leave, target, with_parameters
from keel_notebook.front.cli_print import put_page


@command
@click.argument("notebook")
@click.argument("steps", nargs=-1, metavar="[STEP ...]")
@with_parameters
@click.option("--key", default="", metavar="K", help="As for `keel run`.")
@click.option("--timeout", default="", metavar="DURATION", help="How long one cell may take [no limit].")
@flow_option
def verify(*, as_json: bool, **asked: Any) -> None:
    """Execute a notebook again in a scratch kernel, and say where it gives something else than what is recorded.

    Nothing is recorded; files that the steps write are written again. With names, only these steps execute; the others
    replay. What must not happen twice is put back, never done again.
    Exit code: 0 every record holds, 1 one does not, or a cell failed.
    """
    from keel_notebook.front import cli_verify  # noqa: PLC0415
    from keel_notebook.front.verified import VerifyTable  # noqa: PLC0415

    report = cli_verify.verify(cli_verify.Asked(**asked))
    put_page(VerifyTable(report), as_json=as_json)
    leave(DONE if report.well else FAILED)


@command
@target
@click.option("--dry-run", "dry", is_flag=True, help="Only say what would go.")
@click.option("--keep", default="", metavar="DURATION", help="How long superseded records are kept [30d].")
@click.option("--budget", default="", metavar="SIZE", help="How much may be kept, like 20GB [no limit].")
def gc(target: str, keep: str, budget: str, *, dry: bool, as_json: bool) -> None:
    """Make room: let go the values of superseded records, and of kernels that died while they wrote.

    What the newest run needs, and what must not happen twice, is never touched. Refused while a kernel works with the
    journal.
    """
    from keel_notebook.core.options import duration_s  # noqa: PLC0415 - only what the command needs
    from keel_notebook.core.retention import KEEP_S, Wishes  # noqa: PLC0415
    from keel_notebook.core.units import size_b  # noqa: PLC0415
    from keel_notebook.front import cli_open  # noqa: PLC0415
    from keel_notebook.front.room import RoomReport, RoomTable  # noqa: PLC0415
    from keel_notebook.journal import collect  # noqa: PLC0415

    try:
        wishes = Wishes(duration_s(keep) if keep else KEEP_S, size_b(budget) if budget else None)
    except ValueError as error:
        raise SettingsError(where="keel gc", detail=str(error)) from None
    folder = cli_open.existing(cli_open.place_of(target).journal)
    found = (collect.planned if dry else collect.collect)(folder, wishes, clock=Clock())
    put_page(RoomTable(RoomReport(found, dry)), as_json=as_json)


@command
@target
@click.option("--fix", is_flag=True, help="Put right what can be: damaged parts move to damaged/.")
def fsck(target: str, *, fix: bool, as_json: bool) -> None:
    """Read everything in the journal and compare it with what was written.

    Nothing is invented and nothing is deleted. Exit code 1 where something is wrong that was not put right.
    """
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front.checked import CheckTable  # noqa: PLC0415
    from keel_notebook.journal.fsck import check  # noqa: PLC0415

    found = check(cli_open.existing(cli_open.place_of(target).journal), fix=fix)
    put_page(CheckTable(found), as_json=as_json)
    leave(DONE if found.well else FAILED)

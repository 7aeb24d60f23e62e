"""The commands that do something: run a notebook, trust, answer, move (docs/cli.md). See ``cli``."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from keel_notebook.core.units import count
from keel_notebook.core.variables import MODES
from keel_notebook.errors import KeelError, SettingsError, UnknownNameError, WrongFileError
from keel_notebook.front.cli_base import (
    DONE,
    FAILED,
    Clock,
    command,
    exit_code,
    flow_option,
    inside,
    leave,
    target,
    told,
    with_parameters,
    writing,
)
from keel_notebook.front.cli_print import put_json, put_page


def _said(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    return value or ""


@command
@click.argument("notebook")
@with_parameters
@click.option("--key", default="", metavar="K", help="Tells runs apart that are not to share a flow.")
@click.option("--flow", default="", metavar="NAME", help="Name of the flow; by default the notebook's path.")
@click.option(
    "-o",
    "--output",
    default="",
    metavar="FILE",
    help="The executed notebook [NOTEBOOK.run.ipynb]; - also writes it to standard output.",
)
@click.option("--cwd", default="", metavar="FOLDER", help="Where the kernel starts [the notebook's folder].")
@click.option("--kernel", default="", metavar="NAME", help="The kernel [the one that the notebook names].")
@click.option("--timeout", default="", metavar="DURATION", help="How long one cell may take [no limit].")
@click.option("--strict", is_flag=True, help="As KEEL_STRICT: the steps keep their order.")
@click.option("--frozen", is_flag=True, help="As KEEL_FROZEN: a completed flow may not grow.")
@click.option("--replay", is_flag=True, help="Replay also what reached the network, child processes or a clock.")
@click.option("--trust", is_flag=True, help="Records that another key sealed count as yours.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    callback=_said,
    show_choices=False,
    help="As KEEL_MODE.",
)
def run(*, as_json: bool, **asked: Any) -> None:
    """Run a notebook from the top, without a front end.

    What had finished replays, so that a run that stopped goes on where it stopped. The executed notebook is written
    after every cell. Exit code: 0 finished, 1 a cell failed, 3 the kernel died, 4 a cell took longer than --timeout,
    5 another run writes the same file.
    """
    from keel_notebook.front.cli_run import refused, run_notebook  # noqa: PLC0415
    from keel_notebook.front.keeping import Asked  # noqa: PLC0415

    try:
        code = run_notebook(Asked(**asked), as_json=as_json)
    except KeelError as error:
        if not as_json:
            raise
        code = exit_code(error)
        put_json(refused(error, code), lines=False)
    leave(code)


@command
@target
@click.option("--watch", is_flag=True, help="Stay, and go on with each one when it may.")
@click.option("--dry-run", "dry", is_flag=True, help="Only say what would go on.")
@click.option("--at-once", default=2, show_default=True, type=click.IntRange(min=1), help="How many at a time.")
@click.option("--job", default="", hidden=True, metavar="ID", help="Only this run, in this process.")
def resume(  # noqa: PLR0913 - the command's options
    target: str, job: str, *, watch: bool, dry: bool, at_once: int, as_json: bool
) -> None:
    """Go on with runs of `keel run` that were left in the middle.

    Left is a run whose process or kernel went away. One that sleeps goes on when its timer is due. Several that do this
    at once share the work: each run has one winner. Exit code 1 where one that went on did not finish.
    """
    from keel_notebook.front import cli_open, cli_resume  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front.left import LeftTable  # noqa: PLC0415

    place = cli_open.place_of(target)
    cli_open.existing(place.journal)
    if job:
        leave(cli_resume.refused(lambda: cli_resume.carry_on(place.journal, job, as_json=as_json), as_json=as_json))
    if dry:
        seen = cli_resume.looks(place, now=Clock().now())
        put_page(LeftTable(seen), as_json=as_json)
        return
    resumer = cli_resume.Resumer(place, at_once=at_once, as_json=as_json)
    with resumer.signals():
        totals = resumer.watch() if watch else resumer.once()
    facts = {"event": "resumed"} | totals.to_dict()
    if as_json:
        put_json(facts, lines=False)
    else:
        click.echo(totals.line())
    leave(FAILED if totals.failed else DONE)


@command
@target
@flow_option
def trust(target: str, flow: str, *, as_json: bool) -> None:
    """Count records that another key sealed as yours.

    From then on they are unpickled, and unpickling runs code: do this for journals of people you trust. Older seals
    stay.
    """
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs

    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        flows = [found.seen.id for found in cli_open.flows_of(reader, place, wanted=flow)]
    with writing(place.journal) as journal:
        sealed = sum(journal.trust(found) for found in flows)
    said = f"{count(sealed, 'record')} trusted: from now on they are replayed" if sealed else "every record is yours"
    told({"flows": flows, "records": sealed}, said, as_json=as_json)


@command
@click.argument("promise", metavar="NAME|ID|TOKEN")
@click.option("--token", default="", metavar="T", help="The token that was shown; `-` or none: KEEL_TOKEN, else stdin.")
@click.option("--value", default="null", metavar="JSON", help="The answer [null].")
@click.option("--as-owner", is_flag=True, help="Without a token, for promises that your own key sealed.")
@inside
def resolve(  # noqa: PLR0913 - the command's options
    promise: str, token: str, value: str, target: str, *, as_owner: bool, as_json: bool
) -> None:
    """Answer a promise, while its kernel is busy, asleep or gone.

    `keel status` lists the promises that wait. A token on the command line can be seen by others on the machine;
    KEEL_TOKEN and standard input cannot.
    """
    from keel_notebook.engine import waits  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import cli_open, promises  # noqa: PLC0415

    try:
        answer = json.loads(value)
    except ValueError:
        raise SettingsError(where="--value", detail="is not JSON (a text needs its quotes)") from None
    if as_owner and token:
        raise SettingsError(where="keel resolve", detail="--token or --as-owner, not both")
    place = cli_open.place_of(target)
    with contextlib.closing(cli_open.open_reader(place.journal)) as reader:
        found = promises.meant(cli_open.flows_of(reader, place), promise)
    promise = found.id
    secret = "" if as_owner else found.token or _token(token)
    with writing(place.journal) as journal:
        if as_owner:
            first = waits.approve(journal, Clock(), promise_id=promise, value=answer)
        else:
            first = waits.resolve(journal, Clock(), promise_id=promise, token=secret, value=answer)
    said = "{promise} is answered" if first else "{promise} was answered before; that answer stays"
    told({"promise": promise, "resolved": True, "first": first}, said, as_json=as_json)


def _token(told: str) -> str:
    return told if told not in {"", "-"} else os.environ.get("KEEL_TOKEN") or sys.stdin.readline().strip()


@command
@click.argument("old")
@click.argument("new")
def mv(old: str, new: str, *, as_json: bool) -> None:
    """Rename a notebook together with its records.

    Where the file was renamed already, only its records follow. Both names lie in folders of the same journal.
    """
    from keel_notebook.core.why import hint  # noqa: PLC0415 - only what the command needs
    from keel_notebook.front import cli_open  # noqa: PLC0415
    from keel_notebook.front.renaming import jobs_follow  # noqa: PLC0415
    from keel_notebook.journal.flows import known_flows, move_flows  # noqa: PLC0415

    before, after = cli_open.place_of(old), cli_open.place_of(new)
    if before.notebook is None or after.notebook is None:
        raise SettingsError(where="keel mv", detail="OLD and NEW are files that end with .ipynb")
    if before.journal != after.journal:
        raise WrongFileError(
            where="keel mv:", detail="the two folders have a journal each; `keel export` moves a journal"
        )
    if before.notebook.exists() and after.notebook.exists():
        raise WrongFileError(
            where="keel mv:", detail="both notebooks are there: one is a copy, and keeps records of its own"
        )
    flows = known_flows(cli_open.existing(before.journal))
    if not before.notebook.exists() and not any(flow.notebook == str(before.notebook) for flow in flows):
        why = "Nothing is recorded of it here, and there is no such file: nothing would be renamed."
        hinted = hint(str(before.notebook), [flow.notebook for flow in flows if flow.notebook])
        facts = cli_open.LOOK_AGAIN | {"why": why}
        raise UnknownNameError(what="notebook", name=str(before.notebook), hint=hinted, **facts)
    moved = move_flows(cli_open.existing(before.journal), before.notebook, after.notebook)
    jobs = jobs_follow(before.journal, before.notebook, after.notebook)
    if before.notebook.exists():
        os.rename(before.notebook, after.notebook)
    said = f"{after.notebook.name} has the records of {before.notebook.name} ({count(moved, 'flow')}"
    said += f", {count(jobs, 'job')} to go on with)" if jobs else ")"
    outcome: dict[str, Any] = {"old": str(before.notebook), "new": str(after.notebook), "flows": moved, "jobs": jobs}
    told(outcome, said, as_json=as_json)


@command
@click.argument("file")
@inside
def export(file: str, target: str, *, as_json: bool) -> None:
    """Pack a whole journal into one file, to go on elsewhere.

    It holds everything that was recorded, values too, and the salt; the key that seals your records is not in it.
    """
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs
    from keel_notebook.journal import moving  # noqa: PLC0415

    packed = moving.pack(cli_open.existing(cli_open.place_of(target).journal), Path(file))
    told({"file": file, "bytes": packed.bytes, "files": packed.files}, "{files} files in {file}", as_json=as_json)


@command
@click.argument("file")
@inside
def import_(file: str, target: str, *, as_json: bool) -> None:
    """Unpack a journal that `keel export` made, where there is none yet.

    What another key sealed is listed and not loaded, until you say `keel trust` or set KEEL_KEY_FILE to that key.
    """
    from keel_notebook.front import cli_open  # noqa: PLC0415 - only what the command needs
    from keel_notebook.journal import moving  # noqa: PLC0415

    journal = cli_open.place_of(target).journal
    unpacked = moving.unpack(Path(file), journal)
    told(
        {"journal": str(journal), "files": unpacked.files, "bytes": unpacked.bytes},
        "the journal is {journal}",
        as_json=as_json,
    )

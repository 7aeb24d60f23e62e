"""The group ``keel`` and what its commands share: how they are declared, how they end, how they say errors."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click

from keel_notebook.errors import KeelError, OutputHeldError, SettingsError, UnknownNameError
from keel_notebook.front.cli_print import put_error, put_json

DONE, FAILED, UNKNOWN = 0, 1, 2
ELSEWHERE = 5
"""Another process has what was asked for."""

_TARGET = "NOTEBOOK|FOLDER"


def command(run: Callable[..., Any]) -> Callable[..., Any]:
    """A command with ``--json`` whose errors are said as errors, never as a traceback."""
    usual = f"keel {run.__name__.rstrip('_')}"

    @functools.wraps(run)
    def reported(*, as_json: bool, **options: Any) -> Any:
        try:
            return run(as_json=as_json, **options)
        except KeelError as error:
            if isinstance(error, SettingsError) and error.facts["case"] != "variable":  # what it says is about cells
                error.facts.setdefault("next", f"Correct it and try again; `{usual} --help` shows what it takes.")
            put_error(error, as_json=as_json)
            leave(exit_code(error))

    shown = click.option("--json", "as_json", is_flag=True, help="One JSON value on standard output.")(reported)
    return keel.command(name=run.__name__.rstrip("_"))(shown)


def exit_code(error: KeelError) -> int:
    """The exit code that an error means."""
    if isinstance(error, OutputHeldError):
        return ELSEWHERE
    return UNKNOWN if isinstance(error, UnknownNameError) else FAILED


def leave(code: int) -> NoReturn:
    """End the command with an exit code."""
    raise click.exceptions.Exit(code)


def target(run: Callable[..., Any]) -> Callable[..., Any]:
    """The place that a command looks at, as its word or, as the commands about a step have it, with ``--in``."""

    @functools.wraps(run)
    def placed(*, target: str, elsewhere: str, **options: Any) -> Any:
        if target and elsewhere:
            raise SettingsError(where=f"--in {elsewhere}", detail=f"the place is named already: {target}")
        return run(target=target or elsewhere or ".", **options)

    shown = click.option("--in", "elsewhere", default="", metavar=_TARGET, help="The same as the word.")(placed)
    return click.argument("target", default="", metavar=f"[{_TARGET}]")(shown)


inside = click.option("--in", "target", default=".", metavar=_TARGET, help="Where to look; here by default.")
flow_option = click.option("--flow", default="", metavar="NAME", help="Only the flow of this name or id.")


def with_parameters(run: Callable[..., Any]) -> Callable[..., Any]:
    """The options ``-p`` and ``-r``: a command gets them as ``parameters``, pairs of a name and a value."""

    @functools.wraps(run)
    def merged(*, typed: Iterable[tuple[str, str]], raw: Iterable[tuple[str, str]], **options: Any) -> Any:
        from keel_notebook.core.parameters import typed as as_typed  # noqa: PLC0415 - only what such commands need

        return run(parameters=[*raw, *((name, as_typed(value)) for name, value in typed)], **options)

    shown = click.option(
        "-r", "--raw", nargs=2, multiple=True, metavar="NAME TEXT", help="A parameter that stays text."
    )
    usual = click.option(
        "-p", "--parameter", "typed", nargs=2, multiple=True, metavar="NAME VALUE", help="A parameter."
    )
    return usual(shown(merged))


def chosen_flow(run: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose a flow, by its name or as ``keel run`` does; a command gets a ``Wanted`` as ``flow``."""

    @functools.wraps(run)
    def wanted(*, flow: str, key: str | None, parameters: list[tuple[str, Any]], **options: Any) -> Any:
        from keel_notebook.core.parameters import flow_key, named  # noqa: PLC0415 - only what such commands need
        from keel_notebook.front.cli_open import Wanted  # noqa: PLC0415

        own = flow_key(named(parameters), key or "") if parameters else key
        return run(flow=Wanted(flow, own), **options)

    usual = click.option("--key", default=None, metavar="K", help="Only the flow of this key; '' is that without one.")
    return flow_option(usual(with_parameters(wanted)))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="keel-notebook", prog_name="keel")
def keel() -> None:
    """Durable notebook cells: what is recorded, and why.

    The journal is KEEL_JOURNAL where that is set, else .keel beside the notebook or in the folder.
    """


def told(facts: dict[str, Any], said: str, *, as_json: bool) -> None:
    """What a command did: the facts for a program, the sentence filled with them for a person."""
    if as_json:
        put_json(facts)
    else:
        click.echo(said.format_map(facts))


class Clock:
    """The command line's own clock: ages are seen from here."""

    def now(self) -> float:
        """Wall time, seconds."""
        return time.time()  # noqa: TID251 - the one place

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return time.monotonic()  # noqa: TID251 - the one place


def now() -> float:
    """Wall time, seconds."""
    return Clock().now()


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[Any]:
    """The journal, to write a few entries as its owner. Raises JournalUnreachableError (E054), DiskFullError (E053)."""
    from keel_notebook.core.kernels import COMMAND  # noqa: PLC0415 - only what the command needs
    from keel_notebook.journal.disk import open_journal  # noqa: PLC0415
    from keel_notebook.payload.seal import seal_of  # noqa: PLC0415

    seal = seal_of(os.environ.get("KEEL_KEY_FILE", ""), folder)
    journal = open_journal(folder, clock=Clock(), seal=seal, notebook=COMMAND, cwd="", rest_s=None)
    try:
        if journal.problem is not None:
            raise journal.problem
        yield journal
    finally:
        journal.close(clean=True)

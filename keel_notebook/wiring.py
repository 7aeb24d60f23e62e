"""Opens a journal and puts the middle layers together on it: the only place that knows every real part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keel_notebook.capture.ambient import AmbientWatch
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.files import Files
from keel_notebook.capture.names import NameWatch
from keel_notebook.capture.outputs import make_tap, pack_messages, unpack_messages
from keel_notebook.capture.world import World
from keel_notebook.core.model import FileSeen, Input
from keel_notebook.core.ports import Clock, Digested, Journal, WorldSeen
from keel_notebook.core.redact import redacted
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.runner import Parts, Runner
from keel_notebook.engine.stepper import Senses, Stepper
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.flows import FlowSeen, find_flow
from keel_notebook.payload.codec import GraphCodec, preview
from keel_notebook.payload.digest import StructuralDigester
from keel_notebook.payload.seal import OwnerSeal, owner_key


@dataclass(frozen=True, slots=True)
class Attached:
    """A journal that this kernel writes to, and what works on it."""

    folder: Path
    flow: FlowSeen
    journal: Journal
    runner: Runner
    stepper: Stepper

    @staticmethod
    def kept_source(source: str) -> str:
        """A cell's text as the journal keeps it: without what looks like a credential (C103)."""
        return redacted(source)


def notebook_path(shell: Any, cwd: Path) -> Path | None:
    """The notebook of this kernel, where somebody tells: a Jupyter server, or VS Code (C92)."""
    told = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__")
    if not isinstance(told, str) or not told.endswith(".ipynb"):
        return None
    return (cwd / told).resolve()


def journal_folder(setting: str, notebook: Path | None, cwd: Path) -> Path:
    """Where the journal is: the setting, else ``.keel`` beside the notebook, else in the working directory."""
    if setting:
        return (cwd / Path(setting).expanduser()).resolve()
    beside = notebook.parent if notebook is not None and notebook.parent.is_dir() else cwd
    return beside / ".keel"


def attach(  # noqa: PLR0913 the one place where everything comes together, all by name
    shell: Any, settings: Any, *, clock: Clock, ledger: Ledger, cwd: Path, say: Callable[[str], None]
) -> Attached:
    """Open the journal of this kernel. Raises KeelError where that cannot be done."""
    notebook = notebook_path(shell, cwd)
    folder = journal_folder(settings.journal, notebook, cwd)
    seal = OwnerSeal(owner_key(path=Path(settings.key_file) if settings.key_file else None))
    journal = open_journal(folder, clock=clock, seal=seal, notebook=str(notebook or ""), cwd=str(cwd))
    flow = find_flow(folder, notebook=notebook, name=settings.flow, key=settings.flow_key)
    definitions = NotebookDefinitions(shell)
    digester = StructuralDigester(salt=journal.salt, definitions=definitions)
    watch = NameWatch(shell, digester)
    files = Files(root=cwd, salt=journal.salt)
    namespace: dict[str, Any] = shell.user_ns

    def reached(names: Iterable[str], parsed: Any) -> Mapping[str, Digested]:
        return watch.reached(names, parsed.names)

    def kept_inputs(names: Sequence[str]) -> tuple[Input, ...]:
        return tuple(
            Input(
                name,
                digester.digest(namespace[name]).digest,
                preview=preview(name, namespace[name]),
                type=kind_of(namespace[name]),
            )
            for name in names
        )

    def files_seen(seen: WorldSeen, makes: Sequence[str]) -> tuple[FileSeen, ...]:
        return files.inputs(seen.files) + tuple(files.seen(path, "makes") for path in makes)

    runner = Runner(
        Parts(
            journal=journal,
            codec=GraphCodec(journal=journal, definitions=definitions, digester=digester, namespace=lambda: namespace),
            tap=make_tap(shell),
            watch=watch,
            ambient=AmbientWatch(),
            world=World(ignore=folder),
            clock=clock,
            namespace=namespace,
            pack_messages=pack_messages,
            unpack_messages=unpack_messages,
            files_seen=files_seen,
            kept_inputs=kept_inputs,
        )
    )
    senses = Senses(
        reached=reached,
        value=namespace.get,
        preview=preview,
        kind_of=kind_of,
        file_now=files.now,
        file_seen=files.seen,
        say=say,
        now=clock.now,
        monotonic=clock.monotonic,
    )
    stepper = Stepper(runner=runner, ledger=ledger, senses=senses, records=lambda: journal.records(flow.id))
    return Attached(folder, flow, journal, runner, stepper)


def kind_of(value: Any) -> str:
    """The qualified name of a value's type."""
    kind = type(value)
    return (
        kind.__qualname__ if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}.{kind.__qualname__}"
    )

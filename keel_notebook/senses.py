"""What is asked about a kernel's notebook: where values come from, which files a step means, what a value is."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import Struct

from keel_notebook.capture.between import Between
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.files import Files, stamp_in
from keel_notebook.capture.filewatch import FileWatch
from keel_notebook.capture.mentions import mentions
from keel_notebook.capture.names import NameWatch
from keel_notebook.capture.parts import may_change
from keel_notebook.capture.sources import Sources
from keel_notebook.capture.written import WRITTEN
from keel_notebook.core.dotted import value_at
from keel_notebook.core.fileholds import PRODUCTS
from keel_notebook.core.model import Digest, FileSeen
from keel_notebook.core.ports import Digester, FlowRecords
from keel_notebook.core.provenance import Statement
from keel_notebook.core.reads import CellNames
from keel_notebook.core.rewritten import Rewritten
from keel_notebook.core.volatile import told
from keel_notebook.core.world_ports import WorldSeen
from keel_notebook.engine.parts import Parts
from keel_notebook.engine.provenance import OriginSenses
from keel_notebook.engine.volatile import Volatile
from keel_notebook.payload import sizes
from keel_notebook.payload.digest import StructuralDigester
from keel_notebook.payload.outlines import OrOutline


def origin_senses(
    namespace: dict[str, Any],
    digester: StructuralDigester,
    definitions: NotebookDefinitions,
    files: Files,
    watch: NameWatch,
) -> OriginSenses:
    """What is asked about the notebook to tell where a value comes from."""

    def stored_by_functions() -> frozenset[str]:
        return frozenset().union(*map(definitions.stores, list(namespace.values())))

    def file_named(name: str) -> Digest | None:
        return files.seen(name, "read").digest if files.made_from(name) else None

    def setting(name: str) -> Digest | None:
        return digester.digest(os.environ[name]).digest if name in os.environ else None

    return OriginSenses(namespace, watch.reached, stored_by_functions, file_named, setting, definitions.source_of)


class VolatileSense(Struct, frozen=True):
    """Finds the volatile names that plain cells make."""

    names: Volatile
    namespace: dict[str, Any]
    definitions: NotebookDefinitions
    sources: Sources
    watch: NameWatch
    compared: Digester

    def ran(self, said: Any, then: Sequence[CellNames]) -> None:
        """A plain cell ran well. ``said`` is its analysis, ``then`` the names of cells that ran since."""
        known = self.names.known()
        if not (self._draws(said.parsed.tree) or known.keys() & said.reads):
            return
        stories = told(
            said.parsed,
            known,
            full=self.sources.full,
            code_behind=self.sources.code_behind,
            draws=self._draws,
            digests=self._digests,
        )
        bound = frozenset().union(*(each.stores | each.maybe_stores | each.deletes for each in then))
        touched = frozenset().union(*(each.mutation_suspects for each in then))
        gone = bound | {name for name in touched if may_change(self.namespace.get(name))}
        self.names.ran(str(said.code), {name: story for name, story in stories.items() if name not in gone})

    def _draws(self, code: ast.AST) -> bool:
        reads = self.sources.read_by(code)
        return reads.clock or reads.entropy

    def _digests(self, statement: Statement) -> Mapping[str, Digest | None]:
        names = statement.names
        found = self.watch.reached(names.reads | names.late_reads, names, self.compared.digest)
        return {name: None if digested.outline else digested.digest for name, digested in found.items()}


def volatile_sense(  # noqa: PLR0913 - the parts, by name
    parts: Parts,
    *,
    digester: StructuralDigester,
    definitions: NotebookDefinitions,
    watch: NameWatch,
    went_on: Callable[[FlowRecords, str], frozenset[int]],
    say: Callable[[str], None],
) -> VolatileSense:
    """What keeps the volatile names of a kernel."""

    def digest(value: Any) -> Digest | None:
        return digester.digest(value).digest if sizes.about(value) <= _LARGEST_VOLATILE else None

    names = Volatile(parts, digest=digest, went_on=went_on, when=_clock, say=say)
    sources = Sources(parts.namespace, definitions)
    return VolatileSense(names, parts.namespace, definitions, sources, watch, OrOutline(digester))


_LARGEST_VOLATILE = 64 << 10


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%H:%M")


class StepFiles(Struct, frozen=True):
    """``world_ports.FileSense`` for a kernel's namespace."""

    watch: FileWatch
    namespace: dict[str, Any]
    definitions: NotebookDefinitions

    def before(self, cell: Any, names: Iterable[str]) -> Any:
        """Look at what the cell and its inputs name."""
        return self.watch.before(mentions(cell.files, names, self.namespace, self.definitions))

    def after(
        self, before: Any, seen: WorldSeen, makes: Sequence[str], unfinished: Sequence[str] = ()
    ) -> tuple[FileSeen, ...]:
        """The files that count for the step."""
        return self.watch.after(before, seen, makes, unfinished)


def file_senses(files: Files, between: Between) -> dict[str, Any]:
    """What a stepper asks about files: fields of ``stepparts.Senses``."""
    return {
        "files_now": files.now_all,
        "file_seen": files.seen,
        "rewritten": partial(rewritten, files),
        "read_between": between.readers,
        "names_file": between.names,
        "stands": partial(_stands, files),
    }


def _stands(files: Files, step: str, seen: Iterable[FileSeen]) -> None:
    left = {files.full(each.path) for each in seen if each.role in {"write", "left"}}
    WRITTEN.stands(step, {full: stamp_in(full)[0] for full in left})


def changed_by_plain(files: Files, between: Between, cell: CellNames) -> tuple[FileSeen, ...]:
    """What the running plain cell did to files that steps of this kernel left: ``write`` where it surely wrote them
    anew, whatever they held, else ``changed``."""
    found = []
    for full, anew in sorted(WRITTEN.changed_here(lambda full: stamp_in(full)[0]).items()):
        path = files.shown(full)
        surely = anew and not between.names(cell, path)
        found.append(files.seen(path, "write") if surely else FileSeen(path, "changed", None))
    return tuple(found)


def rewritten(files: Files, seen: Iterable[FileSeen], step: str) -> Mapping[str, Rewritten]:
    """The files that a step left and that a cell of this kernel changed since."""
    paths = {each.path for each in seen if each.role in PRODUCTS}
    found = {path: WRITTEN.since(files.full(path), step) for path in sorted(paths)}
    return {path: by for path, by in found.items() if by is not None}


def value_of(namespace: dict[str, Any], name: str) -> Any:
    """What a name of the notebook, or a dotted one (``Cfg.lr``), holds; None where it is not there."""
    try:
        return value_at(namespace, name)
    except (KeyError, AttributeError):
        return None


def kind_of(value: Any) -> str:
    """The qualified name of a value's type."""
    kind = type(value)
    return (
        kind.__qualname__ if kind.__module__ in {"builtins", "__main__"} else f"{kind.__module__}.{kind.__qualname__}"
    )

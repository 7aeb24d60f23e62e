"""What is asked about a kernel's notebook: where values come from, which files a step means, what a value is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.files import Files
from keel_notebook.capture.filewatch import FileWatch
from keel_notebook.capture.mentions import mentions
from keel_notebook.capture.names import NameWatch
from keel_notebook.core.dotted import value_at
from keel_notebook.core.model import Digest, FileSeen
from keel_notebook.core.ports import WorldSeen
from keel_notebook.engine.provenance import OriginSenses
from keel_notebook.payload.digest import StructuralDigester


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


class StepFiles(Struct, frozen=True):
    """``ports.FileSense`` for a kernel's namespace."""

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

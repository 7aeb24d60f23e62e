"""A shell without a kernel, in this process."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.namespace import persons_names
from keel_notebook.core.ids import text_digest
from keel_notebook.core.ports import Digested

_spare: list[InteractiveShell] = []


@contextmanager
def shell() -> Iterator[InteractiveShell]:
    """A shell as new. Making one takes a while, so an old one is emptied where there is one."""
    made = _spare.pop() if _spare else _make()
    try:
        yield made
    finally:
        NotebookDefinitions(made).close()
        for name in persons_names(made):
            del made.user_ns[name]
        made.compile._filename_map.clear()
        _spare.append(made)


def _make() -> InteractiveShell:
    config = Config()
    config.HistoryManager.enabled = False
    made = InteractiveShell(config=config)
    atexit.unregister(made.atexit_operations)
    return made


def run(shell: InteractiveShell, cell: str) -> Any:
    result = shell.run_cell(cell, store_history=True)
    result.raise_error()
    return result.result


class Digests:
    """Digests by ``repr``, with what functions reach told by the definitions: for tests of other things."""

    def __init__(self, definitions: Any) -> None:
        self.definitions = definitions
        self.asked: list[Any] = []

    def digest(self, value: Any) -> Digested:
        self.asked.append(value)
        if type(value).__name__ in {"Unknown", "Proxy"}:
            return Digested(None, reason="unknown")
        if self.definitions.belongs(value):
            found = self.definitions.of(value)
            return Digested(found and found.code, reaches=found.reads if found else frozenset())
        if hasattr(value, "__dict__") and not isinstance(value, type) and type(value).__module__ == "__main__":
            found = self.definitions.of(type(value))
            return Digested(text_digest(repr(vars(value))), reaches=found.reads)
        return Digested(text_digest(type(value).__name__, repr(value)))


class Unknown:
    """A value that cannot be digested."""

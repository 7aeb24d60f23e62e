"""``keel enable`` and ``keel disable``: steps in every kernel of this environment, without `%load_ext` (DESIGN 3.4).

A file in IPython's startup folder of the environment makes every kernel look at each cell's text; the first one that
uses keel loads it, before IPython reads the cell. A kernel whose notebook does not use keel imports nothing.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

FILE = "50-keel-notebook.py"

STARTUP = '''\
"""Written by `keel enable`: makes `%%keel_step` known in every kernel of this environment.

`keel disable` removes this file. It imports nothing heavy and never stands in a kernel's way.
"""
try:
    from keel_notebook.front.enable import watch as _keel_watch

    _keel_watch(get_ipython())
    del _keel_watch
except Exception:
    pass
'''

_WORDS = ("%%keel_step", "%keel", "keel: step")


def startup_file(prefix: str = sys.prefix) -> Path:
    """Where the file is kept: a name of its own in the environment's startup folder, beside other packages' files."""
    return Path(prefix) / "etc" / "ipython" / "startup" / FILE


def enable(prefix: str = sys.prefix) -> Path:
    """Write the file and return where it is. Writing it again changes nothing. Raises OSError."""
    file = startup_file(prefix)
    if not file.is_file() or file.read_text("utf-8") != STARTUP:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(STARTUP, "utf-8")
    return file


def disable(prefix: str = sys.prefix) -> bool:
    """Remove the file; whether it was there. Raises OSError."""
    file = startup_file(prefix)
    there = file.is_file()
    file.unlink(missing_ok=True)
    return there


def load(shell: Any) -> None:
    """Switch keel on where nobody typed `%load_ext`: IPython would call that "already loaded" when somebody does."""
    importlib.import_module("keel_notebook").load_ipython_extension(
        shell
    )  # by name: the command line imports this file


def watch(shell: Any) -> None:
    """Load keel in this shell as soon as a cell uses it, or a front end asks for it."""

    def look(lines: list[str]) -> list[str]:
        if look in shell.input_transformers_cleanup and any(word in line for line in lines for word in _WORDS):
            _load(shell)
            from keel_notebook.capture.mark import mark  # noqa: PLC0415 keel is loaded now

            return list(mark(lines))  # it was not yet in the list that IPython is going through
        return lines

    def _load(shell: Any) -> None:
        load(shell)  # where that is refused, so is the next cell that uses keel: it must not run plainly
        shell.input_transformers_cleanup.remove(look)

    def opened(comm: Any, message: Any) -> None:
        if look in shell.input_transformers_cleanup:
            _load(shell)
        target = shell.kernel.comm_manager.targets["keel"]
        target(comm, message)

    shell.input_transformers_cleanup.insert(0, look)
    comms = getattr(getattr(shell, "kernel", None), "comm_manager", None)
    if comms is not None:
        comms.register_target("keel", opened)

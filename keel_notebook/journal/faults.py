"""What the operating system refuses, in keel's words (E053, E054)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from keel_notebook.errors import DiskFullError, JournalUnreachableError, KeelError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def in_words(error: OSError, folder: str, *, step: str = "") -> KeelError:
    """The KeelError for what happened in ``folder`` while ``step`` was being recorded."""
    if error.errno in _FULL:
        return DiskFullError(what=f"step {step} was not recorded" if step else "nothing can be recorded now")
    return JournalUnreachableError(journal=folder, detail=os.strerror(error.errno) if error.errno else str(error))


@contextmanager
def spoken(folder: str) -> Iterator[None]:
    """Turns every OSError inside into a KeelError."""
    try:
        yield
    except OSError as error:
        raise in_words(error, folder) from error

"""``NpzFile``, what ``numpy.load`` gives for an ``.npz``: a value that reads an array from the file when asked for it.

It comes back by opening the file again, and only where the file is the one that it was: names, sizes and checksums of
all members. In a step that replays, the file is an input and was compared by content before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from keel_notebook.errors import DefinitionChangedError
from keel_notebook.payload.kinds import Kind


def kinds() -> Iterator[Kind]:
    """The one kind."""
    from numpy.lib.npyio import NpzFile  # noqa: PLC0415 - imported by whoever has one

    yield Kind("numpy.npz", NpzFile, _take, _build, compare=_compare)


def _take(archive: Any) -> tuple[Any, ...] | None:
    name = getattr(archive.fid, "name", None)
    directory = _directory(archive)
    if directory is None or (directory and type(name) is not str):
        return None
    return name, os.path.abspath(str(name)) if directory else "", directory, _how(archive)


def _compare(archive: Any) -> tuple[Any, ...] | None:
    directory = _directory(archive)
    return None if directory is None else (directory, _how(archive))


def _directory(archive: Any) -> tuple[tuple[str, int, int], ...] | None:
    """What is in the archive; nothing in a closed one. None where it is not read from a file."""
    if archive.zip is None:
        return ()
    if archive.fid is None:
        return None
    return tuple((item.filename, item.file_size, item.CRC) for item in archive.zip.infolist())


def _how(archive: Any) -> tuple[Any, ...]:
    options = archive.pickle_kwargs or {}
    return (
        archive.allow_pickle,
        archive.max_header_size,
        options.get("fix_imports", True),
        options.get("encoding", "ASCII"),
        tuple(archive.files),
    )


def _build(name: str | None, path: str, directory: Any, how: tuple[Any, ...]) -> Any:
    import numpy as np  # noqa: PLC0415 - needed when one comes back, not before

    allow_pickle, most, fix_imports, encoding, files = how
    if not directory:
        closed: Any = object.__new__(np.lib.npyio.NpzFile)
        options = {"fix_imports": fix_imports, "encoding": encoding}
        names = {held: f"{name}.npy" for name in files for held in (name, f"{name}.npy")}
        vars(closed).update(files=list(files), _files=names, allow_pickle=allow_pickle, max_header_size=most)
        vars(closed).update(pickle_kwargs=options, zip=None, fid=None, f=None)
        return closed
    there = name if name is not None and os.path.abspath(name) == path else path
    try:
        opened = np.load(
            there, allow_pickle=allow_pickle, fix_imports=fix_imports, encoding=encoding, max_header_size=most
        )
    except (OSError, ValueError) as error:
        raise DefinitionChangedError(name=f"the archive {name}", detail="cannot be opened any more") from error
    if getattr(opened, "zip", None) is None or _directory(opened) != directory:
        opened.close()
        raise DefinitionChangedError(name=f"the archive {name}", detail="has changed since")
    return opened

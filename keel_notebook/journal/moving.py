"""A journal in one file: packed on one machine, unpacked on another (DESIGN 3.4, C07).

Order matters while kernels write: segments first, then heads and record file, objects last. Whatever a copied entry
names was written before it, so its objects are in the copy too; a torn tail of a segment is cut by whoever reads it.
"""

from __future__ import annotations

import contextlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from keel_notebook.errors import WrongFileError
from keel_notebook.journal import locks, spawn
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.wholefiles import scratch_name

_PARTS: Final = ("salt", ".gitignore", "inbox", "flows", "heads", "journal.duckdb", "objects")
"""In this order. Leases and locks belong to this machine, and what was set aside stays where it was found."""
_WAIT_S: Final = 60.0


class Moved(NamedTuple):
    """What was packed or unpacked."""

    files: int
    bytes: int


def pack(folder: Path, target: Path) -> Moved:
    """Write the journal into the file ``target``, which appears as a whole, readable by its owner only.

    Raises WrongFileError (E008) where something is at ``target``, JournalUnreachableError (E054), DiskFullError (E053).
    """
    place = Folder(folder)
    if target.exists():
        raise WrongFileError(where=str(target), detail="is there already")
    spawn.ingest_now(place.path, _WAIT_S)
    files = size = 0
    scratch = scratch_name(os.path.abspath(target))
    with spoken(place.path):
        try:
            fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with (
                locks.hold(place.lock, wait_s=_WAIT_S),  # the record file and the heads stand still
                open(fd, "wb") as raw,
                tarfile.open(fileobj=raw, mode="w:gz", compresslevel=1) as archive,
            ):
                for path in _listed(place):
                    with contextlib.suppress(FileNotFoundError):  # a scratch file or an ingested segment
                        archive.add(path, arcname=os.path.relpath(path, place.path), recursive=False, filter=_nobodys)
                        files, size = files + 1, size + os.stat(path).st_size
            os.link(scratch, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(scratch)
    return Moved(files, size)


def unpack(source: Path, folder: Path) -> Moved:
    """Make the journal ``folder`` out of a packed one. Nothing of it is trusted, nothing leaves the folder.

    Raises WrongFileError (E008) where there is a journal already or where ``source`` is none, and as ``pack``.
    """
    place = Folder(folder)
    files = size = 0
    with spoken(place.path):
        if place.exists() and (os.path.exists(place.salt) or place.runs()):
            raise WrongFileError(where=place.path, detail="holds a journal already", case="journal")
        try:
            with tarfile.open(source, "r:gz") as archive:
                members = archive.getmembers()
                bad = next((member for member in members if not _is_ours(member)), None)
                if bad is not None or not any(member.name == "salt" for member in members):
                    raise WrongFileError(where=str(source), detail="is not a packed journal", case="not_it")
                place.create()
                for member in members:
                    _put(archive, member, place)
                    files, size = files + 1, size + member.size
        except (tarfile.TarError, EOFError) as error:
            raise WrongFileError(
                where=str(source), detail="is not a packed journal, or is not whole", case="not_it"
            ) from error
    return Moved(files, size)


def _listed(place: Folder) -> Iterator[str]:
    for part in _PARTS:
        top = f"{place.path}/{part}"
        if os.path.isdir(top):
            for folder, _, names in os.walk(top):
                yield from (f"{folder}/{name}" for name in sorted(names) if not name.endswith(".tmp"))
        elif os.path.exists(top):
            yield top


def _nobodys(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o600
    return info


def _is_ours(member: tarfile.TarInfo) -> bool:
    path = PurePosixPath(member.name)
    return member.isreg() and not path.is_absolute() and ".." not in path.parts and path.parts[0] in _PARTS


def _put(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Folder) -> None:
    target = f"{place.path}/{member.name}"
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    content = archive.extractfile(member)
    assert content is not None
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(fd, "wb") as file, content:
        while piece := content.read(1 << 20):
            file.write(piece)

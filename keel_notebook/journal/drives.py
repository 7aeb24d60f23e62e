"""On what kind of drive a folder lies: only files on a local one may be mapped (a network drive can cut a file
under a mapping, and the kernel that reads it dies of SIGBUS)."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

_LOCAL: Final = frozenset(
    {"apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs"}
    | {"nilfs2", "overlay", "ramfs", "reiserfs", "tmpfs", "ufs", "xfs", "zfs"}
)


def is_local(path: str) -> bool:
    """Whether ``path`` is on a drive of this machine for sure. What is not known counts as a network drive."""
    return drive_kind(path) in _LOCAL


def drive_kind(path: str) -> str:
    """The file system's name, such as ``ext4`` or ``nfs4``; empty if it cannot be told."""
    real = os.path.realpath(path)
    best, kind = "", ""
    for place, name in _mounts():
        inside = real == place or real.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best):  # a later mount on the same place covers the earlier one
            best, kind = place, name
    return kind


def _mounts() -> list[tuple[str, str]]:
    if sys.platform.startswith("linux"):
        with (
            contextlib.suppress(OSError),
            open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f,
        ):
            return [_mount(line) for line in f]
        return []
    import psutil  # noqa: PLC0415 - 25 ms, and only needed where there is no /proc

    return [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]


def _mount(line: str) -> tuple[str, str]:
    # "36 35 98:0 /root /place opts - ext4 /dev/x opts"; spaces in places are written \\040
    before, _, after = line.partition(" - ")
    place = before.split(" ")[4]
    for code, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        place = place.replace(code, char)
    return place, after.split(" ")[0]

"""What a cell does outside the process: network, child processes, files, threads that outlive it (DESIGN 6, Files).

The audit hook is blind to native code: readers of parquet, Arrow or HDF5 open files past it, and C libraries have
their own sockets. Child processes are also seen by the counters that the system keeps, whoever started them.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from keel_notebook.capture.audit import CHILDREN, FILES, FOLDER, NETWORK, Args, unwatch, watch
from keel_notebook.capture.files import stamp_in
from keel_notebook.capture.threads import kernel_idents, lingering
from keel_notebook.core.filerules import CHANGING, Stamp

_MOST_FILES = 20_000
"""Distinct touches that are kept of one cell; with more, ``WorldSeen.unsure`` is set."""


class FileTouch(Struct, frozen=True, eq=False):
    """A path that a cell touched.

    ``how`` is ``read``, ``write``, ``append``, ``list``, ``glob``, ``remove``, ``rename`` (away from this path),
    ``make`` (a folder) or ``database`` (SQLite). It says what was tried: the file may not exist. ``folder`` is the
    working directory that a relative path was relative to, ``stamp`` what told its state when it was first touched.
    """

    path: str
    how: str
    folder: str = ""
    stamp: Stamp | None = None

    def __eq__(self, other: object) -> bool:
        # When it was touched first does not tell two touches apart.
        return isinstance(other, FileTouch) and self._what == other._what

    def __hash__(self) -> int:
        return hash(self._what)

    @property
    def _what(self) -> tuple[str, str, str]:
        return self.path, self.how, self.folder


class WorldSeen(Struct, frozen=True):
    """What a cell did outside the process. ``unsure``: it may have done more than could be seen."""

    network: bool
    children: bool
    files: tuple[FileTouch, ...]
    threads_left: int
    unsure: bool = False
    unfinished: tuple[str, ...] = ()
    """Files (absolute) that child processes which still run have open for writing."""


class World:
    """Watches what the code of a cell does outside the process.

    ``ignore`` are folders that do not count: the journal's own. What threads of the kernel do does not count either.
    ``changing`` is told of every file right before it is changed, and whether it was read before.
    """

    def __init__(
        self, ignore: str | Path | Iterable[str | Path] = (), *, changing: Callable[..., None] | None = None
    ) -> None:
        self._changing = changing
        folders = (ignore,) if isinstance(ignore, str | Path) else ignore
        self._ignore = tuple(os.path.join(os.path.abspath(folder), "") for folder in folders)
        self._forget()

    def _forget(self) -> None:
        self._network = False
        self._touched: dict[tuple[str, str, str], FileTouch | None] = {}  # None for one that does not count
        self._children = Children()
        self._threads: frozenset[threading.Thread] = frozenset()
        self._others: frozenset[int | None] = frozenset()
        self._folder: str | None = None
        self._unsure = False

    def open(self) -> None:
        """Start watching: a cell is about to run."""
        unwatch(self)
        self._forget()
        self._threads = frozenset(threading.enumerate())
        self._others = kernel_idents(self._threads)
        self._children.mark()
        watch(self)

    def close(self) -> WorldSeen:
        """Stop watching; what the cell did. Where the watch itself failed, everything counts as done."""
        unwatch(self)
        unsure = self._unsure
        children = self._children.started()
        return WorldSeen(
            network=self._network or unsure,
            children=children or unsure,
            files=tuple(touch for touch in self._touched.values() if touch is not None),
            threads_left=len(lingering(self._threads)),
            unsure=unsure or len(self._touched) >= _MOST_FILES,
            unfinished=_open_for_writing() if children and self._children.alive() else (),
        )

    def note(self, event: str, args: Args) -> None:
        """Called by the audit hook. Never raises: that would undo what the cell does."""
        kernels = threading.get_ident() in self._others
        try:
            if event in CHILDREN:
                self._children.note(kernels=kernels)
            elif kernels:
                return
            elif event in NETWORK:
                self._network = True
            elif event in FOLDER:
                self._folder = None
            else:
                for how, path in FILES[event](args):
                    self._touch(path, how)
        except Exception:  # noqa: BLE001 - whatever fails here must not reach the cell: unknown counts as done
            self._unsure = True

    def _touch(self, path: Any, how: str) -> None:
        if isinstance(path, int):
            return  # an open file by its number: it was noted when it was opened
        path = os.fsdecode(path)
        folder = "" if path.startswith(os.sep) else self._cwd()
        touch = (path, how, folder)
        if touch not in self._touched and len(self._touched) < _MOST_FILES:
            full = os.path.normpath(os.path.join(folder, path))
            never = is_never(full) or (full + os.sep).startswith(self._ignore)
            self._touched[touch] = None if never else FileTouch(*touch, stamp_in(full)[0])
            if not never and how in CHANGING and self._changing is not None:
                self._changing(full, read=(path, "read", folder) in self._touched)

    def _cwd(self) -> str:
        if self._folder is None:
            try:
                self._folder = os.getcwd()
            except OSError:
                self._folder = ""  # it was removed under our feet
        return self._folder


class Children:
    """Whether child processes were started since a mark, by Python or by native code."""

    def __init__(self) -> None:
        self._noted = self._others = False
        self._reaped: tuple[int, ...] = ()
        self._had_any = False
        self._made = ""

    def mark(self) -> None:
        """From now on."""
        self._noted = self._others = False
        self._reaped, self._had_any, self._made = _reaped(), _any_child(), _processes_made()

    def note(self, *, kernels: bool = False) -> None:
        """A child is being started. It does not count if the kernel, or a question what system this is, starts it."""
        if kernels or _asks_for_the_system():
            self._others = True
        else:
            self._noted = True

    def started(self) -> bool:
        """Whether there was one since the mark that counts."""
        if self._noted or _processes_made() != self._made:
            return True
        if self._others or self._had_any:
            return False  # the counters below would also count those
        return _reaped() != self._reaped or _any_child()

    def alive(self) -> bool:
        """Whether a child process still runs, for all that is known without asking each of them."""
        try:
            return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        except ChildProcessError:
            return False


def _open_for_writing() -> tuple[str, ...]:
    """The files that child processes are writing; logs that they append to left out."""
    import psutil  # noqa: PLC0415 - only where a child outlives its cell

    found: set[str] = set()
    for child in psutil.Process().children(recursive=True):
        try:
            found |= {file.path for file in child.open_files() if getattr(file, "mode", "w") in _WRITING}
        except psutil.Error:
            continue  # it ended, or belongs to somebody else
    return tuple(sorted(found))


_WRITING = frozenset({"w", "r+"})


def _processes_made() -> str:
    """A counter of multiprocessing, which starts processes past the audit hook; loky and joblib build on it."""
    module = sys.modules.get("multiprocessing.process")
    return str(getattr(module, "_process_counter", "count(1)"))  # what it says once imported, before the first


def _reaped() -> tuple[int, ...]:
    """Counters that grow with every child that was waited for: starting a process faults pages."""
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_minflt, use.ru_majflt, use.ru_nvcsw


def _any_child() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _asks_for_the_system() -> bool:
    frame = sys._getframe()
    for _ in range(12):
        if frame.f_back is None:
            break
        frame = frame.f_back
        code = frame.f_code
        if code.co_filename.endswith(_SYSTEM_QUESTIONS):
            return True
        if code.co_name.startswith(_COUNTS_CORES) and code.co_filename.endswith(_LOKY):
            return True
    return False


def _never() -> tuple[str, ...]:
    """Where files are that belong to the machine or to Python, not to anybody's work."""
    folders = {"/proc", "/sys", "/dev", "/etc", "/usr/lib", "/usr/share", "/lib", "/lib64", "/System", "/Library"}
    folders |= {os.path.expanduser(name) for name in ("~/.ipython", "~/.jupyter", "~/.local/share/jupyter")}
    folders |= {
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "include", "scripts")
    }
    for prefix in {sys.prefix, sys.base_prefix}:  # not the whole of it: a virtual environment may be a project's folder
        folders |= {os.path.join(prefix, name) for name in ("lib", "lib64", "bin", "share", "etc", "ssl")}
    return tuple(sorted(folder.rstrip(os.sep) + os.sep for folder in folders))


def is_never(full: str) -> bool:
    """Whether a path (absolute) belongs to the machine, to Python or to keel."""
    folder = full + os.sep
    return folder.startswith(_NEVER) or _NEVER_PART.search(folder) is not None


_NEVER = _never()
_NEVER_PART = re.compile(r"(?:^|/)(?:site-packages|dist-packages|__pycache__|\.keel|\.ipynb_checkpoints)/")
_SYSTEM_QUESTIONS = tuple(
    os.path.join(os.sep, *parts) for parts in (("platform.py",), ("ctypes", "util.py"), ("uuid.py",))
)
"""Files of which every child only asks what machine this is."""
_LOKY, _COUNTS_CORES = os.path.join(os.sep, "loky", "backend", "context.py"), "_count_physical_cores"
"""joblib, and so scikit-learn, ask ``lscpu`` once for the number of cores; the same file also starts workers."""

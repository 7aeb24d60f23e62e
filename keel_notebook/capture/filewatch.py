"""Every file that a step reads or makes, by every road: what Python opens, what the system tells, what code names.

``before`` is taken right before the body and ``after`` right behind it; replays pay nothing. What a path then *is* to
the step says ``core.filerules``.
"""

from __future__ import annotations

import fnmatch
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from keel_notebook.capture.files import Files, matches, stamp_in
from keel_notebook.capture.mentions import Mentions
from keel_notebook.capture.opens import Opened, Opens
from keel_notebook.capture.places import Places
from keel_notebook.capture.world import is_never
from keel_notebook.core.fileholds import ABSENT
from keel_notebook.core.filerules import CHANGING, Kept, Observed, Stamp, kept_as
from keel_notebook.core.filetexts import NOTHING_ASKED, Asks, has_gaps, is_path_like
from keel_notebook.core.harmless import words
from keel_notebook.core.model import Digest, FileSeen
from keel_notebook.core.world_ports import FileTouch, WorldSeen

_MOST_TEXTS = 300
_MOST_LOOKS = 1_500
_MOST_BASES = 8
_CODE = (".py", ".pyc", ".pyi", ".so", ".pth", ".ipynb")
_DATABASES = (".db", ".db3", ".duckdb", ".ddb", ".sqlite", ".sqlite3", ".gpkg", ".mbtiles")
_BESIDE = (".wal", "-wal", "-shm", "-journal", ".tmp", ".lock", "~")
"""Ends of files that databases and editors keep beside their own for a while."""
_NATIVE = words(
    """
    pyarrow duckdb _duckdb polars h5py tables netCDF4 cv2 torch tensorflow jax lightgbm xgboost catboost rasterio fiona
    pyogrio osgeo vaex soundfile av decord tifffile pyreadstat fastparquet python_calamine
    """
)
"""Libraries that open files past Python."""


class Named(Struct):
    """A path or pattern that code or values name, as it was before the body."""

    text: str
    asks: Asks
    real: str
    """Its absolute path behind all links: under that the system tells of it."""
    stamp: Stamp | None
    folder: bool = False
    pattern: bool = False

    @property
    def is_absent(self) -> bool:
        """Whether there was nothing."""
        return self.stamp is None and not self.pattern


class Before(Struct):
    """What was known of files before a body ran."""

    mentions: Mentions
    named: dict[str, Named]
    """By kept path."""
    found: dict[str, Digest | None] = field(default_factory=dict)
    """By absolute path: what files held that the body was about to change."""


class _Touched(Struct, frozen=True):
    ways: tuple[str, ...]
    stamp: Stamp | None


class _Sight(Struct, frozen=True):
    """All that was seen of one path."""

    touched: _Touched | None
    named: Named | None
    event: Opened | None
    watched: bool


class FileWatch:
    """Watches files for the steps of one kernel."""

    def __init__(self, files: Files, *, opens: Opens | None, ignore: str) -> None:
        """``ignore`` is the journal's folder."""
        self._files = files
        self._opens = opens
        self._began = False
        self._before: Before | None = None
        self._places = Places(files.root)
        self._ignore = os.path.join(ignore, "")

    def _never(self, full: str) -> bool:
        return is_never(full) or full.startswith(self._ignore)

    def close(self) -> None:
        """Watch no longer. Safe to call twice."""
        if self._opens is not None:
            self._opens.close()

    def before(self, mentions: Mentions) -> Before:
        """Look at the files that a step may use: those that its code and its inputs name."""
        opens = self._opens
        if opens is not None and not self._began:
            self._began = True
            opens.add_tree(self._files.root)
        before = self._before = Before(mentions, self._named(mentions.asked))
        if opens is not None:
            for named in before.named.values():
                _watch_around(opens, named)
            opens.take()  # what happened before the body is nothing of its own
        return before

    def changing(self, full: str, *, read: bool) -> None:
        """The body is about to change a file, told by the audit hook. If it may have read it, it is looked at first."""
        before = self._before
        if before is None or full in before.found or self._places.is_temporary(full):
            return
        named = before.named.get(self._files.shown(full))
        if read or (named is not None and named.text in before.mentions.code.others):
            before.found[full] = self._files.found(full)

    def _named(self, asked: Mapping[str, Asks]) -> dict[str, Named]:
        """The files and folders that texts name, as they stand and below the folders that others of them name."""
        found: dict[str, Named] = {}
        if not asked:
            return found
        try:
            cwd = os.getcwd()
        except OSError:
            return found  # it was removed
        texts = list(asked)[:_MOST_TEXTS]
        bases, todo, looks = [cwd], deque((cwd, text) for text in texts), 0
        while todo and looks < _MOST_LOOKS:
            base, text = todo.popleft()
            looks += 1
            full = os.path.normpath(os.path.join(base, os.path.expanduser(text) if text[0] == "~" else text))
            named = _look(text, asked[text], full)
            if named is None or (named.is_absent and (base != cwd or not _may_come(text, named.asks))):
                continue
            kept = self._files.shown(full)
            if kept in found or self._never(full):
                continue
            found[kept] = named
            if named.folder and full not in bases and len(bases) < _MOST_BASES:
                bases.append(full)
                todo.extend((full, each) for each in texts if each[0] not in "/~" and each.strip("./"))
        return found

    def after(
        self, before: Before, seen: WorldSeen, makes: Sequence[str] = (), unfinished: Sequence[str] = ()
    ) -> tuple[FileSeen, ...]:
        """The files that count for the step that ran; ``unfinished``: absolute paths that a thread still writes."""
        self._before = None
        told = self._opens.take() if self._opens is not None else None
        kept: list[FileSeen] = []
        for path, observed in sorted(self._met(before, seen, told).items()):
            kept += self._seen(path, kept_as(observed), before, observed)
        kept += [FileSeen(path, "unfinished", None) for path in self._at_home((*seen.unfinished, *unfinished))]
        return (*kept, *(self._files.seen(path, "makes") for path in makes))

    def _at_home(self, paths: Iterable[str]) -> list[str]:
        places = self._places
        home = {full for full in map(os.path.abspath, paths) if places.is_home(full) and not self._never(full)}
        return sorted(self._files.shown(full) for full in home)

    # ---- what was met ------------------------------------------------------------------------------------

    def _met(self, before: Before, seen: WorldSeen, told: Mapping[str, Opened] | None) -> dict[str, Observed]:
        files, opens = self._files, self._opens
        touched = self._touched(seen.files)
        events = {files.shown(path): event for path, event in (told or {}).items()}
        opened = [path for path, event in events.items() if event.opened]
        story = _Story(before, touched, children=seen.children)
        met: dict[str, Observed] = {}
        for path in touched.keys() | before.named.keys():
            named = before.named.get(path)
            if named is not None and named.pattern:
                met[path] = _pattern(path, touched.get(path), opened, watched=told is not None)
                continue
            real = named.real if named is not None else files.full(path)
            watched = told is not None and opens is not None and opens.watches(_folder_of(real))
            event = events.pop(files.shown(real), None)
            met[path] = self._observed(path, _Sight(touched.get(path), named, event, watched), story)
        for path, event in events.items():
            if path not in met and story.explains(path, event) and not self._never(files.full(path)):
                met[path] = self._observed(path, _Sight(None, None, event, watched=True), story)
        return met

    def _touched(self, touches: Iterable[FileTouch]) -> dict[str, _Touched]:
        found: dict[str, _Touched] = {}
        for touch in touches:
            path = self._files.shown(os.path.join(touch.folder, touch.path))
            known = found.get(path)
            found[path] = _Touched((touch.how,), touch.stamp) if known is None else _more(known, touch.how)
        return found

    def _observed(self, path: str, sight: _Sight, story: _Story) -> Observed:
        touched, named, event = sight.touched, sight.named, sight.event
        full = self._files.full(path)
        after, folder = stamp_in(full)
        ways = touched.ways if touched is not None else ()
        first = named or touched
        behind = full in story.databases
        if behind or (event is not None and path.endswith(_DATABASES) and not folder):
            ways = (*ways, "database")
        return Observed(
            ways=ways,
            before=first.stamp if first is not None else None,
            after=after,
            known_before=first is not None,
            folder=folder,
            mentioned=named is not None,
            asks=named.asks if named is not None else NOTHING_ASKED,
            remembered=story.remembers,
            watched=sight.watched,
            opened=event is not None and event.opened,
            written=event is not None and event.written,
            read_first=event is not None and event.read_first,
            made_inside=folder and story.makes_in(path),
            ours=story.writes(path, named),
            only_written=named is not None and named.text in story.only_written,
            home=self._places.is_home(full),
            temporary=self._places.is_temporary(full),
            cache=self._places.is_cache(full),
        )

    # ---- how it is kept ----------------------------------------------------------------------------------

    def _seen(self, path: str, kept: Kept, before: Before, observed: Observed) -> list[FileSeen]:
        match kept:
            case Kept.NOTHING:
                return []
            case Kept.UNSURE:
                return [FileSeen(path, "read", None)]
            case Kept.ABSENT:
                return [FileSeen(path, "absent", ABSENT)]
            case Kept.GONE:
                return [FileSeen(path, "write", ABSENT)]
            case Kept.CHANGED:
                found = FileSeen(path, "found", before.found.get(self._files.full(path)))
                return [found, self._files.seen(path, "write")]
            case Kept.APPEND:
                return self._files.appended(path, observed.before, observed.after)
            case Kept.BASE:
                return [FileSeen(path, "base", None)]
            case Kept.STAT:
                return [self._files.seen(path, "stat"), self._files.seen(path, "read")]
            case _:
                return [self._files.seen(path, kept.value)]


class _Story:
    """What is known of a step as a whole, for the questions about one path."""

    def __init__(self, before: Before, touched: Mapping[str, _Touched], *, children: bool) -> None:
        code = before.mentions.code
        self.remembers = before.mentions.remembers
        self.databases = before.mentions.databases
        self._children = children
        self._code = code
        self._native = children or not sys.modules.keys().isdisjoint(_NATIVE)  # so round: there are thousands
        self._patterns = [path for path, named in before.named.items() if named.pattern]
        self._folders = {path for path, named in before.named.items() if named.folder}
        self._folders |= {path for path, each in touched.items() if {"list", "glob"} & set(each.ways)}
        self._changed_in = {_folder_of(path) for path, each in touched.items() if {*CHANGING, "make"} & set(each.ways)}
        self._written = [text for text in code.written if has_gaps(text)]
        self.only_written = code.written - code.others

    def explains(self, path: str, event: Opened) -> bool:
        """Whether a file that only the system told of is likely to be the step's doing."""
        if event.folder or path.endswith((*_BESIDE, ".ipynb")) or os.path.basename(path)[:1] == ".":
            return False
        if path.endswith(_CODE) and not self._children:
            return False  # modules count by what they say
        if any(fnmatch.fnmatch(path, pattern) for pattern in self._patterns):
            return True
        return self._native

    def makes_in(self, folder: str) -> bool:
        """Whether the step may have made or removed something in a folder."""
        return folder in self._changed_in or self._children or self._code.writes or bool(self._code.written)

    def writes(self, path: str, named: Named | None) -> bool:
        """Whether the step, as far as its code tells, writes this file past Python."""
        if self._children or self._code.writes or (named is not None and named.text in self._code.written):
            return True
        return any(fnmatch.fnmatch(path, pattern) for pattern in self._written)


def _pattern(path: str, touched: _Touched | None, opened: Sequence[str], *, watched: bool) -> Observed:
    """A pattern: what it matches counts, and, where nobody sees the matches opened, what they hold."""
    if touched is not None or (watched and any(fnmatch.fnmatch(each, path) for each in opened)):
        return Observed(ways=("glob",))
    return Observed(mentioned=not watched, before=(), after=())


def _more(known: _Touched, how: str) -> _Touched:
    return _Touched((*known.ways, how), known.stamp)


def _folder_of(path: str) -> str:
    return os.path.dirname(path) or "."


def _look(text: str, asks: Asks, full: str) -> Named | None:
    """What a text names, if it names anything that is there; else what would be there."""
    try:
        found = os.stat(full)
    except (FileNotFoundError, NotADirectoryError):
        if not has_gaps(full):
            return Named(text, asks, full, None)
        return Named(text, asks, os.path.realpath(full), None, pattern=True) if _may_match(full) else None
    except (OSError, ValueError):
        return None
    stamp = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
    return Named(text, asks, os.path.realpath(full), stamp, folder=stat.S_ISDIR(found.st_mode))


def _may_come(text: str, asks: Asks) -> bool:
    """Whether it matters that a text names nothing: a file may come to be there."""
    return asks.looks or asks.tries or is_path_like(text)


def _may_match(full: str) -> bool:
    """Whether a pattern says enough to be looked up, and names something."""
    start, _, last = full.rpartition("/")
    if sum(map(str.isalnum, last)) < 2 or "**" in start or has_gaps(_before_gaps(full)):
        return False
    return next(iter(matches(full)), None) is not None


def _before_gaps(pattern: str) -> str:
    """The folder up to which a pattern is plain."""
    parts = pattern.split("/")
    plain = next((at for at, part in enumerate(parts) if has_gaps(part)), len(parts))
    return "/".join(parts[:plain]) or "/"


def _watch_around(opens: Opens, named: Named) -> None:
    if named.pattern:
        opens.add_tree(_before_gaps(named.real))
    elif named.folder and named.real.count("/") > 1 and named.real != os.path.expanduser("~"):
        opens.add_tree(named.real)
    elif named.stamp is not None:
        opens.add(os.path.dirname(named.real))

"""Texts of code that may name files, for readers that nobody can watch (DESIGN 6, Files).

The audit hook sees what Python opens. Parquet, Arrow, DuckDB, polars and HDF5 open files in native code, and child
processes on their own: what they read stands in the code as text, whole (``"a.parquet"``), inside a query or a
command (``"from 'a.parquet'"``, ``!wc a.csv``), or with gaps (``f"{year}.parquet"``, which becomes ``*.parquet``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct

from keel_notebook.core.harmless import last_name, words
from keel_notebook.core.magictext import Magic

_LONGEST_PATH = 1024
_LONGEST_TEXT = 20_000
_MOST_WORDS = 100
_QUOTED = re.compile(r"'([^'\n]{1,500})'|\"([^\"\n]{1,500})\"")
_WORD = re.compile(r"[^\s'\"`|;<>()=,]+")
_GAP = re.compile(r"\*{3,}")
_MAGIC = re.compile(r"[*?\[]")

LOOKS = words(
    """
    exists lexists isfile isdir islink ismount is_file is_dir is_symlink stat lstat fstat statvfs access getsize
    getmtime getctime getatime samefile which disk_usage st_mtime st_size st_mtime_ns st_ctime
    """
)
"""Calls and attributes that ask about a file without opening it: no event tells of them."""

_NO_PATHS = frozenset({"compression", "engine", "mode", "encoding", "sep", "format", "key", "dtype", "orient"})

STAMPS = words("stat lstat getsize getmtime getctime getatime st_size st_mtime st_mtime_ns st_ctime disk_usage")
"""Those that ask for more than whether it is there."""

_WRITES = re.compile(
    r"to_(?!list|numpy|dict|string|frame|datetime|numeric|dense)|write|sink_|save|dump|export|imwrite|copy|move|replace$"
    r"|tofile|File$|HDFStore$|memmap$|open_memmap$|\w*Writer$"
)
_READS_TOO = re.compile(r"copy|move|replace|\w*File$|HDFStore|\w*memmap")
_COPIES = re.compile(r"\b(?:to|attach|into)\s+'([^'\n]+)'", re.IGNORECASE)
"""In SQL: ``COPY t TO 'a.parquet'``."""


class Asks(Struct, frozen=True):
    """What code does with the files that it names, beside opening them."""

    looks: bool = False
    """It asks about files without opening them (``os.path.exists``)."""
    stamps: bool = False
    """It asks for size or time of a file."""
    tries: bool = False
    """It goes on where a file is missing (``try``, ``suppress``)."""

    def __or__(self, other: Asks) -> Asks:
        return Asks(self.looks or other.looks, self.stamps or other.stamps, self.tries or other.tries)


NOTHING_ASKED = Asks()


class FileTexts(Struct, frozen=True):
    """What some code says that may be about files."""

    texts: frozenset[str] = frozenset()
    """What may be a path, or a pattern with ``*``, as it stands in the code."""
    asks: Asks = NOTHING_ASKED
    writes: bool = False
    """Whether it calls something that by its name writes (``to_parquet``), and says not to which file."""
    written: frozenset[str] = frozenset()
    """Of ``texts``: those that such a call is given."""
    others: frozenset[str] = frozenset()
    """Of ``texts``: those that stand elsewhere too, so that their files may be read."""

    def __or__(self, other: FileTexts) -> FileTexts:
        return FileTexts(
            self.texts | other.texts,
            self.asks | other.asks,
            self.writes or other.writes,
            self.written | other.written,
            self.others | other.others,
        )


NO_TEXTS = FileTexts()


def has_gaps(text: str) -> bool:
    """Whether a text is a pattern (``*.csv``) and no plain path."""
    return _MAGIC.search(text) is not None


@lru_cache(maxsize=4096)
def candidates(text: str) -> tuple[str, ...]:
    """What in a text may be a path: the text itself, its quoted parts, its words that look like one."""
    if not text or len(text) > _LONGEST_TEXT or "\0" in text:
        return ()
    found = [text] if len(text) <= _LONGEST_PATH and "\n" not in text and "://" not in text else []
    if any(sign in text for sign in " \n\t'\""):
        found += [one or two for one, two in _QUOTED.findall(text)[:_MOST_WORDS]]
        found += [word for word in _WORD.findall(text)[: _MOST_WORDS * 4] if is_path_like(word)][:_MOST_WORDS]
    return tuple(dict.fromkeys(part for part in found if "://" not in part and not part.isspace()))


def is_path_like(word: str) -> bool:
    """Whether a word looks like a path: it has a dot or a slash inside."""
    return ("/" in word or "." in word.strip(".")) and len(word) <= _LONGEST_PATH


def file_texts(tree: ast.AST) -> FileTexts:
    """What the code of a tree says that may be about files; docstrings are left out."""
    texts: set[str] = set()
    others: set[str] = set()
    written: set[str] = set()
    names: set[str] = set()
    tries = writes = False
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, in_writer = todo.pop()
        match node:
            case ast.Expr(ast.Constant(str())):
                continue
            case ast.Attribute(attr=name) | ast.Name(id=name):
                names.add(name)
            case ast.Call() if _WRITES.match(call := last_name(node.func)) or _opens_anew(node):
                given = set(_given(node))
                written |= given
                writes |= not given
                in_writer = in_writer or _READS_TOO.match(call) is None
            case ast.Try():
                tries = True
            case _ if found := _texts_of(node):
                texts.update(found)
                if not in_writer:
                    others.update(found)
        todo += [(child, in_writer) for child in ast.iter_child_nodes(node)]
    texts = {text for text in texts if text.strip("*?. ")}
    copied = {name for text in texts for name in _COPIES.findall(text)}
    written |= copied
    others -= copied
    return FileTexts(
        frozenset(texts),
        Asks(not names.isdisjoint(LOOKS), not names.isdisjoint(STAMPS), tries or "suppress" in names),
        writes,
        frozenset(written),
        frozenset(others),
    )


def _opens_anew(call: ast.Call) -> bool:
    """Whether it is ``open(…, "w")``."""
    if not isinstance(call.func, ast.Name) or call.func.id != "open":
        return False
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and mode.value in _ANEW for mode in modes)


_ANEW = frozenset({"w", "wb", "wt", "x", "xb", "xt"})


def _texts_of(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.Constant(str(text)):
            return candidates(text)
        case ast.Constant(bytes(raw)) if len(raw) <= _LONGEST_PATH:
            return candidates(raw.decode("utf-8", "replace"))
        case ast.JoinedStr():
            return candidates(_with_gaps(node))
        case Magic():
            return [part for text in (node.line, node.text) for part in candidates(text)]
        case _:
            return ()


def _given(call: ast.Call) -> Iterator[str]:
    for arg in (*call.args, *(keyword.value for keyword in call.keywords if keyword.arg not in _NO_PATHS)):
        for node in ast.walk(arg):
            yield from _texts_of(node)


def _with_gaps(node: ast.JoinedStr) -> str:
    parts = (part.value if isinstance(part, ast.Constant) else "*" for part in node.values)
    return _GAP.sub("**", "".join(map(str, parts)))


@lru_cache(maxsize=512)
def texts_of_source(source: str) -> FileTexts:
    """The same for the text of a definition or a module; nothing where it does not parse by itself."""
    try:
        return file_texts(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return NO_TEXTS

"""What a step's code and values name that may be files, for readers that nobody can watch (DESIGN 6, Files)."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.loads import LOADS
from keel_notebook.capture.namespace import attributes
from keel_notebook.connections import files_behind, is_connection
from keel_notebook.core.filetexts import NO_TEXTS, NOTHING_ASKED, Asks, FileTexts, candidates, texts_of_source

_MOST_PARTS = 2_000
_MOST_TEXTS = 500
_DEPTH = 4
_CONTAINERS = frozenset({list, tuple, set, frozenset})
_NEVER_PATHS = frozenset({int, float, bool, complex, type(None), bytes})


class Mentions(Struct, frozen=True):
    """All that a step may name."""

    code: FileTexts = NO_TEXTS
    """Of the cell, the functions and classes that it reaches, and local modules, together."""
    asked: Mapping[str, Asks] = field(default_factory=dict)
    """Every text that may be a path, with what the code that holds it does with files."""
    remembers: bool = False
    """Whether it reaches a function that keeps its results (``lru_cache``)."""
    databases: frozenset[str] = frozenset()
    """Files behind the connections that it reads, or that its values hold; absolute."""


def mentions(
    cell: FileTexts, names: Iterable[str], namespace: Mapping[str, Any], definitions: NotebookDefinitions
) -> Mentions:
    """What a cell names: by its own texts, and through the names that it reads."""
    asked: dict[str, Asks] = {}
    pieces, remembering = [cell], False
    values: list[str] = []

    def is_persons(kind: type) -> bool:
        return definitions.belongs(kind) or definitions.is_local(kind.__module__)

    modules: list[FileTexts] = []
    names = tuple(names)
    open_files: set[str] = set()
    for name in names:
        if name.endswith(".py"):
            modules.append(_module_texts(sys.modules.get(name.removesuffix(".py").replace("/", "."))))
            continue
        value = _held(name, namespace)
        if type(value) in _NEVER_PATHS:
            continue
        remembering = remembering or remembers(value)
        if isinstance(value, ModuleType):
            modules += [_module_texts(value)] * definitions.is_local(value.__name__)
        elif callable(value) and (source := definitions.source_of(value)):
            pieces.append(texts_of_source(source))
        elif isinstance(value, FunctionType):
            modules += (
                [_module_texts(sys.modules.get(value.__module__))] if definitions.is_local(value.__module__) else []
            )
        elif source := definitions.source_of(type(value)):
            pieces.append(texts_of_source(source))
        found = list(_named_in(value, is_persons)) if not isinstance(value, ModuleType | type) else []
        values += [text for text, is_open in found if not is_open]
        open_files |= {path for path, is_open in found if is_open}
    asks = reduce(or_, (piece.asks for piece in pieces))
    for value in values:
        for text in candidates(value):
            asked[text] = asks
    for piece in (*modules, *pieces):
        for text in sorted(piece.texts):
            asked[text] = asked.get(text, NOTHING_ASKED) | piece.asks
    asked.update((path, NOTHING_ASKED) for path in open_files if path not in asked)
    return Mentions(reduce(or_, (*pieces, *modules)), asked, remembering, frozenset(open_files))


def _held(name: str, namespace: Mapping[str, Any]) -> Any:
    value = namespace.get(name)
    if value is namespace:  # ``G = globals()``: what IPython keeps there, such as the folders it was in, is no path
        return {n: v for n, v in namespace.items() if not n.startswith("_") and n != "In" and v is not namespace}
    return value


def _module_texts(module: ModuleType | None) -> FileTexts:
    """The texts of a local module as it was loaded."""
    load = LOADS.get(getattr(module, "__file__", None) or "")
    return NO_TEXTS if load is None else texts_of_source(load.source.decode("utf-8", "replace"))


def texts_in(value: Any, *, is_persons: Callable[[type], bool]) -> Iterator[str]:
    """Short texts and paths in a value, containers of them, and attributes of the person's own objects.

    Looks at the first 2,000 parts. ``is_persons`` tells types whose objects are opened: those of the notebook.
    """
    return (text for text, is_open in _named_in(value, is_persons) if not is_open)


def _named_in(value: Any, is_persons: Callable[[type], bool]) -> Iterator[tuple[str, bool]]:
    """The same, with the files behind connections: those are marked."""
    todo: deque[tuple[Any, int]] = deque([(value, 0)])
    parts = found = 0
    while todo and parts < _MOST_PARTS and found < _MOST_TEXTS:
        part, depth = todo.popleft()
        parts += 1
        kind = type(part)
        if kind is str or issubclass(kind, PurePath):
            found += 1
            yield str(part), False
        elif is_connection(kind):
            yield from ((path, True) for path in files_behind(part))
        elif depth < _DEPTH:
            todo += [(each, depth + 1) for each in _inside(part, kind, is_persons) if type(each) not in _NEVER_PATHS]


def _inside(part: Any, kind: type, is_persons: Callable[[type], bool]) -> list[Any]:
    if kind in _CONTAINERS or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return [each for each, _ in zip(part, range(_MOST_PARTS), strict=False)]
    if issubclass(kind, dict):
        return [each for pair, _ in zip(dict.items(part), range(_MOST_PARTS), strict=False) for each in pair]
    if issubclass(kind, MethodType | BuiltinFunctionType) or kind.__name__ == "nb_bound_method":
        return [] if isinstance(part.__self__, ModuleType) else [part.__self__]
    if issubclass(kind, functools.partial):
        return [part.func, *part.args, *part.keywords.values()]
    if issubclass(kind, FunctionType):
        return _kept(part) if part.__module__ == "__main__" else []
    lazy = _LAZY.get(kind.__qualname__)
    if lazy is not None and kind.__module__.partition(".")[0] in sys.modules:
        try:
            return list(lazy(part))
        except Exception:  # noqa: BLE001 a library of another version: its readers are then seen by other roads
            return []
    if is_persons(kind) or kind.__qualname__ in ("SimpleNamespace", "Namespace"):
        return list(attributes(part).values())
    return []


def _kept(function: FunctionType) -> list[Any]:
    """The values that live in a function: its closure and its defaults."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != _EMPTY]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


_EMPTY = CellType()
_LAZY: dict[str, Callable[[Any], Any]] = {
    "LazyFrame": lambda lazy: [lazy.explain(optimized=False)],  # polars: "Parquet SCAN [a.parquet]"
    "FileSystemDataset": lambda dataset: dataset.files,  # pyarrow
    "UnionDataset": lambda dataset: dataset.children,
    "memmap": lambda array: [str(array.filename)],  # numpy
    "File": lambda file: [file.filename],  # h5py
    "Dataset": lambda dataset: [dataset.file.filename],
    "Group": lambda group: [group.file.filename],
}
"""Objects that read their files when they are used, by the name of their type."""


def remembers(value: Any) -> bool:
    """Whether a function keeps its results (``lru_cache`` and its like)."""
    kept = value.__dict__ if type(value) is FunctionType else {}
    return callable(getattr(type(value), "cache_info", None)) or callable(kept.get("cache_info"))

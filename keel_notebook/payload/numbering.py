"""Numbers for the containers of a value, by identity, in the order in which they are met (see ``folds``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, count
from operator import eq
from typing import Any, NamedTuple

from keel_notebook.payload.columns import Opened, aligned
from keel_notebook.payload.groups import by_size

_MANY = 1 << 10
"""So many containers of one type are numbered as they lie there; fewer go with all others of their type."""


class Run(NamedTuple):
    """New containers of one type, with numbers that follow each other."""

    cls: type
    start: int
    members: Sequence[Any]


class Numbering:
    """The containers that were met: their numbers by identity, and they themselves by number."""

    def __init__(self) -> None:
        self.numbers: dict[int, int] = {}
        self.objects: list[Any] = []

    def put(self, waiting: Iterable[Opened]) -> Iterator[Run]:
        """Number what is in columns, and put the numbers into them. Gives what was not met before."""
        others: defaultdict[type, list[Any]] = defaultdict(list)
        late: list[Opened] = []
        for each in waiting:
            column, parts, types = each
            if len(parts) >= _MANY and len(types) == 1:
                known = aligned(parts, self.numbers, self.objects)
                if known is not None:
                    column.places = known
                    continue
                (cls,) = types
                if cls is not dict or len(set(map(len, parts))) == 1:
                    column.places, run = self._numbered(cls, parts)
                    if run.members:
                        yield run
                    continue
            late.append(each)
            for cls in types:
                others[cls] += parts if len(types) == 1 else [part for part in parts if type(part) is cls]
        for cls, members in others.items():
            for alike in by_size(cls, members):
                _, run = self._numbered(cls, alike)
                if run.members:
                    yield run
        for column, parts, _ in late:
            column.places = list(map(self.numbers.__getitem__, map(id, parts)))

    def _numbered(self, cls: type, parts: Sequence[Any]) -> tuple[list[int], Run]:
        numbers, start = self.numbers, len(self.objects)
        ids = list(map(id, parts))
        places = list(map(numbers.setdefault, ids, list(range(start, start + len(ids)))))
        new = len(numbers) - start
        if not new:
            return places, Run(cls, start, ())
        if new < len(parts):  # some were met before, or twice: the others move up
            first = list(map(eq, places, count(start)))
            parts = list(compress(parts, first))
            numbers.update(zip(compress(ids, first), count(start), strict=False))
            places = list(map(numbers.__getitem__, ids))
        self.objects += parts
        return places, Run(cls, start, parts)

"""In which order cells stand, as far as one kernel has seen. Imports nothing: `%load_ext` needs it."""

from __future__ import annotations

from msgspec import Struct, field


class Places(Struct):
    """The cells of one kernel: their places, in the order of their first run, and which ran when."""

    _place: dict[str, int] = field(default_factory=dict)
    _ran: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def again(self, cell: str) -> bool:
        """A cell begins: is it the same cell again, though no earlier cell ran since? Then a person wants it run.

        ``cell`` is the front end's id, or the cell's text where there is none. A first cell that runs again after
        later ones begins a new pass: nothing earlier could have run.
        """
        self._count += 1
        before = self._ran.get(cell)
        place = self._place.setdefault(cell, len(self._place))
        self._ran[cell] = self._count
        if before is None:
            return False
        since = [self._place[other] for other, ran in self._ran.items() if ran > before and other != cell]
        return all(other > place for other in since) and (place > 0 or not since)

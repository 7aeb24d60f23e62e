"""What the walk over a cell's code carries with it and what it finds."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from msgspec import Struct, field

from keel_notebook.core.hidden import Text


class State(Struct):
    """What is sure at one point of the code.

    ``gone`` are names whose value from before the cell can no longer be read: stored or deleted on every way
    here. ``bound`` are names that the cell has surely bound and not deleted since. ``here`` are names that the
    class body around the point has surely bound.
    """

    gone: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)
    here: set[str] = field(default_factory=set)

    def copy(self) -> State:
        """A state of its own for a branch."""
        return State(set(self.gone), set(self.bound), set(self.here))

    def become(self, other: State) -> None:
        """Take over another state, for callers who hold this one."""
        self.gone, self.bound, self.here = other.gone, other.bound, other.here


def meet(*states: State | None) -> State | None:
    """What is sure where several ways come together; None is a way that does not go on."""
    open_ways = [state for state in states if state is not None]
    if not open_ways:
        return None
    met = open_ways[0].copy()
    for state in open_ways[1:]:
        met.gone &= state.gone
        met.bound &= state.bound
        met.here &= state.here
    return met


class Findings(Struct, eq=False):
    """What a piece of code does with the notebook's names, while it runs."""

    loads: dict[str, frozenset[str]] = field(default_factory=dict)
    """Every name read, with the names surely gone at each of its reads."""
    reads: set[str] = field(default_factory=set)
    """Names whose value from before may be read."""
    changing: set[str] = field(default_factory=set)
    """Names read in a way that may change their value."""
    stored: dict[str, set[int]] = field(default_factory=dict)
    """Every name stored, with the blocks that store it."""
    deleted: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    """Names that functions store through ``global``."""
    imports: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    attribute_stores: set[tuple[str, str]] = field(default_factory=set)
    chains: set[str] = field(default_factory=set)
    """Dotted names read: ``pkg.sub.f`` may mean the module ``pkg.sub``."""
    texts: set[Text] = field(default_factory=set)
    everything: str = ""
    """Why it may read any name at all, or ``""``."""
    first_read: dict[str, int] = field(default_factory=dict)
    last_store: dict[str, int] = field(default_factory=dict)
    """Index of the cell's statement with the first read and the last store of a name; -1 for a read that counts
    even where there is no such name."""

    def add(self, other: Findings) -> None:
        """Take over what another piece of code does, except what it reads: the caller knows when that is."""
        self.changing |= other.changing
        self.deleted |= other.deleted
        self.declared |= other.declared | other.stored.keys()
        self.imports |= other.imports & other.stored.keys()
        self.modules |= other.modules
        self.stars |= other.stars
        self.attribute_stores |= other.attribute_stores
        self.chains |= other.chains
        self.everything = self.everything or other.everything


def merged(pieces: Iterable[Findings]) -> Findings:
    """The findings of pieces of code of which any may run."""
    whole = Findings()
    for piece in pieces:
        whole.add(piece)
        whole.reads |= piece.reads
        whole.texts |= piece.texts
        for name in piece.stored:
            whole.stored.setdefault(name, set()).add(-1)
        for name, gone in piece.loads.items():
            whole.loads[name] = whole.loads[name] & gone if name in whole.loads else gone
    return whole


class Shared:
    """What all pieces of one cell have in common."""

    def __init__(self, *, lazy_annotations: bool) -> None:
        self.lazy_annotations = lazy_annotations
        self.defined: dict[tuple[int, int], Findings] = {}
        self._blocks = count(1)

    def new_block(self) -> int:
        """The number of a block of code that no other block has."""
        return next(self._blocks)

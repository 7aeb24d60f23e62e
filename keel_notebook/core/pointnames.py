"""Names as a walk over code meets them: what a read, a binding or a deletion means at one point of a cell."""

from __future__ import annotations

from msgspec.structs import replace

from keel_notebook.core.findings import Findings, Shared, State
from keel_notebook.core.scopes import Scope


class Names:
    """One piece of code (a cell, or a function's body) on its way through ``Flow``: its names."""

    def __init__(self, scope: Scope, shared: Shared) -> None:
        self.scope = scope
        self.owner = scope
        """The scope that assignments bind in: ``scope``, unless that is a comprehension's."""
        self.shared = shared
        self.found = Findings()
        self.block_id = 0
        self.statement_at = 0
        self.call = ""
        self.lazy = False
        self.later: dict[str, list[Findings]] = {}
        """Functions and classes that this cell has defined and that run when somebody calls them."""
        self.members: dict[str, list[Findings]] = {}
        """The same for what the class body around the point has defined."""
        self.awaited: set[str] = set()
        """Names that code which is already known may read at any later time."""
        self.fragile = 0
        """Above 0 where a block may be left after any of its statements."""
        self._perhaps_not = 0
        """Above 0 in the part of an expression that need not be evaluated (``and``, ``if else``, a loop)."""
        self._running: set[int] = set()
        self._added: dict[int, Findings] = {}

    def load(self, name: str, state: State, *, changes: bool = True) -> None:
        """A read of ``name`` at this point."""
        scope = self.scope
        in_class = scope.kind == "class" and name in scope.bound
        if in_class and name in state.here:
            for piece in self.members.get(name, ()):
                self.release(piece, frozenset(state.gone))
            return
        if not in_class and not scope.is_notebooks(name):
            return
        name = scope.spelt(name)
        if changes:
            self.found.changing.add(name)
        if self.lazy:
            self.awaited.add(name)
        self.load_notebooks(name, frozenset(state.gone))

    def load_notebooks(self, name: str, gone: frozenset[str]) -> None:
        """A read of the notebook's variable ``name`` where ``gone`` is surely gone."""
        found = self.found
        found.loads[name] = found.loads[name] & gone if name in found.loads else gone
        if name not in gone:
            found.reads.add(name)
            # Where an error may be caught, that there is no such name is something to see as well.
            at = -1 if self.fragile else self.statement_at
            found.first_read[name] = min(at, found.first_read.get(name, at))
        for piece in self.later.get(name, ()):
            self.release(piece, gone)

    def release(self, piece: Findings, gone: frozenset[str]) -> None:
        """Code that may run from here on, where ``gone`` is surely gone: its reads count now."""
        if id(piece) in self._running:
            return
        self._running.add(id(piece))
        for name, own in piece.loads.items():
            self.load_notebooks(name, gone | own)
            if piece.first_read.get(name, 0) < 0:
                self.found.first_read[name] = -1
        self.found.texts.update(replace(text, given=text.given | gone) for text in piece.texts)
        self._running.discard(id(piece))
        if id(piece) in self._added:
            return
        self._added[id(piece)] = piece
        self.awaited |= piece.loads.keys()
        self.found.add(piece)
        for name in piece.stored:
            self.found.stored.setdefault(name, set()).add(-1)
            self.found.last_store[name] = self.statement_at

    def store(self, name: str, state: State) -> None:
        """A binding of ``name`` at this point."""
        owner = self.owner
        if owner.kind == "class" and name in owner.bound:
            state.here.add(name)
        elif owner.kind == "module" or name in owner.declared:
            name = owner.spelt(name)
            state.gone.add(name)
            state.bound.add(name)
            self.found.stored.setdefault(name, set()).add(self.block_id)
            self.found.last_store[name] = self.statement_at

    def delete(self, name: str, state: State) -> None:
        """A deletion of ``name`` at this point: what it was before the cell can no longer be read either."""
        owner = self.owner
        state.here.discard(name)
        if owner.kind == "module" or name in owner.declared:
            name = owner.spelt(name)
            state.gone.add(name)
            state.bound.discard(name)
            self.found.deleted.add(name)

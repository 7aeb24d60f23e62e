"""Which names a cell reads, with digests, and which it wrote, found by looking before and after (DESIGN 6).

The code says what *may* happen (``core.reads``); this looks at what did. Where that cannot be told apart, a name is
*ambiguous*: it becomes an input of the record, so that an old value is never put back over a newer one.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache, reduce
from operator import or_
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from keel_notebook.capture.accessors import accessors_among
from keel_notebook.capture.aliases import Shared, arrays_under, bound_to_same, held_elsewhere, sharing
from keel_notebook.capture.attributes import AttributeWatch
from keel_notebook.capture.changed import Changed
from keel_notebook.capture.definitions import IMPORTED, NotebookDefinitions
from keel_notebook.capture.libraries import DUCKDB
from keel_notebook.capture.loghandlers import held_by_handlers, logged_into
from keel_notebook.capture.namespace import TooLarge, is_data, is_frame, is_ipythons, kinds, persons_names, strings_in
from keel_notebook.capture.objects import Objects
from keel_notebook.capture.parts import IMMUTABLE, is_memory, may_change
from keel_notebook.capture.snapshot import Snapshot
from keel_notebook.core.fileholds import ABSENT, same
from keel_notebook.core.hidden import A_VALUE, NOTHING, Named, Text, named
from keel_notebook.core.ids import text_digest
from keel_notebook.core.ports import Digested, Digester
from keel_notebook.core.reads import CellNames

_NOT_HERE, _THE_NOTEBOOK = Digested(ABSENT), text_digest("the notebook itself")
_MISSING = object()
_NONE: frozenset[str] = frozenset()


class NameWatch:
    """Looks at the namespace of a shell before and after a cell."""

    def __init__(self, shell: Any, digester: Digester, definitions: NotebookDefinitions | None = None) -> None:
        self._shell = shell
        self._digester = digester
        self._definitions = definitions or NotebookDefinitions(shell)
        self._attributes = AttributeWatch(shell.user_ns, digester, self._definitions.attributes)
        self.objects = Objects(shell, self._definitions)
        """Which names share objects."""
        self._asked_about: CellNames | None = None
        self._digests: dict[str, tuple[int, Digested]] = {}
        """Id and digest of what ``reached`` has digested, until ``before`` takes it."""
        self._through_functions: set[str] = set()
        self._bound_by_functions: set[str] = set()
        self._paths: set[str] = set()
        self._libraries: Digested | None = None
        """Whether the cell may use what a library keeps."""

    # ---- what a cell reads -------------------------------------------------------------------------------

    def reached(
        self, names: Iterable[str], cell: CellNames, digest: Callable[[Any], Digested] | None = None
    ) -> dict[str, Digested]:
        """The inputs of a cell: the names, what its strings and imports name, and all that functions among them read.

        A name that does not exist has the digest ``ABSENT``; built-ins and IPython's own names are left out. A name
        that the cell has surely stored before it calls a function is the cell's own and not an input, although the
        function reads it (``df = load(); plot()``). A module that the cell imports is there under its file's name.

        Args:
            names: usually ``cell.reads``.
            cell: the analysed cell.
            digest: how to digest a value; the digester's own way if left out.
        """
        digest = digest or self._digester.digest
        if cell is not self._asked_about:
            self._forget()
            self._asked_about = cell
        found: dict[str, Digested] = {}
        gone: dict[str, frozenset[str]] = {}
        todo = [(name, cell.stored_before.get(name, _NONE)) for name in {*names, *self._hidden(cell)}]
        while todo or (todo := [(each, _NONE) for each in self._unsaid(cell, found) - gone.keys()]):
            name, before = todo.pop()
            known = gone.get(name)
            if known is not None and known <= before:
                continue
            gone[name] = before = before if known is None else known & before
            digested = found.get(name) or self._digested(name, digest)
            if digested is None:
                continue
            found[name] = digested
            more = digested.reaches | self._in_text(name)
            if id(self._shell.user_ns.get(name)) in _EVALUATORS:
                more |= frozenset(persons_names(self._shell))
            self._through_functions |= more
            todo += [(each, before) for each in more - before]
        return {_shown(name): digested for name, digested in found.items()}

    def _hidden(self, cell: CellNames) -> set[str]:
        namespace = self._shell.user_ns
        names = {IMPORTED + module for module in self._definitions.modules_in(cell.modules, cell.chains)}
        names |= self._definitions.attributes.used_by(cell.mentioned, cell.modules)
        names |= self._definitions.libraries.used_by(cell.mentioned, cell.modules)
        if cell.hidden:
            names |= cell.hidden.among(kinds(namespace, cell.hidden.every))
        if cell.reads_everything:
            names.update(persons_names(self._shell))
        return names | {name for name in cell.late_reads & cell.mutation_suspects if self._may_change(name)}

    def _may_change(self, name: str) -> bool:
        # What a cell reads late it has most likely stored itself. If it has not, the name turns out ambiguous and
        # becomes an input then; but that is too late for a value that the cell also changes in place.
        value = self._shell.user_ns.get(name)
        return type(value) not in IMMUTABLE

    def _digested(self, name: str, digest: Callable[[Any], Digested]) -> Digested | None:
        """The digest behind a name; None where the name is no input."""
        if name.startswith(IMPORTED):
            return self._definitions.module(name.removeprefix(IMPORTED))
        if name == DUCKDB:
            self._libraries = self._definitions.libraries.look(self._digester.digest)
            return self._libraries
        if "." in name:
            return self._digested_attribute(name, digest)
        value = self._shell.user_ns.get(name, _MISSING)
        if value is _MISSING:
            return self._digested_builtin(name, digest)
        if name in _PYTHONS_OWN or (name in _IPYTHONS_OWN and self._shell.user_ns_hidden.get(name) is value):
            return None
        if value is self._shell or value is self._shell.user_ns:
            return Digested(_THE_NOTEBOOK, reaches=frozenset(persons_names(self._shell)))
        found = digest(value)
        self._digests[name] = (id(value), found)
        self._bound_by_functions |= self._definitions.stores(value)
        return found

    @staticmethod
    def _digested_builtin(name: str, digest: Callable[[Any], Digested]) -> Digested | None:
        value = getattr(builtins, name, _MISSING)
        if name in _IPYTHONS_OWN or name in _CONSTANTS:
            return None
        if value is _MISSING:
            return _NOT_HERE
        pythons = issubclass(type(value), BuiltinFunctionType | type) and value.__module__ in ("builtins", "io", "_io")
        return None if pythons or type(value).__module__ == "_sitebuiltins" else digest(value)  # a cell set it

    def _digested_attribute(self, name: str, digest: Callable[[Any], Digested]) -> Digested:
        self._paths.add(name)
        try:
            return digest(self._definitions.attributes.value(name))
        except (KeyError, AttributeError):
            return _NOT_HERE

    def _forget(self) -> None:
        self._asked_about = None
        self._digests, self._through_functions, self._bound_by_functions, self._paths = {}, set(), set(), set()
        self._libraries = None

    def _unsaid(self, cell: CellNames, found: Iterable[str]) -> frozenset[str]:
        self._through_functions |= (logged := logged_into(found, self._shell.user_ns, self._definitions.of))
        return logged | accessors_among(found, self._shell.user_ns) | self._tables(cell, found)

    def _tables(self, cell: CellNames, found: Iterable[str]) -> frozenset[str]:
        """The tables that a query may be put together with: ``f"from {which}"``, in the cell or in a function of it."""
        values = [self._shell.user_ns.get(name) for name in found]
        said = reduce(or_, (self._definitions.hidden_in(value) for value in values if callable(value)), cell.hidden)
        if not said.words:
            return _NONE
        said = reduce(or_, (_named_in(text) for value in values for text in strings_in(value)), said)
        return said.tables(kinds(self._shell.user_ns, said.whole)) - cell.stores

    def _in_text(self, name: str) -> frozenset[str]:
        texts = strings_in(self._shell.user_ns.get(name))
        hidden = reduce(or_, map(_named_in, texts), NOTHING)
        return hidden.among(kinds(self._shell.user_ns, hidden.every)) if hidden else _NONE

    def aliases(self, names: Collection[str]) -> list[tuple[str, ...]]:
        """The groups of names of the namespace that are bound to the same object as one of ``names``."""
        if not names:
            return []
        namespace = self._shell.user_ns.copy()
        ids = {id(namespace[name]) for name in names if name in namespace}
        return [tuple(sorted(group)) for group in bound_to_same(namespace, ids).values()]

    def tied(self, name: str) -> frozenset[str]:
        """The other names that hold the value of a name or a part of it, those left out that are bound to it itself."""
        value = self._shell.user_ns.get(name)
        if not may_change(value):
            return _NONE
        all_names = {other: self._shell.user_ns[other] for other in persons_names(self._shell)}
        return sharing([value], {n: v for n, v in all_names.items() if v is not value}, without=self._ipythons()).names

    # ---- what a cell wrote -------------------------------------------------------------------------------

    def before(self, cell: CellNames, small: Callable[[Any], bool] | None = None) -> Snapshot:
        """A snapshot, to be taken right before the body runs, after ``reached`` where that is asked too.

        ``small`` tells which values may be digested; all where it is left out.
        """
        if cell is not self._asked_about:
            self._forget()
        namespace: dict[str, Any] = self._shell.user_ns.copy()
        large = TooLarge(small)
        watched = self._watched(cell, namespace, large)
        attributes = self._attributes.before(
            self._definitions.classes() if watched else (),
            self._paths | {f"{owner}.{name}" for owner, name in cell.attribute_stores} | self._in_modules(cell),
        )
        touched = watched.keys() if cell.reads_everything else cell.mutation_suspects | self._through_functions
        objects = self.objects.before(cell, watched, self._digests, touched)
        by_functions, libraries = frozenset(self._bound_by_functions), self._libraries
        self._forget()
        taken = (cell.stores | cell.deletes) & namespace.keys()
        for name in taken:
            del namespace[name]  # `df = df.copy()` must not find the old frame alive
        weak = {}
        for name in (cell.maybe_stores | cell.maybe_deletes | by_functions) & namespace.keys():
            try:
                weak[name] = weakref.ref(namespace[name])
            except TypeError:
                continue
            del namespace[name]
        unseen = frozenset(large.names)
        return Snapshot(
            cell, by_functions, frozenset(taken), namespace, weak, watched, attributes, libraries, unseen, objects
        )

    def _mentioned(self, cell: CellNames, namespace: Mapping[str, Any], large: TooLarge) -> dict[int, Digested]:
        """By id: digests of the values that the cell mentions and may change."""
        digests: dict[int, Digested] = {}
        for name in {*cell.mentioned, *self._digests} & namespace.keys():
            value = namespace[name]
            if type(value) in IMMUTABLE or self._stays(name, value, cell) or id(value) in self._ipythons():
                continue
            if large.holds(name, value):
                continue
            at, digested = self._digests.get(name, (0, None))
            if digested is None or at != id(value):
                if name not in cell.reads | cell.late_reads or name in _IPYTHONS_OWN or is_ipythons(name):
                    continue
                digested = self._digester.digest(value)
            if digested.digest is not None:
                digests[id(value)] = digested
        return digests

    def _watched(self, cell: CellNames, namespace: dict[str, Any], large: TooLarge) -> dict[str, Digested]:
        digests = self._mentioned(cell, namespace, large)  # a call of its own: its variables would count as holders
        if not digests:
            return {}
        groups = bound_to_same(namespace, digests)
        # `_` and `_5` are what IPython last showed: they hold it by chance, and another object after the next cell.
        own = {name for group in groups.values() for name in group if is_ipythons(name)} - cell.mentioned
        watched = {name: digests[at] for at, group in groups.items() for name in group if name not in own}
        for name in self._holders(cell, namespace, watched):
            if large.holds(name, namespace[name]):
                continue
            digested = self._digester.digest(namespace[name])
            if digested.digest is not None:
                watched[name] = digested
        return watched

    def _holders(self, cell: CellNames, namespace: dict[str, Any], watched: Mapping[str, Digested]) -> set[str]:
        """Names that hold what the cell may change unseen: they have to be looked at themselves.

        A value whose name is bound again is not there afterwards (``view += 1``, ``rows.append(1); rows = None``),
        and pandas does not tell which arrays it still writes to.
        """
        leaves = [name for name in watched if name in cell.stores or name in cell.maybe_stores or name in cell.deletes]
        lost = [namespace[name] for name in leaves if self._is_held(name, namespace)]
        frames = [value for name in watched if is_frame(value := namespace[name])]
        if not lost and not frames:
            return set()
        others = {name: namespace[name] for name in persons_names(self._shell) if name not in watched}
        found = arrays_under(frames, others, without=self._ipythons())
        return found | sharing(lost, others, without=self._ipythons()).names

    def _is_held(self, name: str, namespace: dict[str, Any]) -> bool:
        at = id(namespace[name])
        if issubclass(type(namespace[name]), FunctionType | type):
            return False  # what is bound to their names again was not changed before
        names = len(bound_to_same(namespace, {at})[at])
        # Every name counts twice: in the notebook's namespace and in this copy of it.
        return held_elsewhere(namespace, name, 2 * names, without=self._ipythons())

    def _in_modules(self, cell: CellNames) -> set[str]:
        """The containers that local modules hold which the cell mentions, by their dotted names."""
        space = self._shell.user_ns
        modules = [(name, space[name]) for name in cell.mentioned & space.keys() if type(space[name]) is ModuleType]
        local = [(name, vars(module)) for name, module in modules if self._definitions.is_local(module.__name__)]
        return {f"{name}.{at}" for name, held in local for at, value in held.items() if _is_container(at, value)}

    def _ipythons(self) -> set[int]:
        return {id(self._shell), id(self._shell.user_ns)}

    def _stays(self, name: str, value: Any, cell: CellNames) -> bool:
        """Whether the cell cannot change the value: an installed module, or data that it only looks at."""
        if type(value) is ModuleType:
            return not self._definitions.is_local(value.__name__)
        touched = name in cell.mutation_suspects or name in self._through_functions or cell.reads_everything
        return not touched and is_data(value)

    def after(self, snapshot: Snapshot) -> Changed:
        """What changed since the snapshot."""
        cell, namespace = snapshot.cell, self._shell.user_ns.copy()
        differing = snapshot.differing(namespace)
        rebound = {name for name in differing if not self._is_ours(name, cell)} | (cell.stores & namespace.keys())
        same = {name for name in cell.maybe_stores | snapshot.by_functions if name in namespace} - rebound
        shared = {name for name in same if _shares_fate(name, rebound - snapshot.by_functions, cell)}
        attributes = self._attributes.after(snapshot.attributes)
        in_place = self._changed_in_place(snapshot, namespace, rebound | differing)
        classes = {name for name in in_place if issubclass(type(namespace[name]), type)}
        shared_with = self._sharing(in_place - classes, snapshot, namespace, rebound, attributes.stayed)
        in_place = (in_place | shared_with.names) - shared_with.apart - classes
        gone = snapshot.missing(namespace, differing) | {name for name in cell.deletes if name not in namespace}
        return Changed(
            written=tuple(sorted((rebound | shared | in_place | set(attributes.put)) - shared_with.apart)),
            deleted=tuple(sorted({name for name in gone if not self._is_ours(name, cell)} | set(attributes.gone))),
            in_place=tuple(sorted(in_place)),
            ambiguous=tuple(sorted(same - shared - in_place)),
            apart=tuple(sorted(shared_with.apart)),
            patched=tuple(sorted(classes)) if attributes.owners else (),
            unknown=(attributes.nameless if attributes.owners else tuple(sorted(classes))) + self._kept(snapshot),
            unsure=tuple(name for group in self.aliases(snapshot.too_large - rebound) for name in group),
            objects=snapshot.objects.told(in_place, rebound),
        )

    def _kept(self, snapshot: Snapshot) -> tuple[str, ...]:
        """Libraries in which the cell met or left what no record can bring back."""
        if snapshot.libraries is None:
            return ()
        self._definitions.libraries.note(snapshot.cell)
        now = self._definitions.libraries.look(self._digester.digest)
        return () if same(snapshot.libraries.digest, now.digest) else (DUCKDB,)

    def _is_ours(self, name: str, cell: CellNames) -> bool:
        """Whether a change of the name is IPython's doing or keel's, not the cell's."""
        return is_ipythons(name) and name not in cell.stores and name not in cell.maybe_stores

    def _changed_in_place(self, snapshot: Snapshot, namespace: dict[str, Any], rebound: set[str]) -> set[str]:
        digests: dict[int, Digested] = {}
        changed: set[str] = set()
        attributes_set = {root for root, _ in snapshot.cell.attribute_stores}  # of a client only the type compares
        for name, before in snapshot.watched.items():
            if name in rebound or name not in namespace:
                continue
            value = namespace[name]
            if id(value) not in digests:
                digests[id(value)] = self._digester.digest(value)
            equal = digests[id(value)].digest == before.digest and not (before.outline and name in attributes_set)
            if not equal or self.objects.replaced(snapshot.objects, name, value):
                changed.add(name)
        return changed

    def _sharing(
        self, changed: set[str], snapshot: Snapshot, namespace: dict[str, Any], rebound: set[str], more: Collection[Any]
    ) -> Shared:
        """Names that changed with others which they hold, or with the values ``more``, which have no name."""
        memory = {name: namespace[name] for name in rebound if is_memory(namespace[name])}
        if not changed and not more:
            return Shared(apart=self._torn(memory))
        values = {name: namespace[name] for name in changed}
        known = rebound | snapshot.watched.keys()
        others = {name: namespace[name] for name in persons_names(self._shell) if name not in known}
        found = sharing([*values.values(), *more], others, without=self._ipythons())
        return Shared(found.names, found.apart | self._torn(values | memory) | held_by_handlers(values))

    def _torn(self, values: dict[str, Any]) -> frozenset[str]:
        """Of names that changed, those that would not share memory with the others any more."""
        torn: set[str] = set()
        for name in sorted(values) if len(values) > 1 else ():
            others = {other: value for other, value in values.items() if other != name and other not in torn}
            torn |= sharing([values[name]], others, without=self._ipythons()).apart
        return frozenset(torn)


def _is_container(name: str, value: Any) -> bool:
    return type(value) in (list, dict, set) and not name.startswith("__")


_IPYTHONS_OWN = frozenset({"get_ipython", "display", "exit", "quit", "open"})
_CONSTANTS = frozenset({"True", "False", "None", "Ellipsis", "NotImplemented", "__debug__", "__import__"})
_EVALUATORS = frozenset(map(id, (eval, exec, globals)))
_PYTHONS_OWN = frozenset(
    {"__name__", "__builtins__", "__builtin__", "__doc__", "__loader__", "__spec__", "__package__"}
)


@lru_cache(maxsize=256)
def _named_in(text: str) -> Named:
    return named([Text(text, A_VALUE)])


def _shares_fate(name: str, rebound: set[str], cell: CellNames) -> bool:
    """Whether a name that was surely bound again has all its stores in blocks that store ``name`` as well."""
    blocks = cell.blocks.get(name, frozenset())
    return any(other in rebound and its and its <= blocks for other, its in cell.blocks.items())


def _shown(name: str) -> str:
    """``pkg/sub.py`` for a module that the cell imports: a name that no variable can have."""
    return name.removeprefix(IMPORTED).replace(".", "/") + ".py" if name.startswith(IMPORTED) else name

"""What a cell reads and writes, from its code alone (DESIGN 6, Reads and Writes)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.asks import NOTHING as ASKS_NOTHING
from keel_notebook.core.asks import Asks, asks
from keel_notebook.core.cellcode import ParsedCell
from keel_notebook.core.filetexts import NO_TEXTS, FileTexts, file_texts
from keel_notebook.core.findings import Findings, Shared, State
from keel_notebook.core.flow import Flow
from keel_notebook.core.hidden import NOTHING, Named, hidden_names, named
from keel_notebook.core.scopes import Scope

__all__ = ["CellNames", "DefinedNames", "analyse", "hidden_names"]

_NONE: frozenset[str] = frozenset()


class DefinedNames(Struct, frozen=True):
    """What the code of one function or class of a cell reads when it runs, nested code included."""

    reads: frozenset[str] = _NONE
    """Global names, those of builtins included."""
    stores: frozenset[str] = _NONE
    """Global names that it may bind."""
    modules: frozenset[str] = _NONE
    """Modules that it imports itself; see ``CellNames.modules``."""
    chains: frozenset[str] = _NONE
    """Dotted names that it reads; see ``CellNames.chains``."""
    hidden: Named = NOTHING
    everything: str = ""


class CellNames(Struct, frozen=True):
    """The names of the notebook that a cell touches. Builtins count as names here; who asks knows what exists."""

    reads: frozenset[str] = _NONE
    """Names whose value from before the cell may be read, ``late_reads`` left out."""
    stored_before: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For every name read anywhere in the cell: names whose value from before is surely gone at each of those
    reads. What a function of another cell reads of them is this cell's own."""
    late_reads: frozenset[str] = _NONE
    """Names that are read only after the last statement that may store them, such as ``loss`` after a training
    loop. If the cell stored one, it did not read what was there before; if not, it may have."""
    stores: frozenset[str] = _NONE
    """Names that are bound when the cell has ended well."""
    maybe_stores: frozenset[str] = _NONE
    blocks: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """For each of ``maybe_stores`` the blocks that store it. A block that began ran to its end: names whose only
    block it is share their fate. Empty where that cannot be said."""
    deletes: frozenset[str] = _NONE
    """Names that the cell surely deletes (and perhaps binds again)."""
    maybe_deletes: frozenset[str] = _NONE
    imports: frozenset[str] = _NONE
    """Names bound by import statements."""
    modules: frozenset[str] = _NONE
    """Modules imported by the cell: ``"a.b"``, and ``"a:b"`` where ``b`` may be a module or a name in ``a``."""
    declared: frozenset[str] = _NONE
    """Names that functions called by the cell store through ``global``."""
    mutation_suspects: frozenset[str] = _NONE
    """Names that the cell uses in a way that may change their value in place."""
    attribute_stores: frozenset[tuple[str, str]] = frozenset()
    """``("config", "LR")`` for ``config.LR = …``."""
    chains: frozenset[str] = _NONE
    """Dotted names that it reads: ``pkg.sub.f`` may be a function of the module ``pkg.sub``."""
    hidden: Named = NOTHING
    """What its strings may name; see ``core.hidden``."""
    reads_everything: str = ""
    """Why it may read any name (``eval``, ``globals()``, ``%run -i`` …), else ``""``."""
    writes_unknown: str = ""
    """Why names that are not listed may be bound (a star import, ``%run``), else ``""``."""
    defined: Mapping[tuple[int, int], DefinedNames] = field(default_factory=dict)
    """The functions, lambdas and classes of the cell by line and column of their node."""
    files: FileTexts = field(default=NO_TEXTS)
    """What its code says that may be about files."""
    asks: Asks = field(default=ASKS_NOTHING)
    """What it asks of values beside what they hold."""

    @property
    def mentioned(self) -> frozenset[str]:
        """Every name that the cell reads at any point, its own included."""
        return frozenset(self.stored_before)


@lru_cache(maxsize=512)
def analyse(parsed: ParsedCell) -> CellNames:
    """The names of a cell. Pure, and remembered: the analysis of a typical cell takes a third of a millisecond."""
    shared = Shared(lazy_annotations=_lazy_annotations(parsed.tree))
    flow = Flow(Scope("module"), shared)
    try:
        end = flow.cell(parsed.tree)
    except RecursionError:
        return CellNames(reads_everything="its expressions are nested too deeply to be read", writes_unknown="as above")
    defined = {at: _defined(found) for at, found in shared.defined.items()}
    return replace(_names(flow.found, end, defined), files=file_texts(parsed.tree), asks=asks(parsed.tree))


def _names(found: Findings, end: State, defined: Mapping[tuple[int, int], DefinedNames]) -> CellNames:
    maybe = found.stored.keys() - end.bound
    late = {name for name in found.reads & maybe if found.last_store[name] < found.first_read[name]}
    return CellNames(
        reads=frozenset(found.reads - late),
        stored_before=MappingProxyType(dict(found.loads)),
        late_reads=frozenset(late),
        stores=frozenset(end.bound),
        maybe_stores=frozenset(maybe),
        blocks={name: frozenset(() if -1 in found.stored[name] else found.stored[name]) for name in maybe},
        deletes=frozenset(found.deleted & end.gone - end.bound),
        maybe_deletes=frozenset(found.deleted - (end.gone - end.bound)),
        imports=frozenset(found.imports),
        modules=frozenset(found.modules),
        declared=frozenset(found.declared),
        mutation_suspects=frozenset(found.changing),
        attribute_stores=frozenset(found.attribute_stores),
        chains=frozenset(found.chains),
        hidden=named(found.texts),
        reads_everything=found.everything,
        writes_unknown=", ".join(f"from {star} import *" if star[0] != "%" else star for star in sorted(found.stars)),
        defined=defined,
    )


def _defined(found: Findings) -> DefinedNames:
    return DefinedNames(
        frozenset(found.reads),
        frozenset(found.stored),
        frozenset(found.modules),
        frozenset(found.chains),
        named(found.texts),
        found.everything,
    )


def _lazy_annotations(tree: ast.Module) -> bool:
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return any(alias.name == "annotations" for node in futures for alias in node.names)

"""What a step used of the state that has no name, and what that state is now (DESIGN 6; port ``AmbientInputs``).

Settings count where the step read them, or where it used the library: the dicts that hold them note who reads
(``noting``), generators tell by their state who drew (``generators``). What nobody set is not kept.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from blake3 import blake3
from msgspec import Struct, field

from keel_notebook.capture.ambient import AmbientState, AmbientWatch, default_parts, readable
from keel_notebook.capture.ambient_part import Part
from keel_notebook.capture.ambient_settings import PARTS, settings
from keel_notebook.capture.definitions import NotebookDefinitions
from keel_notebook.capture.generators import PART_OF, Drawn, Generators, as_inputs
from keel_notebook.capture.noting import Noted, Noting
from keel_notebook.capture.ownset import OwnVariables, differing, environment
from keel_notebook.capture.ownsettings import OwnSettings
from keel_notebook.capture.seeds import RANDOM, SEEDS
from keel_notebook.capture.sources import Sources
from keel_notebook.capture.started import STARTED
from keel_notebook.capture.told import Told
from keel_notebook.core.ambient_ports import AmbientUse, StepRan
from keel_notebook.core.environment import (
    CHILDREN,
    CWD,
    DAY,
    ELSE,
    EVERYBODYS,
    FROM_START,
    GENERATORS,
    PANDAS_SHOWN,
    POLARS,
    TOLD,
    VARIABLES,
)
from keel_notebook.core.model import Digest

_NAMES_FOLDERS = re.compile(r"\b(getcwd|cwd|abspath|resolve|realpath|absolute|chdir)\b")
_BY_MENTION = {"logging": "logging", "warnings": "warnings", "torch": "torch"}
"""Groups that count where the step uses the module."""
_BY_ANY_LIBRARY = ("numpy errors", "pandas")
"""Groups that change what numbers come out, of libraries that others build on."""
_POLARS_OPTIONS = "POLARS_"
"""polars keeps its options in environment variables, and reads them natively."""
_ABSENT = "absent"


class Open(Struct):
    """A step that is running."""

    state: AmbientState
    seeds: dict[str, str | None]
    day: str = ""
    seeded_first: set[str] = field(default_factory=set)
    noted: Noted = field(default_factory=Noted)
    ours: Callable[[str], bool] | None = None
    """Whether a variable was set by what runs anew when the step does; None: by what was noted."""
    live: Mapping[str, Any] | None = None
    """Looks by part as they are when all is done, where nothing but draws can be another one by then."""


class AmbientInputs:
    """Tells what a step used of the state that has no name."""

    def __init__(  # noqa: PLR0913 - what it asks, by name
        self,
        parts: Sequence[Part],
        *,
        start: str,
        key: bytes,
        today: Callable[[], str],
        namespace: Mapping[str, Any],
        sources: Sources,
        digest: Callable[[Any], Digest | None],
    ) -> None:
        """``key`` is the journal's salt, ``today`` gives the day as a text."""
        self._namespace = namespace
        self._sources = sources
        self._parts = {part.name: part for part in parts}
        self._told = Told(namespace, sources, digest, key)
        self._generators = Generators(parts, key=key)
        self._noting = Noting()
        self._own = OwnVariables()
        self._own_settings = OwnSettings(self._parts, start=start)
        self._seen: dict[str, Any] = {}
        """The variables when a step was last looked at: reading its record may import what sets some."""
        self._start = start
        self._key = key
        self._today = today

    def rewind(self, step: str) -> None:
        """Take back what earlier attempts of the step drew and set: it is about to run anew."""
        self._generators.rewind(step)
        self._own.rewind(step)
        self._own_settings.rewind(step)

    def open(self, state: AmbientState) -> Open:
        """A body is about to run; ``state`` is what ``AmbientWatch.before`` gave."""
        running = Open(state, self._generators.seeds(), self._today())
        before = state.looks.get(PART_OF[RANDOM])
        part = self._parts.get(PART_OF[RANDOM])

        def seeds() -> None:
            SEEDS.on_seed = None  # what comes first decides
            if part is not None and part.look() == before:
                running.seeded_first.add(RANDOM)

        SEEDS.on_seed = seeds
        self._noting.open()
        return running

    def close(self, running: Open, source: str) -> None:
        """The body has ended: stop noting, before anybody else reads a setting."""
        SEEDS.on_seed = None
        self.cell_ran(source)
        running.noted = self._noting.close()

    def cell_ran(self, source: str) -> None:
        """A cell ran: its text may say that it seeded something."""
        SEEDS.cell_ran(source)

    def ran_plainly(self, tree: Any) -> None:
        """A plain cell ran: what it told libraries is an input of the steps that use them."""
        self._told.note(tree)

    def drawn(self, running: Open, step: str, now: AmbientState | None = None) -> Mapping[str, Drawn]:
        """From which generators a body drew; known from now on as this step's own doing.

        ``now``: the state as it is, where somebody has looked already.
        """
        ours = running.ours or running.noted.set_variables.__contains__
        self._own.ran(step, running.state.looks.get("environ", environment()), ours=ours)
        after = running.live if now is None else readable(now)
        if after is None:
            after = self._generators.looks() | self._own_settings.looks()
        self._own_settings.ran(step, running.state.looks, after)
        return self._generators.ran(step, running.state.looks, after, running.seeds)

    def of(self, running: Open, ran: StepRan, now: AmbientState | None = None) -> AmbientUse:
        """What a step used that ended well, as it was before: what a record of it keeps. ``now``: see ``drawn``."""
        noted, looks = running.noted, running.state.looks
        values = [self._namespace[name] for name in ran.names if name in self._namespace]
        reads = self._sources.read_by(ran.tree)
        polars = "polars" in _roots(values)
        asked = noted.variables or noted.by_libraries or noted.all_variables or polars or ran.children
        variables = self._own.found(ran.step, looks.get("environ", {}), imports_only=True) if asked else {}
        drawn = self.drawn(running, ran.step, now)
        groups = {*EVERYBODYS, *_mentioned(values)}
        groups |= {
            group
            for group, counts in (
                ("numpy print", noted.numpy_print),
                ("matplotlib", noted.matplotlib),
                (CWD, ran.relative or ran.children or _NAMES_FOLDERS.search(ran.source)),
            )
            if counts
        }
        found = {group: settings(group, looks.get(PARTS[group]), (), self._start) for group in groups}
        if noted.pandas:  # a record keeps all that were read: another one may be set later
            shown = settings(PANDAS_SHOWN, looks.get("pandas"), noted.pandas, self._start)
            found[PANDAS_SHOWN] = dict.fromkeys(sorted(noted.pandas), "") | shown
        found |= self._of_variables(noted, ran, polars, variables)
        if reads.date:
            found[DAY] = {"day": running.day}
        if packages := {root for root in _roots(values) if self._told.counts(root)}:
            found[TOLD] = self._told.now(packages)
        if drawn:
            found |= as_inputs(drawn, self._sources.seeds_first(ran.tree) | running.seeded_first)
        kept = {group: found[group] for group in sorted(found) if found[group] or group not in EVERYBODYS}
        return AmbientUse(kept, frozenset({"clock"}) if reads.clock else frozenset())

    def _of_variables(
        self, noted: Noted, ran: StepRan, polars: bool, before: Mapping[str, str]
    ) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        if noted.variables:
            found[VARIABLES] = {name: self._value(before, name) for name in sorted(noted.variables)}
        if noted.by_libraries - noted.variables:
            names = sorted(noted.by_libraries - noted.variables)
            found[FROM_START] = {name: self._set(before, name) for name in names}
        if polars:
            found[POLARS] = self._all_set(before, _POLARS_OPTIONS)
        if ran.children or noted.all_variables:
            found[CHILDREN] = self._all_set(before)
        return found

    def now(self, wanted: Mapping[str, Iterable[str]], step: str) -> dict[str, dict[str, str]]:
        """The groups as they are now, for a step that wants to run; ``wanted`` are groups with names in them."""
        found: dict[str, dict[str, str]] = {}
        variables: dict[str, str] = {}
        self._seen[step] = dict(environment())
        for group in {*wanted, *EVERYBODYS}:
            names = frozenset(wanted.get(group, ()))
            if group in GENERATORS:
                found[group] = self._generators.now(group, step)
            elif group in PARTS:
                part = self._parts.get(PARTS[group])
                look = part.look() if part is not None else None
                found[group] = self._own_settings.found(step, group, settings(group, look, names, self._start))
            elif group == DAY:
                found[group] = {"day": self._today()}
            elif group == TOLD:
                found[group] = self._told.now(names)
            else:
                variables = variables or self._own.found(step, environment())
                found |= self._variables_now(group, names, variables)
        return found

    def _variables_now(self, group: str, names: frozenset[str], now: Mapping[str, str]) -> dict[str, dict[str, str]]:
        token = self._value if group == VARIABLES else self._set
        if group in (CHILDREN, POLARS):
            told = self._all_set(now, _POLARS_OPTIONS if group == POLARS else "")
        elif group in (VARIABLES, FROM_START):
            told = {name: token(now, name) for name in names}
        else:
            return {}
        unlike = self._own.unlike(environment())
        before = {name: value for name, value in unlike.items() if value is not None}
        other = {name: token(before, name) for name in unlike}
        return {group: told} | ({group + ELSE: other} if other else {})

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keel reads a record: what the imports behind its values set is nobody's input."""
        before = dict(environment())
        try:
            yield
        finally:
            self._own.imported(before)

    def _value(self, variables: Mapping[str, str], name: str) -> str:
        value = variables.get(name)
        return _ABSENT if value is None else self._digest(value)

    def _set(self, variables: Mapping[str, str], name: str) -> str:
        """Empty while the variable is as it was when the kernel started."""
        return "" if variables.get(name) == STARTED.get(name) else self._value(variables, name)

    def _all_set(self, variables: Mapping[str, str], prefix: str = "") -> dict[str, str]:
        names = sorted(variables.keys() | STARTED.keys())
        return {n: token for n in names if n.startswith(prefix) and (token := self._set(variables, n))}

    def _digest(self, value: str) -> str:
        return blake3(value.encode("utf-8", "surrogateescape"), key=self._key).hexdigest(length=16)

    def before_replay(self, step: str, *, changes: bool = True) -> Open:
        """The state as it is before a record of the step is put back: for ``drawn``. ``changes``: False where the
        record holds nothing of it, so that only what the step itself drew counts: nobody looks at the rest."""
        seeds = self._generators.seeds()
        now = environment()
        before = self._seen.get(step) or dict(now)
        imported = differing(before, now)
        own, live = self._generators.before_replay(step)
        looks = (self._generators.looks() | self._own_settings.looks() if changes else {}) | own
        looks["environ"] = before
        return Open(AmbientState(looks), seeds, ours=lambda name: name not in imported, live=None if changes else live)


def state_without_a_name(  # noqa: PLR0913, PLR0917 - what it asks, each once
    start: str,
    key: bytes,
    now: Callable[[], float],
    namespace: Mapping[str, Any],
    definitions: NotebookDefinitions,
    digest: Callable[[Any], Digest | None],
) -> tuple[AmbientWatch, AmbientInputs]:
    """What puts such state back, and what tells who used it; ``now`` is wall time, ``start`` the kernel's folder."""
    parts = default_parts(start)
    inputs = AmbientInputs(
        parts,
        start=start,
        key=key,
        today=lambda: datetime.fromtimestamp(now(), UTC).astimezone().date().isoformat(),
        namespace=namespace,
        sources=Sources(namespace, definitions),
        digest=digest,
    )
    return AmbientWatch(parts=parts), inputs


def _mentioned(values: Iterable[Any]) -> set[str]:
    roots = _roots(values)
    found = {group for root, group in _BY_MENTION.items() if root in roots}
    return found | (set(_BY_ANY_LIBRARY) if roots - sys.stdlib_module_names else set())


def _roots(values: Iterable[Any]) -> set[str]:
    """The packages that values come from: modules themselves, functions and classes, or what they are of."""
    found = set()
    for value in values:
        kind = type(value)
        if issubclass(kind, ModuleType):
            name = value.__name__
        else:
            own = value.__module__ if issubclass(kind, FunctionType | BuiltinFunctionType | type) else None
            name = own if isinstance(own, str) else kind.__module__  # a lazy proxy is not asked
        found.add(name.partition(".")[0])
    return found - {"builtins", "__main__"}

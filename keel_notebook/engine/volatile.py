"""Puts the values of volatile names back in a run that goes on with one that died (DESIGN 5, Volatile)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from keel_notebook.core.fileholds import same
from keel_notebook.core.model import Digest, Entry, EntryId, FlowId, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.volatile import STORIES, Story
from keel_notebook.engine.parts import Parts
from keel_notebook.errors import DamagedError


class Made(Struct, frozen=True):
    """What a plain cell made from a clock or entropy."""

    code: str
    stories: Mapping[str, Story]
    values: Mapping[str, Any]
    digests: Mapping[str, Digest | None]


class Volatile:
    """The volatile names of one kernel."""

    def __init__(
        self,
        parts: Parts,
        *,
        digest: Callable[[Any], Digest | None],
        went_on: Callable[[FlowRecords, str], frozenset[int]],
        when: Callable[[float], str],
        say: Callable[[str], None],
    ) -> None:
        """``digest`` of a small value of plain data, None for any other; ``when`` writes a time for people."""
        self._parts = parts
        self._digest = digest
        self._went_on = went_on
        self._when = when
        self._say = say
        self._known: dict[str, tuple[Story, Any]] = {}
        self._waiting: list[Made] = []
        self._done: set[Story] = set()
        self._back: dict[str, Any] = {}

    def known(self) -> dict[str, Story]:
        """Volatile names that still hold what their cell left."""
        space = self._parts.namespace
        return {name: story for name, (story, value) in self._known.items() if space.get(name) is value}

    def came_back(self) -> frozenset[str]:
        """Names that hold what was put back: inside, such a value need not share objects as a fresh one does."""
        space = self._parts.namespace
        return frozenset(name for name, value in self._back.items() if space.get(name) is value)

    def names(self, names: Iterable[str]) -> list[str]:
        """Of ``names``, those that are volatile."""
        known = self.known()
        return sorted(name for name in names if name in known)

    def ran(self, code: str, stories: Mapping[str, Story]) -> None:
        """A plain cell ran and made these names; ``settle`` gives them their old values, once the flow is known."""
        space = self._parts.namespace
        values = {name: space[name] for name in stories if name in space}
        digests = {name: self._digest(value) for name, value in values.items()}
        good = {name: stories[name] for name, digest in digests.items() if digest is not None}
        self._known |= {name: (story, values[name]) for name, story in good.items()}
        if good:
            self._waiting.append(Made(code, good, values, digests))

    def settle(self, flow: FlowId, root: str, records: Callable[[FlowId], FlowRecords]) -> None:
        """Put back and keep what cells made since this was last asked. Raises what the journal raises."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        seen = records(flow)
        runs = self._went_on(seen, root)
        space = self._parts.namespace
        for made in waiting:
            there = [
                name
                for name in made.stories
                if space.get(name) is made.values[name] and same(self._digest(space[name]), made.digests[name])
            ]
            fresh = [name for name in there if made.stories[name] not in self._done]
            self._put_back({name: made.stories[name] for name in fresh}, seen, runs)
            self._done.update(made.stories.values())
            self._keep(flow, root, made, there)

    def _put_back(self, stories: Mapping[str, Story], records: FlowRecords, runs: frozenset[int]) -> None:
        read: dict[EntryId, Mapping[str, Any]] = {}
        back: dict[tuple[int, float], list[str]] = {}
        for name, story in stories.items():
            entry = _newest(records, runs, name, story)
            if entry is None:
                continue
            if entry.entry not in read:
                read[entry.entry] = self._values(entry)
            value = read[entry.entry].get(name, self._parts.namespace[name])
            if same(self._digest(value), self._digest(self._parts.namespace[name])):
                continue
            old = self._parts.namespace[name]
            for other in [other for other, thing in self._parts.namespace.items() if thing is old]:
                self._parts.namespace[other] = value
            self._known[name] = (story, value)
            self._back[name] = value
            back.setdefault((entry.run, entry.started_at), []).append(name)
        for (run, at), names in sorted(back.items()):
            listed = ", ".join(sorted(names))
            self._say(f"resuming run {run} of {self._when(at)}: {listed} as then; `%keel flow --new` starts afresh")

    def _values(self, entry: Entry) -> Mapping[str, Any]:
        """What a record holds; nothing where it cannot be read: then the new values stay."""
        if entry.payload is None:
            return {}
        try:
            found: Mapping[str, Any] = self._parts.codec.unpack(entry.payload, resolve=_no_reference).names
        except Exception as error:  # noqa: BLE001 a record that cannot be read affects its own names only (C56)
            self._say(f"{', '.join(entry.ambient[STORIES])} not as in run {entry.run}: {type(error).__name__}")
            return {}
        return found

    def _keep(self, flow: FlowId, root: str, made: Made, names: Iterable[str]) -> None:
        parts = self._parts
        values = {name: parts.namespace[name] for name in names}
        if not values:
            return
        packed = parts.codec.pack(values, result=None, known={})
        stories = {write.name: made.stories[write.name] for write in packed.writes}
        journal, now = parts.journal, parts.clock.now()
        seq = journal.next_seq()
        entry = Entry(
            entry=entry_id(journal.run, seq),
            flow=flow,
            run=journal.run,
            seq=seq,
            step="",
            kind=Kind.MARKER,
            status=Status.OK,
            key=f"{STORIES} {made.code[:12]}",
            payload=packed.payload,
            ambient={STORIES: stories} | ({"root": root} if root else {}),
            started_at=now,
            ended_at=now,
        )
        journal.append(entry)


def _newest(records: FlowRecords, runs: frozenset[int], name: str, story: Story) -> Entry | None:
    for entry in reversed(records.entries):
        if entry.run in runs and entry.kind is Kind.MARKER and entry.entry not in records.untrusted:
            told: Mapping[str, Story] = entry.ambient.get(STORIES, {})
            if told.get(name) == story:
                return entry
    return None


def _no_reference(known: Any) -> Any:
    raise DamagedError(what="a kept value", detail=f"it refers to {known.name}")

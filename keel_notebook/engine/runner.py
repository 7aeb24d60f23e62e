"""Carries a decision out: runs the body under watch and records it (DESIGN 4.5); ``putback`` is the other way.

The write order is the product's promise and is visible here: ``running`` is written before the body starts
(K8), payload and outputs before the ``ok`` entry that names them, and that entry before the cell's reply (K9).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from keel_notebook.core import environment
from keel_notebook.core.ambient_ports import StepRan
from keel_notebook.core.atwork import GOING_ON
from keel_notebook.core.chain import BOUND
from keel_notebook.core.chosen import LEFT_OUT, chosen
from keel_notebook.core.decide import FAILED_CALLS, RESULT
from keel_notebook.core.dotted import PATCHED, value_at
from keel_notebook.core.model import Effect, Entry, Input, Kind, NotStored, Problem, Status, Write, entry_id
from keel_notebook.core.ports import Changed
from keel_notebook.core.provenance import BY_ORIGIN, LEFT, doing_of
from keel_notebook.core.within import identities_within
from keel_notebook.core.world_ports import WorldSeen
from keel_notebook.engine.attempt import Attempt, Outcome, StepNow, lost_attributes, seen_words
from keel_notebook.engine.callparts import Held
from keel_notebook.engine.intents import announce
from keel_notebook.engine.plaincells import worth_keeping
from keel_notebook.engine.putback import PutBack
from keel_notebook.errors import CallTimeoutError, KeelError

_CHANGED = "This step changed it: it executes again where a cell that is no replay reads it"
APART = "it lies on memory that other values have as well, which a record cannot bring back"

_BY_TOUCH = frozenset({"append", "left", "base"})
"""Roles of files that are known from the touch alone."""


class Runner(PutBack):
    """Executes and replays steps of one kernel. Raises only KeelError, and never after the body's own error."""

    @property
    def run(self) -> int:
        """The number of this kernel's run."""
        return self._parts.journal.run

    def begin(self, step: StepNow, *, attempt: int, why: str) -> Attempt:
        """Write the ``running`` entry and start watching (K8). The body must start right after.

        Raises what the journal raises; the caller then runs the body with ``begin_unrecorded``.
        """
        entry = self._entry(step, attempt=attempt, why=why)
        self._parts.journal.append(entry)  # K8: recorded before it starts
        try:
            return self._watch(entry, step)
        except KeyboardInterrupt:  # else it would look as if the kernel had gone away in it
            self._parts.journal.append(replace(entry, status=Status.INTERRUPTED, ended_at=self._parts.clock.now()))
            raise

    def begin_guarded(self, step: StepNow, guard: Held, *, attempt: int, why: str, intent: bool) -> Attempt:
        """The same for a step that must not happen twice: its intent is synced before the body starts (Z4).

        ``guard`` is held already, and given back by ``finish``. ``intent``: False where one stands already (Z21).
        """
        entry = self._entry(step, attempt=attempt, why=why)
        if step.effect is Effect.EXACTLY_ONCE:
            entry = replace(entry, status=Status.INTENT)
        if intent:
            announce(entry, self._parts.journal, self._parts.clock)
        begun = self._watch(entry, step)
        begun.guard = guard
        return begun

    def begin_unrecorded(self, step: StepNow, *, attempt: int, why: str) -> Attempt:
        """Start an attempt whose ``running`` entry could not be written."""
        running = self._watch(replace(self._entry(step, attempt=attempt, why=why)), step)
        running.recorded = False
        return running

    def _entry(self, step: StepNow, *, attempt: int, why: str) -> Entry:
        journal = self._parts.journal
        seq = journal.next_seq()  # K4: claimed at the very entry
        return Entry(
            entry=entry_id(journal.run, seq),
            flow=step.flow,
            run=journal.run,
            seq=seq,
            step=step.name,
            kind=Kind.STEP,
            status=Status.RUNNING,
            lane=self._parts.lane(),
            attempt=attempt,
            effect=step.effect,
            idempotency_key=step.idempotency_key,
            fence=0 if step.effect is Effect.IDEMPOTENT else journal.fence,
            code=step.code,
            source=step.source,
            inputs=tuple(step.inputs.values()),
            files=step.files,
            ambient={name: told for name in ("root", "parameters") if (told := getattr(step, name))}
            | ({"kind": step.effect_kind} if step.effect_kind else {}),
            started_at=self._parts.clock.now(),
            why=why,
        )

    def _watch(self, entry: Entry, step: StepNow) -> Attempt:
        parts = self._parts
        snapshot = parts.watch.before(step.cell)
        if not step.as_is:
            parts.ambient_inputs.rewind(step.name)
        ambient = parts.ambient.before()
        files = parts.files.before(step.cell, step.inputs)
        parts.world.open()
        parts.tap.open()
        used = parts.ambient_inputs.open(ambient)
        ids = {name: id(parts.namespace[name]) for name in step.inputs if name in parts.namespace}
        return Attempt(entry, step, snapshot, ambient, files, used, parts.clock.monotonic(), parts.at_work(), ids)

    def finish(self, attempt: Attempt, outcome: Outcome) -> Entry:
        """Record how the body ended, before the cell's reply is sent (K9). Returns the entry written.

        Raises KeelError where recording failed; the user's own result is not touched by that. What needed the lease
        is not recorded where that was lost meanwhile (LeaseError, O14).
        """
        try:
            return self._finish(attempt, outcome)
        finally:
            attempt.release()

    def _finish(self, attempt: Attempt, outcome: Outcome) -> Entry:
        parts = self._parts
        took = parts.clock.monotonic() - attempt.began
        parts.ambient_inputs.close(attempt.used, attempt.step.source)
        messages = parts.tap.close()
        seen = parts.world.close()
        ended = replace(attempt.entry, status=outcome.status, ended_at=parts.clock.now(), took_s=took)
        if outcome.status is Status.OK:
            ended = self._with_values(ended, attempt, outcome, seen, parts.tap.live().made)
        else:
            ended = self._with_leftovers(ended, attempt, outcome)
        if attempt.retries:
            ended = replace(ended, ambient=dict(ended.ambient) | {"retries": attempt.retries})
        if not attempt.recorded:
            return ended
        live = parts.tap.live().messages
        outputs = parts.journal.blob(parts.pack_messages(messages, live)) if messages or live else None
        ended = replace(ended, outputs=outputs)
        if attempt.guard is not None:
            attempt.guard.check()
            if isinstance(outcome.error, CallTimeoutError):
                return ended  # what it does may still happen: the intent stands, and a person is asked
        parts.journal.append(ended, synced=attempt.guard is not None)  # K9: recorded before the reply
        return ended

    def _with_leftovers(self, entry: Entry, attempt: Attempt, outcome: Outcome) -> Entry:
        """What an attempt that did not end well left behind: digests only, so that it is never taken for input."""
        changed = self._parts.watch.after(attempt.snapshot)
        self._parts.ambient_inputs.drawn(attempt.used, attempt.step.name)
        there = [name for name in (*changed.written, *changed.patched) if name in self._parts.namespace]
        left = tuple(Write(item.name, item.digest, item.type, 0) for item in self._parts.kept_inputs(there))
        error = outcome.error
        code = error.code if isinstance(error, KeelError) else ""
        problem = None if error is None else Problem(type(error).__qualname__, code)
        entry = replace(entry, writes=left, deleted=changed.deleted, error=problem)
        return self._with_bound(entry, changed) if attempt.recorded and not attempt.step.always else entry

    def _with_bound(self, entry: Entry, changed: Changed) -> Entry:
        """Keep what a failed attempt bound anew and had not read, where that is small or took long: a notebook may go
        on with it (`allow-errors`). It is for restores only; nothing replays it, and no attempt starts from it."""
        parts = self._parts
        read = {*(item.name for item in entry.inputs), *changed.in_place, *changed.ambiguous, *changed.apart}
        going_on = parts.at_work().names.keys()
        bound = {
            name: parts.namespace[name]
            for name in changed.written
            if name in parts.namespace and name not in read and name not in going_on
        }
        kept = {n: value for n, value in bound.items() if worth_keeping(parts.about(value), entry.took_s or 0.0)}
        if not kept or changed.unknown:
            return entry
        known = parts.references.known(entry.flow, without=frozenset({*changed.written, *going_on}))
        try:
            packed = parts.codec.pack(kept, result=None, known=known)
        except (KeelError, MemoryError):  # the cell failed for a reason of its own, which is what its person is told
            return entry
        own = {BOUND: [item.name for item in packed.writes]}
        return replace(entry, payload=packed.payload, ambient=dict(entry.ambient) | own)

    def _with_values(
        self, entry: Entry, attempt: Attempt, outcome: Outcome, seen: WorldSeen, shown: Sequence[Any]
    ) -> Entry:
        parts, step = self._parts, attempt.step
        changed = parts.watch.after(attempt.snapshot)
        at_work = parts.at_work()
        files = entry.files + parts.files.after(attempt.files, seen, step.makes, at_work.files)
        # What it appended, or left where nobody's work is kept, was told by its touch: another folder is no other file.
        relative = any(touch.folder for touch in seen.files) or any(item.role not in _BY_TOUCH for item in files)
        touched = {*step.inputs, *changed.written}
        ran = StepRan(step.name, step.source, touched, step.tree, relative, seen.children)
        left = parts.ambient.before()  # looked at once, for what it used and for what it changed
        use = parts.ambient_inputs.of(attempt.used, ran, left)
        own = {
            environment.INPUTS: use.inputs,
            "saw": sorted(seen_words(seen) | use.saw),
            "in_place": sorted(changed.in_place),
            "threads_left": seen.threads_left,
        }
        if outcome.failed_calls:
            own[FAILED_CALLS] = outcome.failed_calls
        if changed.patched:
            own[PATCHED] = list(changed.patched)
        ambient = dict(entry.ambient) | parts.ambient.after(attempt.ambient, left) | own | {**changed.objects}
        types = {name: type(parts.namespace.get(name)) for name in changed.written}
        written, left_out = chosen(step.outputs, changed.written, free=lambda name: types[name] is ModuleType)
        entry = replace(
            entry,
            inputs=self._inputs(entry, changed),
            files=files,
            ambient=ambient,
            deleted=changed.deleted,
        )
        if step.always or not attempt.recorded:  # a resource is rebuilt in every run: nothing of it is stored
            return replace(entry, writes=tuple(Write(name, None, "", 0) for name in written))
        unfinished = at_work.since(attempt.at_work, written)
        names = {name: value_at(parts.namespace, name) for name in written if name not in unfinished}
        moving = {*changed.written, *changed.apart, *at_work.names}
        left_behind = {*changed.deleted, *changed.written} - {*changed.in_place, *changed.apart, *at_work.names}
        before = {name: attempt.ids[name] for name in left_behind & attempt.ids.keys()}
        known = parts.references.moved(step.flow, step.inputs.values(), before, names.values()) if before else {}
        known |= parts.references.of_plain_cells(step.inputs.values(), without=moving)
        result = outcome.result if not at_work.holds(outcome.result) else None
        values = (*names.values(), *(result or ()), *shown)
        among = identities_within(values)
        known |= parts.references.known(step.flow, without=frozenset(moving), among=among)
        known |= parts.references.inside(values, known, step=step, without=moving, flat=among is not None)
        packed = parts.codec.pack(names, result=result, known=known, shown=shown)
        by_origin = {name for name, item in step.inputs.items() if (item.digest or "").startswith(BY_ORIGIN)}
        if by_origin - step.inward:
            ambient["saw"] = sorted({*ambient["saw"], "network"})  # what a client or connection did, nobody can tell
        lost = packed.not_stored + tuple(NotStored(name, types[name].__qualname__, LEFT_OUT) for name in left_out)
        changed_ones = {item.name for item in lost if item.name in changed.in_place}
        if changed_ones:
            parts.changed(changed_ones, doing_of(entry, changed_ones))
            ambient[LEFT] = {item.name: item.digest for item in parts.kept_inputs(sorted(changed_ones))}
        lost = tuple(
            replace(item, reason=f"{item.reason}. {_CHANGED}") if item.name in changed_ones else item for item in lost
        )
        if unfinished:
            ambient[GOING_ON] = sorted(unfinished - {*changed.written})
            lost += tuple(at_work.lost(name, type(parts.namespace[name]).__qualname__) for name in sorted(unfinished))
        if outcome.result is not None and result is None:
            lost += (at_work.lost(RESULT, type(outcome.result[0]).__qualname__),)
        apart = (NotStored(item.name, item.type, APART) for item in parts.kept_inputs(changed.apart))
        patched = (Write(item.name, item.digest, item.type, 0) for item in parts.kept_inputs(changed.patched))
        return replace(
            entry,
            ambient=ambient,
            payload=packed.payload,
            writes=(*packed.writes, *patched),
            not_stored=(*lost, *apart),
            inputs=entry.inputs + lost_attributes(packed.not_stored),
        )

    def _inputs(self, entry: Entry, changed: Changed) -> tuple[Input, ...]:
        """The inputs of a record, those included that only its end could tell."""
        kept = tuple(item for item in entry.inputs if item.name not in changed.unknown)
        unknown = tuple(Input(name, None, type="changed in place") for name in changed.unknown)
        return kept + self._parts.kept_inputs(changed.ambiguous) + unknown

    def copy(self, step: StepNow, names: Sequence[str]) -> None:
        """Keep values that the step is about to change, so that its next attempt can start from them."""
        entry = self._entry(step, attempt=0, why="kept before it changes them")
        values = {name: self._parts.namespace[name] for name in names}
        packed = self._parts.codec.pack(values, result=None, known={}, digested=False)
        digests = {name: item.digest for name, item in step.inputs.items()}
        writes = tuple(replace(item, digest=digests[item.name]) for item in packed.writes)
        kept = replace(
            entry, kind=Kind.COPY, status=Status.OK, source="", inputs=(), writes=writes, payload=packed.payload
        )
        self._parts.journal.append(kept)

    def note(self, kind: Kind, step: StepNow, *, key: str, why: str) -> Entry:
        """Write a short entry about a step: a retirement, a decision. Raises what the journal raises."""
        now = self._parts.clock.now()
        entry = self._entry(step, attempt=0, why=why)
        entry = replace(entry, kind=kind, status=Status.OK, key=key, source="", ended_at=now)
        self._parts.journal.append(entry)
        return entry

    def accept(self, step: StepNow, entry: Entry) -> Entry:
        """Write, by a person's word, that what ``entry`` holds is right for the step as it is now."""
        ours = self._entry(step, attempt=entry.attempt, why=f"accepted: the values of {entry.entry}")
        accepted = replace(
            entry,
            entry=ours.entry,
            run=ours.run,
            seq=ours.seq,
            lane=ours.lane,
            kind=Kind.ACCEPT,
            code=step.code,
            source=step.source,
            inputs=tuple(step.inputs.values()),
            files=step.files,
            ambient=environment.accepted(entry.ambient, step.surroundings),
            started_at=ours.started_at,
            ended_at=ours.started_at,
            why=ours.why,
        )
        self._parts.journal.append(accepted)
        return accepted

    def adopt(self, step: StepNow, names: Sequence[str]) -> Entry:
        """Record what a cell that ran before left, without executing it."""
        entry = self._entry(step, attempt=1, why="adopted: it ran before it was a step")
        packed = self._parts.codec.pack({name: self._parts.namespace[name] for name in names}, result=None, known={})
        adopted = replace(
            entry,
            kind=Kind.ADOPT,
            status=Status.OK,
            ended_at=entry.started_at,
            payload=packed.payload,
            writes=packed.writes,
            not_stored=packed.not_stored,
        )
        self._parts.journal.append(adopted)
        return adopted

"""What a step is now, and what is recorded of it (DESIGN 4.2): the facts on which ``core.decide`` decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from keel_notebook.core import decide as d
from keel_notebook.core import environment, journalfiles, lifecycle, sharing
from keel_notebook.core.chosen import asked_for_now
from keel_notebook.core.dotted import is_module
from keel_notebook.core.fileholds import ABSENT, FilesNow
from keel_notebook.core.ids import text_digest
from keel_notebook.core.model import Digest, Entry, FileSeen, FlowId, Input
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.products import (
    asked_between,
    changed_plainly,
    left_by_others,
    plain_between,
    refused_for,
    unsettled,
)
from keel_notebook.core.readers import read_later, replayed_without
from keel_notebook.engine.attempt import StepNow
from keel_notebook.engine.lanes import LaneKeeper
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.leftovers import State
from keel_notebook.engine.runner import Runner
from keel_notebook.engine.stepparts import NONE, NOTHING_SEEN, Look, Seen, Senses, StepCell


class Looking:
    """Looks at steps: the half of ``Stepper`` that decides nothing and changes nothing."""

    def __init__(
        self,
        *,
        runner: Runner,
        ledger: Ledger,
        senses: Senses,
        lanes: LaneKeeper,
        records: Callable[[FlowId], FlowRecords],
    ) -> None:
        self._runner = runner
        self._ledger = ledger
        self._senses = senses
        self._records = records
        self.lanes = lanes

    def files_now(self, files: Sequence[FileSeen]) -> Mapping[str, Digest | None]:
        """What files of a record hold now, by ``FileSeen.asked``."""
        return self._senses.files_now(files)

    def anew(self) -> bool:
        """Whether what reached the outside world in a finished run does not count in this one."""
        return self._senses.anew()

    def look(self, flow: FlowId, cell: StepCell, *, root: str, seen: Seen = NOTHING_SEEN) -> Look:
        """What the step is now, and what is recorded of it.

        ``root`` is the first step of this kernel where nobody tells which notebook runs, else empty.
        """
        options, name, parsed = cell.options, cell.name, cell.parsed
        records = self._records(flow)
        wanted = (set(parsed.reads) | set(options.inputs)) - set(options.ignore)
        inputs = self.inputs(wanted, parsed, ignore=options.ignore, seen=seen)
        in_lane = self.lanes.seen(records)
        candidates = [e for e in lifecycle.of_step(in_lane, name) if e.code == parsed.code]
        step = StepNow(
            flow=flow,
            name=name,
            source=cell.source,
            code=parsed.code,
            inputs=inputs,
            cell=parsed.names,
            files=(*self._seen(options.uses, "uses"), *self._seen(options.journal_files, journalfiles.ROLE)),
            makes=options.makes,
            outputs=options.outputs,
            always=options.always,
            root=root,
            parameters=self._ledger.parameters,
            tree=parsed.parsed.tree,
            inward=frozenset(self._ledger.inward & inputs.keys()),
            as_is=name in self._ledger.as_is,
            called=cell.called or name,
        )
        newest = lifecycle.newest_ok(records, name)
        wanted_around = environment.wanted([*candidates, *([newest] if newest is not None else [])])
        step = replace(step, surroundings=self._senses.surroundings(wanted_around, name))
        facts = self._facts(cell, step, candidates, records)
        recorded = lifecycle.recorded(in_lane, name, lifecycle.fingerprint(parsed.code, facts.inputs), root=root)
        return Look(step, cell, facts, recorded, records)

    def _facts(self, cell: StepCell, step: StepNow, candidates: Sequence[Entry], records: FlowRecords) -> d.Facts:
        options, parsed, inputs = cell.options, cell.parsed, step.inputs
        extra = {item.name for e in candidates for item in e.inputs} - inputs.keys() - set(options.ignore)
        state, anew = self._ledger.leftovers.state, self._senses.anew()
        return d.Facts(
            name=cell.name,
            code=parsed.code,
            inputs=inputs,
            extra=self.inputs(extra, parsed) if extra else {},
            files=self._files(cell.name, candidates, records),
            surroundings=step.surroundings,
            objects={e.entry: self._senses.objects(e.ambient) for e in candidates if sharing.asked(e.ambient)},
            went_on=self._senses.went_on(records, step.root) if anew or environment.DAY in step.surroundings else NONE,
            run=self._runner.run,
            anew=anew,
            needed=self._needed(cell, candidates, records.entries),
            applied=frozenset(n for n, i in inputs.items() if state(cell.name, n, i.digest) is State.APPLIED),
            ttl_s=options.ttl_s,
            always=options.always,
            rerun=cell.name in self._ledger.rerun,
            parameters=self._ledger.parameters,
            again=cell.name in self._ledger.again,
            acted=journalfiles.acted(lifecycle.of_step(records, cell.name), self._senses.files_now),
        )

    def _seen(self, paths: Iterable[str], role: str) -> Iterable[FileSeen]:
        return (self._senses.file_seen(path, role) for path in paths)

    def _files(self, name: str, candidates: Sequence[Entry], records: FlowRecords) -> FilesNow:
        asked = [seen for e in candidates for seen in e.files]
        below, elsewhere = left_by_others(candidates, records.entries, name, run=self._runner.run)
        rewritten, ahead = self._senses.rewritten(asked, name), self._ahead()
        half = unsettled(candidates, records.entries)
        plainly = changed_plainly(records.entries)
        files = FilesNow(self._senses.files_now(asked), below, elsewhere, rewritten, ahead, half, plainly)
        wrote = {seen.path: seen.digest for seen in asked if seen.role == "write"}
        last = {path: step for path, left in wrote.items() if (step := files.of_below(path, left))}
        if not last:
            return files

        def code_of(step: str) -> Digest | None:
            newest = lifecycle.newest_ok(records, step)
            return newest.code if newest is not None else None

        ran = partial(plain_between, records.entries, name)
        asking = asked_between(records.entries, name, last) | refused_for(records.entries)
        return replace(files, read_between={**asking, **self._senses.read_between(name, last, code_of, ran)})

    def _ahead(self) -> dict[str, Digest]:
        """Files that are further on than this pass still, because no cell of this kernel wrote them since."""
        ledger = self._ledger
        for path, (digest, step) in list(ledger.ahead.items()):
            if self._senses.rewritten([FileSeen(path, "write", digest)], step):
                del ledger.ahead[path]
        return {path: digest for path, (digest, _) in ledger.ahead.items()}

    def _needed(self, cell: StepCell, candidates: Sequence[Entry], entries: Sequence[Entry]) -> frozenset[str]:
        lost = frozenset(item.name for e in candidates for item in e.not_stored)
        if not lost:
            return lost
        name, asked = cell.name, (lost & self._ledger.wanted) | asked_for_now(candidates, cell.options.outputs)
        recorded = (read_later(entries, entry) for entry in candidates)
        # What a step changed in an object that nobody can store: a later step replays without it, others do not.
        changed = frozenset().union(*map(replayed_without, candidates))
        below = self._senses.read_below(name, False) - changed | self._senses.read_below(name, True)
        return asked.union(*recorded, below & lost)

    def inputs(
        self, names: Iterable[str], parsed: Any, *, ignore: Sequence[str] = (), seen: Seen = NOTHING_SEEN
    ) -> dict[str, Input]:
        """Inputs for the names, and for every name that functions among them read."""
        found = {}
        for name, digested in self._senses.reached(names, parsed, seen).items():
            if name in ignore:
                continue
            if (made_by := self._ledger.resources.get(name)) is not None:
                # A resource is rebuilt in every run and never counts as changed (--always).
                found[name] = Input(name, text_digest("resource", *made_by), True, producer=made_by[0], type="resource")
                continue
            value = self._senses.value(name)
            absent = digested.digest == ABSENT
            if is_module(name):
                found[name] = Input(name, digested.digest, digested.weak, digested.reason, type="module")
                continue
            found[name] = Input(
                name,
                digested.digest,
                digested.weak,
                "absent" if absent else self._senses.preview(name, value),
                self._ledger.producers.get(name, ""),
                "" if absent else self._senses.kind_of(value),
            )
        return found

"""Puts names back without running a cell (DESIGN 5, Restore): definitions first, then values, then what has no name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from keel_notebook.core.chain import chain
from keel_notebook.core.former import former, spelled_out
from keel_notebook.core.missing import to_run
from keel_notebook.core.model import Digest, Entry, EntryId
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.restore import Holdings, Lost, asked_for, called, holdings, lacking, names_of, steps_back
from keel_notebook.core.units import local_second
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.references import Read
from keel_notebook.engine.runner import Runner
from keel_notebook.errors import KeelError, UntrustedError


class RestoreReport(Struct):
    """What came back, and what did not with the reason for each."""

    restored: tuple[str, ...] = ()
    missing: tuple[Lost, ...] = ()
    defined: tuple[str, ...] = ()
    """Cells whose imports, functions and classes were defined."""
    not_put_back: tuple[str, ...] = field(default=())
    ran: tuple[str, ...] = ()
    """Cells that were run because nothing held what they make or change (`--run`)."""
    made: tuple[str, ...] = ()
    """Names that these cells made anew."""
    former: tuple[Lost, ...] = ()
    """Names that came back as they were once, with when that was and why it is not current."""

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "restored": list(self.restored),
            "missing": [{"name": lost.name, "reason": lost.reason} for lost in self.missing],
            "defined": list(self.defined),
            "ran": list(self.ran),
            "made": list(self.made),
            "former": [{"name": lost.name, "reason": lost.reason} for lost in self.former],
        }

    def __str__(self) -> str:
        lines = [f"restored without running a cell: {', '.join(self.restored) or 'nothing'}"]
        lines += [f"not current: {lost.name} ({lost.reason})" for lost in self.former]
        if self.defined:
            lines.append("defined: the imports, functions and classes of plain cells")
        if self.ran:
            lines.append(f"ran, because no record holds what they make or change: {', '.join(self.ran)}")
        if self.made:
            lines.append(f"made anew by running them: {', '.join(self.made)}")
        lines += [f"not restored: {lost.name} ({lost.reason})" for lost in self.missing]
        lines += [f"not put back: {what}" for what in self.not_put_back]
        return "\n".join(lines)

    __repr__ = __str__


class Restorer:
    """Restores one kernel's notebook."""

    def __init__(
        self,
        *,
        runner: Runner,
        ledger: Ledger,
        shell: Any,
        in_file: Callable[[str], bool],
        written: Callable[[str], str | None],
    ) -> None:
        """``in_file`` as for ``core.chain``, ``written`` as for ``core.former``."""
        self._written = written
        self._runner = runner
        self._ledger = ledger
        self._shell = shell
        self._in_file = in_file
        self._restored: dict[str, Digest | None] = {}
        """What names that were restored hold; nothing runs in between."""

        self._brought: set[EntryId] = set()
        self._read: Read = {}
        """Records that others refer to, read once."""

    def restore(self, records: FlowRecords, names: Sequence[str] = (), *, run: bool = False) -> RestoreReport:
        """Everything that the newest run had, or the named names, or what the named steps made. Names that are there
        now are left alone unless they are asked for. With ``run``, the cells that make what no record holds run.

        Raises UntrustedError (E050) where the records were written by somebody else.
        """
        if records.untrusted:
            raise UntrustedError(what="what is recorded of this notebook", id=self._ledger.journal_id)
        cells = chain(records, in_file=self._in_file)
        holding = holdings(records.entries, cells)
        fresh = not self._ledger.producers
        by_name = bool(names)
        names, unknown = spelled_out(names, holding, records.entries)
        if by_name and not names:
            return RestoreReport(missing=unknown)
        wanted = frozenset(asked_for(holding, names, self._shell.user_ns))
        lost = [item for item in holding.lost if not names or item.name in names]
        lost += unknown
        defined = [] if names else self._define(holding.definitions, lost)
        restored: set[str] = set()
        failed: list[str] = []
        source = {name: holding.recorded[name] if names else holding.held[name] for name in wanted}
        place = {entry.entry: at for at, entry in enumerate(holding.order)}
        entries = {entry.entry: entry for entry in source.values()}.values()
        for entry in sorted(entries, key=lambda e: (place.get(e.entry, -1), e.run, e.seq)):
            mine = frozenset(name for name, held in source.items() if held.entry == entry.entry)
            failed += self._bring(entry, mine, restored, lost)
        if fresh and not names:  # a kernel in which cells ran has settings of its own
            for entry in holding.settings:
                failed += self._runner.put_settings_back(entry)
        back = steps_back(holding, {name for name, entry in holding.held.items() if self._has(name, entry)})
        # By name only what was asked for counts: a step that left no name is back with the whole session.
        self._ledger.restored |= {s: e for s, e in back.items() if not names or e in self._brought}
        held: dict[EntryId, list[str]] = {}
        for name in sorted(restored):
            held.setdefault(source[name].entry, []).append(name)
        self._runner.restored(records.flow, held, [entry.entry for entry in defined])
        gone = {item.name: item for item in lost if item.name not in restored}
        texts = tuple(dict.fromkeys(called(entry) for entry in defined))
        came = {name: source[name] for name in restored}
        once = former(came, holding, records.entries, written=self._written, when=local_second)
        report = RestoreReport(
            tuple(sorted(restored)), tuple(gone.values()), texts, tuple(dict.fromkeys(failed)), former=once
        )
        return self._run(records.entries, cells, holding, report) if run else report

    def _has(self, name: str, entry: Entry) -> bool:
        """Whether a name is there, and no other cell made it than the one that the entry tells of."""
        there = "." in name or name in self._shell.user_ns
        return there and self._ledger.producers.get(name) == called(entry)

    def _run(
        self, entries: Sequence[Entry], cells: Sequence[Entry], holding: Holdings, report: RestoreReport
    ) -> RestoreReport:
        """Run the cells behind what is missing, each from the values that it had, then put newer values back."""
        space = self._shell.user_ns
        gone = [lost for lost in report.missing if lost.name not in space]
        ran: list[str] = []
        stopped = ""
        aside: set[str] = set()
        owed = list(to_run(entries, cells, [lost.name for lost in gone]))
        for cell in list(owed):
            if cell.by_hand:
                stopped = f"run {cell.cell} yourself: it {cell.by_hand}"
                break
            for name, entry in cell.start.items():
                self._runner.restore(entry, frozenset({name}), {}, self._read)
            aside |= cell.start.keys() | {item.name for item in cell.entry.writes}
            result = self._shell.run_cell(cell.entry.source, store_history=False)
            if not result.success:
                stopped = f"{cell.cell} failed"
                break
            ran.append(cell.cell)
            del owed[0]
        for entry in holding.order:
            mine = frozenset(n for n in aside if n in holding.held and holding.held[n].entry == entry.entry)
            if mine:
                self._runner.restore(entry, mine, {}, self._read)
        came = {lost.name for lost in gone if lost.name in space}
        older = {name: cell.cell for cell in reversed(owed) for name in cell.made & came}
        left = [Lost(lost.name, stopped or lost.reason) for lost in report.missing if lost.name not in came]
        left += [Lost(name, f"made anew, {cell} below it did not run: {stopped}") for name, cell in older.items()]
        return replace(report, missing=tuple(left), ran=tuple(ran), made=tuple(sorted(came - older.keys())))

    def _bring(self, entry: Entry, names: frozenset[str], restored: set[str], lost: list[Lost]) -> Sequence[str]:
        try:
            came = self._runner.restore(entry, names, self._restored, self._read)
        except Exception as error:  # noqa: BLE001 a record that cannot be read affects its own step only (C56)
            reason = (
                str(error) if isinstance(error, KeelError) else f"its record cannot be read: {type(error).__name__}"
            )
            lost += [Lost(name, f"run {called(entry)}: {reason}") for name in sorted(names)]
            return ()
        lost += [Lost(name, f"run {called(entry)}: {reason}") for name, reason in came.lost.items()]
        restored |= came.names
        self._restored |= {item.name: item.digest for item in entry.writes if item.name in came.names}
        # Only what came back is the step's: a name that was left alone holds what somebody else gave it.
        self._ledger.ran(replace(entry, writes=tuple(item for item in entry.writes if item.name in came.names)))
        if not came.lost:
            self._brought.add(entry.entry)
        return came.failed

    def _define(self, definitions: Sequence[tuple[Entry, str]], lost: list[Lost]) -> list[Entry]:
        defined: dict[EntryId, Entry] = {}
        space = self._shell.user_ns
        there = frozenset(space)  # of two definitions of one name the last one counts
        for entry, whole in definitions:
            if not (source := lacking(whole, there)):
                continue
            before = dict(space) if names_of(source) == ("*",) else {}
            # Through the shell, so that tracebacks and digests find the text of what is defined here.
            result = self._shell.run_cell(source, store_history=False, silent=True)
            space.update(before)
            if result.success:
                defined[entry.entry] = entry
            else:
                error = result.error_in_exec or result.error_before_exec
                reason = f"run {called(entry)}: {type(error).__name__}"
                lost.append(Lost(source.partition("\n")[0], reason))
        return list(defined.values())

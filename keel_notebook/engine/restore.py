"""Puts names back without running a cell (DESIGN 5, Restore): definitions first, then values, then what has no name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from keel_notebook.core.model import Digest, Entry
from keel_notebook.core.ports import FlowRecords
from keel_notebook.core.restore import Lost, asked_for, holdings
from keel_notebook.engine.ledger import Ledger
from keel_notebook.engine.runner import Runner
from keel_notebook.errors import KeelError, UntrustedError


@dataclass(slots=True)
class RestoreReport:
    """What came back, and what did not with the reason for each."""

    restored: tuple[str, ...] = ()
    missing: tuple[Lost, ...] = ()
    defined: tuple[str, ...] = ()
    """Cells whose imports, functions and classes were defined."""
    not_put_back: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "restored": list(self.restored),
            "missing": [{"name": lost.name, "reason": lost.reason} for lost in self.missing],
            "defined": list(self.defined),
        }

    def __str__(self) -> str:
        lines = [f"restored without running a cell: {', '.join(self.restored) or 'nothing'}"]
        if self.defined:
            lines.append("defined: the imports, functions and classes of plain cells")
        lines += [f"not restored: {lost.name} ({lost.reason})" for lost in self.missing]
        lines += [f"not put back: {what}" for what in self.not_put_back]
        return "\n".join(lines)

    __repr__ = __str__


class Restorer:
    """Restores one kernel's notebook."""

    def __init__(self, *, runner: Runner, ledger: Ledger, shell: Any) -> None:
        self._runner = runner
        self._ledger = ledger
        self._shell = shell
        self._restored: dict[str, Digest | None] = {}
        """What names that were restored hold; nothing runs in between."""

    def restore(self, records: FlowRecords, names: Sequence[str] = ()) -> RestoreReport:
        """Everything that the newest run had, or the named names. Names that are there now are left alone
        unless they are asked for.

        Raises UntrustedError (E050) where the records were written by somebody else.
        """
        if records.untrusted:
            raise UntrustedError(journal="", step="")
        holding = holdings(records.entries)
        wanted = frozenset(asked_for(holding, names, self._shell.user_ns))
        lost = [item for item in holding.lost if not names or item.name in names]
        known = holding.recorded.keys() | {item.name for item in lost}
        lost += [Lost(name, "nothing is recorded under this name") for name in names if name not in known]
        defined = () if names else self._define(holding.definitions, lost)
        restored: set[str] = set()
        failed: list[str] = []
        source = {name: holding.recorded[name] if names else holding.held[name] for name in wanted}
        for entry in sorted({e.entry: e for e in source.values()}.values(), key=lambda e: (e.run, e.seq)):
            mine = frozenset(name for name, held in source.items() if held is entry)
            failed += self._bring(entry, mine, restored, lost)
        gone = {item.name: item for item in lost if item.name not in restored}
        return RestoreReport(tuple(sorted(restored)), tuple(gone.values()), defined, tuple(failed))

    def _bring(self, entry: Entry, names: frozenset[str], restored: set[str], lost: list[Lost]) -> Sequence[str]:
        try:
            failed = self._runner.restore(entry, names, self._restored)
        except Exception as error:  # noqa: BLE001 a record that cannot be read affects its own step only (C56)
            reason = (
                str(error) if isinstance(error, KeelError) else f"its record cannot be read: {type(error).__name__}"
            )
            lost += [Lost(name, f"run step {entry.step}: {reason}") for name in sorted(names)]
            return ()
        restored |= names
        self._restored |= {item.name: item.digest for item in entry.writes if item.name in names}
        self._ledger.ran(entry)
        return failed

    def _define(self, definitions: Sequence[tuple[str, str]], lost: list[Lost]) -> tuple[str, ...]:
        defined: dict[str, None] = {}
        for cell, source in definitions:
            # Through the shell, so that tracebacks and digests find the text of what is defined here.
            result = self._shell.run_cell(source, store_history=False, silent=True)
            if result.success:
                defined[cell] = None
            else:
                error = result.error_in_exec or result.error_before_exec
                lost.append(Lost(source.partition("\n")[0], f"run {cell}: {type(error).__name__}"))
        return tuple(defined)

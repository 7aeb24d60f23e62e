"""Whether the files of a record are as the record needs them (DESIGN 6, Files). Pure.

An input must hold what it held. A product counts for being there: changed by hand it is reported, not made again. But
where the notebook itself changed it (a cell of this kernel, or a record of another state), a plain Run All would end
with what the step writes, and so the step executes. *I don't know* means execute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from keel_notebook.core.model import Digest, Entry, EntryId, FileSeen
from keel_notebook.core.rewritten import Rewritten

ABSENT = Digest("absent")
"""What a name or a file that is not there counts as: a known state, equal to itself."""


PRODUCTS = frozenset({"write", "found", "left", "append", "base"})
"""Roles of files that a step wrote."""
WRITTEN_ONLY = PRODUCTS - {"found"} | {"makes"}
"""Roles of files that a step wrote and did not read."""
_CONTENT = frozenset({"read", "uses", "absent", "stat", "there"})
"""Roles of inputs that a step above may have written."""


AHEAD = "holds what a step below left"
"""How a file that is further on differs from what a step would read there."""
PLAIN = "plain "
"""What stands for a plain cell among steps begins so; its text follows. No step's name has a space in it."""


def same(recorded: Digest | None, current: Digest | None) -> bool:
    """Whether two digests vouch for equal content. Unknown is never equal."""
    return recorded is not None and current is not None and recorded == current


class Later(Struct, frozen=True):
    """What a recorded step did with a file that a step above it left."""

    step: str
    left: Digest
    found: Digest | None = None
    """What it held before, where the step read it and where that is known: else it may have held anything."""


class FilesNow(Struct, frozen=True):
    """The files that the records of a step speak of, as they are now."""

    now: Mapping[str, Digest | None] = field(default_factory=dict)
    """What they hold, by ``FileSeen.asked``; None where that cannot be told."""
    below: Mapping[str, Sequence[Later]] = field(default_factory=dict)
    """What recorded steps below this one did with files, by path."""
    elsewhere: Mapping[str, Mapping[Digest, str]] = field(default_factory=dict)
    """What any record ever left in them, and which step's it is."""
    rewritten: Mapping[str, Rewritten] = field(default_factory=dict)
    """Those that a cell of this kernel changed after this step last left them."""
    ahead: Mapping[str, Digest] = field(default_factory=dict)
    """Files that hold what a step below left already, though the steps above were only replayed: what they would hold
    here had those been executed."""
    unsettled: frozenset[EntryId] = frozenset()
    """Records of this step after which another one began and did not end well: its files may hold half of something."""
    plainly: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)
    """Of the files of steps that a plain cell changed: the run and the place in it of the last one, and its prompt."""
    read_between: Mapping[str, str] = field(default_factory=dict)
    """Of the files that a step below changed: those that a cell before it needs as this step leaves them, and which."""

    def of(self, seen: FileSeen) -> Digest | None:
        """What a file holds now."""
        return self.now.get(seen.asked)

    def of_below(self, path: str, left: Digest | None) -> str:
        """The step below that left what a file holds now, after this step had left ``left`` in it; else empty."""
        now, by = self.now.get(path), self.rewritten.get(path)
        reached, later = {left}, list(self.below.get(path, ()))
        while step := next((each for each in later if each.found is None or each.found in reached), None):
            if step.left == now and (by is None or by.by == f"step {step.step}"):
                return step.step
            reached.add(step.left)
            later.remove(step)
        return ""

    def changed_plainly(self, path: str, entry: Entry) -> bool:
        """Whether a plain cell changed a file after this record was made."""
        run, seq, _ = self.plainly.get(path, (0, 0, ""))
        return (run, seq) > (entry.run, entry.seq)

    def meant(self, seen: FileSeen) -> Digest | None:
        """What an input would hold in a plain Run All at this place."""
        ahead = self.ahead.get(seen.path)
        if ahead is None or seen.role not in _CONTENT:
            return self.of(seen)
        if seen.role == "stat":
            return None  # what its size and time would be is not known
        if seen.role == "there":
            return None if ABSENT in {ahead, self.of(seen)} else self.of(seen)
        return ahead


def holds(seen: FileSeen, files: FilesNow, entry: Entry) -> bool:
    """Whether a file is as a record needs it: an input as it was, a product there and nobody's of this notebook."""
    now, by = files.of(seen), files.rewritten.get(seen.path)
    match seen.role:
        case "left":
            return (by is None and not files.changed_plainly(seen.path, entry)) or same(seen.digest, now)
        case "append":  # a log that somebody rotated, and to which others append, is no reason to append again
            return by is None or by.appended or same(seen.digest, now)
        case "base":
            return by is None or not by.anew  # neither is what others insert
        case "write":  # ``found`` says more where it was read too
            if same(seen.digest, now):
                return True
            if files.of_below(seen.path, seen.digest):
                return seen.path not in files.read_between
            if now == ABSENT or files.changed_plainly(seen.path, entry):
                return False
            settled = entry.entry not in files.unsettled
            return by is None and settled and now not in files.elsewhere.get(seen.path, ())
        case "found":
            left = _left(seen.path, entry)
            if seen.path in files.ahead and not same(seen.digest, files.ahead[seen.path]):
                return False  # a step above left something else, though the file is further on already
            if files.of_below(seen.path, left):
                return seen.path not in files.read_between
            if by is not None and (by.surely or not same(left, now)):
                return False
            return same(seen.digest, now) or same(left, now)
        case _:
            return same(seen.digest, files.meant(seen))


def _left(path: str, entry: Entry) -> Digest | None:
    return next((each.digest for each in entry.files if each.path == path and each.role == "write"), None)


def detail(seen: FileSeen, files: FilesNow, entry: Entry) -> str:
    """In which way a file is not as a record needs it."""
    now = files.of(seen)
    match seen.role:
        case "append" | "left" | "base" | "write" | "found" if (by := files.rewritten.get(seen.path)) is not None:
            return f"was changed by {by.by} since"
        case "write" | "found" if (reader := files.read_between.get(seen.path)) is not None:
            return f"was changed below, and {reader}"
        case "write" | "left" if now != ABSENT and files.changed_plainly(seen.path, entry):
            run, _, prompt = files.plainly[seen.path]
            return f"was changed by plain {prompt} of run {run}: make that cell a step, and none of both runs again"
        case "write" if now in (others := files.elsewhere.get(seen.path, {})) and now is not None:
            return f"holds what {others[now]} left"
    if now == ABSENT:
        return "is missing"
    match seen.role:
        case "write" if now is not None:
            return "was changed, perhaps by a step that did not end well"
        case "list":
            return "holds other names"
        case "glob":
            return "matches other files"
        case "absent":
            return "is there now"
        case "unfinished":
            return "was still being written when the step ended"
        case _ if seen.digest is None and seen.role != "found":
            return "was changed while the step ran, or cannot be compared"
        case _:
            return "cannot be read" if now is None else "changed"


def ahead_after(files: FilesNow, entry: Entry) -> dict[str, Digest | None]:
    """The files of a record that is replayed: what they would hold had it been executed, None where they hold that."""
    wrote = {seen.path: seen.digest for seen in entry.files if seen.role == "write" and seen.digest is not None}
    return {
        path: digest if not same(digest, files.now.get(path)) and files.of_below(path, digest) else None
        for path, digest in wrote.items()
    }


def changed_products(files: FilesNow, entry: Entry) -> list[str]:
    """Files that a step left and that hold something else now, though no recorded step below it left that."""
    return [
        seen.path
        for seen in entry.files
        if seen.role == "write"
        and seen.digest not in (None, ABSENT)
        and files.of(seen) not in (seen.digest, ABSENT, None)
        and not files.of_below(seen.path, seen.digest)
    ]

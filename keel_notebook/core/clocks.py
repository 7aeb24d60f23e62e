"""Known sources of clock and entropy: the one list (DESIGN 5, Volatile).

They raise no audit event and cannot be watched, so they are found by name: by the last two parts of the full name
of what code reads (``datetime.datetime.now`` however it was imported), and by the words of a few strings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from keel_notebook.core.harmless import words
from keel_notebook.core.seeding import dotted

DATES = words(
    """
    datetime.now datetime.utcnow datetime.today date.today Timestamp.now Timestamp.utcnow Timestamp.today
    time.localtime time.gmtime time.ctime time.asctime time.strftime pendulum.now pendulum.today pendulum.yesterday
    pendulum.tomorrow arrow.now arrow.utcnow timezone.now timezone.localdate Period.now Time.now Instant.now
    utils.formatdate
    """
)
"""What tells the date."""
MOMENTS = words("time.time time.time_ns time.clock_gettime uuid.uuid1 uuid.uuid6 uuid.uuid7")
"""What tells the time, mostly to measure how long something takes; ``perf_counter`` and ``monotonic`` tell no time."""
ENTROPY = words(
    """
    uuid.uuid4 os.urandom os.getrandom secrets.token_hex secrets.token_bytes secrets.token_urlsafe secrets.choice
    secrets.randbelow secrets.randbits random.SystemRandom
    posix.urandom posix.getrandom nt.urandom SystemRandom.choice SystemRandom.getrandbits
    """
)
UNSEEDED = words("random.default_rng random.RandomState random.Random random.SeedSequence torch.Generator")
"""Generators that start from entropy where they are given no seed."""

_TAKE_WORDS = words("datetime64 Timestamp to_datetime Period read_sql read_sql_query sql execute query")
_NOW = re.compile(r"^\s*(now|today)\s*$", re.IGNORECASE)
_NOW_IN_SQL = re.compile(
    r"\b(current_date|current_timestamp|current_time|localtimestamp|sysdate|now\(\)|today\(\)|getdate\(\))",
    re.IGNORECASE,
)


class Reads(Struct, frozen=True):
    """Which of the known sources some code may read."""

    date: bool = False
    moment: bool = False
    entropy: bool = False

    @property
    def clock(self) -> bool:
        """Whether it may read a clock at all."""
        return self.date or self.moment

    def __or__(self, other: Reads) -> Reads:
        return Reads(self.date or other.date, self.moment or other.moment, self.entropy or other.entropy)


NOTHING = Reads()


def of_name(full: str) -> Reads:
    """What is known of a thing by its full name."""
    last = ".".join(full.split(".")[-2:])
    return Reads(date=last in DATES, moment=last in MOMENTS, entropy=last in ENTROPY)


def reads_in(tree: ast.AST, full: Callable[[str], str]) -> tuple[Reads, frozenset[str]]:
    """What code reads by itself, and the dotted names in it that may be functions worth a look.

    ``full`` gives the full name behind a dotted one (``"dt.date.today"``), where it is known from outside.
    """
    imported = dict(_imports(tree))
    found, others = NOTHING, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found |= _of_call(node, imported, full)
        elif isinstance(node, ast.Attribute | ast.Name) and (name := dotted(node)):
            root, dot, rest = name.partition(".")
            whole = imported[root] + dot + rest if root in imported else full(name)
            found |= of_name(whole)
            others.add(name)
    return found, frozenset(others)


def _of_call(call: ast.Call, imported: dict[str, str], full: Callable[[str], str]) -> Reads:
    name = dotted(call.func)
    root, dot, rest = name.partition(".")
    whole = imported[root] + dot + rest if root in imported else full(name)
    last_two = ".".join(whole.split(".")[-2:])
    if last_two in UNSEEDED and not any(_given(arg) for arg in [*call.args, *(k.value for k in call.keywords)]):
        return Reads(entropy=True)
    if name.rpartition(".")[2] in _TAKE_WORDS:
        texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if any(_NOW.search(text) or _NOW_IN_SQL.search(text) for text in texts):
            return Reads(date=True)
    return NOTHING


def _given(arg: ast.expr) -> bool:
    return not (isinstance(arg, ast.Constant) and arg.value is None)


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (first, first)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"

"""Names hidden in strings: ``duckdb.sql("from df")``, ``df.query("v > @limit")``, ``"y ~ x"`` (traps 5).

A string names a variable in two ways. A *sigil* (``@name``, ``$name``, ``{name}``, ``:name``) may name anything.
A plain *word* names a frame, table, array or relation, and only where the string is a query: it goes to a call
such as ``sql`` or ``query``, or it reads like SQL. Prose, TeX and format strings must not become inputs, because
a false input executes a step for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from keel_notebook.core.harmless import ANY_WORD, words

QUERY_CALLS = words(
    """
    sql query execute executemany eval assign_sql read_sql read_sql_query read_sql_table from_query sqldf run_query
    sql_query scan from_formula formula ols gls wls glm logit probit poisson mixedlm rlm quantreg gee dmatrix
    dmatrices aov lmer feols evaluate table view aes
    """
)
"""Calls whose string arguments name frames and arrays of the caller. ``smf.ols("y ~ x")`` reads ``x`` where the
frame has no such column, DuckDB and pandasql any frame."""

TABLES = frozenset({"frame", "table", "array", "relation"})
"""Kinds of value that a plain word of a query can name."""

UNKNOWN_MAGIC = "%line"
"""Stands for the call of a text on the line of a magic that nobody here knows."""

A_VALUE = "="
"""Stands for the call of a text that is the value of a name: where it will go is not known."""

_LONGEST = 200_000
_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*\(*\s*(?=(\w+))(?:select\b|from\s+[\w\"'(\[]|with\s+(?:recursive\s+)?\w+\s*(?:\([^)]*\)\s*)?as\b|"
    r"insert\s+(?:or\s+\w+\s+)?into\b|create\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?(?:table|view|macro)\b|"
    r"copy\s+[\w(\"]|update\s+\w+\s+set\b|delete\s+from\b|merge\s+into\b|(?:un)?pivot\s+\w|describe\s+\w+\s*;?\s*$|"
    r"summarize\s+\w+\s*;?\s*$|explain\s+\w|values\s*\()",
    re.IGNORECASE,
)
_FORMULA = re.compile(r"[\w\s.()\[\]+*:^|-]*~[\w\s.,()\[\]+*:^|/-]+")
_WORD = re.compile(r"(?<![\w.'])[A-Za-z_]\w*|(?<=\")[A-Za-z_]\w*(?=\")")
_AT = re.compile(r"(?<![\w.@])@([A-Za-z_]\w*)")
_COLON = re.compile(r"(?<![\w:/\]\)\\]):([A-Za-z_]\w*)\b(?!:)")
_DOLLAR = re.compile(r"(?<![\w$\\])\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))(?![\w$])")
_BRACE = re.compile(r"(?<![\w{}$^\\])\{([A-Za-z_]\w*)(?:![rsa])?(?::[^{}]*)?\}(?!\})")
_TEMPLATE = re.compile(r"\{\{?\s*([A-Za-z_]\w*)")
_TEX = re.compile(r"\\[A-Za-z]+|\$[^$\n]*[\\^_{][^$\n]*\$|\$[^$\s]{1,3}\$")


class Text(Struct, frozen=True):
    """A string constant of a cell and the call that it goes to (the last part of its name, or ``""``).

    ``given`` are names that it does not take from outside: ``"{x}".format(x=1)`` reads no variable ``x``, and in
    ``df = load(); duckdb.sql("from df")`` the ``df`` is the cell's own.
    """

    value: str
    call: str = ""
    given: frozenset[str] = frozenset()


class Named(Struct, frozen=True):
    """What a cell's strings may name: ``sigils`` anything, ``words`` of queries tables, ``free`` words anything.

    ``whole`` are texts of one word: where a query is put together (``f"from {which}"``), they may name its tables.
    """

    sigils: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()

    def __or__(self, other: Named) -> Named:
        return Named(
            self.sigils | other.sigils, self.words | other.words, self.free | other.free, self.whole | other.whole
        )

    def __bool__(self) -> bool:
        return bool(self.sigils or self.words or self.free or self.whole)

    @property
    def every(self) -> frozenset[str]:
        """All names of which it matters whether they exist."""
        return self.sigils | self.words | self.free

    def among(self, existing: Mapping[str, str]) -> frozenset[str]:
        """The names that exist, given the kind of every existing name (``"frame"``, ``"plain"``, ``"module"`` …)."""
        code = {"module", "class"}
        found = {name for name in self.sigils if existing.get(name, "module") not in code}
        found |= {name for name in self.words if existing.get(name) in TABLES}
        return frozenset(found | {name for name in self.free if existing.get(name, "module") != "module"})

    def tables(self, existing: Mapping[str, str]) -> frozenset[str]:
        """The tables of the notebook that a query may be put together with."""
        return frozenset(name for name in self.whole if existing.get(name) in TABLES)


NOTHING = Named()


def named(texts: Iterable[Text]) -> Named:
    """What the texts may name, before anybody looks at what exists."""
    found = NOTHING
    for text in texts:
        found |= _named(text)
    return found


def hidden_names(texts: Iterable[Text], existing: Mapping[str, str]) -> frozenset[str]:
    """The names of the notebook that the texts name.

    Args:
        texts: string constants of a cell, or string values that it reads.
        existing: kind of every name that exists; see ``Named.among``.
    """
    return named(texts).among(existing)


def _named(text: Text) -> Named:
    value = text.value[:_LONGEST]
    formula = "~" in value and _FORMULA.fullmatch(value) is not None
    query = formula or text.call == ANY_WORD or text.call in QUERY_CALLS or text.call.startswith("%") or _is_sql(value)
    if not query and value.isidentifier():
        return Named(whole=frozenset({value}))
    if not query:
        if not any(sign in value for sign in "@${"):
            return NOTHING
        bare = _TEX.sub(" ", value)
        if text.call == A_VALUE:
            return Named(frozenset(_AT.findall(bare)))  # braces and dollars of a prompt or a path name nothing
        return Named(_sigils(bare).union(_BRACE.findall(bare)) - text.given)
    words = frozenset(_WORD.findall(value)) - text.given
    sigils = _sigils(value).union(_TEMPLATE.findall(value), _COLON.findall(value)) - text.given
    # A formula may call functions of the notebook, and the line of a magic that nobody knows
    # (`%Rpush df`, `%%R -i df`) may name anything at all.
    return Named(sigils, words, words if formula or text.call in (UNKNOWN_MAGIC, ANY_WORD) else frozenset())


def _is_sql(text: str) -> bool:
    match = _SQL.match(text)
    if match is None:
        return False
    keyword = match[1]
    return keyword in (keyword.lower(), keyword.upper())  # "Select the best …" is prose


def _sigils(text: str) -> frozenset[str]:
    return frozenset(_AT.findall(text)).union(a or b for a, b in _DOLLAR.findall(text))

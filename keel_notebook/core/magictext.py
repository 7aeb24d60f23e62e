"""What the text of a magic or shell line hides: the Python it runs, the names it expands and binds.

IPython turns ``%time y = f(x)`` into ``get_ipython().run_line_magic('time', 'y = f(x)')``: for a reader of the
syntax tree the names ``y``, ``f`` and ``x`` are gone. ``unveil`` replaces such calls by ``Magic`` nodes that
carry the hidden code as a tree again.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from msgspec import Struct

from keel_notebook.core.harmless import words

Transform = Callable[[str], str]
"""Turns IPython's syntax into Python: ``shell.transform_cell``."""


class Scope(StrEnum):
    """Where the Python in a magic's text runs."""

    CELL = "cell"
    """In the notebook's namespace, once, as if it stood in the cell."""
    OWN = "own"
    """In a namespace of its own that reads the notebook's (``%timeit``)."""
    MAYBE = "maybe"
    """Nobody here knows the magic: its text parses as Python and may run."""
    UNREADABLE = "unreadable"
    """It runs the text, and the text does not parse."""


class Magic(ast.expr):
    """A magic or shell call, with what its text hides.

    ``line`` is the text on the magic's own line that is not code, ``text`` what is neither code nor options.
    ``args`` are the expressions that IPython expands in the text (``$x``, ``{expr}``). ``source`` is the text of
    ``body`` as IPython compiles it: places in ``body`` are places in it, not in the cell.
    """

    _fields = ("form", "name", "line", "text", "scope", "body", "args", "binds")
    form: str
    name: str
    line: str
    text: str
    scope: Scope
    body: list[ast.stmt]
    args: list[ast.expr]
    binds: tuple[str, ...]
    source: str

    def __init__(self, form: str, name: str, **parts: Any) -> None:
        empty = {"line": "", "text": "", "scope": Scope.OWN, "body": [], "args": [], "binds": (), "source": ""}
        super().__init__()
        self.__dict__.update(empty | parts, form=form, name=name)


class _Runs(Struct, frozen=True):
    scope: Scope = Scope.CELL
    flags: str = ""
    valued: str = ""


_RUNS = {
    "time": _Runs(),
    "timeit": _Runs(Scope.OWN, "tcqo", "nrpv"),
    "prun": _Runs(Scope.CELL, "rq", "DlsT"),
    "capture": _Runs(),
    "debug": _Runs(Scope.CELL, "", "b"),
    "keel_step": _Runs(),
    "lprun": _Runs(Scope.CELL, "rsz", "fmDTu"),
    "mprun": _Runs(Scope.CELL, "rc", "fT"),
    "memit": _Runs(Scope.OWN, "co", "rti"),
    "snakeviz": _Runs(Scope.CELL, "t", "f"),
    "pyinstrument": _Runs(),
    "scalene": _Runs(),
    "viztracer": _Runs(),
}
"""Magics that run Python in the notebook, with their one-letter options."""

RUNNING = frozenset(_RUNS)
_TEXT_ONLY = words(
    """
    alias autoawait autocall autoindent autoreload bash bookmark cat cd clear cls colors conda config connect_info
    cp dhist dirs env gui html javascript js latex ldir less load_ext logoff logon logstart logstate logstop ls
    lsmagic magic mamba man markdown matplotlib micromamba mkdir more mv notebook pdb perl pfile pip popd precision
    prompt pushd pwd quickref reload_ext rm rmdir ruby script set_env sh svg sx system tb unalias unload_ext uv
    writefile xmode file sql sqlcmd sqlplot keel keel_undo
    """
)
"""Magics whose text is never run as Python in the notebook."""


def unveil(tree: ast.Module, transform: Transform) -> ast.Module:
    """The tree with every magic and shell call replaced by a ``Magic`` node, in place."""
    unveiled = _Unveil(transform).visit(tree)
    assert isinstance(unveiled, ast.Module)
    return unveiled


class _Unveil(ast.NodeTransformer):
    def __init__(self, transform: Transform) -> None:
        self._transform = transform

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute) or node.keywords:
            return node
        texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        if len(texts) != len(node.args):
            return node
        match node.func.attr, texts:
            case "run_cell_magic", [name, line, body]:
                magic = self._magic("cell", name, line, body)
            case "run_line_magic", [name, line]:
                magic = self._magic("line", name, line, "")
            case "system" | "getoutput", [line] if _is_shell(node.func.value):
                magic = Magic("shell", node.func.attr, text=line, args=expansions(line))
            case _:
                return node
        return ast.copy_location(magic, node)

    def _magic(self, form: str, name: str, line: str, body: str) -> Magic:
        runs = _RUNS.get(name)
        if runs is not None:
            return self._running(runs, form, name, line, body)
        magic = Magic(form, name, line=line, text=body, args=expansions(line))
        if name not in _TEXT_ONLY:
            try:
                self._fill(magic, body if form == "cell" else line)
                magic.scope = Scope.MAYBE
            except (SyntaxError, ValueError):
                magic.scope = Scope.OWN  # SQL, R, …: only its words can name something
        return magic

    def _running(self, runs: _Runs, form: str, name: str, line: str, body: str) -> Magic:
        options, code = _split_options(line, runs)
        if name == "capture":
            output = next((word for word in line.split() if not word.startswith("-")), "")
            options, code = line, ""
            binds = (output,) if output.isidentifier() else ()
        else:
            binds = ()
        magic = Magic(form, name, line=options, scope=runs.scope, binds=binds)
        try:
            self._fill(magic, "\n".join(text for text in (code, body) if text.strip()))
        except (SyntaxError, ValueError):
            magic.text, magic.scope = code + "\n" + body, Scope.UNREADABLE
        return magic

    def _fill(self, magic: Magic, text: str) -> None:
        if text.strip():
            magic.source = self._transform(text)
            magic.body = unveil(ast.parse(magic.source), self._transform).body


def _is_shell(receiver: ast.expr) -> bool:
    return isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Name) and receiver.func.id == "get_ipython"


def _split_options(line: str, runs: _Runs) -> tuple[str, str]:
    options, rest = [], line.strip()
    while match := re.match(r"(--[a-z][\w-]*|-([A-Za-z])(\S*))(?:\s+|$)", rest):
        word, letter, attached = match.groups()
        if letter and letter not in runs.flags + runs.valued:
            break
        options.append(word)
        rest = rest[match.end() :]
        if letter and letter in runs.valued and not attached:
            value, _, rest = rest.partition(" ")
            options.append(value)
            rest = rest.lstrip()
    return " ".join(options), rest


def expansions(text: str) -> list[ast.expr]:
    """The expressions that IPython puts into a line before it runs: ``{expr}``, ``$name``, ``$name.attr``."""
    found: list[str] = []
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError:
        return []  # unbalanced braces: IPython then leaves the whole line as it is
    for literal, field, _, _ in pieces:
        found.extend(_dollars(literal))
        if field:
            found.append(field)
    return [node for node in map(_expression, found) if node is not None]


def _dollars(literal: str) -> Iterator[str]:
    for match in re.finditer(r"(\$+)([A-Za-z_][\w.]*)", literal):
        in_quotes = literal.count("'", match.end()) % 2
        if len(match[1]) == 1 and not in_quotes:
            yield match[2].rstrip(".")


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None

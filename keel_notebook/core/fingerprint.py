"""The digest of code: of the normalised syntax tree, never of text or byte code (C27, STYLE rule 10).

Comments, blank lines, quotes, parentheses and line breaks do not count; every string does, docstrings included,
and ``1``, ``1.0`` and ``True`` differ. The walk skips empty fields, so that a Python version that knows more
syntax gives the same digest for code that does not use it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from keel_notebook.core.cellcode import ParsedCell, parse_cell
from keel_notebook.core.ids import text_digest
from keel_notebook.core.magictext import Magic, Transform
from keel_notebook.core.model import Digest

_FORMAT = "code/v1"
_NOT_CODE = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def code_digest(parsed: ParsedCell) -> Digest:
    """The digest of a cell's code. A closing ``;`` counts where it hides the cell's last value."""
    return text_digest(_FORMAT, "quiet" if parsed.quiet else "", _flat_text(parsed.tree))


def definition_digest(node: ast.AST) -> Digest:
    """The digest of one ``def``, ``lambda`` or ``class``, decorators included."""
    return text_digest(_FORMAT, "definition", _flat_text(node))


def format_only(old: str, new: str, *, transform: Transform) -> bool:
    """Whether two cells, as IPython compiles them, differ in formatting and comments at most (C27)."""
    try:
        return code_digest(parse_cell(old, transform=transform)) == code_digest(parse_cell(new, transform=transform))
    except (SyntaxError, ValueError):
        return False


def _flat_text(tree: ast.AST) -> str:
    """The tree in prefix form, one line for each part.

    Iterative, because a sum of ten thousand terms is deeper than the stack. No part holds a line break: names
    have none, and literals are written in ASCII with escapes.
    """
    out: list[str] = []
    todo: list[Any] = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, ast.AST):
            special = _SPECIAL.get(type(item))
            todo += special(item) if special is not None else _fields(item)
        elif isinstance(item, list):
            out.append(f"[{len(item)}")
            todo += ["-" if part is None else part for part in reversed(item)]  # `{**x}` has a key of None
        else:
            out.append(_literal(item))
    return "\n".join(out)


def _fields(node: ast.AST) -> list[Any]:
    """What is left to write of a node, last part first. The count says where the node ends."""
    parts: list[Any] = []
    count = 0
    for name in reversed(node._fields):
        part = getattr(node, name, None)
        if part is not None and part != [] and name not in _NOT_CODE:
            parts += (part, "." + name)
            count += 1
    parts.append(f"{type(node).__name__} {count}")
    return parts


def _constant(node: ast.Constant) -> list[Any]:
    return [_literal(node.value)]


def _delete(node: ast.Delete) -> list[Any]:
    return [[part for target in node.targets for part in _targets(target)], "Delete"]  # `del (a, b)` is `del a, b`


def _targets(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return [part for inner in target.elts for part in _targets(inner)]
    return [target]


def _magic(node: Magic) -> list[Any]:
    body = node.body if node.text == "" else []
    return [body, ascii(node.text), ascii(node.line.strip()), f"magic {node.form} {node.name!a}"]


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return f"= {value}"
    if isinstance(value, int):
        return f"= int {value:x}"  # hexadecimal: str() refuses very long decimals
    return f"= {type(value).__name__} {value!a}"


_SPECIAL: dict[type[ast.AST], Callable[..., list[Any]]] = {
    ast.Constant: _constant,
    ast.Delete: _delete,
    Magic: _magic,
}

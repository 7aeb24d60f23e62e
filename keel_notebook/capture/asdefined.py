"""Whether a function or class still is what its statement made of it, as far as the text alone can tell."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from keel_notebook.capture.parts import IMMUTABLE

_UNKNOWN = object()


def as_defined(thing: type | FunctionType, text: str) -> bool:
    """Whether carrying out ``text``, one ``def`` or ``class`` statement, would give the thing as it is now.

    A value that the text computes counts as unchanged where its type never changes, else as unknown, and so not.
    """
    node = ast.parse(text).body[0]
    if isinstance(thing, FunctionType):
        assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        given = [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        written = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
        plain = bool(node.decorator_list) or not thing.__dict__
        return plain and len(given) == len(written) and all(map(_unchanged, given, written))
    assert isinstance(node, ast.ClassDef)
    body = dict(_bound(node.body))
    held = {name: value for name, value in vars(thing).items() if not (name[:2] == name[-2:] == "__")}
    held = {name: value for name, value in held.items() if type(value).__name__ != "_abc_data"}
    if _generated(node):  # a decorator, base or metaclass adds and takes away what stands nowhere in the text
        return type(thing).__name__ not in ("type", "ABCMeta") or all(
            _unchanged(value, body[name]) for name, value in held.items() if name in body
        )
    missing = {name for name in body.keys() - held.keys() if name[:2] != "__"}
    return not missing and all(name in body and _unchanged(value, body[name]) for name, value in held.items())


def _generated(node: ast.ClassDef) -> bool:
    return bool(node.decorator_list or node.bases or node.keywords)


def _bound(body: Iterable[ast.stmt]) -> Iterable[tuple[str, ast.AST | None]]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                yield name, value
            case _:
                yield from ((part.id, None) for part in ast.walk(node) if isinstance(part, ast.Name) and _stores(part))


def _stores(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _unchanged(value: Any, written: ast.AST | None) -> bool:
    if isinstance(written, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return written.name == getattr(getattr(value, "__func__", value), "__name__", written.name)
    try:
        literal = ast.literal_eval(written) if isinstance(written, ast.expr) else _UNKNOWN
    except (ValueError, TypeError, SyntaxError):
        literal = _UNKNOWN
    if literal is _UNKNOWN:
        return type(value) in IMMUTABLE or isinstance(value, type | FunctionType)
    return type(value) is type(literal) and bool(value == literal)

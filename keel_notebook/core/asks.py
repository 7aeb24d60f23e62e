"""What code asks of values beside what they hold: which of them are one object, and how arrays lie in memory.

Digests ignore both (DESIGN 5), so that a copy is as good as the original. Code that asks, such as ``a is b`` or
``a.flags``, makes them inputs of its step. Found by name; each list errs to the safe side.
"""

from __future__ import annotations

import ast
import functools

from msgspec import Struct

from keel_notebook.core.harmless import last_name, words

_IDENTITY_CALLS = words(
    """
    id deepcopy is_ is_not shares_memory may_share_memory byte_bounds getrefcount get_referrers data_ptr
    """
)
"""``deepcopy`` copies what is held twice once."""
_PICKLERS = words("pickle cPickle cloudpickle dill joblib torch marshal")
_IDENTITY_ATTRIBUTES = words("base owndata OWNDATA")
_LAYOUT = words(
    """
    flags strides f_contiguous c_contiguous F_CONTIGUOUS C_CONTIGUOUS fnc forc isfortran is_contiguous stride
    ravel reshape view tobytes nditer __array_interface__ __cuda_array_interface__ ctypes
    """
)
"""``a.ravel()`` and ``a.reshape(…)`` are views or copies, as the array lies."""
_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_EQUALITY_CALLS = words(
    """
    set frozenset dict Counter index remove count unique hash eq ne discard add setdefault fromkeys groupby lru_cache
    """
)
_ORDERS = frozenset({"A", "K"})
_ALONE = (ast.Constant, ast.JoinedStr)


class Asks(Struct, frozen=True):
    """What some code asks."""

    identity: bool = False
    layout: bool = False
    equality: bool = False
    """Whether it compares or looks up: objects without an equality of their own are equal to nothing but themselves."""
    augmented: frozenset[str] = frozenset()
    """Names of statements like ``x += 1``, which change what ``x`` holds where that can be changed."""

    def __or__(self, other: Asks) -> Asks:
        return Asks(
            self.identity or other.identity,
            self.layout or other.layout,
            self.equality or other.equality,
            self.augmented | other.augmented,
        )


NOTHING = Asks()


def asks(tree: ast.AST) -> Asks:
    """What the code of a cell, a function or a class asks."""
    identity = layout = equality = False
    augmented = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=ops):
                identity = identity or _compares_objects(node)
                equality = equality or any(isinstance(op, _EQUALITIES) for op in ops)
            case ast.Call(func=func):
                identity = identity or last_name(func) in _IDENTITY_CALLS or _pickles(func)
                equality = equality or last_name(func) in _EQUALITY_CALLS
            case ast.Set() | ast.SetComp() | ast.DictComp() | ast.Dict(keys=[_, *_]):
                equality = True
            case ast.Attribute(attr=name):
                identity, layout = identity or name in _IDENTITY_ATTRIBUTES, layout or name in _LAYOUT
            case ast.AugAssign(target=ast.Name(id=name)):
                augmented.add(name)
            case ast.Constant(value=str(text)):
                layout = layout or text in _ORDERS
            case ast.Name(id=name):
                layout = layout or name in _LAYOUT
    return Asks(identity, layout, equality, frozenset(augmented))


@functools.lru_cache(maxsize=1024)
def asks_of_text(source: str) -> Asks:
    """The same for the text of a function or class; for one that does not stand alone, everything."""
    try:
        return asks(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return _read_roughly(source)


def _read_roughly(source: str) -> Asks:
    """A method or a lambda out of the middle of a cell does not parse: its words have to do."""
    found = set(source.replace("(", " ").replace(".", " ").replace(")", " ").split())
    return Asks(bool(found & (_IDENTITY_CALLS | _IDENTITY_ATTRIBUTES | {"is"})), bool(found & _LAYOUT), equality=True)


def _compares_objects(node: ast.Compare) -> bool:
    """Whether ``is`` stands between two things that may be values of the notebook."""
    sides = [node.left, *node.comparators]
    pairs = zip(sides, node.ops, sides[1:], strict=False)
    return any(isinstance(op, ast.Is | ast.IsNot) and not (_is_fixed(a) or _is_fixed(b)) for a, op, b in pairs)


def _is_fixed(side: ast.expr) -> bool:
    """``None``, ``type(x)``: what is the same object whoever holds it."""
    return isinstance(side, _ALONE) or (isinstance(side, ast.Call) and last_name(side) == "type")


def _pickles(func: ast.expr) -> bool:
    dumps = last_name(func) in {"dump", "dumps", "save"}
    return dumps and isinstance(func, ast.Attribute) and last_name(func.value) in _PICKLERS

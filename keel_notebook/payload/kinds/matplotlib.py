"""Kinds of matplotlib: figures without their window (C59).

A transform knows those that are built on it by where they lie in memory, which is another place in every process.
A figure remembers that pyplot shows it; brought back so, it would open a second window and be drawn again at the end
of the cell. And a registry of callbacks counts up whenever somebody looks at it, which is no change of the figure.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind


def kinds() -> Iterator[Kind]:
    """All of them."""
    figure = sys.modules["matplotlib.figure"].Figure
    yield Kind("matplotlib.figure", figure, _not_plain, _not_plain, native=True, compare=_compare_figure)
    registry = sys.modules["matplotlib.cbook"].CallbackRegistry
    yield Kind("matplotlib.callbacks", registry, _not_plain, _not_plain, native=True, compare=lambda _: ())
    for transform in _below(sys.modules["matplotlib.transforms"].TransformNode):
        yield Kind("matplotlib.transform", transform, _not_plain, _not_plain, native=True, compare=_compare_transform)


def windowless(reduced: tuple[Any, ...]) -> tuple[Any, ...]:
    """What pickle makes of a figure, without the window."""
    func, args, state, *rest = reduced
    return func, args, {key: value for key, value in state.items() if key != "_restore_to_pylab"}, *rest


def _not_plain(_: Any) -> None:
    return None


def _below(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for each in type.__subclasses__(cls):
        yield from _below(each)


def _compare_transform(node: Any) -> tuple[Any, ...] | None:
    func, args, state, *rest = node.__reduce_ex__(5)
    if type(state) is not dict:
        return None
    return func, args, {key: value for key, value in state.items() if key != "_parents"}, *rest


def _compare_figure(figure: Any) -> tuple[Any, ...]:
    return windowless(figure.__reduce_ex__(5))

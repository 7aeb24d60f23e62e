"""Digests of values: equal exactly when the values are equal in structure, in every process (DESIGN 5, *Valid*)."""

from __future__ import annotations

from typing import Any

from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Definitions, Digested
from keel_notebook.payload.graphs import GraphWalk
from keel_notebook.payload.memory import Contents, quiet_gc
from keel_notebook.payload.paths import path_to
from keel_notebook.payload.shapes import Shapes, Unknown
from keel_notebook.payload.trees import NotATree, TreeWalk
from keel_notebook.payload.typename import type_name

_BYTES = 16


class StructuralDigester:
    """The port ``Digester``: structural, type-tagged digests keyed with the journal's salt (C34, C61, C103).

    Two values have one digest if and only if they are built alike from equal parts: sets count without order,
    dicts with it, arrays by dtype, shape and content in C order, floats by their bits with one NaN, functions and
    classes of the notebook by their code and what lives in them, things of modules by name. Identity, sharing, the
    process and its hash seed do not matter. The salt keeps short secrets from being guessed.
    """

    def __init__(self, *, salt: bytes, definitions: Definitions) -> None:
        if len(salt) != 32:
            raise ValueError("a salt has 32 bytes")
        self._key = salt
        self._definitions = definitions

    def digest(self, value: Any) -> Digested:
        """The digest of one value. Never raises: what cannot be digested says why.

        The reason reads on from the value's name: ``.items[3] (generator)``.
        """
        return self.digest_with(value, Contents())

    def digest_with(self, value: Any, contents: Contents) -> Digested:
        """The same, for values whose large content may be known to ``contents`` already."""
        shapes = Shapes(self._definitions, contents)
        try:
            with quiet_gc():
                digest = self._walk(value, shapes)
        except Unknown as unknown:
            return Digested(None, reason=reason(value, unknown), reaches=frozenset(shapes.reaches))
        except RecursionError:
            return Digested(None, reason=" (nested too deeply)", reaches=frozenset(shapes.reaches))
        except Exception as error:  # noqa: BLE001 - the port's promise: code of any type runs here
            failed = f" ({type_name(type(value))}: {type(error).__name__} while it was read)"
            return Digested(None, reason=failed, reaches=frozenset(shapes.reaches))
        return Digested(Digest(digest[:_BYTES].hex()), weak=shapes.weak, reaches=frozenset(shapes.reaches))

    def _walk(self, value: Any, shapes: Shapes) -> bytes:
        graph: list[tuple[bytes, float]] = []

        def unfolds() -> float:
            graph.append(GraphWalk(shapes, self._key).digest(value))
            return graph[0][1]

        try:
            return TreeWalk(shapes, self._key, unfolds=unfolds).digest(value)
        except NotATree:
            digest, _ = graph[0] if graph else GraphWalk(shapes, self._key).digest(value)
            return digest


def reason(value: Any, unknown: Unknown) -> str:
    """Which part of a value is guilty, and of what: reads on from the value's name."""
    way = path_to(value, unknown.guilty)
    return f"{way if way is not None else ', inside'} ({unknown.why})"

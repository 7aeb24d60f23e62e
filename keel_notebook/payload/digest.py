"""Digests of values: equal exactly when the values are equal in structure, in every process (DESIGN 5, *Valid*)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from blake3 import blake3
from msgspec.structs import replace

from keel_notebook.core.model import Digest
from keel_notebook.core.ports import Definitions, Digested
from keel_notebook.core.quiet import quiet_gc
from keel_notebook.payload.folds import FoldWalk
from keel_notebook.payload.graphs import GraphWalk
from keel_notebook.payload.inward import leads_nowhere
from keel_notebook.payload.memory import Contents
from keel_notebook.payload.outlines import ButCookies, Outlines
from keel_notebook.payload.paths import path_to
from keel_notebook.payload.shapes import Shapes, Unknown
from keel_notebook.payload.trees import NotATree, TreeWalk
from keel_notebook.payload.typename import type_name

VERSION = "keel-notebook digest of values, version 3"
"""Part of the key: whoever changes what is hashed changes this, and old digests are equal to none."""
_BYTES = 16
_MOST_SEEN = 1_000


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
        self._key = blake3(salt, derive_key_context=VERSION).digest()
        self._definitions = definitions
        self._seen: dict[bytes, Digest] = {}
        """Digests of large plain values that were looked at before, by their stamps."""

    def digest(self, value: Any) -> Digested:
        """The digest of one value. Never raises: what cannot be digested says why (``items[3] (generator)``)."""
        return self.digest_with(value, Contents())

    def digest_with(self, value: Any, contents: Contents) -> Digested:
        """The same, for values whose large content may be known to ``contents`` already."""
        return self._digested(value, Shapes(self._definitions, contents))

    def together(self, contents: Contents) -> Callable[[Any, bytes | None], Digested]:
        """Digests of several values that nobody changes meanwhile: what they share is looked at once.

        Beside a value may stand bytes that no other value has: where they were there before, it is not looked at.
        """
        shapes = Shapes(self._definitions, contents)
        fold = FoldWalk(shapes, self._key)

        def digest(value: Any, stamp: bytes | None) -> Digested:
            known = None if stamp is None else self._seen.get(stamp)
            if known is not None:
                return Digested(known)
            found = self._digested(value, shapes, fold)
            if stamp is not None and found.digest is not None:
                self._remember(stamp, found.digest)
            return found

        return digest

    def outline(self, value: Any) -> Digested:
        """A weak digest of a value that has none: a client, a connection, an object that holds one (DESIGN 5).

        Objects of installed libraries that cannot be digested count by their type alone, those of notebook and local
        classes by what of their attributes can be digested. To be used with the provenance of the value, which alone
        tells one client from another. Generators, iterators and open files stay unknown.
        """
        shapes = self._outlines()
        found = self._digested(value, shapes)
        if found.digest is None or not shapes.by_type:
            return found
        return replace(found, inward=self._inward(shapes, {}))

    def _outlines(self) -> Outlines:
        def but_cookies(value: Any) -> Digested:
            return self._digested(value, ButCookies(self._definitions, Contents()))

        return Outlines(self._definitions, Contents(), strict=self.digest, but_cookies=but_cookies)

    def _inward(self, shapes: Outlines, met: dict[int, Any]) -> bool:
        """Whether what was walked holds locks and their like, and nothing that may be a client."""

        def held(value: Any) -> bool:
            below = self._outlines()
            return self._digested(value, below).digest is not None and self._inward(below, met)

        return not shapes.foreign and all(leads_nowhere(each, held, met) for each in shapes.by_type)

    def _digested(self, value: Any, shapes: Shapes, fold: FoldWalk | None = None) -> Digested:
        digest, reason = None, ""
        try:
            with quiet_gc():
                digest = self._walk(value, shapes, fold or FoldWalk(shapes, self._key))
        except Unknown as unknown:
            reason = _reason(value, unknown)
        except RecursionError:
            reason = "nested too deeply"
        except Exception as error:  # noqa: BLE001 - the port's promise: code of any type runs here
            reason = f"{type_name(type(value))}: {type_name(type(error))} while it was read"
        return Digested(digest, weak=shapes.weak, reason=reason, reaches=frozenset(shapes.reaches))

    def _walk(self, value: Any, shapes: Shapes, fold: FoldWalk) -> Digest:
        """By the first walk that can: the value alone decides which one, however its objects are shared."""
        with contextlib.suppress(NotATree):
            return _named(TreeWalk(shapes, self._key, fold=fold).digest(value))
        stamp = fold.stamp(value) if type(shapes) is Shapes else None  # outlines see less of a value than it is
        digest = None if stamp is None else self._seen.get(stamp)
        if digest is None:
            digest = _named(self._patiently(value, shapes, fold))
            if stamp is not None:
                self._remember(stamp, digest)
        return digest

    def _remember(self, stamp: bytes, digest: Digest) -> None:
        if len(self._seen) >= _MOST_SEEN:
            self._seen.clear()
        self._seen[stamp] = digest

    def _patiently(self, value: Any, shapes: Shapes, fold: FoldWalk) -> bytes:
        with contextlib.suppress(NotATree):
            return fold.digest(value)
        return GraphWalk(shapes, self._key).digest(value)


def _named(digest: bytes) -> Digest:
    return Digest(digest[:_BYTES].hex())


def _reason(value: Any, unknown: Unknown) -> str:
    """Which part of a value is guilty, and of what."""
    if unknown.guilty is value:
        return unknown.why
    way = path_to(value, unknown.guilty)
    return f"{way.removeprefix('.')} ({unknown.why})" if way is not None else f"{unknown.why}, somewhere inside"

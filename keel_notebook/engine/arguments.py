"""Digests of a call's arguments: one for all of them, and one for each that the call could change (DESIGN 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from types import FunctionType, MappingProxyType
from typing import Any, Final, NamedTuple

import msgpack

from keel_notebook.core.model import Digest
from keel_notebook.engine.counting import Counting, by_origin
from keel_notebook.engine.places import callable_only
from keel_notebook.engine.plain import ATOMS, bare
from keel_notebook.engine.prints import Prints

_pack = msgpack.Packer(autoreset=True, strict_types=True, unicode_errors="surrogatepass").pack


_MOST_SHOWN: Final = 4
_LONGEST: Final = 80
_SMALL: Final = 1 << 62


def shown(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], preview: Callable[[str, Any], str]) -> str:
    """A call's arguments in a few words. ``preview`` shows one of them, and nothing of what may be secret.

    An argument is called as the function calls it, so that ``login(word)`` is judged as ``password`` where that is the
    parameter's name.
    """
    if not kwargs and len(args) == 1 and type(args[0]) is int and abs(args[0]) < _SMALL:
        return repr(args[0])  # keel.call(f, i): asked for at every one of them
    code = getattr(function, "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    parts = [preview(names[at] if at < len(names) else "", arg) or "…" for at, arg in enumerate(args[:_MOST_SHOWN])]
    parts += [f"{name}={preview(name, value) or '…'}" for name, value in list(kwargs.items())[:_MOST_SHOWN]]
    if len(args) > _MOST_SHOWN or len(kwargs) > _MOST_SHOWN:
        parts.append("…")
    text = ", ".join(parts)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class Arguments(NamedTuple):
    """What the arguments of a call come to."""

    digest: Digest | None
    mutable: Mapping[str, tuple[Any, Digest | None]] = MappingProxyType({})
    """Arguments that could be changed in place, by ``"0"`` or name, with the digest of each."""
    unknown: str = ""
    """Why there is no digest, for people."""


class ArgumentDigests:
    """Digests arguments. Plain ones are packed and hashed under the journal's salt; the digester does the rest."""

    def __init__(self, *, counting: Counting, prints: Prints, salt: bytes) -> None:
        self.counting = counting
        self._prints = prints
        self._salted = hashlib.blake2b(digest_size=16, key=salt)

    def of(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        """The digests of one call's arguments. Never raises."""
        if not kwargs:
            for arg in args:
                if type(arg) not in ATOMS:
                    break
            else:
                try:
                    return Arguments(self._hash(b"a" + _pack(list(args))))
                except OverflowError:  # an int of more than 64 bits
                    pass
        return self._general(args, kwargs)

    def unless_written(self, found: Arguments, function: Any) -> Arguments:
        """The same; unknown where the function writes into a client among them, which no record can put back."""
        clients = {name: value for name, (value, digest) in found.mutable.items() if by_origin(digest)}
        if not clients or type(function) is not FunctionType:
            return found
        names, into = function.__code__.co_varnames, self._prints.written(function)
        called = {(names[int(name)] if name.isdigit() and int(name) < len(names) else name): name for name in clients}
        written = called.keys() & into
        for name in written:
            self.counting.written(clients[called[name]])
        return found._replace(digest=None, unknown=f"argument {min(written)}") if written else found

    def _general(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
        parts: list[str] = []
        mutable: dict[str, tuple[Any, Digest | None]] = {}
        unknown = ""
        named = [(str(at), arg) for at, arg in enumerate(args)] + sorted(kwargs.items())
        for name, value in named:
            digest, reason = self.one(value)
            if digest is None:
                unknown = unknown or f"argument {name} ({reason or type(value).__qualname__})"
            parts += (name, digest or "")
            if type(value) not in ATOMS and not callable_only(value):
                mutable[name] = (value, digest)
        if unknown:
            return Arguments(None, mutable, unknown)
        return Arguments(self._hash(b"g" + _pack([len(args), *parts])), mutable)

    def one(self, value: Any) -> tuple[Digest | None, str]:
        """The digest of one value, and why there is none."""
        if callable(value):
            # A function among the arguments counts with everything that it reaches.
            found = self._prints.of(value)
            return found.digest, found.unknown
        raw = bare(value)
        if raw is not None:
            return self._hash(b"p" + raw), ""
        digested = self.counting.of(value)
        return digested.digest, digested.reason

    def _hash(self, raw: bytes) -> Digest:
        state = self._salted.copy()
        state.update(raw)
        return Digest(state.hexdigest())

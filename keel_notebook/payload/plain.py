"""The plain encoding: values of plain types as a table of nodes, without pickle (DESIGN 6).

A node is a list ``[tag, part, …]``; a part is a scalar as it is, or ``[n]`` for node ``n``, so that sharing and cycles
survive. Lists, dicts and sets get their number before their parts and are filled last; all other nodes come after
their parts. Reading a plain payload runs no code of the value's type: only of numpy, pandas and the like, by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from keel_notebook.core.ports import Definitions
from keel_notebook.core.secrets import looks_secret_field
from keel_notebook.errors import DamagedError
from keel_notebook.payload import drawing, kinds
from keel_notebook.payload.buffers import BufferReader, BufferWriter
from keel_notebook.payload.guilty import Secret
from keel_notebook.payload.hosts import Hosts
from keel_notebook.payload.kinds.numpy import COLUMN, build_view, owner_of, take_view
from keel_notebook.payload.memory import LARGE, Memory, text_memory
from keel_notebook.payload.shapes import by_name

CAP = 10_000
"""Parts of one payload; from here on pickle is faster."""

_MUTABLE: dict[type, str] = {list: "list", dict: "dict", set: "set"}
_FIXED: dict[type, str] = {tuple: "tuple", frozenset: "frozenset"}
_SCALARS: frozenset[type] = frozenset({type(None), bool, int, float, str, bytes})
_HELD: frozenset[type] = frozenset({ModuleType, FunctionType, BuiltinFunctionType})
_MISSING = object()
_OPEN = -1


class NotPlain(Exception):
    """The values need pickle: a type without a kind, a cycle through something immutable, or too many of them."""


def surely_not_plain(value: Any) -> bool:
    """Whether a glance tells that ``value`` needs pickle: before much work is done for its neighbours."""
    cls = type(value)
    if cls in _MUTABLE or cls in _FIXED:
        return len(value) > CAP
    if cls in _SCALARS or cls in _HELD or issubclass(type(value), type):
        return False
    return kinds.find(cls) is None


class PlainWriter:
    """Turns values into nodes. One writer for all names of a step: what they share is one node."""

    def __init__(self, buffers: BufferWriter, definitions: Definitions, known: Mapping[int, int], hosts: Hosts) -> None:
        """``known``: the numbers of journaled objects by their identity; ``hosts``: the arrays among them."""
        self.nodes: list[Any] = []
        self._hosts = hosts
        self._buffers = buffers
        self._definitions = definitions
        self._known = known
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._parts = 0
        self.used: set[int] = set()

    def write(self, value: Any) -> Any:
        """The part that stands for ``value``. Raises NotPlain, and Secret for a credential inside."""
        top = _Frame(value, "", (value,), number=None)
        stack = [top]
        while stack:
            frame = stack[-1]
            if len(frame.parts) == len(frame.children):
                stack.pop()
                if stack:
                    stack[-1].parts.append((self._finish(frame),))
                continue
            child = frame.children[len(frame.parts)]
            part = self._immediate(child)
            if part is _MISSING:
                stack.append(self._open(child))
            else:
                frame.parts.append(part)
        return top.parts[0]

    def _immediate(self, value: Any) -> Any:
        """The part for a scalar, or for something that has a number already."""
        self._parts += 1
        if self._parts > CAP:
            raise NotPlain
        cls = type(value)
        if cls in (type(None), bool, float):
            return value
        if cls is int and -(1 << 63) <= value < 1 << 63:
            return value
        if cls is str and len(value) < LARGE:
            if len(value) >= 12 and looks_secret_field("", value):
                raise Secret(value)
            return value if value.isascii() or _encodable(value) else _MISSING
        if cls is bytes and len(value) < LARGE:
            return value
        number = self._numbers.get(id(value))
        if number == _OPEN:
            raise NotPlain
        return _MISSING if number is None else (number,)

    def _open(self, value: Any) -> _Frame:
        self._alive.append(value)  # a number stands for an identity only as long as the object lives
        cls = type(value)
        if id(value) in self._known:
            self.used.add(self._known[id(value)])
            return self._fixed(value, "known", (self._known[id(value)],))
        if cls in _MUTABLE:
            children = self._pairs(value) if cls is dict else tuple(value)
            if len(children) > CAP:
                raise NotPlain
            number = self._numbers[id(value)] = len(self.nodes)
            self.nodes.append(None)
            return _Frame(value, _MUTABLE[cls], children, number)
        if cls in _FIXED:
            return self._fixed(value, _FIXED[cls], tuple(value))
        return self._fixed(value, *self._taken(value))

    def _pairs(self, value: dict[Any, Any]) -> tuple[Any, ...]:
        for key, item in value.items():
            if type(key) is str and type(item) is str and looks_secret_field(key, item):
                raise Secret(item)
        return tuple(part for pair in value.items() for part in pair)

    def _fixed(self, value: Any, tag: str, children: Sequence[Any]) -> _Frame:
        self._numbers[id(value)] = _OPEN
        return _Frame(value, tag, children, number=None)

    def _finish(self, frame: _Frame) -> int:
        node = (frame.tag, *frame.parts)
        if frame.number is not None:
            self.nodes[frame.number] = node
            return frame.number
        self.nodes.append(node)
        self._numbers[id(frame.value)] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def _taken(self, value: Any) -> tuple[str, Sequence[Any]]:
        cls = type(value)
        if cls is Memory:
            return "memory", (self._buffers.memory(value),)
        if cls is str:
            whole = text_memory(value)
            return ("text", (self._buffers.memory(whole),)) if whole.size >= LARGE else ("utf8", (bytes(whole),))
        if cls is bytes:
            return "bytes", (self._buffers.memory(Memory(len(value), lambda: (value,))),)
        if cls is int:
            return "int", (hex(value),)
        if cls in _HELD or issubclass(type(value), type):
            return self._reference(value)
        if (place := drawing.place_of(value)) is not None:
            return "global", place
        kind = kinds.find(cls)
        if kind is None:
            raise NotPlain
        if kind.tag in kinds.TENSORS and (view := self._hosts.of_tensor(value)) is not None:
            return "torch.view", view.parts
        if kind.tag == "numpy.array" and (taken := self._array(value)) is not None:
            return taken
        if kind.tag == COLUMN and (at := self._buffers.column(value.array)) is not None:
            return "ndarray", (at,)
        parts = kind.take(value)
        if parts is None:
            raise NotPlain
        return kind.tag, parts

    def _array(self, array: Any) -> tuple[str, Sequence[Any]] | None:
        host = self._hosts.of(array)
        if host is None and array.dtype.hasobject:
            host = owner_of(array)
        if host is not None and host is not array:
            view = take_view(array, host)
            return None if view is None else ("view", view)
        number = self._buffers.array(array)
        return None if number is None else ("ndarray", (number,))

    def _reference(self, value: Any) -> tuple[str, Sequence[Any]]:
        """A module, or a function or class that a module holds under its name (C53)."""
        if issubclass(type(value), ModuleType):
            if by_name(value.__name__, "__name__") is None:
                raise NotPlain
            return "module", (value.__name__,)
        home, qualname = getattr(value, "__module__", None), value.__qualname__
        if not isinstance(home, str) or home == "__main__" or by_name(home, qualname) is not value:
            raise NotPlain
        if issubclass(type(value), FunctionType | type) and self._definitions.belongs(value):
            raise NotPlain
        return "global", (home, qualname)


class _Frame:
    __slots__ = ("children", "number", "parts", "tag", "value")

    def __init__(self, value: Any, tag: str, children: Sequence[Any], number: int | None) -> None:
        self.value = value
        self.tag = tag
        self.children = children
        self.parts: list[Any] = []
        self.number = number


class PlainReader:
    """Turns nodes into values again. Raises DamagedError (E051) for tables that do not hold together."""

    def __init__(self, nodes: Sequence[Any], buffers: BufferReader, resolve: Callable[[int], Any]) -> None:
        self._buffers = buffers
        self._resolve = resolve
        self._values: list[Any] = [_SHELLS[node[0]]() if node[0] in _SHELLS else _MISSING for node in nodes]
        for number, node in enumerate(nodes):
            if node[0] not in _SHELLS:
                self._values[number] = self._build(node[0], [self.value(part) for part in node[1:]])
        for number, node in enumerate(nodes):
            if node[0] in _SHELLS:
                self._fill(self._values[number], [self.value(part) for part in node[1:]])

    def value(self, part: Any) -> Any:
        """The value that a part stands for."""
        if type(part) is not tuple:
            return part
        found = self._values[part[0]]
        if found is _MISSING:
            raise DamagedError(what="a payload", detail="a part comes before what it is made of")
        return found

    def _build(self, tag: str, parts: list[Any]) -> Any:
        build = _BUILDS.get(tag)
        return kind_of(tag).build(*parts) if build is None else build(self, *parts)

    def array(self, number: int) -> Any:
        """An array of the buffers."""
        return self._buffers.array(number)

    def memory(self, number: int) -> memoryview:
        """A piece of memory of the buffers."""
        return self._buffers.memory(number)

    def known(self, number: int) -> Any:
        """A journaled object."""
        return self._resolve(number)

    @staticmethod
    def _fill(shell: Any, parts: list[Any]) -> None:
        if isinstance(shell, list):
            shell.extend(parts)
        elif isinstance(shell, dict):
            shell.update(zip(parts[::2], parts[1::2], strict=True))
        else:
            shell.update(parts)


_SHELLS: dict[str, Callable[[], Any]] = {"list": list, "dict": dict, "set": set}
_BUILDS: dict[str, Callable[..., Any]] = {
    "tuple": lambda _, *parts: parts,
    "frozenset": lambda _, *parts: frozenset(parts),
    "ndarray": PlainReader.array,
    "memory": PlainReader.memory,
    "known": PlainReader.known,
    "view": lambda _, *parts: build_view(*parts),
    "int": lambda _, digits: int(digits, 16),
    "utf8": lambda _, raw: raw.decode("utf-8", "surrogatepass"),
    "text": lambda reader, number: str(reader.memory(number), "utf-8", "surrogatepass"),
    "bytes": lambda reader, number: bytes(reader.memory(number)),
    "module": lambda _, name: imported(name),
    "global": lambda _, home, qualname: held(home, qualname),
}


def imported(name: str) -> ModuleType:
    """The module, imported if need be. Raises DamagedError (E051) where it is not there any more (C56)."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DamagedError(what="a payload", detail=f"module {name} is missing") from None


def held(home: str, qualname: str) -> Any:
    """What a module holds under a name. Raises DamagedError (E051) where it holds nothing."""
    imported(home)
    found = by_name(home, qualname)
    if found is None:
        raise DamagedError(what="a payload", detail=f"{home}.{qualname} is missing")
    return found


def kind_of(tag: str) -> kinds.Kind:
    """The kind behind a tag. Raises DamagedError (E051) for one that this version of keel does not know."""
    try:
        return kinds.tagged(tag)
    except ImportError as error:
        raise DamagedError(what="a payload", detail=f"module {error.name} is missing") from None
    except KeyError:
        raise DamagedError(
            what="a payload", detail=f"it holds a {tag}, which this version of keel cannot read"
        ) from None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

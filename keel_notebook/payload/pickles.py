"""Pickle, as far as keel needs it: the only module that unpickles (DESIGN 6 and 9).

C pickler and unpickler, one graph for all names of a step. Arrays, frames and all other kinds leave the graph for the
buffers; what the notebook defined is referred to by name or stored as code; objects that are journaled already are
met in the pickler's memo, so that a reference costs nothing (``Known``). What must not be stored is refused here.
"""

from __future__ import annotations

import _pickle
import functools
import io
import pickle
import re
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from keel_notebook.payload import closedfile, drawing, kinds, ownattributes, rebuild, registry, widgets
from keel_notebook.payload.buffers import BufferWriter
from keel_notebook.payload.bycode import ByCode
from keel_notebook.payload.guilty import Refused
from keel_notebook.payload.hosts import Hosts
from keel_notebook.payload.kinds.matplotlib import windowless
from keel_notebook.payload.kinds.numpy import COLUMN, Column, describe, locked, owner_of, take_view
from keel_notebook.payload.memory import LARGE, Memory, memory_of
from keel_notebook.payload.shapes import one_way

_FIRST_KNOWN = 256
"""Memo numbers from here on need four bytes in the stream, which makes them easy to find there."""
_MAX_KNOWN = (1 << 16) - _FIRST_KNOWN
_SMALL_ARRAY = 1 << 16

_Reduce = Callable[[Any], Any]


class Stream:
    """What a pickler writes: the parts as they come, long bytes uncopied."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def write(self, part: bytes) -> None:
        """Take a part."""
        kept = part if type(part) is bytes else bytes(part)
        self.parts.append(kept)
        self.size += len(kept)


class Writer(_pickle.Pickler):
    """Writes values of a notebook, one after the other, with one memo."""

    def __init__(
        self,
        stream: Stream,
        buffers: BufferWriter,
        by_code: ByCode,
        known: Sequence[Any],
        *,
        roots: Sequence[Any] = (),
    ) -> None:
        super().__init__(stream, 5, buffer_callback=self._buffer)
        self.last: Any = None
        """The newest object that pickle asked about: the guilty one if it fails."""
        self.out_of_band: list[int] = []
        self.plain = True
        """Whether all that was written is of pickle's own types, with all that there is to it in the stream."""
        self.small: list[Any] = []
        """Arrays that were left to numpy."""
        self.all_arrays = False
        """Small ones, too, go to the buffers, because a frame may lie on their memory."""
        self._buffers = buffers
        self._by_code = by_code
        self._reduces: dict[type, _Reduce | None] = {}
        self._hosts = Hosts(known)
        self._held = {*map(id, known), *map(id, roots)}
        self._keep: list[Any] = [object() for _ in range(_FIRST_KNOWN)] if known else []
        if known:
            fillers = {id(thing): (number, thing) for number, thing in enumerate(self._keep)}
            seeded = {id(thing): (_FIRST_KNOWN + at, thing) for at, thing in enumerate(known[:_MAX_KNOWN])}
            self.memo = {**fillers, **seeded}

    def reducer_override(self, obj: Any) -> Any:
        """Pickle's hook for everything that is not a plain builtin."""
        self.last = obj
        cls = type(obj)
        try:
            reduce = self._reduces[cls]
        except KeyError:
            self.plain = False
            reduce = self._reduces[cls] = self._chosen(cls)
        if (place := drawing.place_of(obj)) is not None:
            return rebuild.held, place
        return NotImplemented if reduce is None else reduce(obj)

    def _buffer(self, buffer: pickle.PickleBuffer) -> bool:
        self.plain = False
        raw = buffer.raw()
        if len(raw) < LARGE:
            return True
        self.out_of_band.append(self._buffers.memory(memory_of(raw)))
        return False

    def _chosen(self, cls: type) -> _Reduce | None:
        """How values of a type are pickled; None: as pickle would. Asked once per type."""
        if (fixed := self._fixed(cls)) is not None:
            return fixed
        if issubclass(cls, type):
            return self._by_code_reduce(self._by_code.class_reduce)
        if issubclass(cls, ModuleType):
            return self._module
        codec = registry.find(cls)
        if codec is not None:
            return lambda value: (rebuild.registered, (codec.name, codec.dump(value)))
        if cls.__module__ == "_io":
            return self._file
        if one_way(cls):
            return self._refuse
        if cls.__module__ == "numpy" and cls.__name__ == "memmap":
            return self._refuse_file
        if _is_figure(cls):
            return lambda figure: windowless(figure.__reduce_ex__(5))
        kind = kinds.find(cls)
        if kind is not None and not kind.native:
            return self._array if kind.tag == "numpy.array" else self._kind
        if cls.__module__.partition(".")[0] == "pandas":
            return self._pandas
        if _is_array(cls):
            return self._as_it_is
        if issubclass(cls, BaseException):
            return _raised if _has_own_init(cls) else _chained
        return self._by_code.extra_reduce(cls) or (ownattributes.reduce if ownattributes.forgets(cls) else None)

    def _fixed(self, cls: type) -> _Reduce | None:
        if widgets.is_widget(cls):
            return _widget
        table: dict[type, _Reduce] = {
            FunctionType: self._by_code_reduce(self._by_code.function_reduce),
            CellType: _cell,
            weakref.ref: self._weak,
            Memory: lambda memory: (rebuild.memory, (self._buffers.memory(memory),)),
            MethodType: _method,
            functools.cached_property: _cached_property,
        }
        return table.get(cls)

    def _weak(self, ref: weakref.ref[Any]) -> Any:
        """A weak reference to what a name holds: anything else would be gone as soon as it came back."""
        target = ref()
        if target is None:
            return rebuild.dead, ()
        if ref.__callback__ is not None or id(target) not in self._held:
            raise Refused(ref, "what it refers to is held by no name of the step, or it has a callback")
        return weakref.ref, (target,)

    def _by_code_reduce(self, reduce: _Reduce) -> _Reduce:
        def reduced(value: Any) -> Any:
            made = reduce(value)
            if self._by_code.dispatch_table is not None and not hasattr(self, "dispatch_table"):
                self.dispatch_table = self._by_code.dispatch_table
            return made

        return reduced

    def _refuse(self, value: Any) -> Any:
        raise Refused(value)

    def _file(self, value: Any) -> Any:
        if (parts := closedfile.take(value)) is not None:
            return rebuild.closed_file, parts
        return self._refuse(value) if one_way(type(value)) else NotImplemented

    def _refuse_file(self, value: Any) -> Any:
        raise Refused(value, "a view of a file would come back as a copy that is no file: map it where it is read")

    def _module(self, module: ModuleType) -> Any:
        if not self._by_code.importable(module):
            raise Refused(module, "a module that cannot be imported by its name")
        return rebuild.module, (module.__name__,)

    def _kind(self, value: Any) -> Any:
        kind = kinds.find(type(value))
        assert kind is not None
        if kind.tag in kinds.TENSORS and (view := self._hosts.of_tensor(value)) is not None:
            return rebuild.kind, ("torch.view", *view.parts)
        if kind.tag == COLUMN and (at := self._buffers.column(value.array)) is not None:
            return rebuild.array, (at,)
        parts = kind.take(value)
        if parts is None:
            return self._pandas(value) if type(value).__module__.startswith("pandas") else NotImplemented
        return rebuild.kind, (kind.tag, *parts)

    def _array(self, array: Any) -> Any:
        owner = owner_of(array)
        host = self._hosts.of(array)
        small = owner.nbytes <= _SMALL_ARRAY and owner.flags.owndata and owner.flags.writeable and not self.all_arrays
        if small:
            self.small.append(array)
        if host is not None or small or array.dtype.hasobject:
            view = None if owner is array else take_view(array, owner if host is None else host)
            return self._as_it_is(array) if view is None else (rebuild.view, view)
        number = self._buffers.array(array)
        return NotImplemented if number is None else (rebuild.array, (number,))

    def _as_it_is(self, array: Any) -> Any:
        """As numpy does it, which forgets that an array was made read-only."""
        forgets = ownattributes.forgets(type(array))
        if not locked(array):
            return ownattributes.reduce(array) if forgets else NotImplemented
        made, arguments, state = array.__reduce__()
        own = ownattributes.forgotten(array, (made, arguments, state)) if forgets else None
        return made, arguments, (state, own), None, None, rebuild.fill_read_only

    def _pandas(self, value: Any) -> Any:
        """pandas' own pickle, but no two objects of it share memory: it would not know that they do."""
        reduced = value.__reduce_ex__(5)
        if isinstance(reduced, str):
            return reduced
        return tuple(_columns(part) for part in reduced)


def _columns(part: Any) -> Any:
    if type(part) is tuple:
        return tuple(_columns(inside) for inside in part)
    if type(part) is dict:
        return {key: _columns(inside) for key, inside in part.items()}
    numbers = type(part).__module__ == "numpy" and type(part).__name__ == "ndarray"
    return Column(part) if numbers and not part.dtype.hasobject and describe(part.dtype) is not None else part


def _cell(cell: CellType) -> Any:
    try:
        content = cell.cell_contents
    except ValueError:
        return rebuild.cell, ()
    return rebuild.cell, (), content, None, None, rebuild.fill_cell


def _method(method: MethodType) -> Any:
    # pickle looks the method up by its function's name, which need not be the attribute's.
    found = getattr(type(method.__self__), method.__func__.__name__, None)
    return NotImplemented if found is method.__func__ else (MethodType, (method.__func__, method.__self__))


def _cached_property(kept: functools.cached_property[Any]) -> Any:
    # Without the lock that Python 3.11 keeps in it, with the name that only a class statement would give it.
    state = {"attrname": kept.attrname, "__doc__": kept.__doc__}
    return functools.cached_property, (kept.func,), state


def _raised(error: BaseException) -> Any:
    return _chained(error, (rebuild.raised, (type(error), error.args, error.__dict__ or None)))


def _chained(error: BaseException, made: Any = None) -> Any:
    """What pickle makes of an exception, and what it leaves out: the exceptions from which it was raised."""
    if error.__cause__ is None and error.__context__ is None and not error.__suppress_context__:
        return made or NotImplemented
    func, args, *more = made or cast(tuple[Any, ...], error.__reduce_ex__(5))
    carried = (more[0] if more else None, error.__cause__, error.__context__, error.__suppress_context__)
    return func, args, carried, None, None, rebuild.fill_raised


def _has_own_init(cls: type) -> bool:
    """Whether an exception may want other arguments than those that it kept, which is all that pickle has."""
    return (
        getattr(cls, "__reduce__") is getattr(BaseException, "__reduce__")  # noqa: B009 - typed otherwise
        and isinstance(vars(_definer(cls, "__init__"))["__init__"], FunctionType)
        and _definer(cls, "__new__").__module__ == "builtins"
    )


def _definer(cls: type, name: str) -> type:
    return next(base for base in cls.__mro__ if name in vars(base))


def _widget(widget: Any) -> Any:
    if widgets.is_private(type(widget)):
        raise Refused(widget, "what is typed into it is a credential")
    model = widgets.model_id(widget)
    return rebuild.widget, (type(widget), model), (model, widgets.state_of(widget)), None, None, rebuild.fill_widget


def _is_array(cls: type) -> bool:
    return any(base.__module__ == "numpy" and base.__name__ == "ndarray" for base in cls.__mro__)


def _is_figure(cls: type) -> bool:
    return any(base.__module__ == "matplotlib.figure" and base.__name__ == "Figure" for base in cls.__mro__)


def known_used(parts: Sequence[bytes], known: int) -> list[int]:
    """Which journaled objects a stream refers to (and, once in a great many, one that it does not)."""
    if not known:
        return []
    last = min(known, _MAX_KNOWN) + _FIRST_KNOWN - 1
    pattern = re.compile(rb"j(.[\x01-" + re.escape(bytes([last >> 8])) + rb"])\0\0", re.DOTALL)
    found = {int.from_bytes(match[1], "little") for part in parts for match in pattern.finditer(part)}
    return sorted(number - _FIRST_KNOWN for number in found if number <= last)


class Reader(_pickle.Unpickler):
    """Reads what a ``Writer`` wrote. Only ever called with bytes that the owner sealed."""

    def __init__(
        self,
        raw: bytes,
        rebuilt: rebuild.Rebuild,
        *,
        buffers: Sequence[memoryview],
        slots: int,
        used: Mapping[int, Any],
    ) -> None:
        super().__init__(io.BytesIO(preface(slots, used) + raw if slots else raw), buffers=buffers)
        self._rebuilt = rebuilt
        self._used = used
        self._slots = slots

    def values(self, count: int) -> list[Any]:
        """All values, in the order written."""
        if self._slots:
            self.load()
        return [self.load() for _ in range(count)]

    def find_class(self, module: str, name: str) -> Any:
        """What a global name in the stream means."""
        return global_name(self._rebuilt, module, name, super().find_class)

    def persistent_load(self, pid: int) -> Any:
        """A journaled object."""
        return self._used[pid]


def global_name(rebuilt: rebuild.Rebuild, module: str, name: str, find: Callable[[str, str], Any]) -> Any:
    """What a global name in a stream means; ``find`` looks names of modules up."""
    if module == rebuild.__name__:
        return getattr(rebuilt, name)
    return rebuilt.named(name, "") if module == "__main__" else find(module, name)


def preface(slots: int, used: Mapping[int, Any]) -> bytes:
    """A pickle that gives the memo the numbers that the writer's memo was given."""
    places = range(min(slots, _MAX_KNOWN))
    filled = (b"0M%sQ\x94" % at.to_bytes(2, "little") if at in used else b"0N\x94" for at in places)
    return b"\x80\x05N" + b"\x94" * _FIRST_KNOWN + b"".join(filled) + b"."

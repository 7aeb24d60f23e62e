"""Notes which settings a step reads: environment variables, options of pandas and numpy, matplotlib's parameters.

Each is kept in a dict somewhere. While a step runs, that dict is of a kind that notes what is asked of it. So a step
that plots nothing does not depend on ``rcParams``, and one that shows no frame not on ``display.max_rows``. Nothing
of this is left behind, and none of it stands in a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from types import FrameType
from typing import Any

from msgspec import Struct, field

from keel_notebook.capture.ambient_libraries import NOT_OURS
from keel_notebook.capture.installed import is_installed

_DISPLAY = ("display", "styler")
"""Namespaces of pandas options that only matter to what is shown."""


class Noted(Struct):
    """What a step read."""

    variables: set[str] = field(default_factory=set)
    """Environment variables that code of the notebook, or of a local module, asked for by name."""
    set_variables: set[str] = field(default_factory=set)
    """Those that code of the notebook itself set."""
    by_libraries: set[str] = field(default_factory=set)
    """Those that installed code asked for."""
    all_variables: bool = False
    """Whether it looked through all of them."""
    pandas: set[str] = field(default_factory=set)
    """Options that only matter to what is shown, by their full names."""
    numpy_print: bool = False
    matplotlib: bool = False


class Noting:
    """Notes for one step at a time."""

    def __init__(self) -> None:
        self._noted: Noted | None = None
        self._undo: list[Any] = []

    def open(self) -> None:
        """Start: the body is about to run."""
        self.close()
        noted = self._noted = Noted()
        for begin in (_variables, _pandas, _numpy, _matplotlib):
            try:
                self._undo += begin(noted)
            except Exception:  # noqa: BLE001 - a library of another make: the step counts as having read it all
                _everything(noted, begin)

    def close(self) -> Noted:
        """Stop, leave everything as it was, and tell. Safe to call twice."""
        for undo in self._undo:
            undo()
        noted, self._noted, self._undo = self._noted or Noted(), None, []
        return noted


def _everything(noted: Noted, begin: Any) -> None:
    if begin is _variables:
        noted.all_variables = True
    elif begin is _numpy:
        noted.numpy_print = True
    elif begin is _matplotlib:
        noted.matplotlib = True


# ---- environment variables


class _Variables(dict[Any, Any]):
    """The dict inside ``os.environ``."""

    noted: Noted
    own: set[Any]
    """Variables that the step itself has set before it read them."""
    looking: tuple[int, int] = (0, 0)
    """Who looks through all of them right now: frame and place in it."""

    def __getitem__(self, key: Any) -> Any:
        try:
            frame = _asking()
            if _at(frame) != self.looking and key not in self.own:
                ours = _is_ours(frame.f_code.co_filename)
                (self.noted.variables if ours else self.noted.by_libraries).add(os.fsdecode(key))
        except Exception:  # noqa: BLE001 - never the step's fault
            self.noted.all_variables = True
        return dict.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.own.add(key)
        if _asking().f_globals.get("__name__") == "__main__":
            self.noted.set_variables.add(os.fsdecode(key))
        dict.__setitem__(self, key, value)

    def __iter__(self) -> Iterator[Any]:
        self.noted.all_variables = True
        self.looking = _at(_asking())
        return dict.__iter__(self)


def _variables(noted: Noted) -> list[Any]:
    environ: Any = os.environ
    original = environ._data
    own = _Variables(original)
    own.noted, own.own = noted, set()
    environ._data = own

    def undo() -> None:
        original.clear()
        original.update(dict.items(own))  # `update(own)` would ask it for every key
        environ._data = original

    return [undo]


_PASSING_ON = (os.__file__, "<frozen os>", "<frozen _collections_abc>")


def _asking() -> FrameType:
    """The frame that asks for a variable, behind the mapping that passes the question on."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_PASSING_ON):
        frame = frame.f_back
    return frame


def _at(frame: FrameType) -> tuple[int, int]:
    return id(frame), frame.f_lasti


@cache
def _is_ours(filename: str) -> bool:
    """Whether code belongs to the notebook or to a local module."""
    return not filename.startswith("<frozen") and not is_installed(filename)


# ---- options of libraries


class _Options(dict[str, Any]):
    """One namespace of pandas options."""

    noted: Noted
    path: str

    def __getitem__(self, key: str) -> Any:
        value = dict.__getitem__(self, key)
        if not isinstance(value, dict):
            self.noted.pandas.add(self.path + key)
        return value


def _pandas(noted: Noted) -> list[Any]:
    root = getattr(sys.modules.get("pandas._config.config"), "_global_config", None)
    if root is None:
        return []
    return [_swapped(root, name, name + ".", noted) for name in _DISPLAY if type(root.get(name)) is dict]


def _swapped(owner: dict[str, Any], name: str, path: str, noted: Noted) -> Any:
    original = owner[name]
    own = _Options(original)
    own.noted, own.path = noted, path
    inner = [_swapped(own, key, f"{path}{key}.", noted) for key, value in original.items() if type(value) is dict]
    dict.__setitem__(owner, name, own)

    def undo() -> None:
        for each in inner:
            each()
        original.clear()
        original.update(dict.items(own))  # `update(own)` would ask it for every key
        dict.__setitem__(owner, name, original)

    return undo


class _PrintOptions(dict[str, Any]):
    """numpy's print options."""

    noted: Noted

    def __getitem__(self, key: str) -> Any:
        self.noted.numpy_print |= key != "legacy"  # asked for by much that prints nothing
        return dict.__getitem__(self, key)

    def copy(self) -> dict[str, Any]:
        self.noted.numpy_print = True
        return dict(self)

    def __or__(self, other: Any) -> Any:  # np.set_printoptions: changing one option reads none
        return dict(self) | other


def _numpy(noted: Noted) -> list[Any]:
    module: Any = sys.modules.get("numpy._core.printoptions")
    if module is None:
        noted.numpy_print = "numpy" in sys.modules
        return []
    own = _PrintOptions(module.format_options.get())
    own.noted = noted
    module.format_options.set(own)

    def undo() -> None:
        now = module.format_options.get()
        if type(now) is _PrintOptions:
            module.format_options.set(dict(now))

    return [undo]


def _matplotlib(noted: Noted) -> list[Any]:
    params: Any = getattr(sys.modules.get("matplotlib"), "rcParams", None)
    if params is None:
        return []
    original = type(params)
    own = _PARAMS.get(original) or _PARAMS.setdefault(original, _noting_params(original))
    own.noted = noted
    of_class = object.__dict__["__class__"]
    of_class.__set__(params, own)
    return [lambda: of_class.__set__(params, original)]


_PARAMS: dict[Any, Any] = {}


def _noting_params(original: Any) -> Any:
    class Params(original):  # type: ignore[misc]  # whatever matplotlib's own class is
        noted: Noted
        __class__ = property(lambda _: original)  # copies that it makes of itself are of the usual kind

        def __getitem__(self, key: str) -> Any:
            self.noted.matplotlib |= key not in NOT_OURS  # IPython asks after every cell whether it is interactive
            return original.__getitem__(self, key)

        def _get(self, key: str) -> Any:
            self.noted.matplotlib |= key not in NOT_OURS
            return original._get(self, key)

    return Params

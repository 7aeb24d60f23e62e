"""The parts of ambient state that libraries have. Looked at only where the library is imported already."""

# ruff: noqa: ARG002 - a part takes what its port gives it; some need less of it

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

from keel_notebook.capture.ambient_part import Lost, Part
from keel_notebook.capture.wire import NotPlainError, from_wire, to_wire

PRINT_DEFAULTS: Mapping[str, Any] = {
    "edgeitems": 3,
    "threshold": 1000,
    "floatmode": "maxprec",
    "precision": 8,
    "suppress": False,
    "linewidth": 75,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "formatter": None,
    "legacy": False,
    "override_repr": None,
}
ERROR_DEFAULTS: Mapping[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""numpy as it comes: what a step changed that imported it. A value too many is put back to no effect."""
NOT_OURS = frozenset({"backend", "backend_fallback", "interactive", "toolbar"})
"""Parameters of matplotlib that belong to where the notebook runs."""


def settings() -> tuple[Part, ...]:
    """Everything but generators."""
    return NumpySettings(), Pandas(), Matplotlib(), Torch(), Figures()


def generators() -> tuple[Part, ...]:
    """Generators of random numbers."""
    return NumpyRandom(), TorchRandom()


class NumpyRandom:
    """The global generator behind ``np.random.rand`` and its kind."""

    name = "numpy_random"

    def look(self) -> Any:
        """Its state, if ``numpy.random`` was ever used: it is imported late."""
        legacy = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
        if legacy is None:
            return None
        state = legacy.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            return (state["bit_generator"], repr(state))
        inner = state["state"]
        return "MT19937", inner["key"].tobytes(), int(inner["pos"]), int(state["has_gauss"]), float(state["gauss"])

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """The state after, 2.5 kB."""
        if after[0] != "MT19937":
            lost.append(f"numpy.random: its generator is {after[0]}")
            return None
        return list(after)

    def put(self, change: Any, lost: Lost) -> None:
        """Go on from the recorded state (C37)."""
        numpy, chance = importlib.import_module("numpy"), importlib.import_module("numpy.random")
        kind, key, position, has_gauss, gauss = change
        chance.set_state((kind, numpy.frombuffer(key, numpy.uint32), position, has_gauss, gauss))


class TorchRandom:
    """torch's generators: that of the CPU, and those of CUDA devices in use."""

    name = "torch_random"

    def look(self) -> Any:
        """Their states, as bytes."""
        torch: Any = sys.modules.get("torch")
        if not hasattr(torch, "get_rng_state"):
            return None
        states = [_tensor_bytes(torch.get_rng_state())]
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and cuda.is_initialized():
            states += [_tensor_bytes(state) for state in cuda.get_rng_state_all()]
        return states

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """All states after, 5 kB each."""
        return after

    def put(self, change: Any, lost: Lost) -> None:
        """Go on from the recorded states, on as many devices as there are."""
        torch = importlib.import_module("torch")
        cpu, *devices = (torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in change)
        torch.set_rng_state(cpu)
        here = torch.cuda.device_count() if devices and torch.cuda.is_available() else 0
        for device, state in enumerate(devices[:here]):
            torch.cuda.set_rng_state(state, device)
        if here < len(devices):
            lost.append(f"torch: generators of {len(devices) - here} CUDA devices that are not here")


class NumpySettings:
    """``np.set_printoptions`` and ``np.seterr``."""

    name = "numpy"

    def look(self) -> Any:
        """Both, if numpy is imported."""
        numpy: Any = sys.modules.get("numpy")
        if not hasattr(numpy, "get_printoptions"):
            return None
        return numpy.get_printoptions(), numpy.geterr(), numpy.geterrcall()

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """The options that differ."""
        printing, errors, call = before or (PRINT_DEFAULTS, ERROR_DEFAULTS, None)
        if after[2] is not call:
            lost.append("numpy: the function that np.seterrcall was given")
        change = {
            "print": _differing(printing, after[0], "np.printoptions", lost),
            "errors": _differing(errors, after[1], "np.errstate", lost),
        }
        return change if any(change.values()) else None

    def put(self, change: Any, lost: Lost) -> None:
        """Set them."""
        numpy = importlib.import_module("numpy")
        numpy.set_printoptions(**{name: from_wire(wire) for name, wire in change["print"].items()})
        numpy.seterr(**change["errors"])


class Pandas:
    """pandas options."""

    name = "pandas"

    def look(self) -> Any:
        """All of them, nested as pandas keeps them."""
        options = getattr(sys.modules.get("pandas"), "options", None)
        return None if options is None else _copied(object.__getattribute__(options, "d"))

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """The options that differ; from pandas' own defaults where the step imported it."""
        if before is None:
            known = sys.modules["pandas._config.config"]._registered_options
            flat_before = {name: option.defval for name, option in known.items()}
        else:
            flat_before = flat(before, "")
        return _differing(flat_before, flat(after, ""), "pandas option", lost) or None

    def put(self, change: Any, lost: Lost) -> None:
        """Set them."""
        pandas = importlib.import_module("pandas")
        for name, wire in change.items():
            try:
                pandas.set_option(name, from_wire(wire))
            except (KeyError, ValueError):
                lost.append(f"pandas option {name}: this pandas does not take it")


class Matplotlib:
    """``rcParams``, but for the backend: that belongs to where the notebook runs."""

    name = "matplotlib"

    def look(self) -> Any:
        """Their values: names are never added, and reading past the class is many times faster."""
        params = getattr(sys.modules.get("matplotlib"), "rcParams", None)
        return None if params is None else tuple(dict.values(params))

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Those that differ; from what the configuration files said where the step imported matplotlib."""
        matplotlib = sys.modules["matplotlib"]
        names = list(dict.keys(matplotlib.rcParams))
        old = dict(dict.items(matplotlib.rcParamsOrig) if before is None else zip(names, before, strict=True))
        ours = {name: value for name, value in zip(names, after, strict=True) if name not in NOT_OURS}
        cycles = {name: value for name, value in ours.items() if hasattr(value, "by_key") and value != old.get(name)}
        plain = {name: value for name, value in ours.items() if name not in cycles}
        change = {
            "params": _differing(old, plain, "matplotlib rcParams", lost),
            "cycles": {name: to_wire(value.by_key()) for name, value in sorted(cycles.items())},
        }
        return change if any(change.values()) else None

    def put(self, change: Any, lost: Lost) -> None:
        """Set them."""
        params = importlib.import_module("matplotlib").rcParams
        values = {name: from_wire(wire) for name, wire in change["params"].items()}
        if change["cycles"]:
            cycler = importlib.import_module("cycler").cycler
            values |= {name: cycler(**from_wire(wire)) for name, wire in change["cycles"].items()}
        for name, value in values.items():
            try:
                params[name] = value
            except (KeyError, ValueError):
                lost.append(f"matplotlib rcParams {name}: this matplotlib does not take it")


class Torch:
    """torch's settings for the whole process."""

    name = "torch"
    _settings: Mapping[str, tuple[str, str, Any]] = {
        "default dtype": ("get_default_dtype", "set_default_dtype", "torch.float32"),
        "gradients": ("is_grad_enabled", "set_grad_enabled", "True"),
        "deterministic algorithms": ("are_deterministic_algorithms_enabled", "use_deterministic_algorithms", "False"),
        "matmul precision": ("get_float32_matmul_precision", "set_float32_matmul_precision", "highest"),
    }
    """How each is asked and set, and how it comes."""

    def look(self) -> Any:
        """Those that are not as they come, as texts; None where torch is not loaded."""
        torch: Any = sys.modules.get("torch")
        if not hasattr(torch, "get_default_dtype"):
            return None
        now = {name: str(getattr(torch, ask)()) for name, (ask, _, _) in self._settings.items() if hasattr(torch, ask)}
        return {name: value for name, value in now.items() if value != self._settings[name][2]}

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Those that differ."""
        before = before or {}
        names = [name for name in self._settings if before.get(name) != after.get(name)]
        return {name: after.get(name, self._settings[name][2]) for name in names} or None

    def put(self, change: Any, lost: Lost) -> None:
        """Set them."""
        torch = importlib.import_module("torch")
        for name, value in change.items():
            setter = getattr(torch, self._settings[name][1])
            words = {"True": True, "False": False}
            setter(getattr(torch, value[6:]) if value.startswith("torch.") else words.get(value, value))


class Figures:
    """Figures that pyplot keeps open. One that was closed is closed again; one left open cannot be put back (C59)."""

    name = "figures"

    def look(self) -> Any:
        """Their numbers; none where pyplot is not imported."""
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        return pyplot.get_fignums() if hasattr(pyplot, "get_fignums") else []

    def change(self, before: Any, after: Any, lost: Lost) -> Any:
        """Numbers of those that were closed."""
        lost.extend(f"pyplot figure {number}: it was left open" for number in after if number not in before)
        return [number for number in before if number not in after] or None

    def put(self, change: Any, lost: Lost) -> None:
        """Close them, where they are open here."""
        pyplot: Any = sys.modules.get("matplotlib.pyplot")
        for number in change if hasattr(pyplot, "close") else ():
            pyplot.close(number)


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], what: str, lost: Lost) -> dict[str, Any]:
    wires: dict[str, Any] = {}
    for name in sorted(after):
        value = after[name]
        if name in before and (value is before[name] or (type(value) is type(before[name]) and value == before[name])):
            continue
        try:
            wires[name] = to_wire(value)
        except NotPlainError as problem:
            lost.append(f"{what} {name}: it is a {problem}")
    return wires


def _copied(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) if type(value) is dict else value for name, value in options.items()}


def flat(options: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Nested options by their full names."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _tensor_bytes(state: Any) -> bytes:
    return bytes(state.numpy().tobytes() if "numpy" in sys.modules else state.tolist())

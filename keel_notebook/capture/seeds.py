"""Which global generators of random numbers are seeded (DESIGN 6, Seeds).

numpy tells by itself: its generator has no seed sequence any more once it was seeded. torch tells with which number.
The module ``random`` tells nothing, so that its ``seed`` is watched. Generators start from entropy, and one that was
never seeded is no input: an unseeded draw replays.
"""

from __future__ import annotations

import functools
import random
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from keel_notebook.core.environment import GENERATORS

RANDOM, NUMPY, TORCH = GENERATORS

_PEOPLES_SEEDS = 1 << 32
"""torch seeds itself with 53 random bits; people seed with numbers below this, as numpy makes them."""
_SETS_A_STATE = {
    RANDOM: re.compile(r"\bsetstate\s*\("),
    NUMPY: re.compile(r"\bset_state\s*\("),
    TORCH: re.compile(r"\b(set_rng_state|manual_seed)\s*\("),
}
_NUMPY_SEED = re.compile(r"\b(?:np|numpy)\.random\.seed\s*\(\s*([^()\n]*(?:\([^()]*\))?[^()\n]*)\)")
_SEEDED_BEFORE = re.compile(r"(?<![.\w])(?:random\.)?seed\s*\(\s*[^)\s]|\b(?:set_seed|seed_everything)\s*\(")


class Seeds:
    """What is known of the global generators of this process."""

    def __init__(self) -> None:
        self._random = False
        self._said: dict[str, bool] = {}
        """What cells and records said of a generator, where it does not tell by itself."""
        self._numbers: dict[str, str] = {}
        self.on_seed: Callable[[], None] | None = None
        """Called right before ``random`` is seeded, while a step runs."""

    def seeded(self, group: str) -> bool:
        """Whether the generator's state goes back to a seed."""
        if group == RANDOM:
            return self._random
        if group == NUMPY:
            own = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
            bits = getattr(own, "_bit_generator", None)
            natural = bits is not None and getattr(bits, "seed_seq", None) is None
            return self._said.get(NUMPY, natural)
        torch: Any = sys.modules.get("torch")
        if not hasattr(torch, "initial_seed"):
            return False
        return self._said.get(TORCH, False) or torch.initial_seed() < _PEOPLES_SEEDS

    def number(self, group: str) -> str:
        """The number with which the generator was last seeded, where that is plain to see."""
        if group == TORCH and self.seeded(TORCH):
            return str(sys.modules["torch"].initial_seed())
        return self._numbers.get(group, "")

    def cell_ran(self, source: str) -> None:
        """A cell ran: its text may say what the generators do not."""
        if "se" not in source:
            return
        for group, pattern in _SETS_A_STATE.items():
            if pattern.search(source):
                self._mark(group, seeded=True)
        given = _NUMPY_SEED.findall(source)
        if given:
            last = given[-1].strip()
            if last in ("", "None"):
                self._mark(NUMPY, seeded=False)
            else:
                self._said.pop(NUMPY, None)
            self._numbers[NUMPY] = last if last.isdigit() else ""

    def put_back(self, seeded: Mapping[str, bool], numbers: Mapping[str, str]) -> None:
        """A record put generators into the state that its step left: seeded, with which number if known, or not."""
        for group, was in seeded.items():
            self._mark(group, seeded=was)
            self._numbers[group] = numbers.get(group, "")

    def _mark(self, group: str, *, seeded: bool) -> None:
        if group == RANDOM:
            self._random = seeded
        else:
            self._said[group] = seeded

    def _seeds(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        given = args[0] if args else kwargs.get("a")
        self._random = given is not None
        self._numbers[RANDOM] = str(given) if type(given) is int else ""


SEEDS = Seeds()
"""Generators belong to the process, and so does what is known of them."""

_original = random.seed


@functools.wraps(_original)
def _seed(*args: Any, **kwargs: Any) -> None:
    if SEEDS.on_seed is not None:
        SEEDS.on_seed()
    _original(*args, **kwargs)
    SEEDS._seeds(args, kwargs)


_seed.__qualname__ = "seed"  # so that it pickles as ``random.seed``


def watch_seeds(earlier: str = "") -> None:
    """From now on, see when ``random`` is seeded. ``earlier``: the text of the cells that ran before."""
    if random.seed is not _seed:
        random.seed = _seed
    if _SEEDED_BEFORE.search(earlier):
        SEEDS._mark(RANDOM, seeded=True)


def unwatch_seeds() -> None:
    """Leave the module as it was."""
    random.seed = _original

"""A notebook beside an editable package: what keel costs in a kernel with hundreds of local modules.

A local module counts by its source and its variables, so each one is something that keel could look at; a step should
pay for those that it reaches. The same cells run in a kernel without any, by turns.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.kernels import TimedKernel
from bench.report import Figure

COUNT = 300
STEPS = 60
_LOAD = "%load_ext keel_notebook"
_PACKAGE = "import sys; sys.path.insert(0, 'src')\nimport package.all"
_SOURCE = '''"""Module {at} of a package as people write them: constants, tables, a class, functions."""
import math
import os
from pathlib import Path
{imports}
ROOT = Path("data") / "part{at}"
LIMIT = int(os.environ.get("LIMIT", "{at}"))
NAMES = ["alpha", "beta", "gamma", "delta", "part{at}"]
WEIGHTS = {{name: 1.0 / (at + 1) for at, name in enumerate(NAMES)}}


class Options:
    """What a fit of part {at} can be told."""

    depth = {at}
    rate: float = 0.1

    def __init__(self, rate=0.1, tags=()):
        self.rate, self.tags = rate, list(tags)


DEFAULT = Options(tags=["part{at}"])


def score(rows, options=DEFAULT):
    """How good the rows are."""
    total = 0.0
    for row in rows:
        weight = WEIGHTS.get(row.get("name"), 1.0)
        total += weight * math.log1p(abs(row.get("value", 0))) * options.rate
    return total / max(len(rows), 1)


def clean(rows, *, limit=LIMIT):
    """The rows that count."""
    return [row for row in rows if row.get("value", 0) <= limit and row.get("name") in NAMES]
'''


def write_package(folder: Path, count: int = COUNT) -> None:
    """A package of so many modules; each imports the one that is half as far, ``package.all`` imports them all."""
    package = folder / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    for at in range(count):
        imports = f"from package import part{at // 2}" if at else ""
        (package / f"part{at}.py").write_text(_SOURCE.format(at=at, imports=imports))
    (package / "all.py").write_text("\n".join(f"from package import part{at}" for at in range(count)))


class _Kernel:
    """One kernel with or without the package, and what its cells took."""

    def __init__(self, folder: Path, *, before: str = "", after: str = "") -> None:
        self._kernel = TimedKernel(folder)
        for cell in filter(None, (before, _LOAD, after)):
            self._kernel.run(cell)
        began = self._kernel.cpu_s()
        self._kernel.run("%%keel_step first\nfirst = 1")
        self.first_ms = (self._kernel.cpu_s() - began) * 1000
        self._began = self._kernel.cpu_s()
        self.took: list[float] = []

    def step(self, at: int) -> None:
        """One step that has nothing to do with the package."""
        self.took.append(self._kernel.run(f"%%keel_step s{at}\nx{at} = {at}")[0])

    def end(self) -> tuple[float, float]:
        """Milliseconds of a step by the clock (median), and of processor time."""
        used = self._kernel.cpu_s() - self._began
        self._kernel.kill()
        return statistics.median(self.took) * 1000, used / len(self.took) * 1000


def local_modules(folder: Path) -> Iterator[Figure]:
    """A step of a kernel with 300 local modules, and the first one of such a kernel."""
    kernels = {}
    for name, before, after in (("none", "", ""), ("before", _PACKAGE, ""), ("after", "", _PACKAGE)):
        place = folder / name
        write_package(place)
        kernels[name] = _Kernel(place, before=before, after=after)
    for at in range(STEPS):
        for kernel in kernels.values():
            kernel.step(at)
    ended = {name: kernel.end() for name, kernel in kernels.items()}
    floor, floor_cpu = ended["none"]
    for name, order in (("before", "keel is loaded after them"), ("after", "keel is loaded before them")):
        wall, cpu = ended[name]
        against = f"the same in a kernel with none ({floor_cpu:.1f} ms of processor time)"
        detail = f"{order}; by the clock {wall:.1f} ms against {floor:.1f} ms"
        yield Figure(f"a step beside {COUNT} local modules", cpu / floor_cpu, "x", against, 3, detail)
        more = kernels[name].first_ms - kernels["none"].first_ms
        what = f"the first step beside {COUNT} local modules"
        against = f"the same in a kernel with none ({kernels['none'].first_ms:.0f} ms)"
        yield Figure(what, more, "ms of processor time more", against, None, order)

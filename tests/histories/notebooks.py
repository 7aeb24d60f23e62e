"""Random notebooks: plain cells and steps over a small pool of names, so that cells meet in them.

Names tell their type (``a`` is a number, ``xs`` a list, ``u`` an array), so that most programs run to their end; one
that stops at an error must stop there with keel as well. Everything a cell does is deterministic.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

SLOTS = {
    "i": "abc",
    "j": "abc",
    "n": "12345",
    "m": "12345",
    "x": ("xs", "ys", "zs"),
    "y": ("xs", "ys", "zs"),
    "d": ("d", "e"),
    "s": ("s", "t"),
    "u": "uvw",
    "v": "uvw",
    "f": ("df", "dg"),
    "g": ("df", "dg"),
    "o": ("o", "p"),
    "p": ("o", "p"),
    "h": ("fun", "gun"),
    "any": ("a", "b", "xs", "ys", "d", "s", "u", "w", "df", "o", "fun", "K"),
    "file": ("in0.txt", "in1.txt", "out0.txt", "out1.txt"),
    "out": ("out0.txt", "out1.txt"),
}
"""What may stand in the place of ``{i}`` and its like."""

FIRST = {
    "a": "a = {n}",
    "b": "b = {n}",
    "c": "c = {n}",
    "xs": "xs = [{n}, {m}]",
    "ys": "ys = [[{n}], {m}]",
    "zs": "zs = []",
    "d": "d = {{{n}: [{m}]}}",
    "e": "e = {{}}",
    "s": "s = {{{n}, {m}}}",
    "t": "t = set()",
    "u": "u = np.arange({n})",
    "v": "v = np.ones({n})",
    "w": "w = np.zeros(({n}, 2))",
    "df": 'df = pd.DataFrame({{"x": [{n}, {m}, 3]}})',
    "dg": 'dg = pd.DataFrame({{"x": [{n}], "y": ["{m}"]}})',
    "fun": "def fun(z): return z + {n}",
    "gun": "def gun(z): return fun(z) * {n}",
    "K": (
        "class K:\n    n = {n}\n    seen = []\n    def __init__(self, v): self.v, self.got = v, []\n"
        "    def bump(self, by={m}):\n        self.v += by * K.n\n        self.got.append(by)\n        return self\n"
        '    def __repr__(self): return f"K({{self.v}})"'
    ),
    "o": "o = K({n})",
    "p": "p = K({n})",
}
"""How each name is made at first."""

STATEMENTS = """\
{i} = {n}
{i} = {j} + {n}
{i} += {n}
{i} = {j} = {n}
{i} = len(str({any}))
{i} = fun({j})
{i} = gun({j})
{i} = {h}({n})
if {i} > {n}: {j} = {m}
if {i} > {n}: {x} = {y}
for {i} in range({n}): {j} += {i}
while {i} < {n}: {i} += 1
({i} := {j} + {n})
del {any}
{x} = [{n}, {m}]
{x} = {y}
{x} = {y} + [{i}]
{x} = list({y})
{x} = [{i} * q for q in range({n})]
{x} = [q for q in {y}]
{x} += [{i}]
{x}.append({i})
{x}.append({y})
{x}[:] = [{n}]
{x}.reverse()
{x} = [{x}, {y}]
{x}, {y} = {y}, {x}
{x} = {d}.get({n}, [])
{x} = {d}.setdefault({n}, [])
for q in {x}: {d}[str(q)] = {n}
{d}[{n}] = {x}
{d}[{n}] = {any}
{d} = {{{n}: {any}, {m}: {any}}}
{d} = dict({d})
{d}.pop({n}, None)
{i} = len({d}) + {n}
{s}.add({n})
{s} = {s} | {{{i}}}
{s} = {{q % 3 for q in range({n})}}
{u} = np.arange({n}) * {i}
{u} = {v}
{u} = {v}[1:]
{u} = {v}.reshape(-1)
{u} = {v}.copy()
{u} = {v} + {i}
{u} += {n}
{u}[:1] = {n}
{x}.append({u})
{d}[{n}] = {u}[:2]
{i} = int({u}.sum())
{f} = pd.DataFrame({{"x": np.arange({n}), "y": {i}}})
{f} = {g}
{f} = {g}.copy()
{f} = {g}[{g}["x"] > {n}]
{f} = {g}.query("x > @{i}")
{f}["z"] = {n}
{f}["z"] = {f}["x"] * {i}
{f}.loc[0, "x"] = {n}
{f}.attrs["k"] = {x}
{x} = {f}["x"].tolist()
{i} = int({f}["x"].sum())
{o} = K({i})
{o} = {p}
{o}.bump()
{o}.bump({i})
{o}.v += {n}
{o}.got = {x}
{o}.got.append({y})
{x} = {o}.got
{o}.peer = {p}
{o}.bump = {h}
K.n = {n}
K.n += {i}
K.seen.append({i})
K.seen = {x}
{x} = K.seen
{i} = {o}.v + K.n
setattr({o}, "v", {i})
{i} = getattr({o}, "v", {n})
def {h}(z): return z * {n}
def {h}(z): return z + {i}
def {h}(z, q={x}):\\n    q.append({n})\\n    return z + len(q)
def {h}(z):\\n    global {i}\\n    {i} = {n}\\n    return z
def {h}(z):\\n    {x}.append({n})\\n    return z
def {h}(z):\\n    def inner(q): return q + {i} + {n}\\n    return inner(z)
{h} = lambda z: z - {n}
{h} = (lambda q: lambda z: z + q)({i})
{h}.calls = {x}
{h}({i})
class K:\\n    n, seen = {n}, {x}\\n    def __init__(me, v): me.v, me.got = v, [{m}]\\n    __repr__ = lambda me: "K"
K.bump = lambda self, by={n}: self
import local
from local import twice
{i} = local.twice({j})
{i} = twice({j})
{i} = local.BASE + {n}
local.BASE = {n}
local.SEEN.append({i})
{x} = local.SEEN
{i} = int(Path("{file}").read_text())
{i} = int(open("{file}").read())
{x} = sorted(q.name for q in Path().glob("out*.txt"))
if Path("{file}").exists(): {i} = {n}
Path("{out}").write_text(str({i}))
Path("{out}").write_text(str(len(str({any}))))
random.seed({n}); {i} = random.randrange(9)
np.random.seed({n}); {u} = np.random.rand(3)
rng = np.random.default_rng({n}); {i} = int(rng.integers(9))
exec("{i} = {j} + {n}")
{i} = eval("{j} + {n}")
globals()["{i}"] = {n}
{i} = globals().get("{j}", {n})
try: {i} = {x}[{n}]\\nexcept IndexError: {i} = {n}
print({any})
print({i}, {x})
{any}
with np.errstate(): {i} = {n}
match {i}:\\n    case {n}: {j} = {m}\\n    case _: {j} = 0"""
"""One a line; ``\\n`` where a statement has several."""

IMPORTS = "import random\nfrom pathlib import Path\nimport numpy as np\nimport pandas as pd"
LOCAL = "BASE = {n}\nSEEN = []\ndef twice(z): return z * {n} + BASE\n"
FILES = {"in0.txt": "{n}", "in1.txt": "{n}", "out1.txt": "{n}", "local.py": LOCAL}
"""What lies in the folder at first."""


class Cell(Struct, frozen=True):
    """One cell: statements, and the step's name if it is a step."""

    step: str
    lines: tuple[str, ...]
    magic: bool = False
    """Written with ``%%keel_step``."""

    def source(self, *, keel: bool) -> str:
        """The text that runs; without keel the magic does not exist."""
        if not self.step:
            return "\n".join(self.lines)
        first = f"%%keel_step {self.step}" if self.magic and keel else f"# keel: step {self.step}"
        return "\n".join([first, f'hit("{self.step}")', *self.lines])


def filled(template: str) -> st.SearchStrategy[str]:
    """A template with something in each of its places."""
    template = template.replace("\\n", "\n")
    slots = dict.fromkeys(slot for _, slot, *_ in string.Formatter().parse(template) if slot)
    drawn = st.fixed_dictionaries({slot: st.sampled_from(SLOTS[slot]) for slot in slots})
    return drawn.map(lambda chosen: template.format(**chosen))


@st.composite
def _statements(draw: st.DrawFn) -> str:
    return draw(filled(draw(st.sampled_from(STATEMENTS.split("\n")))))


statements = _statements()
lines = st.lists(statements, min_size=1, max_size=4).map(tuple)


@st.composite
def cells(draw: st.DrawFn, name: str) -> Cell:
    """A cell; ``name`` is the step's name if it becomes one."""
    step = draw(st.sampled_from((name, name, "")))
    return Cell(step, draw(lines), magic=bool(step) and draw(st.booleans()))


@st.composite
def notebooks(draw: st.DrawFn) -> tuple[Cell, ...]:
    """A notebook: names are made in a plain cell, a step and a plain cell; then come random cells."""
    first: list[list[str]] = [[IMPORTS], [], []]
    at = 0
    for name, template in FIRST.items():
        at = draw(st.integers(at if name in ("o", "p") else 0, 2))  # after its class
        first[at].append(draw(filled(template)))
    made = [Cell("", tuple(first[0])), Cell("s0", tuple(first[1]) or ("pass",)), Cell("", tuple(first[2]) or ("pass",))]
    return (*made, *[draw(cells(f"s{at}")) for at in range(1, draw(st.integers(2, 6)))])


def constants(cell: Cell) -> Sequence[tuple[int, re.Match[str]]]:
    """The numbers in a cell that an edit can change, each with the number of its line."""
    return [(at, found) for at, line in enumerate(cell.lines) for found in re.finditer(r"\b\d\b", line)]


def with_constant(cell: Cell, which: int, digit: str) -> Cell:
    """The cell with one number changed."""
    if not (found := constants(cell)):
        return cell
    at, place = found[which % len(found)]
    line = cell.lines[at]
    changed = line[: place.start()] + digit + line[place.end() :]
    return replace(cell, lines=(*cell.lines[:at], changed, *cell.lines[at + 1 :]))

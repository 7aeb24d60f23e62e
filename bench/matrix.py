"""The correctness matrix: the same sixteen probes on keel and on each peer, each through a kernel that is killed.

A probe says yes, no, partly or "-": the tool does not claim anything of the kind. ``RIGHT`` is what a notebook without
any tool prints when its cells run once, in order.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.toolkernel import Kernel
from bench.tools import Cell, Keel, KeelSession, Life, Tool

YES, NO, PARTLY, NOT = "yes", "no", "partly", "-"
SETUP = Cell("import random\nimport numpy as np", binds=("random", "np"), plain=True)


@dataclass(frozen=True)
class Found:
    """What a probe found."""

    row: str
    tool: str
    verdict: str
    detail: str = ""


Probe = Callable[[type[Tool], Path], tuple[str, str]]
PROBES: dict[str, tuple[str, Probe]] = {}


def probe(row: str, title: str) -> Callable[[Probe], Probe]:
    """Put a probe into the matrix."""

    def put(function: Probe) -> Probe:
        PROBES[row] = (title, function)
        return function

    return put


def judged(right: object, found: object) -> tuple[str, str]:
    """Yes where both are equal; else no, with what came instead."""
    return (YES, "") if str(right) == str(found) else (NO, f"{found!s:.80} instead of {right}")


def both(*verdicts: tuple[str, str]) -> tuple[str, str]:
    """Yes if all are, partly if some are."""
    good = [verdict for verdict, _ in verdicts if verdict == YES]
    why = "; ".join(detail for _, detail in verdicts if detail)
    return (YES, "") if len(good) == len(verdicts) else (PARTLY if good else NO, why)


def brought(tool: Tool, cells: Sequence[Cell], asks: Sequence[str]) -> Life:
    """The second life of these cells."""
    tool.first(cells)
    return tool.again(cells, asks)


@probe("a", "two names for one object stay one, within a cell and across cells")
def aliasing(kind: type[Tool], folder: Path) -> tuple[str, str]:
    cells = [
        Cell("a = [1, 2]\nb = a", binds=("a", "b")),
        Cell("box = {'data': a}", ("a",), ("box",)),
    ]
    life = brought(kind(folder), cells, ["b is a", "box['data'] is a"])
    return both(judged("True", life[0]), judged("True", life[1]))


@probe("b", "a change in place by a later cell is there again")
def in_place(kind: type[Tool], folder: Path) -> tuple[str, str]:
    cells = [Cell("a = [1]", binds=("a",)), Cell("a.append(2)\nn = len(a)", ("a",), ("n",))]
    life = brought(kind(folder), cells, ["(a, n)"])
    return judged("([1, 2], 2)", life[0])


def edited(kind: type[Tool], folder: Path, before: list[Cell], after: list[Cell], ask: str) -> tuple[str, set[str]]:
    """The answer after an edit between two lives, and what ran in the second."""
    tool = kind(folder)
    tool.first(before)
    tool.ran()
    life = tool.again(after, [ask])
    return life[0], set(tool.ran())


def big(source: str = "hit('big')\nbig = src + 1") -> list[Cell]:
    return [Cell("src = 10", binds=("src",)), Cell(source, ("src",), ("big",))]


@probe("c", "an edit of the code runs the cell again, an edit of a comment does not")
def code_edit(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if not kind.runs_again:
        return NOT, ""
    value, _ = edited(kind, folder, big(), big("hit('big')\nbig = src + 2"), "big")
    (folder / "comment").mkdir()
    _, ran = edited(kind, folder / "comment", big(), big("# a note\nhit('big')\nbig = src + 1"), "big")
    return both(judged("12", value), judged(set(), ran))


@probe("d", "an edit of a helper, in another cell or in a local module, is seen")
def helper_edit(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if not kind.runs_again:
        return NOT, ""

    def cells(helper: str) -> list[Cell]:
        return [
            Cell(f"def h(x):\n    return x + {helper}", binds=("h",), plain=True),
            Cell("import local", binds=("local",), plain=True),
            Cell("one = h(10)", (), ("one",), uses=("h",)),
            Cell("two = local.fn(10)", (), ("two",), uses=("local",)),
        ]

    tool = kind(folder)
    (folder / "local.py").write_text("def fn(x):\n    return x * 100\n")
    tool.first(cells("1"))
    (folder / "local.py").write_text("def fn(x):\n    return x * 1000 + 0\n")
    life = tool.again(cells("2"), ["one", "two"])
    return both(judged("12", life[0]), judged("10000", life[1]))


@probe("e", "a changed value runs what reads it again, an equal one does not")
def cutoff(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if not kind.runs_again:
        return NOT, ""
    cells = big()
    value, _ = edited(kind, folder, cells, [Cell("src = 11", binds=("src",)), cells[1]], "big")
    (folder / "equal").mkdir()
    _, ran = edited(kind, folder / "equal", cells, [Cell("src = 5 + 5", binds=("src",)), cells[1]], "big")
    return both(judged("12", value), judged(set(), ran))


@probe("f", "random numbers go on where they would have")
def random_state(kind: type[Tool], folder: Path) -> tuple[str, str]:
    seeded = "random.seed(1)\nnp.random.seed(1)\nr = (random.random(), float(np.random.rand()))"
    cells = [SETUP, Cell(seeded, (), ("r",), uses=("random", "np"))]
    asks = ["round(random.random(), 6)", "round(float(np.random.rand()), 6)"]
    life = brought(kind(folder), cells, asks)
    return both(judged("0.847434", life[0]), judged("0.720324", life[1]))


@probe("g", "prints and plots are shown again")
def outputs(kind: type[Tool], folder: Path) -> tuple[str, str]:
    shown = "print('PRINTED')\nfrom matplotlib import pyplot as plt\n_ = plt.plot([1, 3, 2])\nplt.show()\nmark = 1"
    life = brought(kind(folder), [Cell(shown, binds=("mark",))], ["mark"])
    printed = any("PRINTED" in text for _, text in life.shown)
    drawn = any(kind == "image" for kind, _ in life.shown)
    return both(judged("True", printed), judged("True", drawn))


@probe("h", "lambdas, closures and classes of the notebook come back")
def functions(kind: type[Tool], folder: Path) -> tuple[str, str]:
    cells = [
        Cell("k = 3\nf = lambda z: z + k", binds=("k", "f")),
        Cell("def make(n):\n    return lambda: n\nclosed = make(5)", binds=("make", "closed")),
        Cell("class Model:\n    pass\nmodel = Model()\nmodel.w = 7", binds=("Model", "model")),
    ]
    life = brought(kind(folder), cells, ["f(1)", "closed()", "(isinstance(model, Model), model.w)"])
    return both(judged("4", life[0]), judged("5", life[1]), judged("(True, 7)", life[2]))


@probe("i", "a generator and an open file lose nothing else, and no cell runs again unasked")
def handles(kind: type[Tool], folder: Path) -> tuple[str, str]:
    cells = [
        Cell("hit('kept')\nkept = 41 + 1", (), ("kept",)),
        Cell("g = (i for i in range(3))", binds=("g",)),
        Cell("hit('file')\nfile = open('t.txt', 'w')", (), ("file",)),
    ]
    tool = kind(folder)
    tool.first(cells)
    tool.ran()
    (folder / "t.txt").write_text("of the first run")
    life = tool.again(cells, ["kept"])
    ran = tool.ran()
    # Who runs all cells again opens the file as its user asked; who restores a session was not asked to.
    truncated = "file" in ran and not kind.runs_again
    return both(judged("42", life[0]), judged("False", "kept" in ran), judged("False", truncated))


@probe("j", "killed while it writes, the next run has the right value and no error")
def killed_writing(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if kind.name == "marimo cache":
        return NOT, "not probed: it runs as a script"
    tool = kind(folder)
    good = [SETUP, Cell("small = 7", binds=("small",))]
    tool.first(good)
    cells = [*good, Cell("large = np.arange(60_000_000.0)", (), ("large",), uses=("np",))]
    kernel, before = tool.start(again=True), tool.bytes()

    def life() -> None:
        try:
            tool.run(kernel, cells, Life())
            tool.save(kernel)
        except Exception:  # noqa: BLE001 - it is killed in the middle, in whatever way it notices
            return

    running = threading.Thread(target=life, daemon=True)
    running.start()
    waited = threading.Event()
    for _ in range(3000):
        if tool.bytes() - before > 50_000_000 or not running.is_alive():
            break
        waited.wait(0.01)
    kernel.kill()
    running.join(30)
    found = tool.again(cells if kind.runs_again else good, ["small"])
    return judged("7", found[0]) if not found.errors else (NO, found.errors[0][:80])


@probe("k", "two kernels on one folder at once")
def two_kernels(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if kind.name in {"marimo cache", "dill"}:
        return NOT, ""
    tools = [kind(folder), kind(folder)]
    kernels = [tool.start(again=bool(at)) for at, tool in enumerate(tools)]
    lives = [Life(), Life()]

    def work(at: int) -> None:
        cells = [Cell(f"v{n} = [{n}] * 3", binds=(f"v{n}",)) for n in range(15)]
        tools[at].run(kernels[at], cells, lives[at])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = [kernel.ask("v14") for kernel in kernels]
    for kernel in kernels:
        kernel.kill()
    errors = [error for life in lives for error in life.errors]
    return both(judged(["[14, 14, 14]"] * 2, answers), judged([], errors[:1]))


@probe("l", "an exception is never kept as a result")
def exceptions(kind: type[Tool], folder: Path) -> tuple[str, str]:
    cells = [Cell("hit('x')\nx = 1 / 0", (), ("x",))]
    tool = kind(folder)
    if not kind.runs_again:
        return NOT, ""
    tool.first(cells)
    life = tool.again(cells, ["'x' in globals()"])
    failed = any("ZeroDivision" in error for error in life.errors)
    return judged(["x", "x"], tool.ran()) if failed else (NO, "it did not fail again")


@probe("m", "a loop that was killed goes on where it was, also after an edit elsewhere in its cell")
def loops(kind: type[Tool], folder: Path) -> tuple[str, str]:
    calls = {"keel": "keel.call(slow, i, key=i)", "joblib.Memory": "slow(i)"}
    if kind.name not in calls:
        return (NO, "nothing is written before the cell ends") if kind.name != "plain" else (NOT, "")
    made = "import os\ndef slow(i):\n    with open('ran.txt', 'a') as f: f.write(f'{i} ')\n    return i * i\n"
    made += {"keel": "import keel_notebook as keel", "joblib.Memory": "slow = mem.cache(slow)"}[kind.name]

    def body(note: str) -> str:
        stop = "        if i == where: os._exit(9)\n"
        marked = "%%keel_step loop --ignore where\n" if kind.name == "keel" else ""
        loop = f"squares = []\nfor i in range(300):\n{stop}        squares.append({calls[kind.name]})\n".replace(
            "        ", "    "
        )
        return f"{marked}# {note}\n{loop}done = len(squares)"

    tool = kind(folder)
    kernel = tool.start()
    kernel.run(made)
    kernel.run("where = 200")
    kernel_dies(kernel, body("first"))
    before = tool.ran()
    kernel = tool.start(again=True)
    kernel.run(made)
    kernel.run("where = -1")
    kernel.run(body("an edited comment, and a line more") + "\nmore = 1")
    done = kernel.ask("done")
    kernel.kill()
    again = [one for one in tool.ran() if one in set(before)]
    return both(judged("300", done), judged(0, len(again)))


def kernel_dies(kernel: Kernel, source: str) -> None:
    """Run a cell that ends its own process."""
    try:
        kernel.run(source, timeout=20)
    except Exception:  # noqa: BLE001 - a dead kernel is noticed in several ways
        kernel.kill()
    else:
        kernel.kill()


@probe("n", "what a cell deleted stays deleted")
def deleted(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if not kind.shows_session:
        return NOT, ""
    life = brought(kind(folder), [Cell("x = 1", binds=("x",)), Cell("del x")], ["'x' in globals()"])
    return judged("False", life[0])


@probe("o", "the session is back as it was after a cell ran twice")
def twice(kind: type[Tool], folder: Path) -> tuple[str, str]:
    if not kind.shows_session:
        return NOT, ""
    kind = KeelSession if kind is Keel else kind
    again = Cell("cnt = cnt + 1", ("cnt",), ("cnt",))
    tool = kind(folder)
    kernel = tool.start()
    life = Life()
    tool.run(kernel, [Cell("cnt = 0", binds=("cnt",)), again], life)
    kernel.run(tool.cell(1, again))
    tool.save(kernel)
    kernel.kill()
    return judged("2", tool.again([], ["cnt"])[0])


@probe("p", "what somebody else stored runs no code unasked")
def foreign(kind: type[Tool], folder: Path) -> tuple[str, str]:
    tool = kind(folder)
    bomb = "import os\nclass Bomb:\n    def __reduce__(self):\n        return (os.makedirs, ('pwned', 0o700, True))"
    cells = [Cell(bomb, binds=("Bomb",), plain=True), Cell("x = [Bomb()]", binds=("x",), uses=("Bomb",))]
    tool.environ = {**tool.environ, "XDG_CONFIG_HOME": str(folder / "attacker")}  # another person's key
    tool.first(cells)
    with contextlib.suppress(FileNotFoundError):  # what a check of the record made in the other person's process
        (folder / "pwned").rmdir()
    tool.environ = {**tool.environ, "XDG_CONFIG_HOME": str(folder / "config")}
    tool.again(cells, ["x"])
    if kind.name == "Kishu":  # it loads what it stores once to compare, and leaves out what does not come back equal
        return NO, "this bomb was left out, but what lies in its database is unpickled unasked (read in its source)"
    return (NO, "it unpickles what it finds") if (folder / "pwned").exists() else (YES, "")


def matrix(tools: Sequence[type[Tool]], rows: Sequence[str] = ()) -> list[Found]:
    """Every probe on every tool that is installed."""
    found = []
    for row in rows or PROBES:
        for kind in tools:
            if not kind.there():
                continue
            with tempfile.TemporaryDirectory(prefix="keel-matrix-", ignore_cleanup_errors=True) as folder:
                try:
                    verdict, detail = PROBES[row][1](kind, Path(folder))
                except Exception as error:  # noqa: BLE001 - a tool that breaks its kernel has failed the probe
                    verdict, detail = NO, f"{type(error).__name__}: {error!s:.60}"
            found.append(Found(row, kind.name, verdict, detail))
            print(f"{row} {kind.name}: {verdict} {detail}", flush=True)
    return found


def table(found: Sequence[Found]) -> str:
    """The matrix as Markdown, with what went wrong below it."""
    tools = list(dict.fromkeys(one.tool for one in found))
    cells = {(one.row, one.tool): one for one in found}
    lines = ["| row | " + " | ".join(tools) + " |", "| --- " * (len(tools) + 1) + "|"]
    for row in dict.fromkeys(one.row for one in found):
        verdicts = (cells[row, tool].verdict if (row, tool) in cells else "?" for tool in tools)
        lines.append(f"| {row} {PROBES[row][0]} | " + " | ".join(verdicts) + " |")
    good = (sum(1 for one in found if one.tool == tool and one.verdict == YES) for tool in tools)
    lines.append("| **rows passed** | " + " | ".join(f"**{count}**" for count in good) + " |")
    notes = [f"- {one.row}, {one.tool}: {one.detail}" for one in found if one.detail]
    return "\n".join([*lines, "", *notes]) + "\n"

"""Keel and its peers behind one interface: run cells, die, bring back, ask. Each in real kernels of its own Python.

The peers live in ``.venv-peers`` and its folders (`make bench-peers`); one that is not there is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from bench.toolkernel import LIMIT_S, Kernel

PEERS = Path(__file__).resolve().parents[1] / ".venv-peers"
ASK = "\x1e"
HIT = "def hit(name):\n    with open('ran.txt', 'a') as _f: _f.write(name + ' ')\n"


@dataclass(frozen=True)
class Cell:
    """A cell, with the names that it reads and binds: function caches have to be told."""

    source: str
    reads: Sequence[str] = ()
    binds: Sequence[str] = ()
    uses: Sequence[str] = ()
    """Functions and modules of the notebook that it uses."""
    plain: bool = False
    """Never kept: set-up, definitions, a line that a person types."""


@dataclass
class Life:
    """What one kernel showed."""

    answers: list[str] = field(default_factory=list)
    shown: list[tuple[str, str]] = field(default_factory=list)
    """Kind of message and text, of the cells, in order."""
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Of the cells, or of bringing back."""
    peak_mb: float = 0.0

    def __getitem__(self, at: int) -> str:
        return self.answers[at] if at < len(self.answers) else ""


class Tool:
    """One way to keep the work of a notebook; this one keeps nothing."""

    name: ClassVar[str] = "plain"
    python: ClassVar[Path | str] = sys.executable
    launch: ClassVar[Sequence[str]] = ("-m", "ipykernel_launcher")
    load: ClassVar[str] = "pass"
    environ: Mapping[str, str] = MappingProxyType({})
    stores: ClassVar[Sequence[str]] = ()
    """Where its files lie, as patterns."""
    runs_again: ClassVar[bool] = True
    """It brings back by running the cells again; else as a whole, without edits."""
    shows_session: ClassVar[bool] = True
    """It can be asked for a session whose cells ran several times or out of order."""

    draws: ClassVar[bool] = True
    """Its cells run where pictures are shown."""

    imports = "pass"
    """What the notebook imports first: not measured, in no life."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def there(cls) -> bool:
        """Whether it is installed."""
        return Path(cls.python).exists()

    def cell(self, at: int, cell: Cell) -> str:
        """How a person writes this cell with the tool."""
        return cell.source

    def start(self, *, again: bool = False) -> Kernel:
        """A kernel with the tool loaded."""
        kernel = Kernel(self.folder, [str(self.python), *self.launch], self.environ)
        kernel.run(f"{HIT}import sys; sys.path.insert(0, '')\n{self.imports}")
        kernel.run(self.load)
        return kernel

    def save(self, kernel: Kernel) -> str:
        """At the end of the first life; the error, if any."""
        return ""

    def back(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        """Bring everything back in a new kernel."""
        self.run(kernel, cells, life)

    def run(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        """Run cells and note what they showed."""
        for at, cell in enumerate(cells):
            shown, error = kernel.run(cell.source if cell.plain else self.cell(at, cell))
            life.shown += shown
            life.errors += [error] if error else []

    def first(self, cells: Sequence[Cell], asks: Sequence[str] = ()) -> Life:
        """The first life: it runs, saves, answers and is killed."""
        kernel, life = self.start(), Life()
        try:
            began = time.perf_counter()
            self.run(kernel, cells, life)
            if problem := self.save(kernel):
                life.errors.append(problem)
            life.seconds = time.perf_counter() - began
            life.peak_mb = kernel.peak_mb()
            life.answers = [kernel.ask(one) for one in asks]
        finally:
            kernel.kill()
        return life

    def again(self, cells: Sequence[Cell], asks: Sequence[str] = ()) -> Life:
        """A later life: everything is brought back, then it answers."""
        kernel, life = self.start(again=True), Life()
        try:
            for cell in cells if not self.runs_again else ():
                if cell.plain and cell.source.startswith(("import", "from")):
                    kernel.run(cell.source)
            began = time.perf_counter()
            self.back(kernel, cells, life)
            life.seconds = time.perf_counter() - began
            life.answers = [kernel.ask(one) for one in asks]
        finally:
            kernel.kill()
        return life

    def ran(self) -> list[str]:
        """What really ran since it was asked last."""
        path = self.folder / "ran.txt"
        found = path.read_text().split() if path.exists() else []
        path.write_text("")
        return found

    def bytes(self) -> int:
        """Bytes on disk."""
        files = (
            file
            for pattern in self.stores
            for place in self.folder.glob(pattern)
            for file in (place, *place.rglob("*"))
        )
        return sum(file.stat().st_size for file in files if file.is_file())


class Keel(Tool):
    """This package."""

    name = "keel"
    load = "%load_ext keel_notebook"
    stores = (".keel",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.environ = {"PYTHONPATH": str(PEERS.parent)}

    def cell(self, at: int, cell: Cell) -> str:
        return f"%%keel_step s{at}\n{cell.source}"


class KeelSession(Keel):
    """The same in auto mode, asked for the session as it was: `%keel restore` instead of Run All."""

    name = "keel (restore)"
    load = "%load_ext keel_notebook\n%keel auto on"
    runs_again = False

    def cell(self, at: int, cell: Cell) -> str:
        return cell.source

    def back(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        _, error = kernel.run("%keel restore")
        life.errors += [error] if error else []


class Dill(Tool):
    """dill.dump_module at the end of the session."""

    name = "dill"
    python = PEERS / "bin" / "python"
    stores = ("session.pkl",)
    runs_again = False

    def save(self, kernel: Kernel) -> str:
        return kernel.run("import dill; dill.dump_module('session.pkl')")[1]

    def back(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        life.errors += filter(None, [kernel.run("import dill; dill.load_module('session.pkl')")[1]])


class Store(Tool):
    """IPython's own %store, after each cell."""

    name = "%store"
    python = PEERS / "bin" / "python"
    stores = ("ipython/profile_default/db",)
    runs_again = False

    def cell(self, at: int, cell: Cell) -> str:
        return f"{cell.source}\n%store {' '.join(cell.binds)}" if cell.binds else cell.source

    def back(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        life.errors += filter(None, [kernel.run("%store -r")[1]])


class Joblib(Tool):
    """joblib.Memory around a function for each cell."""

    name = "joblib.Memory"
    python = PEERS / "bin" / "python"
    load = "import joblib; mem = joblib.Memory('joblib', verbose=0)"
    stores = ("joblib",)
    shows_session = False

    def cell(self, at: int, cell: Cell) -> str:
        if not cell.binds:
            return cell.source
        names = ", ".join(cell.binds) + ","
        body = textwrap.indent(cell.source, "    ")
        call = f"step_{at}({', '.join(cell.reads)})"
        return f"@mem.cache\ndef {call}:\n{body}\n    return ({names})\n({names}) = {call}"


class Kishu(Tool):
    """Kishu, in the mode that its own tests use: there is no JupyterLab here."""

    name = "Kishu"
    python = PEERS / "kishu" / "bin" / "python"
    environ = MappingProxyType({"ENV_KISHU_TEST_MODE": "1"})
    stores = ("*.kishudb*",)
    runs_again = False
    head = ""

    def start(self, *, again: bool = False) -> Kernel:
        book = self.folder / "a.ipynb"
        if not again:
            book.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        kernel = super().start(again=again)
        kernel.run(
            "from kishu import init_kishu\nfrom pathlib import Path\n"
            "from kishu.jupyter.runtime import JupyterRuntimeEnv\n"
            "JupyterRuntimeEnv.enclosing_kernel_id = staticmethod(lambda: 'k1')\n"
            f"init_kishu(Path({str(book)!r}))"
        )
        return kernel

    def save(self, kernel: Kernel) -> str:
        self.head = kernel.ask("_kishu._kishu_graph.head()").splitlines()[-1]
        return ""

    def back(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        life.errors += filter(None, [kernel.run(f"_kishu.checkout({self.head!r}, skip_notebook=True)")[1]])


class Elastic(Tool):
    """elastic-kernel, with the checkpoint that it makes at a graceful end asked for before the kill."""

    name = "elastic-kernel"
    python = PEERS / "elastic" / "bin" / "python"
    launch = (
        "-c",
        "from ipykernel.kernelapp import IPKernelApp; from elastic_kernel.kernel import ElasticKernel;"
        " IPKernelApp.launch_instance(kernel_class=ElasticKernel)",
    )
    stores = (".elastic_kernel",)
    runs_again = False

    def start(self, *, again: bool = False) -> Kernel:
        began = time.perf_counter()
        (self.folder / "a.ipynb").touch()
        kernel = Kernel(self.folder, [str(self.python), *self.launch], self.environ)
        self.started = time.perf_counter() - began
        if not again:
            kernel.run(f"{HIT}import sys; sys.path.insert(0, '')\n{self.imports}")
        return kernel

    def save(self, kernel: Kernel) -> str:
        kernel.control("elastic_checkpoint_request")
        return ""

    def again(self, cells: Sequence[Cell], asks: Sequence[str] = ()) -> Life:
        life = super().again(cells, asks)
        life.seconds = self.started  # it brings back while the kernel starts
        return life

    def back(self, kernel: Kernel, cells: Sequence[Cell], life: Life) -> None:
        pass


class Script(Tool):
    """A tool whose notebooks are scripts: a life is one process from its start to its end."""

    shows_session = False
    draws = False

    def script(self, cells: Sequence[Cell], asks: Sequence[str]) -> Sequence[Path | str]:
        """Write the notebook, and give the command that runs it. Each answer is printed behind ``ASK``."""
        raise NotImplementedError

    def first(self, cells: Sequence[Cell], asks: Sequence[str] = ()) -> Life:
        command = self.script(cells, asks)
        environ = os.environ | {"HOME": str(self.folder), "PYTHONPATH": str(self.folder), "MPLBACKEND": "agg"}
        began = time.perf_counter()
        done = subprocess.run(
            command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
        life = Life(seconds=time.perf_counter() - began)
        life.shown = [("stream", done.stdout.partition(ASK)[0])]
        life.answers = [part.strip().split("\n")[0] for part in done.stdout.split(ASK)[1:]]
        life.errors = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        return life

    again = first


class Marimo(Script):
    """marimo's persistent cache, a block around each cell of an app that runs as a script."""

    name = "marimo cache"
    python = PEERS / "bin" / "python"
    stores = ("marimo-cache",)

    def script(self, cells: Sequence[Cell], asks: Sequence[str]) -> Sequence[Path | str]:
        bound = sorted({name for cell in cells for name in cell.binds})
        imports = textwrap.indent(self.imports, "    ")
        brought = _names(self.imports)
        parts = [
            "import marimo\napp = marimo.App()\n",
            f"@app.cell\ndef _():\n    import marimo as mo\n{textwrap.indent(HIT, '    ')}{imports}\n"
            f"    return (mo, hit, {brought})\n",
        ]
        for at, cell in enumerate(cells):
            body = cell.source
            if not cell.plain and cell.binds:
                body = f"with mo.persistent_cache('c{at}', save_path='marimo-cache'):\n{textwrap.indent(body, '    ')}"
            parts.append(self._cell(body, ["mo", *dict.fromkeys(("hit", *cell.uses, *cell.reads))], cell.binds))
        asked = "\n".join(
            f"try:\n    print({ASK!r} + str({one}))\nexcept Exception as e:\n    print({ASK!r} + type(e).__name__)"
            for one in asks
        )
        parts.append(self._cell(asked or "pass", bound, ()))
        (self.folder / "app.py").write_text("".join(parts) + "if __name__ == '__main__':\n    app.run()\n")
        return [self.python, "app.py"]

    @staticmethod
    def _cell(body: str, reads: Sequence[str], binds: Sequence[str]) -> str:
        kept = f"return ({', '.join(binds)},)" if binds else "return"
        return f"@app.cell\ndef _({', '.join(reads)}):\n{textwrap.indent(body, '    ')}\n    {kept}\n"


class Saturn(Script):
    """saturn-notebook, a checkpoint after each cell of a script that its own command runs."""

    name = "saturn"
    python = PEERS / "saturn" / "bin" / "python"
    stores = ("book.py", "book.zip")

    def script(self, cells: Sequence[Cell], asks: Sequence[str]) -> Sequence[Path | str]:
        book = self.folder / "book.py"
        if not book.exists():  # its checkpoints lie in the notebook itself
            kept = "".join(f"{cell.source}\n{'' if cell.plain else '#chk>' + chr(10)}" for cell in cells)
            asked = "\n".join(f"print({ASK!r} + str({one}))" for one in asks)
            book.write_text(f"{HIT}{self.imports}\n#no-skip#\n{kept}#no-skip#\n{asked}\n")
        return [self.python.parent / "saturn", "--no-mpi", "run", "book.py"]


def _names(imports: str) -> str:
    """What lines of imports bind."""
    names = [
        part.split(" as ")[-1].strip()
        for line in imports.splitlines()
        for part in line.partition("import ")[2].split(",")
    ]
    return "".join(f"{name}, " for name in names if name)


PEER_TOOLS: Sequence[type[Tool]] = (Dill, Store, Joblib, Marimo, Kishu, Elastic)
CONTEST_ONLY: Sequence[type[Tool]] = (Saturn,)
"""Peers whose cells cannot be probed one by one."""

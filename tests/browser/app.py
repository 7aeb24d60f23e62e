"""A real notebook in a real browser: JupyterLab or Notebook 7, a server, a kernel that can be killed.

Nothing here sleeps: tests wait for what a person would see, or for an event in the extension's log.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import nbformat
import psutil

CHROMIUM = "/usr/bin/chromium"
PICTURES = Path(__file__).resolve().parents[2] / "build" / "browser"
EXTENSION = Path(__file__).resolve().parents[2] / "keel_notebook" / "labextension"
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000


class Server:
    """JupyterLab and Notebook 7 on one port, with settings and kernels of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.root = home / "root"
        self.root.mkdir(parents=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        env = {name: value for name, value in os.environ.items() if not name.startswith(("KEEL_", "JUPYTER"))}
        env |= {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
        # The extension of this very checkout, also where the environment has a link to another one.
        env |= {"JUPYTER_PREFER_ENV_PATH": "0"}
        extensions = home / "data" / "labextensions"
        extensions.mkdir(parents=True)
        (extensions / "keel-notebook").symlink_to(EXTENSION)
        env |= {"IPYTHONDIR": str(home / "ipython"), "HOME": str(home), "XDG_CONFIG_HOME": str(home / "xdg")}
        self.setting("@jupyterlab/apputils-extension", "notification", {"fetchNews": "false", "checkForUpdates": False})
        self.log = (home / "server.log").open("w")
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"]
        command += [f"--port={self.port}", f"--ServerApp.root_dir={self.root}", "--IdentityProvider.token="]
        command += ["--ServerApp.disable_check_xsrf=True", "--LabApp.expose_app_in_browser=True"]
        command += ["--JupyterNotebookApp.expose_app_in_browser=True", "--ServerApp.port_retries=0"]
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log, cwd=self.root)
        self._answers()

    def _answers(self) -> None:
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while True:
            try:
                self.api("api")
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def api(self, path: str, method: str = "GET") -> Any:
        """The answer of the server's REST API."""
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/{path}", method=method), timeout=20) as reply:
            body = reply.read()
        return json.loads(body) if body else None

    def setting(self, extension: str, plugin: str, values: dict[str, Any]) -> None:
        """A person's own settings of one plugin, for pages that are opened from now on."""
        folder = self.home / "config" / "lab" / "user-settings" / extension
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{plugin}.jupyterlab-settings").write_text(json.dumps(values))

    def kernelspec(self, name: str, first: str) -> None:
        """A kernel of this name that runs a line of Python before it becomes one."""
        spec = self.home / "data" / "kernels" / name
        spec.mkdir(parents=True, exist_ok=True)
        start = f"{first}\nfrom ipykernel import kernelapp as app\napp.launch_new_instance()"
        argv = [sys.executable, "-c", start, "-f", "{connection_file}"]
        (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))

    def kernels(self) -> list[psutil.Process]:
        """The kernels' processes."""
        found = []
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any("ipykernel" in word for word in child.cmdline()):
                    found.append(child)
        return found

    def end_kernels(self) -> None:
        """Shut every kernel down."""
        for session in self.api("api/sessions"):
            with contextlib.suppress(OSError):
                self.api(f"api/sessions/{session['id']}", "DELETE")

    def close(self) -> None:
        """End the server and its kernels."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Book:
    """One notebook, open in one page."""

    def __init__(
        self,
        server: Server,
        page: Any,
        folder: str,
        cells: str | list[str],
        *,
        app: str = "lab",
        kernel: str = "python3",
    ) -> None:
        self.server, self.page, self.app = server, page, app
        self.folder = server.root / folder
        self.folder.mkdir(exist_ok=True)
        self.path = self.folder / "a.ipynb"
        split = re.split(r"^# ---.*$", cells, flags=re.M) if isinstance(cells, str) else cells
        book = nbformat.v4.new_notebook()
        book.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
        book.cells = [nbformat.v4.new_code_cell(source.strip("\n"), id=f"cell-{at}") for at, source in enumerate(split)]
        nbformat.write(book, self.path)

    def show(self) -> None:
        """Load the page, and wait until the notebook is drawn."""
        where = (
            f"lab/tree/{self.folder.name}/a.ipynb?reset"
            if self.app == "lab"
            else f"notebooks/{self.folder.name}/a.ipynb"
        )
        self.page.goto(f"{self.server.url}/{where}", wait_until="domcontentloaded")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-CodeCell .cm-content", timeout=PATIENCE_MS)
        self.page.wait_for_function("() => window.jupyterapp !== undefined", timeout=PATIENCE_MS)

    def open(self) -> Book:
        """Load the page, and wait until the notebook is drawn and its kernel is idle."""
        self.show()
        self.idle()
        return self

    # ---- what a person does

    def command(self, name: str, **arguments: Any) -> None:
        """Run a command of the application, as its menu entry would. Does not wait for its end."""
        self.page.evaluate("([name, args]) => void jupyterapp.commands.execute(name, args)", [name, arguments])

    def run_all(self) -> None:
        """Run All, to its end."""
        self.page.evaluate("() => jupyterapp.commands.execute('notebook:run-all-cells')")

    def start_all(self) -> None:
        """Run All, not waited for."""
        self.command("notebook:run-all-cells")

    def edit(self, at: int, source: str) -> None:
        """Give a cell another text."""
        self.page.evaluate(
            "([at, source]) => { const nb = jupyterapp.shell.currentWidget.content;"
            " nb.widgets[at].model.sharedModel.setSource(source); }",
            [at, source],
        )

    def kill(self) -> None:
        """SIGKILL the kernel."""
        pids = [process.pid for process in self.server.kernels()]
        assert len(pids) == 1, pids
        os.kill(pids[0], signal.SIGKILL)

    def accept_dialog(self) -> None:
        """Press the accepting button of the dialog that is open."""
        self.page.locator(".jp-Dialog .jp-mod-accept").first.click(timeout=PATIENCE_MS)

    # ---- what a person waits for

    def until(self, script: str, argument: Any = None) -> Any:
        """Wait until the script is true in the page."""
        return self.page.wait_for_function(script, arg=argument, timeout=PATIENCE_MS)

    def idle(self) -> None:
        """The kernel is there and idle."""
        self.until(
            "() => jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
            " && jupyterapp.shell.currentWidget.sessionContext.session.kernel.connectionStatus === 'connected'"
        )

    def event(self, name: str, count: int = 1) -> Any:
        """The detail of the extension's ``count``-th event of this name."""
        ask = "([name, count]) => keelLog.filter(one => one.event === name).length >= count"
        self.until(ask, [name, count])
        return self.page.evaluate(
            "([name, count]) => keelLog.filter(one => one.event === name)[count - 1].detail", [name, count]
        )

    def states(self) -> dict[str, str]:
        """The badges that are in the page: step to state."""
        found: dict[str, str] = self.page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('button.keel-badge')]"
            ".map(one => [one.dataset.keelStep, one.dataset.keelState]))"
        )
        return found

    def wait_states(self, **expected: str) -> None:
        """Wait until the badges are these."""
        self.until(
            "expected => { const found = Object.fromEntries([...document.querySelectorAll('button.keel-badge')]"
            ".map(one => [one.dataset.keelStep, one.dataset.keelState]));"
            " return Object.entries(expected).every(([step, state]) => found[step] === state); }",
            expected,
        )

    def banner(self, kind: str) -> Any:
        """The banner of this kind, once it is there."""
        found = self.page.locator(f".keel-banner[data-keel-kind={kind}]:visible")
        found.wait_for(timeout=PATIENCE_MS)
        self.look(f"banner-{kind}")
        return found

    def look(self, name: str) -> None:
        """A picture of the page as it stands, beside the one of each test's end (build/browser)."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}-{self.app}.png")

    def value(self, expression: str) -> str:
        """What an expression is in the kernel, as ``repr`` says it."""
        found: str = self.page.evaluate(
            "async code => { const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;"
            " const asked = { code: '', silent: true, user_expressions: { it: code } };"
            " const reply = await kernel.requestExecute(asked).done;"
            " const it = reply.content.user_expressions.it; return it.data ? it.data['text/plain'] : it.ename; }",
            expression,
        )
        return found

    @property
    def hits(self) -> str:
        """Real executions, in order: what the cells wrote to a file of their own."""
        path = self.folder / "hits.txt"
        return " ".join(path.read_text().split()) if path.exists() else ""

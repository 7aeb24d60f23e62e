"""What a person can set: one traitlets configurable, ``c.Keel.…`` and ``%config Keel.…`` (DESIGN 3.5)."""

from __future__ import annotations

import os
from typing import Any

from traitlets import Bool, Enum, Int, List, Unicode, default
from traitlets.config import Configurable

from keel_notebook.core.variables import ACROSS_RUNS, MODES, MOST_STEPS, check, told


class Keel(Configurable):  # type: ignore[misc]  # traitlets carries no types here
    """Settings of keel in this kernel. Environment variables give the defaults.

    Raises SettingsError (E001) where one of them cannot be read.
    """

    def __init__(self, **more: Any) -> None:
        check(os.environ)
        super().__init__(**more)

    mode = Enum(
        list(MODES),
        help="live: execute and replay; replay: never execute a step; verify: compare only; off: run plainly.",
    ).tag(config=True)
    journal = Unicode(help="The journal's folder.").tag(config=True)
    key_file = Unicode(help="File with the key that seals your records.").tag(config=True)
    flow = Unicode(help="Name of the flow.").tag(config=True)
    strict = Bool(help="The flow's steps keep their order, and a completed flow is only replayed.").tag(config=True)
    frozen = Bool(help="A completed flow may not grow.").tag(config=True)
    app_version = Unicode(
        help="Version of your application: a strict flow that another one began is not gone on with."
    ).tag(config=True)
    flow_key = Unicode(help="Key of the flow: one name, several independent flows.").tag(config=True)

    across_runs = Enum(
        list(ACROSS_RUNS),
        help="Steps that used the network, child processes or a clock in a finished run: replay them in a new one, "
        "execute them once more, auto: execute where there is no front end.",
    ).tag(config=True)
    most_steps = Int(MOST_STEPS, min=0, help="Different steps that one run may have; 0: no limit.").tag(config=True)
    budget = Unicode(help="How much the values of a journal may take, like 5GB; off: no limit.").tag(config=True)
    verify = List(Unicode(), help="Names of the steps that mode verify executes; the others replay.").tag(config=True)
    trust = Unicode(help="Id of a journal that you trust although another key sealed it.").tag(config=True)

    @default("mode")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _mode(self) -> str:
        return str(told(os.environ, "KEEL_MODE"))

    @default("across_runs")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _across_runs(self) -> str:
        return str(told(os.environ, "KEEL_ACROSS_RUNS"))

    @default("verify")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _verify(self) -> list[str]:
        return os.environ.get("KEEL_VERIFY", "").split()

    @default("most_steps")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _most_steps(self) -> int:
        return int(told(os.environ, "KEEL_MOST_STEPS"))

    @default("budget")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _budget(self) -> str:
        return str(told(os.environ, "KEEL_BUDGET"))

    @default("journal")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _journal(self) -> str:
        return os.environ.get("KEEL_JOURNAL", "")

    @default("key_file")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _key_file(self) -> str:
        return os.environ.get("KEEL_KEY_FILE", "")

    @default("flow")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _flow(self) -> str:
        return os.environ.get("KEEL_FLOW", "")

    @default("strict")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _strict(self) -> bool:
        return bool(told(os.environ, "KEEL_STRICT"))

    @default("frozen")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _frozen(self) -> bool:
        return bool(told(os.environ, "KEEL_FROZEN"))

    @default("app_version")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _app_version(self) -> str:
        return os.environ.get("KEEL_APP_VERSION", "")

    @default("flow_key")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _flow_key(self) -> str:
        return os.environ.get("KEEL_FLOW_KEY", "")

    @default("trust")  # type: ignore[untyped-decorator]  # traitlets carries no types here
    def _trust(self) -> str:
        return os.environ.get("KEEL_TRUST", "")

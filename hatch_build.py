"""Puts the built front end into the wheel: what JupyterLab finds under share/, and the view that the widget reads.

Source distributions carry it built, so nobody who installs needs node. An editable install does not build: `make
labextension` does, and links the result, so that a change is seen without installing again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = "keel_notebook/labextension"
SHARE = "share/jupyter/labextensions/keel-notebook"


class FrontEndHook(BuildHookInterface):
    """Builds the front end where it is not there yet, and ships it."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What building asks for; nothing where everything is built."""
        return [] if self._is_built() else ["jupyter-builder>=1.3"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the files are gathered."""
        if version == "editable":
            return
        if not self._is_built():
            self._build()
        if self.target_name == "wheel":
            build_data["artifacts"].append(f"{BUILT}/view/*")
            build_data["shared_data"] |= {BUILT: SHARE, "install.json": f"{SHARE}/install.json"}

    def _is_built(self) -> bool:
        built = Path(self.root, BUILT)
        return (built / "package.json").is_file() and (built / "view" / "lineage.js").is_file()

    def _build(self) -> None:
        source = Path(self.root, "labextension")
        # jupyter-builder stands beside the interpreter that builds, which need not be on the path.
        env = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}
        if not (source / "node_modules").is_dir():
            subprocess.run(["npm", "ci", "--ignore-scripts"], cwd=source, env=env, check=True)
        subprocess.run(["npm", "run", "build"], cwd=source, env=env, check=True)

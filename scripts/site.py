"""Builds the site of docs/ into a folder (`make docs`), with the pages that lie in the repository's root."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ALSO = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md"}


def build(target: Path) -> int:
    """Build the site in ``target``; a warning is an error. Returns Sphinx's exit code."""
    with tempfile.TemporaryDirectory() as place:
        pages = Path(place) / "pages"
        shutil.copytree(ROOT / "docs", pages)
        for source, name in ALSO.items():
            text = (ROOT / source).read_text("utf-8").replace("](docs/", "](")
            (pages / name).write_text(text, "utf-8")
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", f"{place}/trees"]
        return subprocess.run([*command, str(pages), str(target)], check=False).returncode


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))

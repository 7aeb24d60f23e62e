"""The pages of docs/ become a site without a warning: every page is in its contents, every link leads somewhere."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_site_is_built_without_a_warning(tmp_path):
    command = [sys.executable, "scripts/site.py", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = {page.stem for page in (tmp_path / "site").glob("*.html")}
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= made
    page = (tmp_path / "site" / "architecture.html").read_text("utf-8")
    assert "invariants" in page.lower()

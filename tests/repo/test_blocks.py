"""Every Python block of the pages that no walk goes through runs as the page shows it; what a reader has stands in."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WALKED = {"tutorial.md", "howto.md"}
"""Pages that `test_walks` goes through, with kills and edits."""

HAS = {
    "calls.md": """
        import subprocess, sys
        prompt, prompts = "p", ["a", "b"]
        def ask(prompt): return prompt.upper()
        def send_mail(name, token):
            answer = [sys.executable, "-m", "keel_notebook", "resolve", token, "--value", '"go"', "--in", "."]
            subprocess.Popen(answer, stdout=subprocess.DEVNULL)
    """,
    "effects.md": """
        order = {"id": 7}
        class Shop:
            def pay(self, order, idempotency_key): return f"paid {order['id']}"
        shop = Shop()
        import pathlib, subprocess
        pathlib.Path("migrate.sh").write_text("#!/bin/sh\\necho done >> migrations.log\\n")
        pathlib.Path("migrate.sh").chmod(0o755)
    """,
    "flows.md": """
        rows = [1, 2, 3]
        def train(rows, depth): return sum(rows) * depth
    """,
    "payload.md": """
        class Thermometer:
            def __init__(self, degrees): self.degrees = degrees
    """,
    "undo.md": """
        trip = "to the sea"
        class Firm:
            def book(self, trip, **how): return {"id": 3}
            def cancel(self, what): pass
        airline, hotels = Firm(), Firm()
    """,
    "reference.md": "",
}
"""What stands above the blocks of a page in its reader's notebook."""


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", list(HAS))
def test_the_blocks_of_a_page_run_one_after_the_other(warm_process, tmp_path, name):
    lines = HAS[name].split("\n")
    above = "\n".join(line[8:] for line in lines) or "pass"
    cells = blocks(ROOT / "docs" / name)
    run = warm_process.run(tmp_path, ["%load_ext keel_notebook\nimport keel_notebook as keel", above, *cells])
    assert run.error == ""
    assert len(run.acknowledged) == len(cells) + 2


def test_no_page_has_blocks_that_nobody_runs():
    having = {page.name for page in (ROOT / "docs").glob("*.md") if blocks(page)}
    assert having == WALKED | HAS.keys()

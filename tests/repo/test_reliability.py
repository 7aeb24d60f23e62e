"""Every row of docs/reliability.md is a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text("utf-8"))


@pytest.mark.parametrize(("path", "name"), ROWS)
def test_a_row_names_a_test_that_exists(path, name):
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_tables_names_a_test():
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    assert not [row for row in rows if "::" not in row and "| test |" not in row and row.count("|") > 3]
    assert len(ROWS) > 40

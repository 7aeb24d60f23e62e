"""docs/contracts.md names tests that exist, code that exists, and the transitions that hold."""

import ast
import re
from pathlib import Path

from keel_notebook.core.flowstate import TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contracts.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([KZO]\d+) \| (.+?) \| (.+?) \| `(.+?)` \| (.+?) \|$", PAGE, re.M)


def names_in(path: Path):
    tree = ast.parse(path.read_text("utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_every_contract_names_a_test_or_a_story_that_exists():
    missing = []
    for contract, shown in [(row[0], part) for row in ROWS for part in row[4].split("; ")]:
        if found := re.fullmatch(r"`(\S+)` `(\S+)`", shown):
            path, name = ROOT / found[1], found[2]
            if not path.exists() or name not in names_in(path):
                missing.append((contract, shown))
        elif found := re.fullmatch(r"story `(\S+)`", shown):
            if not (ROOT / "tests/conformance/stories" / f"{found[1]}.json").exists():
                missing.append((contract, shown))
        else:
            missing.append((contract, shown))
    assert not missing


def test_every_contract_names_code_that_exists():
    missing = []
    for contract, _, _, code, _ in ROWS:
        for part in code.split("; "):
            path, _, names = part.partition(" ")
            file = ROOT / "keel_notebook" / path
            wanted = {word.strip(",").rpartition(".")[2] for word in names.split()}
            if not file.exists() or not wanted <= names_in(file):
                missing.append((contract, part))
    assert not missing


def test_every_contract_says_where_it_holds():
    assert {level for _, _, level, _, _ in ROWS} == {"notebook", "strict or engine"}
    assert len({contract for contract, *_ in ROWS}) == len(ROWS) >= 70


def test_every_contract_of_the_sources_has_a_row_or_a_reason():
    """K1-K47, Z1-Z39 and O1-O29; what is in neither table was forgotten."""
    told = {contract for contract, *_ in ROWS} | set(
        re.findall(r"^\| ([KZO]\d+) \|", PAGE.split("## Not kept")[1], re.M)
    )
    wanted = {
        f"{source}{number}" for source, last in (("K", 47), ("Z", 39), ("O", 29)) for number in range(1, last + 1)
    }
    assert wanted - told == set()


def test_the_table_of_transitions_is_the_one_that_holds():
    told = dict(re.findall(r"^\| (\w+) \| ([a-z, ]+) \|$", PAGE.split("may only change")[1], re.M))
    told.pop("from", None)
    assert told == {str(old): ", ".join(sorted(map(str, new))) for old, new in TRANSITIONS.items()}

"""The pages say what the code does: every option, subcommand, setting and code is there, links and blocks hold."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from keel_notebook.core.options import OPTIONS
from keel_notebook.errors import catalogue
from keel_notebook.front.commands import COMMANDS
from keel_notebook.front.settings import Keel

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
WALKS = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", ROOT / "docs" / "reference.md"]


def page(name):
    return (ROOT / name).read_text("utf-8")


def rows(text):
    """First cells of all table rows: what a page declares to exist."""
    return re.findall(r"^\| (.+?) \|", text, flags=re.MULTILINE)


# ---- what exists is told, and what is told exists


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_of_a_step_is_in_the_reference(option):
    assert re.search(rf"`{option}\b", page("docs/reference.md")), option


@pytest.mark.parametrize("command", COMMANDS)
def test_every_subcommand_is_in_the_reference(command):
    assert re.search(rf"^\| .*`%keel {command}\b", page("docs/reference.md"), flags=re.MULTILINE), command


def test_no_table_promises_a_subcommand_or_option_that_is_not_there():
    for name in ("README.md", "docs/reference.md"):
        for cell in rows(page(name)):
            for command in re.findall(r"%keel ([a-z]+)", cell):
                assert command in COMMANDS or command == "help", f"{name}: %keel {command}"
            for option in re.findall(r"^`(--[a-z-]+)", cell):
                assert option in OPTIONS, f"{name}: {option}"


def test_every_setting_is_in_the_reference_with_its_variable():
    reference = page("docs/reference.md")
    for name in Keel.class_trait_names(config=True):
        if name not in {"parent", "config", "log"}:
            assert f"`Keel.{name}` | `KEEL_{name.upper()}`" in reference, name


@pytest.mark.parametrize("code", catalogue())
def test_every_error_code_has_its_section(code):
    assert f"\n## KEEL-{code}: " in page("docs/errors.md")


def test_every_code_that_a_page_names_exists():
    for path in PAGES:
        for code in re.findall(r"KEEL-(E\d{3})", path.read_text("utf-8")):
            assert code in catalogue(), f"{path.name} names {code}"


# ---- links and blocks


def _anchors(text):
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve() if file else path
        assert to.exists(), f"{path.name}: {target}"
        if anchor:
            assert anchor in _anchors(to.read_text("utf-8")), f"{path.name}: {target}"


def test_every_page_is_reached_from_the_index():
    index = page("docs/index.md")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in index, path.name


def _cells(text):
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", WALKS, ids=lambda path: path.name)
def test_code_blocks_are_cells_that_python_reads(path):
    cells = _cells(path.read_text("utf-8"))
    assert cells
    for cell in cells:
        line, _, body = cell.partition("\n")
        source = body if line.startswith("%%keel_step ") else cell
        ast.parse(TransformerManager().transform_cell(source), filename=path.name)


# ---- the tree itself


def _tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_names_a_machine_or_a_registry():
    # Written so that this line does not find itself.
    told = re.compile(
        r"/(?:root|work)/[a-z.]|(?:files\.python)hosted|(?:registry\.)npmjs|(?:--|_)index-url\b|\"resolved\": \"http"
    )
    for path in _tracked():
        if path.suffix in {".svg", ".png", ".csv"}:
            continue
        found = told.search(path.read_text("utf-8", errors="replace"))
        assert found is None or path == Path(__file__), f"{path.relative_to(ROOT)}: {found[0]}"


def test_files_are_small():
    for path in _tracked():
        assert path.stat().st_size < 1_000_000, path.relative_to(ROOT)


LONGER = {
    "tests/front/test_cli.py": "one journal, made once, asked by every command",
    "tests/front/test_report.py": "every state of a step and the precedence between them",
    "tests/payload/test_codec_cases.py": "one case after the other, in the order of the list of cases",
}
"""Source files of more than 400 lines, each with its reason."""


def test_a_source_file_holds_one_idea():
    long = {}
    for path in _tracked():
        if path.suffix in {".py", ".ts", ".tsx"}:
            lines = path.read_text("utf-8").count("\n")
            if lines > 400:
                long[str(path.relative_to(ROOT))] = lines
    assert set(long) <= set(LONGER), long
    assert all(LONGER.values())


def test_the_changelog_has_a_place_for_what_comes():
    assert "\n## Unreleased\n" in page("CHANGELOG.md")

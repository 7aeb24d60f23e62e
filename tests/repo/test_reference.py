"""The reference pages against the code: every public name, option, default, subcommand and setting, none left out."""

import inspect
import re
from pathlib import Path

import click
import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

import keel_notebook
from keel_notebook.core.attempts import DEFAULT_SCHEDULE
from keel_notebook.core.options import OPTIONS, StepOptions
from keel_notebook.front.cli import keel
from keel_notebook.front.commands import COMMANDS
from keel_notebook.front.magics import KeelMagics
from keel_notebook.front.settings import Keel

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = (DOCS / "reference.md").read_text("utf-8")
CLI = (DOCS / "cli.md").read_text("utf-8")


def section(text, title):
    """What stands under a heading, up to the next one of its rank."""
    rank = title.split(" ")[0]
    found = re.search(rf"^{re.escape(title)}.*?\n(.*?)(?=^#{{1,{len(rank)}}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def rows(text):
    """The rows of the tables in a text, as lists of their cells."""
    lines = re.findall(r"^\| (?!---)(.*) \|$", text, flags=re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]


def plain(text):
    """A text without its markup."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("\\|", "|")


# ---- Python

NAMES = [name for name in dir(keel_notebook) if name != "__version__"]


def written(name):
    """How a name is called: its parameters with their defaults, without types."""
    found = getattr(keel_notebook, name)
    signature = inspect.signature(found)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    shown = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return f"{'' if name.startswith(('load_', 'unload_')) else 'keel.'}{name}{shown}".replace("'", '"')


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_there_as_it_is_called_and_has_a_docstring(name):
    told = [row[0] for row in rows(section(REFERENCE, "## In Python"))]
    assert f"`{written(name)}`" in told
    assert inspect.getdoc(getattr(keel_notebook, name))


def test_the_page_names_no_python_that_is_not_there():
    told = [row[0] for row in rows(section(REFERENCE, "## In Python"))][1:]
    assert sorted(told) == sorted({f"`{written(name)}`" for name in NAMES} | {"`keel.__version__`"})


# ---- options of a step

STEP_ROWS = {row[0].strip("`").split(" ")[0]: row for row in rows(section(REFERENCE, "## Options of a step"))[1:]}
FIRST_WAIT = re.search(r"\d+ms", DEFAULT_SCHEDULE)[0]
SAID = {
    "--inputs": "found in the code", "--outputs": "all that changed", "--ttl": "no limit", "--always": "off",
    "--timeout": "none", "--key": "code and inputs", "--backoff": f"`{FIRST_WAIT}`",
    "--on-divergence": "`warn`", "--on-ambiguous": "`fail`",
}  # fmt: skip
"""Defaults that are empty in the code, and what that comes to."""


def test_every_option_of_a_step_has_its_row_and_every_row_its_option():
    assert STEP_ROWS.keys() == OPTIONS.keys()


@pytest.mark.parametrize("option", OPTIONS)
def test_the_row_of_an_option_tells_its_default_and_all_that_it_may_be(option):
    _, default, meaning = STEP_ROWS[option]
    field = next(each for each in fields(StepOptions) if each.name == OPTIONS[option].field)
    assert field.default is not NODEFAULT
    if option in SAID:
        assert not field.default
        assert default == SAID[option]
    else:
        assert default.strip("`") == (str(field.default) if field.default not in ("", ()) else "")
    for choice in OPTIONS[option].choices:
        assert choice in meaning or choice in STEP_ROWS[option][0], choice


@pytest.mark.parametrize("option", OPTIONS)
def test_the_help_of_the_magic_has_every_option(option):
    assert re.search(rf"^\s*{option}\b", KeelMagics.keel_step.__doc__, re.MULTILINE)
    for choice in OPTIONS[option].choices:
        assert choice in KeelMagics.keel_step.__doc__


# ---- %keel


@pytest.mark.parametrize("name", COMMANDS)
def test_every_subcommand_is_there_with_all_that_it_takes(name):
    usage = COMMANDS[name].usage
    lines = "\n".join(plain(row[0]) for row in rows(section(REFERENCE, "## `%keel`")))
    own = "\n".join(line for line in lines.splitlines() if re.search(rf"%keel {name}\b", line))
    assert own, name
    for word in re.findall(r"--[a-z-]+|\b[A-Z]{2,}\b|\bS\b|\bK\b", usage):
        assert word in own, f"{usage}: {word}"
    assert COMMANDS[name].does


# ---- settings

SETTINGS = {row[0].strip("`"): row for row in rows(section(REFERENCE, "## Settings"))[1:]}
TRAITS = {
    name: trait for name, trait in Keel.class_traits(config=True).items() if name not in {"parent", "config", "log"}
}
DEFAULTS = {
    "budget": "20 GB, or 10 % of the disk", "verify": "all", "journal": "`.keel` beside the notebook",
    "key_file": "in your configuration folder", "flow": "found by the notebook's path", "most_steps": "10,000",
    "strict": "off", "frozen": "off", "mode": "`live`", "across_runs": "`auto`",
}  # fmt: skip


def test_every_setting_has_its_row_and_every_row_its_setting():
    assert SETTINGS.keys() == {f"Keel.{name}" for name in TRAITS}


@pytest.mark.parametrize("name", TRAITS)
def test_the_row_of_a_setting_has_its_variable_its_default_and_its_help(name, monkeypatch):
    monkeypatch.delenv(f"KEEL_{name.upper()}", raising=False)
    _, variable, default, meaning = SETTINGS[f"Keel.{name}"]
    value = getattr(Keel(), name)
    assert variable == f"`KEEL_{name.upper()}`"
    assert default == DEFAULTS.get(name, "")
    assert not value or str(value) == default.strip("`").replace(",", "")
    told = TRAITS[name].help.rstrip(".")
    assert plain(meaning).casefold().startswith(told.casefold()), "the page begins with what `%config Keel` says"


@pytest.mark.parametrize("name", TRAITS)
def test_the_variable_of_a_setting_is_read(name, monkeypatch):
    given = {
        "mode": "replay",
        "across_runs": "execute",
        "most_steps": "7",
        "budget": "5GB",
        "strict": "1",
        "frozen": "1",
        "verify": "a b",
    }
    monkeypatch.setenv(f"KEEL_{name.upper()}", given.get(name, "told"))
    read = {"strict": True, "frozen": True, "most_steps": 7, "verify": ["a", "b"]}
    assert getattr(Keel(), name) == read.get(name, given.get(name, "told"))


# ---- the command line


@pytest.mark.parametrize("name", keel.commands)
def test_the_section_of_a_command_has_every_option_with_its_default(name):
    title = next(line for line in CLI.splitlines() if re.match(rf"### .*`keel {name}\b", line))
    text = section(CLI, title)
    for option in keel.commands[name].params:
        if not isinstance(option, click.Option) or option.name == "elsewhere":  # `--in` of all of them is told once
            continue
        for spelt in option.opts:
            assert f"`{spelt}" in text, f"{name} {spelt}"
        if option.show_default or (isinstance(option.default, int) and not option.is_flag):
            assert re.search(rf"`{option.opts[0]}[^`]*` \({option.default}\)", text), f"{name} {option.opts[0]}"
        assert option.help, f"{name} {option.opts[0]} says what it does"

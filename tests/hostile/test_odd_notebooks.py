"""Notebooks as nobody writes them: odd names, lines that do not parse, ten thousand cells. The kernel goes on."""

import json
import os

import nbformat
import pytest

from keel_notebook.core.options import parse_options
from keel_notebook.errors import SettingsError
from keel_notebook.journal import spawn

NAMES = [
    "a b",
    "it's",
    "../../x",
    "/etc/passwd",
    "..",
    ".",
    "-x",
    "%s{x}$HOME`id`",
    "<script>alert(1)</script>",
    "x'; DROP TABLE entries; --",
    "\x1b[31mred",
    "ünï",
    "e\u0301",
    "日本語",
    "😀" * 5,
    "\u202eback",
    "None",
    "default",
    "#",
    "=",
    "*",
    "a" * 10_000,
]
HIT = "def hit(t):\n    with open('hits.txt', 'a') as f: f.write(t + '\\n')"


def cell(at, name):
    quoted = '"' + name.replace('"', r"\"") + '"'
    return f"%%keel_step {quoted}\nhit('{at}')\nx{at} = [{at}]"


def test_steps_of_odd_names_are_recorded_replayed_listed_and_only_text(warm_process, tmp_path):
    cells = ["%load_ext keel_notebook", HIT, *(cell(at, name) for at, name in enumerate(NAMES))]
    told = ["%keel status", "%keel plan", "%keel why -- it's", f"print([x{len(NAMES) - 1}, x0])"]
    for _ in range(2):
        run = warm_process.run(tmp_path, [*cells, *told[:2], told[3]])
        assert run.error == ""
        assert run.printed[-1] == f"[[{len(NAMES) - 1}], [0]]\n"
    assert (tmp_path / "hits.txt").read_text().split() == [str(at) for at in range(len(NAMES))]
    spawn.ingest_now(tmp_path / ".keel")
    listed = {name for (name,) in spawn.query(tmp_path / ".keel", "SELECT step FROM steps")[1]}
    assert set(NAMES) <= listed
    assert sorted(os.listdir(tmp_path)) == [".keel", "hits.txt"]


REFUSED = """a b|a'b|"open|--effect|--effect maybe|a --ttl x|a --retries -1|a --max-attempts 1e9|a --uses|a --backoff 2y
a --unknown|a --key|a --always=no""".replace("\n", "|").split("|")


@pytest.mark.parametrize("line", REFUSED)
def test_a_line_that_does_not_parse_is_refused_in_words(line):
    with pytest.raises(SettingsError, match="KEEL-E001") as refused:
        parse_options(line)
    assert "?" not in str(refused.value)


def test_a_notebook_of_ten_thousand_cells_runs_and_is_planned(warm_process, tmp_path):
    book = nbformat.v4.new_notebook()
    sources = ["%load_ext keel_notebook", *(f"%%keel_step s{at}\nx{at} = {at}" for at in range(9_999))]
    book.cells = [nbformat.v4.new_code_cell(source, id=f"c{at}") for at, source in enumerate(sources)]
    (tmp_path / "a.ipynb").write_text(json.dumps(book))
    for _ in range(2):
        run = warm_process.run(tmp_path, [*sources[:4], sources[-1], "%keel plan", "print(x0 + x1 + x2 + x9998)"])
        assert (run.error, run.printed[-1]) == ("", "10001\n")

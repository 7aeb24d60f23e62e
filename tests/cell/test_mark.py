"""The step line as a comment (DESIGN 4.1, C65): pure text, the same number of lines, nothing else touched."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from keel_notebook.capture.mark import find_step, mark
from keel_notebook.core.harmless import RUN_ONCE_MAGICS
from keel_notebook.core.magictext import Magic, Scope
from tests.cell.reading import parsed


def marked(cell: str) -> str:
    return "".join(mark(cell.splitlines(keepends=True)))


def compiled(cell: str) -> str:
    manager = TransformerManager()
    manager.cleanup_transforms.insert(0, mark)
    return manager.transform_cell(cell)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%%keel_step a --ttl 2h\nx = 1\n", "# keel: step a --ttl 2h\nx = 1\n"),
        ("# load\n\n%%keel_step a\nx = 1\n", "# load\n\n# keel: step a\nx = 1\n"),
        ("# keel: step a\nx = 1\n", "# keel: step a\nx = 1\n"),
        ("%%keel_step\nx = 1\n", "# keel: step\nx = 1\n"),
        ("x = 1\n%%keel_step a\n", "x = 1\n%%keel_step a\n"),
        ("%%time\n%%keel_step a\nx = 1\n", "%%time\n%%keel_step a\nx = 1\n"),
        ("s = '''\n%%keel_step a\n'''\n", "s = '''\n%%keel_step a\n'''\n"),
        ("%%keel_step a", "# keel: step a\n"),
        ("", ""),
    ],
)
def test_c65_only_the_step_line_changes(cell: str, expected: str) -> None:
    assert marked(cell) == expected


@pytest.mark.parametrize(
    "body",
    ["%%time\nx = 1\n", "%%capture out\n  x = 1\ny = 'a\"b'\n", "%%bash -s 'a b'\necho $x\n\n", "%%html\n", "%%time\n"],
)
@pytest.mark.parametrize("above", ["%%keel_step a\n", "# keel: step a\n", "# why\n\n%%keel_step a\n# and\n\n"])
def test_c64_a_cell_magic_below_the_step_line_is_what_ipython_makes_of_it_alone(above: str, body: str) -> None:
    alone = TransformerManager().transform_cell(body)
    together = compiled(above + body)
    assert together.count("\n") == (above + body).count("\n")
    lines = [line for line in together.splitlines() if line and not line.startswith("#")]
    assert lines == alone.splitlines()


def test_an_indented_cell_is_dedented_as_ipython_does() -> None:
    assert "run_cell_magic('time', '', 'x = 1\\n  y\\n')" in marked(
        "    %%keel_step a\n    %%time\n    x = 1\n      y\n"
    )


def test_help_for_a_cell_magic_stays_help() -> None:
    assert "pinfo" in compiled("%%keel_step a\n%%time?\n")


PIECES = ["%%keel_step", "# keel: step", "%%time", "%", "#", "x", "?", "'", "\\", " ", "    ", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_it_never_fails_and_never_changes_the_number_of_lines(cell: str) -> None:
    lines = cell.splitlines(keepends=True)
    once = mark(list(lines))
    assert len(once) == len(lines)
    assert mark(list(once)) == once


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%keel_step a", "a"),
        ("%%time\n# keel: step a\nx", "a"),
        ("%%capture out\n%%keel_step a --ttl 2h\nx", "a --ttl 2h"),
        ("%%timeit\n%%keel_step a", None),
        ("%%bash\n# keel: step a", None),
        ("%%", None),
        ("x = 1\n# keel: step a", None),
    ],
)
def test_a_step_may_stand_below_a_magic_that_runs_its_body_once(cell: str, line: str | None) -> None:
    marker = find_step(cell)
    assert (marker.line if marker is not None else None) == line


def test_the_magics_that_a_step_may_stand_below_do_run_their_body_once() -> None:
    for name in RUN_ONCE_MAGICS:
        (statement,) = parsed(f"%%{name}\nx = 1").tree.body
        assert isinstance(statement, ast.Expr)
        assert isinstance(statement.value, Magic)
        assert statement.value.scope is Scope.CELL

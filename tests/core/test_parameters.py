"""Parameters as papermill understands them, and the flow that a set stands for (C78, K1)."""

import math

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.cli import _resolve_type
from papermill.parameterize import parameterize_notebook

from keel_notebook.core.parameters import (
    COMMENT,
    INJECTED_TAG,
    cell_source,
    choose_record,
    flow_key,
    named,
    place,
    slip,
    typed,
    unknown,
)
from keel_notebook.errors import SettingsError

VALUES = st.one_of(st.text(), st.booleans(), st.integers(), st.floats(), st.none())
NAMES = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)


@given(
    st.one_of(st.text(), st.integers().map(str), st.floats().map(str), st.sampled_from(["True", "None", " 1", "1_0"]))
)
def test_a_word_means_what_papermill_takes_it_for(text):
    ours, theirs = typed(text), _resolve_type(text)
    assert type(ours) is type(theirs)
    assert ours == theirs or (math.isnan(ours) and math.isnan(theirs))


@given(st.dictionaries(NAMES.filter(str.isidentifier), VALUES, max_size=4))
def test_the_injected_cell_binds_exactly_the_values(parameters):
    try:
        parameters = named(list(parameters.items()))
    except SettingsError:
        return  # a keyword
    bound: dict[str, object] = {}
    exec(cell_source(parameters), bound)
    assert choose_record(cell_source(parameters))
    for name, value in parameters.items():
        assert type(bound[name]) is type(value)
        assert bound[name] == value or value != value  # noqa: PLR0124 - NaN


@pytest.mark.parametrize(
    "tags", [[], ["parameters"], ["", "parameters", ""], ["parameters", INJECTED_TAG], [INJECTED_TAG, ""]]
)
def test_the_cell_goes_where_papermill_puts_it(tags):
    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell(f"cell {at}", metadata={"tags": [tag] if tag else []}) for at, tag in enumerate(tags)
    ]
    book.metadata["papermill"] = {}
    book.metadata["kernelspec"] = {"name": "python3", "language": "python"}
    theirs = [
        cell.source.split("\n")[0]
        for cell in parameterize_notebook(book, {"a": 1}, kernel_name="python3", language="python").cells
    ]
    found = place([[tag] for tag in tags])
    ours = [f"cell {at}" for at in range(len(tags))]
    ours[found.at : found.at + found.instead] = [COMMENT]
    assert ours == theirs


def test_k1_the_key_is_a_pure_function_of_names_and_values():
    assert flow_key({}) == ""
    assert flow_key({"b": 1, "a": 0.1}) == flow_key({"a": 0.1, "b": 1}) == "a=0.1, b=1"
    assert flow_key({"a": 1}) != flow_key({"a": 1.0}) != flow_key({"a": "1.0"})
    assert flow_key({"a": 1}, "night") == "night; a=1"
    assert flow_key({}, "night") == "night"


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=3), st.dictionaries(NAMES, VALUES, min_size=1, max_size=3))
def test_two_sets_have_two_keys_and_every_key_is_one_short_line(one, other):
    keys = flow_key(one), flow_key(other)
    assert all(len(key) <= 90 and key.isprintable() for key in keys)
    if repr(sorted(one.items())) != repr(sorted(other.items())):
        assert keys[0] != keys[1]


def test_c103_a_credential_is_no_part_of_the_key():
    assert flow_key({"api_key": "sk-test-1234567890", "a": 1}) == "a=1"


def test_slips_are_found_and_names_that_no_cell_can_bind_refused():
    assert unknown({"aplha": 1, "beta": 2}, "alpha = 0.1\nbeta: int = 2") == ["aplha"]
    for name in ("no-name", "class", "", "a b"):
        with pytest.raises(SettingsError):
            named([(name, 1)])


CELLS = ["alpha, beta = 1, 2", "print(alpha, gamma)", "!echo {delta}"]


@pytest.mark.parametrize(
    ("name", "tagged", "free"),
    [
        ("alpha", "alpha", 1),
        ("gamma", "gamma", 0),
        ("delta", "delta", 0),
        ("alhpa", "", 1),
        ("gam", "", 0),
        ("x", "", 1),
    ],
)
def test_a_parameter_that_nothing_mentions_is_a_slip_and_one_that_any_cell_mentions_is_none(name, tagged, free):
    """``free``: whether the notebook has a cell with defaults."""
    found = slip({name: 1}, CELLS[0] if free else None, CELLS)
    assert found == (None if tagged else (name, frozenset({"alpha", "beta"})))


@pytest.mark.parametrize(
    ("source", "chooses"),
    [
        ("# Parameters\na = 1", True),
        ("\n  # Parameters  \na = 1", True),
        ("# parameters\na = 1", False),
        ("a = 1", False),
        ("", False),
    ],
)
def test_the_first_line_says_whether_a_cell_chooses_the_record(source, chooses):
    assert choose_record(source) is chooses

"""What a small value can hold is told without a walk; what cannot be told is None, never too little."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.core.within import identities_within

LONG = "x" * 20_000
OTHER: list[int] = [1]


@pytest.mark.parametrize(
    "value",
    [[OTHER], (1, OTHER), {"a": OTHER}, {1: {2}}, [LONG], {LONG: 1}, [1] * 20_000, SimpleNamespace(), np.zeros(3)],
)
def test_what_may_hold_something_is_not_told(value):
    assert identities_within([1, value]) is None


def test_numbers_never_count_and_values_themselves_do():
    flat, text = [1, "a", None], "text"
    assert identities_within([flat, text, 5, None, True, 1.5]) == {id(flat), id(text)}


class Sub(list):
    pass


def test_a_subclass_may_hold_more_than_its_items():
    assert identities_within([Sub()]) is None


ATOMS = st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5)


@given(st.lists(st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3), max_leaves=6), max_size=4))
def test_every_list_inside_is_counted_or_nothing_is_told(values):
    found = identities_within(values)
    lists = [value for value in values if isinstance(value, list)]
    nested = any(isinstance(item, list) for value in lists for item in value)
    assert found is None if nested else found is not None and {id(value) for value in lists} <= found

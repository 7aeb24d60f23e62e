"""Durations, sizes, ages and foreign text as people read them."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.core.units import age, count, duration, maker, middle, one_line, size

from .conftest import HOSTILE


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (None, "-"),
        (0, "0.0 ms"),
        (0.0004, "0.4 ms"),
        (0.00996, "10 ms"),
        (0.0994, "99 ms"),
        (0.0996, "0.1 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (65, "1 min 5 s"),
        (3599.6, "1 h"),
        (3661, "1 h 1 min"),
        (10800, "3 h"),
        (90000, "1 d 1 h"),
        (-3, "-3.0 s"),
    ],
)
def test_durations(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("count_", "said"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_500, "1.0 MB"),
        (10**9, "1.0 GB"),
    ],
)
def test_sizes(count_, said):
    assert size(count_) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "just now"), (44, "just now"), (46, "1 min ago"), (90, "2 min ago"), (3599, "1 h ago"), (90_000, "1 d ago")],
)
def test_ages(seconds, said):
    assert age(seconds) == said


def test_counts():
    assert (count(1, "step"), count(0, "step"), count(2, "step")) == ("1 step", "0 steps", "2 steps")


@pytest.mark.parametrize("kind", HOSTILE)
def test_one_line_is_one_line_that_can_be_printed(kind):
    shown = one_line(HOSTILE[kind])
    shown.encode()
    assert shown.replace("\u200d", "").isprintable()


@given(st.text(st.characters(), max_size=60))
def test_any_text_becomes_one_harmless_line(text):
    shown = one_line(text)
    shown.encode()
    categories = {unicodedata.category(char) for char in shown if char not in "\u200c\u200d"}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert len(shown) >= len(text)


@given(st.text(max_size=60), st.integers(3, 40))
def test_middle_keeps_both_ends(text, limit):
    cut = middle(text, limit)
    assert len(cut) == min(limit, len(text))
    assert cut == text or (cut[0] == text[0] and cut[-1] == text[-1] and "…" in cut)


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("cell 7", "cell In[7]"),
        ("cell In[7]", "cell In[7]"),
        ("step fit", "step fit"),
        ("step cell 7", "step cell 7"),
        ("", ""),
    ],
)
def test_a_cell_that_ran_goes_by_its_prompt_in_records_of_every_version(kept, said):
    assert maker(kept) == said

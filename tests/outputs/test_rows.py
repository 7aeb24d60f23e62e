"""C16: what stays of a progress line is what a terminal and JupyterLab show, however the text came in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.core import rows
from keel_notebook.core.rows import Rows, settled
from tests.outputs.screens import jupyterlab, nbval, terminal

PIECES = ["a", "bc", "12345", " ", "█", "é", "\r", "\r", "\b", "\n", "\r\n"]
COLOURS = ["\x1b[32m", "\x1b[0m", "\x1b[1;31m", "\x1b[39m", "\x1b[m"]
WIDE = ["日", "本語", "🙂", "e\u0301", "\t", "\x1b[2K", "\x1b[A"]

plain = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
coloured = st.lists(st.sampled_from(PIECES + COLOURS), max_size=40).map("".join)
anything = st.lists(st.sampled_from(PIECES + COLOURS + WIDE), max_size=40).map("".join)


def in_pieces(text, cuts):
    stream, out, last = Rows(), [], 0
    for cut in [*sorted(cut % (len(text) + 1) for cut in cuts), len(text)]:
        out.append(stream.feed(text[last:cut]))
        last = cut
    return "".join(out) + stream.rest()


@given(text=coloured)
@settings(max_examples=1000)
def test_c16_a_terminal_shows_the_folded_text_as_it_showed_the_whole(text):
    assert terminal(settled(text)) == terminal(text)


@given(text=coloured)
@settings(max_examples=1000)
def test_c16_jupyterlab_shows_the_folded_text_as_it_showed_the_whole(text):
    assert jupyterlab(settled(text)) == jupyterlab(text)


rewrites = st.lists(st.sampled_from(["a", "bc", "123", " ", "\ra", "\r12", "\r   ", "\n"]), max_size=40).map("".join)


@given(text=rewrites)
def test_c100_nbval_compares_the_folded_text_as_it_compared_the_whole(text):
    assert nbval(settled(text)) == nbval(text)


@given(text=anything, cuts=st.lists(st.integers(0, 200), max_size=8))
@settings(max_examples=1000)
def test_c16_the_folded_text_is_the_same_however_the_stream_was_cut(text, cuts):
    whole = Rows()
    assert in_pieces(text, cuts) == whole.feed(text) + whole.rest()


@given(text=anything)
@settings(max_examples=100)
def test_folding_twice_is_folding_once(text):
    assert settled(settled(text)) == settled(text)


@given(text=anything, cuts=st.lists(st.integers(0, 200), max_size=8), columns=st.integers(2, 9))
@settings(max_examples=100)
def test_a_row_that_wraps_is_folded_the_same_however_it_was_cut_and_settles(text, cuts, columns):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "COLUMNS", columns)
        whole = Rows()
        assert in_pieces(text, cuts) == whole.feed(text) + whole.rest()
        assert settled(settled(text)) == settled(text)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("".join(f"\r{i}/20000" for i in range(20000)) + "\n", "19999/20000\n"),
        ("50%\r100%\rdone", "done"),
        ("100 files\rdone \n", "done iles\rdone \n"),
        ("a line\r\nanother\r\n", "a line\r\nanother\r\n"),
        ("|\b/\b-\b\\\b \n", " \n"),
        ("\r\x1b[1m1/5\x1b[0m --\r\x1b[1m5/5\x1b[0m --\n", "\x1b[1m5/5\x1b[0m --\n"),
        ("日本\r日本語\n", "日本語\n"),
        ("col\tumn\rx\n", "col\tumn\rx\n"),
    ],
)
def test_c16_only_what_is_still_seen_is_kept(written, kept):
    assert settled(written) == kept


def test_c16_updates_that_shrink_do_not_pile_up():
    stream = Rows()
    out = [stream.feed(f"\r\x1b[31m{'█' * (50 - i % 50)}\x1b[0m {i}") for i in range(20_000)]
    assert len("".join(out) + stream.rest()) < 5_000


def test_c21_a_line_without_end_is_not_held_back():
    stream = Rows()
    given_back = sum(len(stream.feed("x" * 1000)) for _ in range(1000))
    assert given_back > 1_000_000 - 2 * rows.COLUMNS

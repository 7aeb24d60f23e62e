"""The line of a step: every option parses or is refused by name (DESIGN 3.1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.core.model import Effect
from keel_notebook.core.options import (
    OPTIONS,
    StepOptions,
    duration_s,
    find_marker,
    parse_options,
    refuse_contradictions,
)
from keel_notebook.errors import SettingsError

SAMPLES = {
    "--effect": ("at_least_once", "effect", Effect.AT_LEAST_ONCE),
    "--on-ambiguous": ("skip", "on_ambiguous", "skip"),
    "--on-divergence": ("branch", "on_divergence", "branch"),
    "--kind": ("money", "kind", "money"),
    "--max-attempts": ("2", "max_attempts", 2),
    "--retries": ("4", "retries", 4),
    "--backoff": ("500ms", "backoff_s", 0.5),
    "--timeout": ("10m", "timeout_s", 600.0),
    "--ttl": ("7d", "ttl_s", 604800.0),
    "--uses": ("a.csv b.csv", "uses", ("a.csv", "b.csv")),
    "--makes": ("'out file.csv'", "makes", ("out file.csv",)),
    "--journal-file": ("own.log", "journal_files", ("own.log",)),
    "--inputs": ("x", "inputs", ("x",)),
    "--outputs": ("y z", "outputs", ("y", "z")),
    "--ignore": ("t0", "ignore", ("t0",)),
    "--always": ("", "always", True),
    "--key": ("k1", "key", "k1"),
}


def test_every_option_has_a_sample():
    assert SAMPLES.keys() == OPTIONS.keys()


@pytest.mark.parametrize("option", SAMPLES)
def test_each_option_parses(option):
    text, field, value = SAMPLES[option]
    assert parse_options(f"fit {option} {text}") == StepOptions(name="fit", **{field: value})


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("fit --nope", "--nope"),
        ("fit train", "train"),
        ("fit --ttl", "--ttl"),
        ("fit --ttl soon", "--ttl"),
        ("fit --max-attempts 0", "--max-attempts"),
        ("fit --max-attempts ²", "--max-attempts"),
        ("fit --effect twice", "--effect"),
        ("fit --always --always", "--always"),
        ("fit --always=yes", "--always"),
        ("fit 'open", "the step line"),
        ("x" * 10_001, "name"),
    ],
)
def test_e001_what_cannot_be_read_is_named(line, named):
    with pytest.raises(SettingsError, match="KEEL-E001") as caught:
        parse_options(line)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    "line",
    ["fit --on-ambiguous skip", "fit --kind money", "fit --backoff 1s", "fit --always --effect at_least_once"],
)
def test_options_that_contradict_each_other_are_refused(line):
    with pytest.raises(SettingsError, match="KEEL-E001"):
        refuse_contradictions(parse_options(line))


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("2s", 2), ("10m", 600), ("2h", 7200), ("7d", 604800), ("1.5h", 5400)]
)
def test_durations(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "s", "2 s", "-2s", "2sec", "1e3s", "٣s\n"])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="a duration reads like"):
        duration_s(text)


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        ("%%keel_step load\nx = 1", "load"),
        ("# load the data\n\n%%keel_step load --ttl 2h\nx = 1", "load --ttl 2h"),
        ("# keel: step load\nx = 1", "load"),
        ("#keel: step load\nx = 1", "load"),
        ("# about it\n# keel: step 'a b'\nx = 1", "'a b'"),
        ("%%keel_step\nx = 1", ""),
        ("# keel: step\nx = 1", ""),
    ],
)
def test_c65_the_line_is_found_below_comments_and_blank_lines(cell, line):
    marker = find_marker(cell)
    assert marker is not None
    assert marker.line == line


@pytest.mark.parametrize(
    "cell",
    ["x = 1\n# keel: step load", "%%keel_stepper x", "# keel: steps", "", "'%%keel_step x'", "%%time\n%%keel_step x"],
)
def test_what_is_no_step_line(cell):
    assert find_marker(cell) is None


@given(st.text())
def test_any_line_parses_or_is_refused(line):
    try:
        options = parse_options(line)
    except SettingsError:
        return
    assert isinstance(options, StepOptions)


@given(st.text())
def test_any_cell_has_a_marker_or_none(cell):
    marker = find_marker(cell)
    assert marker is None or cell.splitlines()[marker.at].strip()


@pytest.mark.parametrize(
    ("line", "name", "uses"),
    [
        ("x # three hours", "x", ()),
        ("x # it's slow", "x", ()),
        ("x #comment --uses a", "x", ()),
        ("x --uses a.csv # --ttl 2h", "x", ("a.csv",)),
        ("x --uses a#b.csv '# c'", "x", ("a#b.csv", "# c")),
        ('"x # y" --uses "a # b"', "x # y", ("a # b",)),
        ("#7", "#7", ()),
        ("# no name", "", ()),
        (r"it\'s # slow", "it's", ()),
    ],
)
def test_a_comment_may_stand_behind_the_options(line, name, uses):
    options = parse_options(line)
    assert (options.name, options.uses) == (name, uses)


@pytest.mark.parametrize(
    ("word", "meant"), [("--output", "--outputs"), ("--tll", "--ttl"), ("--on-divergance", "--on-divergence")]
)
def test_a_slip_in_an_option_is_answered_with_what_was_meant(word, meant):
    with pytest.raises(SettingsError, match=f"did you mean {meant}\\?"):
        parse_options(f"fit {word} x")

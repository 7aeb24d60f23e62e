"""Marks that are almost marks: said, never ignored."""

import pytest

from keel_notebook.core.almost import almost

STEP = "# keel: step x"


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("# keel: stp x\na = 1", "line 1, `# keel: stp x`, is no mark; the form is `# keel: step x`"),
        ("#keel step x\na = 1", "line 1, `#keel step x`, is no mark; the form is `# keel: step x`"),
        ("# keel step x --ttl 2h\na = 1", "the form is `# keel: step x --ttl 2h`"),
        ("# Keel: Step x\na = 1", "the form is `# keel: step x`"),
        ("# keel : step x\na = 1", "the form is `# keel: step x`"),
        ("# keel; step x\na = 1", "the form is `# keel: step x`"),
        ("# keel: step: x\na = 1", "the form is `# keel: step x`"),
        ("## keel: step x\na = 1", "the form is `# keel: step x`"),
        ("# keel_step x\na = 1", "the form is `# keel: step x`"),
        ("# keel-step x\na = 1", "the form is `# keel: step x`"),
        ("# kell: step x\na = 1", "the form is `# keel: step x`"),
        ("# keel: stp\na = 1", "the form is `# keel: step NAME`"),
        ("# note\n\n# keel: setp x\na = 1", "line 3, `# keel: setp x`, is no mark"),
        ("%%keel_setp x\na = 1", "line 1, `%%keel_setp x`, is no mark; the form is `%%keel_step x`"),
        ("%%keel-step x\na = 1", "the form is `%%keel_step x`"),
        ("%%keelstep x\na = 1", "the form is `%%keel_step x`"),
        ("%% keel_step x\na = 1", "the form is `%%keel_step x`"),
        ("%keel_step x\na = 1", "the form is `%%keel_step x`"),
        ("a = 1\n# keel: step x\n", "line 2, `# keel: step x`, is no mark: only comments and blank lines may stand"),
        ("a = 1\n%%keel_step x\nb = 2", "line 2, `%%keel_step x`, is no mark: only comments and blank lines"),
        ("%%time\n# keel: stp x\na = 1", "line 2, `# keel: stp x`, is no mark; the form is `# keel: step x`"),
        ("%%bash\n# keel: step x\nls", "line 2, `# keel: step x`, is no mark: only comments and blank lines"),
        ("# keel: step x\na = 1\n# keel: step y\nb = 2", "line 3, `# keel: step y`, is no mark: this cell is a step"),
        ("%%keel_step x\n# keel: step y\nb = 2", "line 2, `# keel: step y`, is no mark: this cell is a step"),
    ],
)
def test_a_line_that_is_almost_a_mark_is_named_with_the_right_form(cell, said):
    assert said in almost(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "",
        "a = 1",
        f"{STEP}\na = 1",
        f"# note\n\n{STEP} --ttl 2h\na = 1",
        "%%keel_step x\na = 1  # the first step",
        "# keel: step\na = 1",
        "# keel:step x\na = 1",
        "%%time\n# a step\na = 1",
        f"%%time\n{STEP}\na = 1",
        f"\n%%capture out\n\n{STEP}\na = 1",
        "# keel is a package for notebooks\na = 1",
        "# keel step by step: a guide\na = 1",
        "# keel: steps below take an hour each\na = 1",
        "# keel: stop here\na = 1",
        "# keel: this cell is slow\na = 1",
        "# step 1: load\na = 1",
        "# first step\na = 1",
        "#%%keel_step x\na = 1",
        "# %%keel_step x --ttl 2h\na = 1",
        f"text = '''\n{STEP}\n'''",
        f"%%writefile lesson.py\n{STEP}\na = 1",
        "%keel status",
        "%keel why step",
        "%load_ext keel_notebook",
        "%%keel_undo x\nb = 2",
        "%%kernel_thing x",
        "# kept: steps of the run\na = 1",
        "# Key: step name\na = 1",
    ],
)
def test_what_is_a_mark_or_prose_is_not_named(cell):
    assert almost(cell) == ""

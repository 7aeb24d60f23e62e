"""`%keel restore NAME`: what it gives back that is not current, it says. Real kernels, real SIGKILL."""

import pytest

from tests.support.notebook import KernelDied

pytestmark = pytest.mark.kernel

TRAIN = """
%%keel_step train
import os, signal
model = {"lr": 0.1}; score = 1
# ---
%%keel_step show
seen = dict(model)
"""


def train_killed_after_an_edit(book):
    """Recorded with 0.1; edited to 0.9, and the kernel dies in it."""
    book.run_all()
    book.kill()
    book.edit(0, "0.1", "0.9")
    book.edit(0, "score = 1", "os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(KernelDied):
        book.run_all()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")


@pytest.mark.parametrize("asked", ["model", "train", "model train", "train seen"])
def test_a_value_of_former_code_that_is_asked_for_is_said_to_be_one(notebook, asked):
    book = notebook(TRAIN)
    train_killed_after_an_edit(book)
    assert "not restored: step train" in book.execute("%keel restore").text
    assert book.execute("print('model' in globals())").text == "False\n"
    said = book.execute(f"%keel restore {asked}").text
    assert "not current: model (as step train left it in run 1, 20" in said
    assert "step train has been edited since" in said
    assert "nothing is recorded under this name" not in said
    assert book.execute("print(model, 'score' in globals())").text == f"{{'lr': 0.1}} {'train' in asked}\n"
    assert "not current: seen" not in said
    table = book.table()
    assert table["train"]["state"] not in ("replayed", "recorded"), "what came back is not what the step makes now"


def test_a_whole_restore_says_whose_code_was_edited_in_the_file_since(notebook):
    book = notebook(TRAIN)
    book.run_all()
    book.kill()
    book.edit(0, "0.1", "0.9")
    book.start()
    book.execute("%load_ext keel_notebook")
    said = book.execute("%keel restore").text
    for name in ("model", "score"):
        assert f"not current: {name} (as step train left it in run 1, 20" in said
    assert "not current: seen" not in said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("a", "restored without running a cell: x, y"),
        ("x", "restored without running a cell: x\n"),
        ("silent", "not restored: silent (a step that no record holds a variable of)"),
        ("held", "not restored: held (a step that no record holds a variable of)"),
        ("b", "restored without running a cell: b\n"),
        ("other", "not restored: other (nothing is recorded under this name)"),
    ],
)
def test_a_step_is_asked_for_by_its_name_and_a_variable_of_that_name_comes_first(notebook, asked, said):
    book = notebook("""
%%keel_step a
x = 1; y = 2
# ---
%%keel_step b
b = 3; z = 4
# ---
%%keel_step silent
print(x)
# ---
%%keel_step held --always
con = open("hits.txt", "a")
""")
    book.run_all()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    shown = book.execute(f"%keel restore {asked}").text
    assert said in shown + "\n"
    assert "not current" not in shown


def test_what_a_plain_cell_changed_since_is_said_to_be_older_where_it_is_asked_for(notebook):
    book = notebook("""
%%keel_step a
x = 1
# ---
x = 99
""")
    book.run_all()
    said = book.execute("%keel restore x").text
    assert "not current: x (as step a left it in run 1, 20" in said
    assert "cell In[4] changed it since" in said or "run cell In[4]" in said

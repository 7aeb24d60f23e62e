"""Seeds of global generators as inputs (DESIGN 6, Seeds; C37; traps 15)."""

import pytest

pytestmark = pytest.mark.kernel

DRAWS = """
import numpy as np, random
# ---
np.random.seed(1)
random.seed(1)
# ---
%%keel_step first
hit("first"); a = np.random.rand(3)
# ---
%%keel_step second
hit("second"); b = (np.random.rand(), random.random())
# ---
%%keel_step own
np.random.seed(42); random.seed(42)
hit("own"); c = (np.random.rand(), random.random())
# ---
%%keel_step still
hit("still"); d = 1 + 1
# ---
print(a.tolist(), b, c, np.random.rand(), random.random())
"""


def test_an_edited_seed_makes_the_steps_that_draw_execute_and_no_other(notebook):
    book = notebook(DRAWS)
    first = book.run_all()
    assert book.rerun()[6].text == first[6].text, "C37: all generators go on as they would have"
    assert book.hits == "first second own still"

    book.edit(1, "np.random.seed(1)", "np.random.seed(2)")
    shown = book.rerun()
    assert book.hits == "first second own still first second"
    assert "first executes: the seed of numpy.random 1 -> 2" in shown[2].stderr
    assert "the seed of numpy.random 1 -> 2" in book.execute("%keel why first").text
    truth = book.execute(
        "np.random.seed(2); random.seed(1); A = np.random.rand(3); B = (np.random.rand(), random.random())\n"
        "print((A == a).all(), B == b)"
    )
    assert truth.text == "True True\n"

    book.edit(1, "np.random.seed(2)", "np.random.seed(1)")
    again = book.rerun()
    assert book.hits == "first second own still first second", "going back is instant"
    assert again[6].text == first[6].text


@pytest.mark.parametrize(
    ("seed", "draw"), [("np.random.seed(3)", "np.random.rand()"), ("random.seed(3)", "random.random()")]
)
def test_a_seed_line_added_or_removed_is_a_difference_and_no_seed_is_none(notebook, seed, draw):
    book = notebook(f"""
import numpy as np, random
# ---
pass
# ---
%%keel_step draw
hit("draw"); x = {draw}
# ---
print(x)
""")
    first = book.run_all()
    assert book.rerun()[3].text == first[3].text, "an unseeded draw replays"
    assert book.hits == "draw"

    book.edit(1, "pass", seed)
    assert "is seeded now (it was not)" in book.rerun()[2].stderr
    book.rerun()
    assert book.hits == "draw draw"

    book.edit(1, seed, "pass")
    assert book.rerun()[3].text == first[3].text, "the record of the unseeded draw is valid again"
    assert book.hits == "draw draw"


def test_a_step_that_drew_is_not_its_own_input(notebook):
    """C31 for generators: run again it replays, edited it starts where it started, as Run All would."""
    book = notebook("""
import numpy as np
np.random.seed(1)
# ---
%%keel_step r
hit("r"); a = np.random.rand(2).tolist()
# ---
%%keel_step s
hit("s"); b = np.random.rand()
# ---
print(a, b)
""")
    first = book.run_all()
    book.run(1)
    book.run(2)
    book.run(1)
    assert book.hits == "r s"
    assert book.run(3).text == first[3].text

    book.edit(1, "rand(2)", "rand(2)[::-1]")
    book.run(1)
    book.run(2)
    assert book.hits == "r s r", "the second draw starts from an equal state"
    a, b = eval(first[3].text.replace("] ", "], "))
    assert book.run(3).text == f"{a[::-1]} {b}\n"
    book.rerun()
    assert book.hits == "r s r", "what was recorded after the edit holds in Run All"


def test_a_generator_state_of_a_seeding_step_makes_later_draws_depend_on_it(notebook):
    book = notebook("""
import random
# ---
%%keel_step seeds
random.seed(7)
# ---
%%keel_step draws
hit("d"); x = random.random()
""")
    book.run_all()
    book.rerun()
    assert book.hits == "d"
    book.edit(1, "7", "8")
    book.rerun()
    assert book.hits == "d d"
    book.rerun()
    assert book.hits == "d d"


def test_what_draws_from_a_modules_generator_under_another_name_counts_like_it(book):
    """How the generator stands is no part of ``rand``: unseeded draws replay, an edited seed makes them execute."""
    nb = book("""
import random as r, numpy as np
from random import random, seed
from numpy.random import rand, normal
from scipy.stats import norm
# ---
pass
# ---
# keel: step a
hit("a"); x = random()
# ---
# keel: step b
hit("b"); y = rand()
# ---
# keel: step c
hit("c"); z = norm.rvs()
# ---
# keel: step d
hit("d"); draw = [random, rand, normal, norm]; w = norm.cdf(0.3)
# ---
r.seed(5); np.random.seed(5); one = [f() for f in draw[:3]] + [draw[3].rvs()]
r.seed(5); np.random.seed(5); print(one == [r.random(), np.random.rand(), np.random.normal(), norm.rvs()])
""")
    assert nb.shows() == nb.shows() == "True"
    assert nb.hits == "a b c d"
    nb.cells[1] = "seed(1); np.random.seed(1)"
    assert nb.shows() == "True"
    assert nb.hits == "a b c d a b c"
    nb.cells[1] = "seed(2); np.random.seed(1)"
    assert nb.shows() == "True"
    assert nb.hits == "a b c d a b c a"
    assert nb.shows() == "True"
    assert nb.hits == "a b c d a b c a"


SLOW_SEEDS = """
%keel auto on --min-seconds 0.2
# ---
STEP seeds
import numpy as np, random, time
np.random.seed(1); random.seed(1); own = np.random.default_rng(1)
hit("seeds"); time.sleep(0.3)
# ---
STEP draws
hit("draws"); time.sleep(0.3)
a = [*np.random.rand(2), random.random(), *own.random(2)]
# ---
print(a, np.random.rand(), random.random(), own.random())
"""


@pytest.mark.parametrize("line", ["#", "%%keel_step"], ids=["auto mode", "step lines"])
def test_a_cell_that_seeded_and_was_replayed_has_seeded(notebook, line):
    book = notebook(SLOW_SEEDS.replace("STEP", line).replace("%keel auto", "%keel auto" if line == "#" else "pass #"))
    first = book.run_all()
    for _ in range(2):
        again = book.rerun()
        assert again[2].stderr == ""
        assert again[3].text == first[3].text
        assert book.hits == "seeds draws"
    book.edit(2, "a = [", "a = list([")
    book.edit(2, "own.random(2)]", "own.random(2)])")
    assert book.rerun()[3].text == first[3].text
    assert book.hits == "seeds draws draws", "it drew from what the replayed cell had seeded"
    book.edit(1, "np.random.seed(1)", "np.random.seed(2)")
    assert "the seed of numpy.random 1 -> 2" in book.rerun()[2].stderr
    assert book.hits == "seeds draws draws seeds draws"
    book.edit(1, "; random.seed(1)", "")
    assert "random is not seeded any more" in book.rerun()[2].stderr
    assert book.hits == "seeds draws draws seeds draws seeds draws"

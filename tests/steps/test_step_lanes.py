"""Lanes: `--on-divergence branch`, `%keel lanes`, `%keel use` (K16, K17; DESIGN 5, Divergence)."""

from keel_notebook.core.model import Kind

FIT = "%%keel_step fit --on-divergence branch\nhit('fit{k}')\nmodel = {k}\n"
SCORE = "%%keel_step score --on-divergence branch\nhit(f'score{model}')\nscore = model * 10\n"
NETWORK = "import os\nos.getpid(); os.system('true')\n"
"""A child process: an older record of such a step is not replayed for its content alone."""


def run(book, k):
    said = book.ok(FIT.format(k=k)).err
    return said + book.ok(SCORE).err


def lanes(book):
    return str(book.ok("%keel lanes").result).splitlines()


def test_k16_a_divergence_leaves_into_a_lane_of_its_own_and_the_old_records_stay(book):
    run(book, 1)
    before = [e for e in book.entries() if e.lane == ""]
    said = run(book, 2)
    assert "fit executes in lane-2: code changed" in said
    assert "score executes in lane-2: input model 1 -> 2" in said, "a follower begins no lane of its own"
    assert [e for e in book.entries() if e.lane == ""] == before, "the old rows are unchanged"
    assert [line.split()[:2] for line in lanes(book)] == [["main", "2"], ["*", "lane-2"]]
    assert book.hits == ["fit1", "score1", "fit2", "score2"]
    [fork] = [e for e in book.entries(Kind.MARKER) if e.key == "lane:fork"]
    assert (fork.step, fork.lane, fork.ambient["from"], fork.why) == ("fit", "lane-2", "", "code changed")


def test_going_back_and_forth_uses_the_lanes_that_are_there_and_never_loops(book):
    cells = [FIT, SCORE]
    cells = [cell + NETWORK for cell in cells]

    def both(k):
        return "".join(book.ok(cell.replace("{k}", str(k))).err for cell in cells)

    for k in (1, 2, 1, 2, 1):
        said = both(k)
        if book.hits.count("fit2") and k == 1:
            assert "fit: this is main again" in said
    assert book.hits == ["fit1", "score1", "fit2", "score2"]
    assert len(lanes(book)) == 2
    assert book["score"] == 10


def test_a_lane_stays_in_use_after_a_restart_and_use_switches_it(book):
    run(book, 1)
    run(book, 2)
    book.kill()
    book.boot()
    assert run(book, 2) == ""
    assert lanes(book)[1].startswith("* lane-2")
    book.ok("%keel use main")
    assert "this is lane-2 again" in run(book, 2)
    assert book.run("%keel use nowhere").code == "E002"
    assert book.hits == ["fit1", "score1", "fit2", "score2"]


def test_a_lane_sees_what_was_recorded_before_it_left_and_not_what_came_after(book):
    load = "%%keel_step load\nhit('load')\nrows = [1]\n" + NETWORK
    other = "%%keel_step load\nhit('load again')\nrows = [1]\n" + NETWORK
    book.ok(load)
    run(book, 1)
    run(book, 2)
    book.ok("%keel use main")
    book.ok(other)
    book.ok("%keel use lane-2")
    assert book.ok(load).err == "", "the lane left while load was as it is here"
    assert book.hits.count("load") == 2


def test_a_lane_of_a_lane_keeps_three_stories_apart(book):
    for k in (1, 2, 3):
        run(book, k)
    assert [line.startswith("*") for line in lanes(book)] == [False, False, True]
    assert "left lane-2 at fit" in lanes(book)[2]
    for k in (1, 2, 3):
        run(book, k)
    assert book.hits == ["fit1", "score1", "fit2", "score2", "fit3", "score3"]

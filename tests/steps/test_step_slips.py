"""What a step's line says and its cell does not do: names left out, slips of the pen (DESIGN 3.1, C38)."""

import pytest

LEAVES_OUT = "%%keel_step a --outputs y\nhit('a')\nx = 2\ny = x + 1\n"


def test_a_name_left_out_by_outputs_is_made_again_where_a_later_cell_reads_it(book):
    cells = [LEAVES_OUT, "print(x, y)"]
    for cell in cells:
        book.ok(cell)
    ran = book.again(*cells)
    assert (ran.error, ran.out) == (None, "2 3\n")
    assert book.hits == ["a", "a"]


def test_a_step_whose_left_out_name_nobody_reads_replays(book):
    for cell in (LEAVES_OUT, "print(y)"):
        book.ok(cell)
    assert book.again(LEAVES_OUT, "print(y)").out == "3\n"
    assert book.hits == ["a"]


def test_an_older_value_never_stands_in_for_a_name_that_was_left_out(book):
    cells = ["x = 1", LEAVES_OUT]
    for cell in cells:
        book.ok(cell)
    book.again(*cells)
    refused = book.run("print(x)")
    assert refused.code == "E020", "nobody read x below when it was recorded: it is asked for now"
    assert "Add x to its `--outputs`" in refused.error.report()
    book.ok(LEAVES_OUT)
    assert book.ok("print(x)").out == "2\n"


def test_a_change_in_place_that_outputs_leaves_out_is_not_forgotten(book):
    cells = ["rows = [1]", "%%keel_step a --outputs n\nhit('a')\nrows.append(2)\nn = len(rows)\n", "print(rows)"]
    for cell in cells:
        book.ok(cell)
    assert book.again(*cells).out == "[1, 2]\n"


def test_a_name_that_outputs_asks_for_now_is_not_missing_from_the_record(book):
    book.ok(LEAVES_OUT)
    book.again()
    book.ok(LEAVES_OUT.replace("--outputs y", "--outputs x y"))
    assert (book["x"], book.hits) == (2, ["a", "a"])
    book.again(LEAVES_OUT.replace("--outputs y", ""))
    assert (book["x"], book.hits) == (2, ["a", "a"])


def test_outputs_records_no_name_that_the_cell_left_alone(book):
    step = "%%keel_step a --outputs y df\nhit('a')\ny = 3\n"
    said = [book.ok(cell) for cell in ("df = 'old'", step)][-1].err
    assert "--outputs df: the cell neither binds nor changes it" in said
    book.again("df = 'new'", step)
    assert (book["df"], book.hits) == ("new", ["a"]), "a replay must not bring an old value over a new one"


def test_an_import_is_kept_whatever_outputs_says(book):
    cells = ["%%keel_step a --outputs y\nhit('a')\nimport math\ny = math.pi\n", "print(int(math.floor(y)))"]
    for cell in cells:
        book.ok(cell)
    assert book.again(*cells).out == "3\n"
    assert book.hits == ["a"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--outputs modle", "--outputs modle: the cell makes no such name; did you mean model?"),
        ("--inputs cutof", "--inputs cutof: there is no such name; did you mean cutoff?"),
        ("--ignore cutof", "--ignore cutof: there is no such name; did you mean cutoff?"),
        ("--uses in.cvs", "--uses in.cvs: there is no such file; did you mean in.csv?"),
        ("--uses *.cvs", "--uses *.cvs: it matches no file"),
        ("--makes ot.csv", "--makes ot.csv: the step ended and there is no such file; did you mean out.csv?"),
        ("--makes nowhere/out.csv", "--makes nowhere/out.csv: the step ended and there is no such file"),
    ],
)
def test_a_slip_in_a_step_line_is_said_and_never_fails_the_cell(book, options, said):
    (book.folder / "in.csv").write_text("1\n")
    book.ok("cutoff = 3")
    ran = book.ok(f"%%keel_step a {options}\nmodel = cutoff + 1\nwith open('out.csv', 'w') as f: f.write('x')\n")
    assert f"keel: a: {said}\n" in ran.err
    assert ran.err.count("keel:") == 1


@pytest.mark.parametrize(
    "options",
    ["--outputs model", "--inputs cutoff", "--ignore cutoff", "--uses in.csv", "--uses *.csv", "--makes out.csv"],
)
def test_what_is_there_is_no_slip(book, options):
    (book.folder / "in.csv").write_text("1\n")
    book.ok("cutoff = 3")
    ran = book.ok(f"%%keel_step a {options}\nmodel = cutoff + 1\nwith open('out.csv', 'w') as f: f.write('x')\n")
    assert ran.err == ""


def test_a_name_that_only_a_branch_binds_is_no_slip(book):
    book.ok("n = 1")
    ran = book.ok("%%keel_step a --outputs rare\nif n > 1:\n    rare = 1\n")
    assert ran.err == ""


def test_a_slip_is_no_part_of_what_a_replay_shows(book):
    step = "%%keel_step a --outputs modle\nmodel = 4\n"
    book.ok(step)
    assert book.again(step).err == ""


ALMOST = "# keel: stp a\na = 1\n"
SAID = "keel: not a step: line 1, `# keel: stp a`, is no mark; the form is `# keel: step a`\n"


def test_a_mark_that_is_almost_one_is_said_once_for_each_cell_and_the_cell_runs(book):
    assert book.ok(ALMOST).err == SAID
    assert book.ok(ALMOST).err == ""
    assert book["a"] == 1
    assert book.ok(ALMOST.replace("a = 1", "a = 2")).err == SAID
    book.again()
    assert book.ok(ALMOST).err == SAID


def test_nothing_is_said_of_marks_where_keel_is_off(book):
    book.session.on = False
    assert book.ok(ALMOST).err == ""


def test_a_second_mark_in_a_cell_is_said_and_is_no_part_of_what_the_step_shows(book):
    step = "# keel: step a\na = 1\n# keel: step b\nb = 2\n"
    ran = book.ok(step)
    assert "line 3, `# keel: step b`, is no mark: this cell is a step already" in ran.err
    entry = book.entries(step="a")[-1]
    assert entry.outputs is None, "what keel says is no output of the step"


def test_a_mark_below_code_that_ipython_refuses_is_said_as_well(book):
    ran = book.run("a = 1\n%%keel_step x\nb = 2\n")
    assert "only comments and blank lines may stand above it" in ran.err
    assert ran.error is not None


def test_what_is_said_to_differ_is_compared_with_the_record_that_was_last_in_force(book):
    step = "%%keel_step b\nhit('b')\nx = a * 10\n"
    for value in (1, 2):
        book.ok(f"a = {value}")
        book.ok(step)
    book.ok("a = 1")
    assert book.ok(step).err == "", "the older record replays"
    book.ok("a = 3")
    assert book.ok(step).err == "keel: b executes: input a 1 -> 3\n"
    assert "input a 1 -> 3" in str(book.ok("%keel why b").result).splitlines()[0]
    record = book.ok("%keel why b").result.report.record
    assert record == book.entries(step="b")[0].entry


def test_accept_keeps_the_record_that_was_last_in_force(book):
    step = "%%keel_step b --on-divergence fail\nhit('b')\nx = a * 10\n"
    book.ok("a = 1")
    book.ok(step)
    book.ok("a = 2")
    book.ok("%keel rerun b")
    book.ok(step)
    book.ok("a = 1")
    book.ok(step)
    book.ok("a = 3")
    assert "input a 1 -> 3" in str(book.run(step).error)
    book.ok("%keel accept b")
    book.ok(step)
    assert (book["x"], book.hits) == (10, ["b", "b"])

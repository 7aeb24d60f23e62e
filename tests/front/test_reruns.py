"""`%keel rerun --all` and `--from NAME`, and what `%keel plan` makes of them."""

CELLS = """
%%keel_step load
hit('load'); n = 1
# ---
%%keel_step pay --effect exactly_once
hit('pay')
# ---
%%keel_step fit
hit('fit'); m = n + 1
# ---
%%keel_step plot
hit('plot'); m
"""


def test_all_steps_or_those_from_one_on_execute_in_the_order_of_the_notebook(book):
    notebook = book("%keel flow sweep\n# ---" + CELLS)
    notebook.run_all()
    first = notebook.hits
    assert first == "load pay fit plot"
    notebook.cells.insert(1, "%keel rerun --from fit\n# ---")
    assert not notebook.run_all().error
    assert notebook.hits.split()[4:] == ["fit", "plot"]
    notebook.cells[1] = "%keel rerun --all"
    run = notebook.run_all("%keel plan")
    assert "pay was done, and does not happen again" in "".join(run.printed)
    assert notebook.hits.split()[6:] == ["load", "fit", "plot"]


def test_a_plan_shows_what_is_asked_for_and_words_that_cannot_be_read_are_said(book):
    notebook = book("%keel flow sweep\n# ---" + CELLS)
    notebook.run_all()
    notebook.cells[1:] = ["%keel rerun --from fit", "%keel plan"]
    plan = notebook.run_all().printed[-1]
    assert plan.count("a rerun was asked for") == 2
    for line, code in (("--from", "E001"), ("--from gone", "E002"), ("--all --new-key", "E001"), ("--all fit", "E001")):
        notebook.cells[1:] = [f"%keel rerun {line}"]
        assert code in notebook.run_all().error, line

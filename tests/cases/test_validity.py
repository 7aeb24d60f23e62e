"""Areas C and D as far as the first milestone carries: what makes a record valid, and what does not."""

import pytest

pytestmark = pytest.mark.kernel


def test_c27_comments_blank_lines_and_formatting_are_no_change(notebook):
    book = notebook("""
%%keel_step fmt
hit("f"); y = {"a":1}   # v1
""")
    book.run_all()
    book.edit(0, 'hit("f"); y = {"a":1}   # v1', 'hit("f")\n\n# v2\ny = {"a": 1}')
    book.rerun()
    assert book.hits == "f"


def test_c27_a_changed_string_is_a_change_of_code(notebook):
    book = notebook("""
%%keel_step fmt
hit("f"); print("old")
""")
    book.run_all()
    book.edit(0, "old", "new")
    shown = book.rerun()
    assert shown[0].text == "new\n"
    assert "fmt executes: code changed" in shown[0].stderr
    assert book.hits == "f f"


@pytest.mark.parametrize(("old", "new"), [("1", "1.0"), ("1", "True"), ("x", "'x'")])
def test_literals_of_another_type_are_another_code(notebook, old, new):
    book = notebook(f"""
x = 5
# ---
%%keel_step lit
hit("l"); y = {old}
""")
    book.run_all()
    book.edit(1, f"y = {old}", f"y = {new}")
    book.rerun()
    assert book.hits == "l l"


def test_c30_a_changed_variable_above_is_said_and_never_used_silently(notebook):
    book = notebook("""
a = 7
# ---
%%keel_step d
b = a * 2; hit("d")
# ---
print(b)
""")
    book.run_all()
    book.edit(0, "a = 7", "a = 9")
    shown = book.rerun()
    assert shown[2].text == "18\n"
    assert "keel: d executes: input a 7 -> 9" in shown[1].stderr
    why = book.execute("%keel why d").text
    assert "a" in why
    assert "7" in why
    assert "9" in why


def test_c34_equal_values_of_other_bytes_are_no_divergence(notebook):
    book = notebook("""
tags = {"alpha", "beta", "gamma", "delta"}
cols = ["float64", "FLOAT64".lower()]
# ---
%%keel_step n
hit("n"); n = len(tags) + len(cols)
""")
    book.run_all()
    for seed in "123":
        book.env["PYTHONHASHSEED"] = seed
        assert book.rerun()[1].stderr == ""
    assert book.hits == "n"


def test_c25_a_changed_helper_function_is_named(notebook):
    book = notebook("""
def helper(x): return x + 1
# ---
%%keel_step use
y = helper(1)
# ---
print(y)
""")
    book.run_all()
    book.edit(0, "x + 1", "x + 2")
    shown = book.rerun()
    assert shown[2].text == "3\n"
    assert "helper" in shown[1].stderr


def test_c39_a_record_expires(notebook):
    book = notebook("""
%%keel_step quote --ttl 1h
hit("q"); price = 101
""")
    book.run_all()
    book.rerun()
    assert book.hits == "q"
    book.edit(0, "--ttl 1h", "--ttl 1ms")
    shown = book.rerun()
    assert "expired" in shown[0].stderr
    assert book.hits == "q q"


def test_c41_cells_run_in_another_order_than_written(notebook):
    book = notebook("""
x = 1
# ---
%%keel_step mul
y = x * 10
# ---
x = 5
# ---
print(y)
""")
    book.start()
    book.execute("%load_ext keel_notebook")
    for at in (0, 2, 1):
        book.run(at)
    shown = book.rerun()
    assert shown[3].text == "10\n"
    assert "input x 5 -> 1" in shown[1].stderr


def test_c67_a_failed_step_is_executed_again(notebook):
    book = notebook("""
%%keel_step f
import os; hit("f")
print("before"); assert os.path.exists("ready"), "not yet"
v = 1
""")
    (failed,) = book.run_all()
    assert failed.status == "error"
    assert failed.error == "AssertionError: not yet"
    assert [o["output_type"] for o in failed.outputs] == ["stream", "error"], "the text comes first"
    (book.folder / "ready").write_text("")
    assert book.run(0).status == "ok"
    assert book.hits == "f f"
    assert book.rerun()[0].text == "before\n"
    assert book.hits == "f f"


def test_a_conditional_store_that_did_not_happen_brings_no_old_value_back(notebook):
    book = notebook("""
flag = False; x = 5
# ---
%%keel_step maybe
hit("m")
if flag: x = 1
# ---
print(x)
""")
    book.run_all()
    book.edit(0, "x = 5", "x = 6")
    assert book.rerun()[2].text == "6\n"


def test_a_changed_file_that_a_step_read_is_a_divergence(notebook):
    book = notebook("""
%%keel_step read
hit("r"); n = int(open("in.txt").read())
# ---
print(n)
""")
    (book.folder / "in.txt").write_text("1")
    book.run_all()
    assert book.rerun()[1].text == "1\n"
    (book.folder / "in.txt").write_text("2")
    shown = book.rerun()
    assert shown[1].text == "2\n"
    assert "file in.txt changed" in shown[0].stderr
    assert book.hits == "r r"


def test_c70_a_declared_product_that_is_gone_is_made_again(notebook):
    book = notebook("""
%%keel_step w --makes out.csv
hit("w"); open("out.csv", "w").write("1")
# ---
print(open("out.csv").read())
""")
    book.run_all()
    book.rerun()
    assert book.hits == "w"
    (book.folder / "out.csv").unlink()
    assert book.rerun()[1].text == "1\n"
    assert book.hits == "w w"


def test_on_divergence_fail_stops_and_executes_nothing(notebook):
    book = notebook("""
a = 1
# ---
%%keel_step s --on-divergence fail
hit("s"); b = a
""")
    book.run_all()
    book.edit(0, "a = 1", "a = 2")
    shown = book.rerun()
    assert shown[1].status == "error"
    assert "E031" in shown[1].error
    assert "input a 1 -> 2" in shown[1].error
    assert book.hits == "s"
    assert book.table()["s"]["decision"] == "refused"


def test_rerun_forget_and_accept(notebook):
    book = notebook("""
a = 1
# ---
%%keel_step s
hit("s"); b = a * 10
# ---
print(b)
""")
    book.run_all()
    book.execute("%keel rerun s")
    book.run(1)
    assert book.hits == "s s"
    book.execute("%keel forget s")
    book.run(1)
    assert book.hits == "s s s"
    book.edit(0, "a = 1", "a = 2")
    book.kill()
    book.start()
    for at in range(2):
        book._run(at)
    book.run(0)
    book.execute("%keel accept s")
    book.run(1)
    assert book.run(2).text == "10\n"
    assert book.rerun()[2].text == "10\n", "what a person accepted stays accepted"
    assert book.hits == "s s s"


def test_two_cells_of_one_pass_with_one_name_clash(notebook):
    book = notebook("""
%%keel_step s
a = 1
# ---
%%keel_step s
b = 2
""")
    shown = book.run_all()
    assert shown[1].status == "error"
    assert "E080" in shown[1].error


def test_without_cell_ids_an_edit_is_an_edit_and_two_cells_of_the_file_clash(notebook):
    book = notebook("""
%%keel_step s
a = 1
""")
    book.ids = [""] * len(book.ids)
    book.run_all()
    assert book.execute("%%keel_step s\na = 2").status == "ok"
    book.ids = [f"c{at}" for at in range(len(book.ids))]
    book.cells.append("%%keel_step s\na = 3")
    book.ids.append("last")
    book.save()
    assert "E080" in book.execute("%%keel_step s\na = 3").error


def test_running_the_same_cell_again_is_no_clash(notebook):
    book = notebook("""
%%keel_step s
hit("s"); a = 1
""")
    book.run_all()
    assert book.run(0).status == "ok"
    assert book.hits == "s"


def test_keel_mode_replay_never_executes(notebook):
    book = notebook(
        """
%%keel_step s
hit("s"); a = 1
""",
        env={"KEEL_MODE": "replay"},
    )
    (shown,) = book.run_all()
    assert "E031" in shown.error
    assert book.hits == ""


def test_keel_mode_off_runs_plainly_and_records_nothing(notebook):
    book = notebook(
        """
%%keel_step s
hit("s"); a = 1
""",
        env={"KEEL_MODE": "off"},
    )
    book.run_all()
    book.rerun()
    assert book.hits == "s s"
    assert not book.journal().exists()


def test_always_is_executed_in_every_run_and_never_counts_as_changed(notebook):
    book = notebook("""
%%keel_step client --always
hit("c"); import threading
client = threading.Lock()
# ---
%%keel_step use
hit("u"); locked = client.locked()
""")
    book.run_all()
    shown = book.rerun()
    assert shown[1].stderr == ""
    assert book.hits == "c u c"


def test_c28_an_edited_local_module_is_named_once(notebook):
    book = notebook("""
%%keel_step m
hit("m"); import sys; sys.path.append("src"); import mymod; y = mymod.f(); thing = mymod.Thing()
# ---
print(y, type(thing).__module__)
""")
    (book.folder / "src").mkdir()
    module = book.folder / "src" / "mymod.py"
    module.write_text("class Thing: pass\ndef f(): return 1\n")
    book.run_all()
    assert book.rerun()[1].text == "1 mymod\n", "the values are found where the step itself pointed to"
    assert book.hits == "m"
    module.write_text("class Thing: pass\ndef f(): return 22\n")
    shown = book.rerun()
    assert shown[1].text == "22 mymod\n"
    assert shown[0].stderr.count("mymod.py") == 1

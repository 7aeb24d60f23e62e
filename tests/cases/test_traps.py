"""Traps that had no test of their own under their number (evidence/traps.md), each with its small input.

Others stand where their subject is: 3 in ``test_origins``, 4 and 13 in ``test_rewritten_files``, 5 in
``cell/test_hidden``, 7 in ``headless/test_trust``, 8 in ``tests/calls``, 9 in ``cell/test_edited``, 11 in
``core/test_lifecycle`` and ``engine/test_lease``, 14 in ``test_in_place``, 15 in ``test_seeds``, 16 in
``test_surroundings``, 18 in ``payload/test_digest_graphs``, 20 in ``test_auto``, 22 in ``test_identity``.
"""

import os

import pandas as pd
import pytest

pytestmark = pytest.mark.kernel


def test_t2_a_file_that_only_native_code_opens(book):
    """An edited parquet file is never an old total, whoever reads it."""
    nb = book("""
import duckdb, pandas as pd, polars as pl
# ---
%%keel_step pandas
hit("pandas"); a = int(pd.read_parquet("sales.parquet").amount.sum())
# ---
%%keel_step duckdb
hit("duckdb"); b = int(duckdb.sql("select sum(amount) from 'sales.parquet'").fetchall()[0][0])
# ---
%%keel_step polars
hit("polars"); c = int(pl.read_parquet("sales.parquet")["amount"].sum())
# ---
print(a, b, c)
""")
    for amount, hits in ((1, 3), (25, 6)):
        pd.DataFrame({"amount": [amount]}).to_parquet(nb.folder / "sales.parquet")
        for _ in range(2):
            assert nb.shows() == f"{amount} {amount} {amount}"
            assert len(nb.hits.split()) == hits


def test_t6_whatever_goes_wrong_before_a_body_the_next_cell_is_still_led(notebook):
    """A guarded step does not run unrecorded, and the transformer is still there for the cells after it."""
    nb = notebook("""
%%keel_step pay --effect exactly_once
hit("pay"); x = 1
# ---
%%keel_step s
hit("s"); y = 2
""")
    nb.start()
    for cell in nb.cells[:2]:
        nb.execute(cell)
    nb.execute("from keel_notebook.leading import Leader as _L; _keep = _L._look_at\n_L._look_at = lambda *a: 1 / 0")
    assert nb.run(0).status == "error"
    assert nb.hits == "", "its body did not run"
    assert nb.run(1).status == "ok", "an ordinary step runs plainly"
    nb.execute("_L._look_at = _keep")
    assert [nb.run(at).status for at in (0, 1)] == ["ok", "ok"]
    assert nb.run_all()[-1].status == "ok"
    assert nb.hits == "s pay s"


def test_t10_two_notebooks_of_one_folder_that_nobody_tells_apart(notebook):
    """A step with an effect is refused until its flow has a name: the mail of the second is never taken as sent."""
    cells = ["who = '{}'", "%%keel_step notify --effect exactly_once\nhit('mail ' + who)"]
    for who in ("a", "b"):
        nb = notebook([cells[0].format(who), cells[1]], name=f"{who}.ipynb")
        nb.named = False
        assert nb.run_all()[-1].status == "error"
        assert nb.hits == ("" if who == "a" else "mail-a")
        nb.kill()
        nb.cells[2:] = [f"%keel flow {who}", f"who = '{who}'", cells[1].replace("'mail ' +", "'mail-' +")]
        nb.ids = [f"cell-{at}" for at in range(len(nb.cells))]
        assert nb.run_all()[-1].status == "ok"
        nb.close()
    assert nb.hits == "mail-a mail-b"


@pytest.mark.parametrize("how", ["zeroed", "cut"])
def test_t12_a_payload_that_power_loss_left_empty_is_no_number(notebook, how):
    nb = notebook("""
%%keel_step big
hit("big"); import numpy as np; x = np.ones(400_000)
# ---
%%keel_step mean
hit("mean"); m = float(x.mean())
# ---
print(x.sum(), m)
""")
    nb.run_all()
    nb.kill()
    for path in (nb.journal() / "objects").rglob("*"):
        if path.is_file() and path.stat().st_size > 1_000_000:
            os.chmod(path, 0o600)
            size = path.stat().st_size
            path.write_bytes(bytes(size if how == "zeroed" else size // 2))
    assert nb.run_all()[-1].text == "400000.0 1.0\n"
    assert nb.hits == "big mean big"


def test_t17_a_record_that_was_rejected_stays_rejected_though_the_new_try_failed(book):
    nb = book("""
%%keel_step fetch
hit("fetch")
import os
if os.path.exists("down"): raise OSError("no network")
rows = 1
# ---
print(rows)
""")
    assert nb.shows() == "1"
    (nb.folder / "down").touch()
    assert "no network" in nb.run_all_after("%keel rerun fetch").error
    assert "no network" in nb.run_all().error, "not the record that the person had just rejected"
    (nb.folder / "down").unlink()
    assert nb.shows() == "1"
    assert nb.hits == "fetch fetch fetch fetch"


def test_t17_going_back_does_not_bring_an_old_world_back(book):
    nb = book("""
year = 2024
# ---
%%keel_step fetch
import subprocess
rows = subprocess.run(["sh", "-c", f"cat rows; echo {year}"], capture_output=True, text=True).stdout.split()
# ---
print(*rows)
""")
    for year, rows in ((2024, "old"), (2025, "old"), (2024, "new")):
        (nb.folder / "rows").write_text(rows + "\n")
        nb.cells[0] = f"year = {year}"
        assert nb.shows() == f"{rows} {year}"


def test_t19_a_frame_that_grows_by_columns_is_stored_by_its_columns(book):
    rows = 200_000
    steps = "\n# ---\n".join(f"%%keel_step s{n}\ndf['c{n}'] = np.arange({rows}.0) + {n}; v = {n}" for n in range(6))
    nb = book(f"""
import numpy as np, pandas as pd
# ---
%%keel_step load
df = pd.DataFrame({{f"a{{n}}": np.arange({rows}.0) * n for n in range(8)}})
# ---
{steps}
# ---
print(df.shape, df.c5.iloc[-1])
""")
    assert nb.shows() == f"({rows}, 14) {rows + 4}.0"
    stored = sum(path.stat().st_size for path in (nb.folder / ".keel" / "objects").rglob("*") if path.is_file())
    assert stored < 1.2 * (8 + 6) * rows * 8
    assert nb.shows() == f"({rows}, 14) {rows + 4}.0"


def test_t21_a_step_that_executes_says_so_first_one_that_replays_says_nothing_and_plan_runs_nothing(notebook):
    nb = notebook("a = 7\n# ---\n%%keel_step fit\nhit('fit'); print('body'); b = a * 2\n# ---\nprint(b)")
    nb.run_all()
    assert nb.rerun()[1].outputs == [{"output_type": "stream", "name": "stdout", "text": "body\n"}]
    nb.edit(0, "a = 7", "a = 9")
    plan = nb.execute("%keel plan").text
    assert "fit" in plan
    assert nb.hits == "fit"
    shown = nb.rerun()[1]
    assert [out["name"] for out in shown.outputs] == ["stderr", "stdout"]
    assert "fit executes: input a 7 -> 9" in shown.stderr
    nb.edit(0, "a = 9", "a = 11")
    nb.kill()
    nb.start()
    for cell in (*nb.cells[:3], "%keel accept fit"):
        nb.execute(cell)
    assert nb.run(1).status == "ok"
    assert (nb.run(2).text, nb.hits) == ("18\n", "fit fit"), "the recorded value, by a person's word"


def test_t23_no_kernel_opens_the_record_file(notebook):
    """The user's fork, and the user's own connection to the same file, meet no connection of ours."""
    nb = notebook("%%keel_step s\nv = 1\n# ---\nprint(v)")
    nb.run_all()
    assert nb.execute("%keel sql select count(*) as steps from steps").status == "ok"
    files = "[os.readlink(at) for n in os.listdir('/proc/self/fd') if os.path.exists(at := f'/proc/self/fd/{n}')]"
    held = nb.execute(f"import os, sys; print('duckdb' in sys.modules, *{files})").text
    assert held.startswith("False")
    assert "journal.duckdb" not in held
    own = (
        "import duckdb; c = duckdb.connect('.keel/journal.duckdb'); print(c.execute('select 1').fetchall()); c.close()"
    )
    assert nb.execute(own).text == "[(1,)]\n"
    assert nb.execute("%keel sql select 2 as two").status == "ok"


def test_c36_a_large_input_is_no_part_of_the_journal_and_may_be_left_out(book):
    nb = book("""
import numpy as np, pandas as pd
df = pd.DataFrame(np.ones((200_000, 8)))
# ---
%%keel_step tiny --ignore df
hit("tiny"); m = float(df[0].mean())
# ---
%%keel_step small
hit("small"); n = float(df[1].mean())
# ---
print(m, n)
""")
    assert nb.shows() == "1.0 1.0"
    size = sum(path.stat().st_size for path in (nb.folder / ".keel").rglob("*") if path.is_file())
    assert size < 1_000_000
    nb.edit(0, "np.ones", "2 * np.ones")
    assert nb.shows() == "1.0 2.0"
    assert nb.hits == "tiny small small"

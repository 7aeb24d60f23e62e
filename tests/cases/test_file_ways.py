"""Ways to a file that no text names, or that lead through others: each is an input (DESIGN 6, Files; traps 2)."""

import os
import shutil

import duckdb

STEPS = {
    "bash": "%%bash --out v\ncat bash.txt",
    "shell": "v = !cat shell.txt",
    "script": "%run -i script.py",
    "read by a script": "%run -i reads.py",
    "child": "code = f'print(open({built(\"child\")!r}).read())'\n"
    "v = subprocess.check_output([sys.executable, '-c', code], text=True)",
    "renamed folder": "v = open('moved/in.txt').read()",
    "linked folder": "v = open('linked/in.txt').read()",
    "database": "con = duckdb.connect(built('base', '.db'), read_only=True); v = con.execute('from t').fetchall()\n"
    "con.close(); del con",
    "database in a function": "v = rows(built('inner', '.db'))",
    "attached": "v = attached(built('other', '.db'))",
}
HEAD = """
import duckdb, subprocess, sys
def built(*parts): return "".join([*parts] if len(parts) > 1 else [*parts, ".txt"])
def rows(path):
    with duckdb.connect(path, read_only=True) as con: return con.execute("from t").fetchall()
def attached(path):
    with duckdb.connect() as con:
        con.execute("attach " + repr(path) + " as q (read_only)")
        return con.execute("from q.t").fetchall()
"""


def fill(folder, value):
    for name in ("bash", "shell", "child", "in"):
        (folder / f"{name}.txt").write_text(value)
    (folder / "script.py").write_text(f"v = {value!r}\n")
    (folder / "reads.py").write_text("v = open('in.txt').read()\n")
    for name in ("base", "inner", "other"):
        (folder / f"{name}.db").unlink(missing_ok=True)
        with duckdb.connect(str(folder / f"{name}.db")) as con:
            con.execute(f"create table t as select '{value}' as a")
    for name in ("moved", "real"):
        (folder / f"{name}-{value}").mkdir()
        (folder / f"{name}-{value}" / "in.txt").write_text(value)
    shutil.rmtree(folder / "moved", ignore_errors=True)
    (folder / f"moved-{value}").rename(folder / "moved")
    (folder / "linked").unlink(missing_ok=True)
    os.symlink(f"real-{value}", folder / "linked")


def test_a_file_that_was_reached_in_any_way_is_an_input(book):
    cells = [f"%%keel_step {name.replace(' ', '-')}\n{code}\n# ---\nprint(v)" for name, code in STEPS.items()]
    notebook = book("\n# ---\n".join([HEAD, *cells]))
    fill(notebook.folder, "one")
    first = notebook.run_all()
    again = notebook.run_all()
    assert not first.error + again.error
    assert again.printed == first.printed
    executed = [cell["err"] for cell in again.acknowledged if "executes" in cell["err"]]
    assert all("default_connection" in said for said in executed), "what it attaches, DuckDB may keep"
    fill(notebook.folder, "two")
    changed = notebook.run_all()
    for name, before, after in zip(STEPS, first.printed[4::2], changed.printed[4::2], strict=True):
        assert ("one" in before, "two" in after) == (True, True), (name, before, after)

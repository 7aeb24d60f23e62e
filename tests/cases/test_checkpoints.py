"""A step that goes on from a checkpoint of its own replays once it is through (DESIGN 6, Files)."""

import subprocess
import sys
import time

import pytest

from tests.support.notebook import KernelDied

pytestmark = pytest.mark.kernel

LOADED = "%load_ext keel_notebook\nimport glob, json, os, pickle, sqlite3, numpy as np"
"""The cell that loads keel imports as well, as most people write it."""
EPOCHS = """%%keel_step {name}
hit("{name}")
epoch = 0
{load}
while epoch < 4:
    epoch += 1
{save}
    if epoch == 2 and not os.path.exists("go"): {end}
print("{name}", epoch)"""
KINDS = {
    "json": (
        "if os.path.exists('ck.json'): epoch = json.load(open('ck.json'))['epoch']",
        "with open('ck.json', 'w') as f: json.dump({'epoch': epoch}, f)",
    ),
    "pickle": (
        "try:\n    with open('ck.pkl', 'rb') as f: epoch = pickle.load(f)\nexcept FileNotFoundError: pass",
        "with open('ck.pkl', 'wb') as f: pickle.dump(epoch, f)",
    ),
    "npy": (
        "if os.path.isfile('ck.npy'): epoch = int(np.load('ck.npy'))",
        "np.save('ck.npy', np.array(epoch))",
    ),
    "npz": (
        "if os.path.isfile('ck.npz'): epoch = int(np.load('ck.npz')['epoch'])",
        "np.savez('ck.npz', epoch=epoch)",
    ),
    "shelve": (
        "import shelve\nwith shelve.open('ck.shelf') as kept: epoch = kept.get('epoch', 0)",
        "with shelve.open('ck.shelf') as kept: kept['epoch'] = epoch",
    ),
    "replaced": (
        "if os.path.exists('ck.txt'): epoch = int(open('ck.txt').read())",
        "with open('ck.tmp', 'w') as f: f.write(str(epoch))\nos.replace('ck.tmp', 'ck.txt')",
    ),
    "sqlite": (
        "con = sqlite3.connect('ck.sqlite'); con.execute('create table if not exists t (epoch)')\n"
        "epoch = con.execute('select max(epoch) from t').fetchone()[0] or 0",
        "con.execute('insert into t values (?)', (epoch,)); con.commit()\nif epoch == 4: con.close(); del con",
    ),
    "folder": (
        "os.makedirs('cks', exist_ok=True)\nepoch = max([int(n[2:-4]) for n in os.listdir('cks')], default=0)",
        "with open(f'cks/ck{epoch}.txt', 'w') as f: f.write(str(epoch))",
    ),
    "pattern": (
        "done = sorted(glob.glob('out_*.pkl'))\nif done: epoch = pickle.load(open(done[-1], 'rb'))",
        "with open(f'out_{epoch}.pkl', 'wb') as f: pickle.dump(epoch, f)",
    ),
    "newest kept": (
        "done = sorted(glob.glob('last_*.pkl'))\nif done: epoch = pickle.load(open(done[-1], 'rb'))",
        "with open(f'last_{epoch}.pkl', 'wb') as f: pickle.dump(epoch, f)\n"
        "if epoch > 1: os.remove(f'last_{epoch - 1}.pkl')",
    ),
}


def step(kind, end):
    load, save = KINDS[kind]
    indented = "\n".join(f"    {line}" for line in save.splitlines())
    return EPOCHS.format(name=kind.replace(" ", "_"), load=load, save=indented, end=end)


def test_a_step_that_went_on_from_its_checkpoint_replays_in_the_next_run(notebook):
    book = notebook([step(kind, "1 / 0") for kind in KINDS])
    book.cells[0] = LOADED
    names = [kind.replace(" ", "_") for kind in KINDS]
    book.start()
    for at in range(-2, len(KINDS)):
        book.run(at)
    (book.folder / "go").touch()
    shown = book.rerun()
    assert [each.text for each in shown] == [f"{name} 4\n" for name in names]
    assert book.hits.split() == names * 2
    for _ in range(2):
        again = book.rerun()
        assert [each.stderr for each in again] == [""] * len(names)
        assert [each.text for each in again] == [each.text for each in shown]
    assert book.hits.split() == names * 2, "nobody touched what they left"


def test_a_step_that_was_killed_goes_on_from_its_checkpoint_and_replays_in_the_next_run(notebook):
    book = notebook([step("json", "os.kill(os.getpid(), 9)")])
    book.cells[0] = LOADED
    with pytest.raises(KernelDied):
        book.run_all()
    (book.folder / "go").touch()
    assert [book.rerun()[0].text, book.rerun()[0].text] == ["json 4\n"] * 2
    assert book.hits == "json json"


@pytest.mark.parametrize("alone", [True, False], ids=["in a cell of its own", "with other lines"])
def test_what_a_cell_wrote_before_keel_was_loaded_makes_the_step_write_again(notebook, alone):
    """Of this kernel only: what stood there when it started was written by nobody of this run."""
    book = notebook([])
    load = ["import os", "%load_ext keel_notebook"] if alone else [LOADED]
    body = "hit('make'); v = open('a.txt').read() if os.path.exists('a.txt') else ''; open('a.txt', 'w').write(v + 'B')"
    book.cells = ["open('a.txt', 'w').write('A')", *load, book.cells[1], f"%%keel_step make\n{body}\nprint(v)"]
    book.ids = [f"cell-{at}" for at in range(len(book.cells))]
    for hits in ("make", "make make"):
        assert book.rerun()[-1].text == "A\n"
        assert (book.folder / "a.txt").read_text() == "AB"
        assert book.hits == hits
    book.cells[0] = "pass"
    for _ in range(2):
        assert book.rerun()[-1].text == "A\n"
        assert book.hits == "make make"


def test_when_a_process_began_is_never_told_too_late():
    before = time.time()
    code = "import time; from keel_notebook.capture.started import process_started as p; print(time.time(), p())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    runs, began = map(float, ran.stdout.split())
    assert before - 0.02 <= began < runs

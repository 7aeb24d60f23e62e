"""A file that a cell of this very kernel writes anew above a step that writes it too (DESIGN 6, Files; traps 13).

A plain Run All always ends with what the step writes. So the step executes where a plain cell, or another step that was
executed, changed its product in this kernel; what somebody else changed meanwhile is only reported. Every story is
compared with the same cells in a folder without keel: what they print, and the files that they leave.
"""

import shutil

import pytest

from tests.cases.test_files import LIBRARIES, Book, step
from tests.crash.shells import Zygote
from tests.support.notebook import Notebook

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


def files(folder):
    """What a run left, but for keel's own and the harness's."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    left = ("hits.log", "acks-", ".keel", ".ipython")
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(left)}


def plainly(cell):
    return "\n".join(line for line in cell.splitlines() if not line.startswith("%%keel_step"))


class Pair:
    """The same cells with keel and without it, each in a folder of its own."""

    def __init__(self, zygote, folder):
        (folder / "keel").mkdir()
        (folder / "plain").mkdir()
        self.keel, self.plain = Book(zygote, folder / "keel"), Book(zygote, folder / "plain")

    def run(self, *cells):
        """One Run All in a fresh kernel; which steps were executed, and whether keel was transparent."""
        self.keel.cells, self.plain.cells = list(cells), [plainly(cell) for cell in cells]
        hits = self.keel.run()
        self.plain.run()
        assert self.keel.out == self.plain.out
        assert files(self.keel.folder) == files(self.plain.folder)
        return hits


@pytest.fixture
def pair(zygote, tmp_path):
    return Pair(zygote, tmp_path)


SHOW = "print(open('a.txt').read())"
PLAIN_B = "open('a.txt', 'w').write('B'); v = 1"
ANEW = {
    "open w": ("with open('a.txt', 'w') as f: print('A', file=f)", PLAIN_B, SHOW),
    "open x": (
        "if os.path.exists('a.txt'): os.remove('a.txt')\nwith open('a.txt', 'x') as f: print('A', file=f)",
        PLAIN_B,
        SHOW,
    ),
    "os.open": ("h = os.open('a.txt', os.O_CREAT | os.O_WRONLY | os.O_TRUNC); os.close(h)", PLAIN_B, SHOW),
    "write_text": ("_ = Path('a.txt').write_text('A')", "Path('a.txt').write_text('B'); v = 1", SHOW),
    "r+": (
        "_ = Path('a.txt').write_text('AAA')",
        "f = open('a.txt', 'r+'); f.write('B'); f.close(); del f; v = 1",
        SHOW,
    ),
    "truncate": ("_ = Path('a.txt').write_text('AAA')", "os.truncate('a.txt', 1); v = 1", SHOW),
    "reading and writing": (
        "_ = Path('a.txt').write_text('1')",
        "v = int(open('a.txt').read()); open('a.txt', 'w').write(str(v + 1))",
        SHOW,
    ),
    "appended by the step": (
        "_ = Path('a.txt').write_text('head ')",
        "with open('a.txt', 'a') as f: print('row', file=f)\nv = 1",
        SHOW,
    ),
    "removed by the plain cell": (
        "if os.path.exists('a.txt'): os.remove('a.txt')",
        "with open('a.txt', 'a') as f: print('row', file=f)\nv = 1",
        SHOW,
    ),
    "removed by the step": (
        "_ = Path('a.txt').write_text('A')",
        "os.remove('a.txt'); v = 1",
        "print(os.path.exists('a.txt'))",
    ),
    "moved away by the step": (
        "_ = Path('a.txt').write_text('A')",
        "os.rename('a.txt', 'b.txt'); v = 1",
        "print(os.path.exists('a.txt'), os.path.exists('b.txt'))",
    ),
    "to_csv": (
        "pd.DataFrame({'a': [1]}).to_csv('a.csv', index=False)",
        "pd.DataFrame({'a': [2]}).to_csv('a.csv', index=False); v = 1",
        "print(pd.read_csv('a.csv').a[0])",
    ),
    "to_csv appended": (
        "pd.DataFrame({'a': [1]}).to_csv('a.csv', index=False)",
        "pd.DataFrame({'a': [2]}).to_csv('a.csv', index=False, mode='a', header=False); v = 1",
        "print(pd.read_csv('a.csv').a.tolist())",
    ),
    "to_parquet": (
        "pd.DataFrame({'a': [1]}).to_parquet('a.parquet')",
        "pd.DataFrame({'a': [2]}).to_parquet('a.parquet'); v = 1",
        "print(pd.read_parquet('a.parquet').a[0])",
    ),
    "polars": (
        "pl.DataFrame({'a': [1]}).write_parquet('a.parquet')",
        "pl.DataFrame({'a': [2]}).write_parquet('a.parquet'); v = 1",
        "print(pl.read_parquet('a.parquet')['a'][0])",
    ),
    "numpy.save": ("np.save('a.npy', np.zeros(2))", "np.save('a.npy', np.ones(2)); v = 1", "print(np.load('a.npy'))"),
    "shutil.copy onto it": (
        "_ = Path('seed.txt').write_text('A'); import shutil; _ = shutil.copy('seed.txt', 'a.txt')",
        PLAIN_B,
        SHOW,
    ),
    "shutil.copy2 onto it": (
        "import shutil\nif not os.path.exists('seed.txt'): _ = Path('seed.txt').write_text('A')\n"
        "_ = shutil.copy2('seed.txt', 'a.txt')",
        PLAIN_B,
        SHOW,
    ),
    "shutil.move onto it": (
        "_ = Path('seed.txt').write_text('A'); import shutil; _ = shutil.move('seed.txt', 'a.txt')",
        PLAIN_B,
        SHOW,
    ),
    "os.replace onto it": ("_ = Path('seed.txt').write_text('A'); os.replace('seed.txt', 'a.txt')", PLAIN_B, SHOW),
    "replaced by the step": (
        "_ = Path('a.txt').write_text('A')",
        "Path('new.txt').write_text('B'); os.replace('new.txt', 'a.txt'); v = 1",
        SHOW,
    ),
    "shell": ("!echo A > a.txt", PLAIN_B, SHOW),
    "shell copy that keeps times": ("!test -e seed.txt || echo A > seed.txt\n!cp -p seed.txt a.txt", PLAIN_B, SHOW),
    "child": ("_ = subprocess.run(['sh', '-c', 'echo A > a.txt'])", PLAIN_B, SHOW),
    "a folder moved onto it": (
        "import shutil; shutil.rmtree('out', ignore_errors=True)\n"
        "os.makedirs('new'); _ = Path('new/a.txt').write_text('A'); os.rename('new', 'out')",
        "open('out/a.txt', 'w').write('B'); v = 1",
        "print(open('out/a.txt').read())",
    ),
    "a folder made anew": (
        "import shutil; shutil.rmtree('out', ignore_errors=True); os.makedirs('out')",
        "for n in 'xy': open(f'out/{n}.txt', 'a').write(n)\nv = 1",
        "print(sorted(os.listdir('out')), open('out/x.txt').read())",
    ),
    "a database made anew": (
        "if os.path.exists('t.sqlite'): os.remove('t.sqlite')\n"
        "c = sqlite3.connect('t.sqlite'); _ = c.execute('create table t (a)'); c.commit(); c.close(); del c, _",
        "c = sqlite3.connect('t.sqlite'); c.execute('insert into t values (1)'); c.commit(); c.close(); del c; v = 1",
        "print(sqlite3.connect('t.sqlite').execute('select count(*) from t').fetchall())",
    ),
    "the magic writefile": ("%%writefile a.txt\nA", PLAIN_B, SHOW),
    "a helper of both": (
        "def put(text):\n    with open('a.txt', 'w') as f: f.write(text)\nput('A')",
        "put('B'); v = 1",
        SHOW,
    ),
    "a thread": (
        "import threading\ndef put():\n    with open('a.txt', 'w') as f: f.write('A')\n"
        "t = threading.Thread(target=put); t.start(); t.join()",
        PLAIN_B,
        SHOW,
    ),
    "a query": (
        "_ = duckdb.sql(\"copy (select 1 a) to 'a.csv'\")",
        "_ = duckdb.sql(\"copy (select 2 a) to 'a.csv'\"); v = 1",
        "print(open('a.csv').read())",
    ),
    "a memory map": (
        "m = np.memmap('a.bin', dtype='u1', mode='w+', shape=4); m[:] = 1; m.flush(); del m",
        "m = np.memmap('a.bin', dtype='u1', mode='r+', shape=4); m[:] = 2; m.flush(); del m; v = 1",
        "print(open('a.bin', 'rb').read())",
    ),
    "an archive": (
        "import zipfile\nwith zipfile.ZipFile('a.zip', 'w') as z: z.writestr(zipfile.ZipInfo('a'), '1')",
        "with zipfile.ZipFile('a.zip', 'a') as z: z.writestr(zipfile.ZipInfo('b'), '2')\nv = 1",
        "print(zipfile.ZipFile('a.zip').namelist())",
    ),
    "through a link": (
        "_ = open('t.txt', 'w').write('A')\nif not os.path.islink('a.txt'): os.symlink('t.txt', 'a.txt')",
        PLAIN_B,
        "print(open('t.txt').read())",
    ),
}  # fmt: skip
"""What the plain cell does, what the step below does with the same file, what is asked of it then."""


@pytest.mark.parametrize("way", ANEW)
def test_a_step_executes_whose_product_a_plain_cell_of_this_kernel_changed(pair, way):
    above, body, below = ANEW[way]
    cells = [above, step("make", body), below]
    assert pair.run(*cells) == ["make"]
    assert pair.run(*cells) == ["make"], "the plain cell wrote it again in this kernel"
    assert pair.run(*cells) == ["make"]


STANDS = {
    "the plain cell writes what the step wrote": (
        ["open('a.txt', 'w').write('B')", step("make", PLAIN_B), SHOW],
        ["make"],
    ),
    "the plain cell only reads": (["print(os.path.exists('b.txt'))", step("make", PLAIN_B), SHOW], ["make"]),
    "the plain cell writes another file": (["open('b.txt', 'w').write('A')", step("make", PLAIN_B), SHOW], ["make"]),
    "the plain cell writes it below": ([step("make", PLAIN_B), "open('a.txt', 'w').write('C')", SHOW], ["make"]),
    "a step below wrote it": (
        [step("make", PLAIN_B), step("next", "open('a.txt', 'w').write('C'); v = 1"), SHOW],
        ["make", "next"],
    ),
    "a step below changed it": (
        [step("make", "open('a.txt', 'w').write('1'); v = 1"),
         step("next", "v = int(open('a.txt').read()); open('a.txt', 'w').write(str(v + 1))"), SHOW],
        ["make", "next"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", STANDS)
def test_a_step_replays_whose_product_stands_or_was_changed_below(pair, story):
    cells, steps = STANDS[story]
    cells = [cells[0] + "\n_ = None" if "%%" not in cells[0] else cells[0], *cells[1:]]
    assert pair.run(*cells) == steps
    assert pair.run(*cells) == []
    assert pair.run(*cells) == []


def test_what_others_append_and_insert_is_no_reason_to_do_it_again(zygote, tmp_path):
    """C73: a row is not inserted twice, and a log that another cell goes on with keeps what the step appended."""
    nb = Book(
        zygote,
        tmp_path,
        "with open('a.log', 'a') as f: print('started', file=f)",
        "c = sqlite3.connect('t.sqlite'); c.execute('create table if not exists t (a)')\n"
        "c.execute('insert into t values (0)'); c.commit(); c.close(); del c",
        step("log", "with open('a.log', 'a') as f: print('row', file=f)\nv = 1"),
        step(
            "ins",
            "c = sqlite3.connect('t.sqlite'); c.execute('insert into t values (1)'); c.commit(); c.close(); v = 1",
        ),
        "print(open('a.log').read().count('row'))\n"
        "print(sqlite3.connect('t.sqlite').execute('select sum(a) from t').fetchone())",
    )
    assert nb.run() == ["log", "ins"]
    assert nb.run() == []
    assert nb.out[-1] == "1\n(1,)\n"


def test_a_step_above_that_was_executed_makes_the_one_below_write_again(pair):
    cells = ["p = 1", step("one", "open('a.txt', 'w').write(str(p)); v = p"), step("two", PLAIN_B), SHOW]
    assert pair.run(*cells) == ["one", "two"]
    assert pair.run(*cells) == []
    assert pair.run("p = 2", *cells[1:]) == ["one", "two"]
    assert pair.run("p = 2", *cells[1:]) == []


def test_equal_content_is_not_already_applied(pair):
    """A file edited from 1 to 2 above a step that adds one: 3, though the step left 2 before (trap 4 for files)."""
    up = step("up", "v = int(open('n.txt').read()); open('n.txt', 'w').write(str(v + 1))")
    show = "print(open('n.txt').read())"
    assert pair.run("open('n.txt', 'w').write('1'); _ = 0", up, show) == ["up"]
    assert pair.run("open('n.txt', 'w').write('2'); _ = 0", up, show) == ["up"]
    assert pair.keel.out[-1] == "3\n"


def test_going_back_to_older_inputs_writes_the_older_product_again(pair):
    cells = [step("make", "open('a.txt', 'w').write(str(p)); v = p"), SHOW]
    for p, made in ((1, ["make"]), (2, ["make"]), (1, ["make"]), (1, []), (2, ["make"])):
        assert pair.run(f"p = {p}", *cells) == made


def test_what_was_changed_by_hand_is_reported_and_not_executed(pair):
    cells = [step("make", PLAIN_B), SHOW, "%keel why make" + "\n"]
    pair.keel.cells = cells
    assert pair.keel.run() == ["make"]
    (pair.keel.folder / "a.txt").write_text("by hand")
    assert pair.keel.run() == []
    assert "a.txt changed since" in pair.keel.out[-1]


@pytest.mark.parametrize("folder", ["temporary", "elsewhere"])
def test_a_product_outside_of_the_notebooks_folder_counts_where_this_kernel_wrote_it(zygote, tmp_path, folder):
    nb, other = Book(zygote, tmp_path / "work"), tmp_path / folder
    for each in (nb.folder, other):
        each.mkdir()
    name = str(other / "a.txt")
    setting = f"import tempfile; tempfile.tempdir = {str(other)!r}" if folder == "temporary" else "pass"
    make, show = step("make", f"open({name!r}, 'w').write('B'); v = 1"), f"print(open({name!r}).read())"
    nb.cells = [setting, f"_ = open({name!r}, 'w').write('A')", make, show]
    assert (nb.run(), nb.out[-1]) == (["make"], "B\n")
    assert (nb.run(), nb.out[-1]) == (["make"], "B\n")
    nb.cells = [setting, make, show]
    assert nb.run() == []
    shutil.rmtree(other)
    other.mkdir()
    nb.cells = [setting, make]
    assert nb.run() == [], "nobody in this kernel removed it"


def test_after_a_kill_the_plain_cell_and_the_step_both_write_and_again_in_the_same_kernel(tmp_path):
    nb = Notebook(
        tmp_path,
        "open('a.txt', 'w').write('A')\n# ---\n%%keel_step make\nhit('make'); open('a.txt', 'w').write('B')\n"
        "# ---\nprint(open('a.txt').read())",
    )
    try:
        assert nb.run_all()[-1].text == "B\n"
        shown = nb.rerun()
        assert shown[-1].text == "B\n"
        assert "make executes: file a.txt was changed by cell In[3] since" in shown[1].stderr
        assert nb.hits == "make make"
        assert nb.run_all()[-1].text == "B\n", "the same kernel: the plain cell wrote it once more"
        assert nb.hits == "make make make"
        nb.run(1)
        assert nb.hits == "make make make", "nobody wrote it since the step did"
    finally:
        nb.close()

"""Every file that a step reads or makes is seen, by every road (DESIGN 6, Files; C19, C52, C70; traps 2).

One notebook holds a step for each road. It runs (each executes), runs again (each replays), one file of each step is
changed, it runs a third time (each executes and shows the new content) and a fourth (each replays). Shells without a
kernel, forked from one warm process; real files, real readers.
"""

import os
import re
from pathlib import Path

import h5py
import pandas as pd
import pytest

from tests.crash.shells import Zygote

HIT = """
import os as _os
_log = _os.path.abspath("hits.log")
def hit(t):
    f = _os.open(_log, _os.O_WRONLY | _os.O_CREAT | _os.O_APPEND)
    _os.write(f, (t + "\\n").encode()); _os.close(f)
"""
LIBRARIES = (
    "pandas",
    "pyarrow.parquet",
    "pyarrow.dataset",
    "pyarrow.feather",
    "pyarrow.csv",
    "polars",
    "duckdb",
    "h5py",
)

IMPORTS = """
import os, sqlite3, subprocess
from pathlib import Path
import duckdb, h5py, numpy as np, pandas as pd, polars as pl, pyarrow as pa
import pyarrow.csv, pyarrow.dataset, pyarrow.parquet as pq
from PIL import Image
"""
READERS = {
    "pandas parquet": ("pandas.parquet", "v = pd.read_parquet('{f}').a.sum()"),
    "pandas feather": ("pandas.feather", "v = pd.read_feather('{f}').a.sum()"),
    "pandas csv": ("pandas.csv", "v = pd.read_csv('{f}').a.sum()"),
    "pandas csv by arrow": ("by_arrow.csv", "v = pd.read_csv('{f}', engine='pyarrow').a.sum()"),
    "arrow table": ("arrow.parquet", "v = sum(pq.read_table('{f}')['a'].to_pylist())"),
    "arrow file": ("file.parquet", "v = sum(pq.ParquetFile('{f}').read()['a'].to_pylist())"),
    "arrow csv": ("arrow.csv", "v = sum(pa.csv.read_csv('{f}')['a'].to_pylist())"),
    "arrow memory map": ("a.feather", "v = sum(pa.ipc.open_file(pa.memory_map('{f}')).read_all()['a'].to_pylist())"),
    "arrow dataset": ("arrows/p.parquet", "v = sum(pa.dataset.dataset('arrows').to_table()['a'].to_pylist())"),
    "duckdb": ("from.parquet", """v = duckdb.sql("select sum(a) from '{f}'").fetchall()[0][0]"""),
    "duckdb pattern": ("m/1.csv", """v = duckdb.sql("select sum(a) from read_csv('m/*.csv')").fetchall()[0][0]"""),
    "polars read": ("polars.parquet", "v = pl.read_parquet('{f}')['a'].sum()"),
    "polars csv": ("polars.csv", "v = pl.read_csv('{f}')['a'].sum()"),
    "polars scan": ("scan.parquet", "v = pl.scan_parquet('{f}').collect()['a'].sum()"),
    "polars pattern": ("scans/x.parquet", "v = pl.scan_parquet('scans/*.parquet').collect()['a'].sum()"),
    "f-string": ("y_2024.parquet", "v = sum(pd.read_parquet(f'y_{y}.parquet').a.sum() for y in [2024])"),
    "joined": ("joined/raw/x.parquet", "v = pd.read_parquet(os.path.join('joined', 'raw', 'x.parquet')).a.sum()"),
    "pathlib": ("lib/x.parquet", "v = pd.read_parquet(Path('lib') / 'x.parquet').a.sum()"),
    "listed": ("ls/x.parquet", "v = sum(pd.read_parquet('ls/' + n).a.sum() for n in sorted(os.listdir('ls')))"),
    "memmap": ("mapped.npy", "v = int(np.load('{f}', mmap_mode='r')[0])"),
    "raw memmap": ("raw.bin", "v = int(np.memmap('{f}', dtype='uint8', mode='r')[0])"),
    "image": ("image.png", "v = Image.open('{f}').getpixel((0, 0))"),
    "h5py": ("named.h5", "with h5py.File('{f}') as f: v = int(f['a'][0])"),
    "h5py joined": ("h/joined.h5", "v = int(h5py.File(Path('h') / 'joined.h5', 'r')['a'][0])"),
    "h5py for writing": ("plus.h5", "with h5py.File('{f}', 'a') as f: v = int(f['a'][0])"),
    "h5py linked": ("inside.h5", "with h5py.File('outside.h5') as f: v = int(f['there'][0])"),
    "archive": ("arrays.npz", "v = int(np.load('{f}')['arr_0'][0])"),
    "sqlite": ("base.sqlite", "v = sqlite3.connect('{f}').execute('select sum(a) from t').fetchone()[0]"),
    "shell": ("cat.csv", "lines = !cat {f}\nv = lines[1]"),
    "child": ("wc.txt", "v = subprocess.run(['cat', '{f}'], capture_output=True, text=True).stdout"),
    "os.system": ("sys.txt", "os.system('cat sys.txt > made.tmp'); v = open('made.tmp').read()"),
    "script": ("of_script.txt", "out = !python reads.py\nv = out[0]"),
    "bytes": ("raw.txt", "v = open('{f}', 'rb').read()"),
    "link": ("target.parquet", "v = pd.read_parquet('link.parquet').a.sum()"),
    "getsize": ("size.txt", "v = os.path.getsize('{f}')"),
}
"""Name of the road: the file that is changed, and the step's code, which leaves its content in ``v``."""


def write(path: Path, number: int) -> None:
    """A file of the kind that its name says, holding a number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame({"a": [number, 0, 0]})
    match path.suffix:
        case ".parquet":
            frame.to_parquet(path)
        case ".feather":
            frame.to_feather(path, compression="uncompressed")
        case ".csv":
            frame.to_csv(path, index=False)
        case ".npy" | ".npz":
            import numpy as np

            (np.save if path.suffix == ".npy" else np.savez)(path, np.array([number]))
        case ".h5":
            with h5py.File(path, "w") as file:
                file["a"] = [number]
        case ".bin":
            path.write_bytes(bytes([number]) * 100)
        case ".png":
            from PIL import Image

            Image.new("L", (4, 4), number).save(path)
        case ".sqlite":
            import sqlite3

            with sqlite3.connect(path) as base:
                base.execute("create table if not exists t (a)")
                base.execute("delete from t")
                base.execute("insert into t values (?)", (number,))
            base.close()
        case _:
            path.write_text(f"{number}\n" * number)


def step(name: str, code: str) -> str:
    slug = re.sub(r"\W+", "_", name)
    return f"%%keel_step {slug}\nhit('{slug}')\n{code}\nprint(v)"


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


class Book:
    """A notebook whose every run is a shell of its own."""

    def __init__(self, zygote, folder, *cells, blind=False):
        self.zygote, self.folder, self.blind = zygote, folder, blind
        self.cells = list(cells)

    def run(self):
        """Run all: which steps were executed. ``out`` and ``err`` are what the cells printed."""
        log = self.folder / "hits.log"
        log.unlink(missing_ok=True)
        cells = ["%load_ext keel_notebook", HIT + IMPORTS, *self.cells]
        done = self.zygote.run(self.folder, cells, blind=self.blind)
        assert done.code == 0, done
        self.out = done.printed[2:]
        self.err = [cell["err"] for cell in done.acknowledged[2:]]
        return log.read_text().split() if log.exists() else []


BY_CONTENT_ALONE = {"script", "h5py linked"}
"""Roads on which only the system can tell: what a child process or a library opens and no text names."""


@pytest.fixture(scope="module", params=[False, True], ids=["told by the system", "told by the code"])
def story(request, zygote, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roads")
    roads = [road for road in READERS if not (request.param and road in BY_CONTENT_ALONE)]
    book = Book(zygote, folder, blind=request.param)
    book.cells = [step(road, READERS[road][1].replace("{f}", READERS[road][0])) for road in roads]
    (folder / "reads.py").write_text("print(open('of_script.txt').read())")
    os.symlink("target.parquet", folder / "link.parquet")
    with h5py.File(folder / "outside.h5", "w") as file:
        file["there"] = h5py.ExternalLink("inside.h5", "a")
    runs = []
    for number in (7, 7, 9, 9):
        for file, _ in READERS.values():
            if len(runs) in (0, 2):
                write(folder / file, number)
        hits = book.run()
        runs.append((dict(zip(roads, book.out, strict=True)), hits, dict(zip(roads, book.err, strict=True))))
    return runs


@pytest.mark.parametrize("road", READERS)
def test_a_file_that_a_step_reads_is_an_input_by_every_road(story, road):
    slug = re.sub(r"\W+", "_", road)
    (first, made, _), (second, again, _), (third, changed, said), (_, settled, _) = story
    if road not in first:
        pytest.skip("only the system can tell")
    assert made.count(slug) == 1
    assert slug not in again, "nothing changed: it replays"
    assert second[road] == first[road]
    assert changed.count(slug) == 1, "its file changed: it executes"
    assert third[road] != first[road]
    assert f"{slug} executes: file " in said[road]
    assert slug not in settled


@pytest.fixture(params=[False, True], ids=["told by the system", "told by the code"])
def blind(request):
    return request.param


@pytest.fixture
def book(zygote, tmp_path, blind):
    return lambda *cells: Book(zygote, tmp_path, *cells, blind=blind)


# ---- looked at, listed, tried ------------------------------------------------------------------------------

LOOKS = {
    "exists": ("v = os.path.exists('flag')", lambda f: (f / "flag").touch()),
    "is_file": ("v = Path('flag').is_file()", lambda f: (f / "flag").touch()),
    "access": ("v = os.access('flag', os.R_OK)", lambda f: (f / "flag").touch()),
    "tried and absent": (
        "try: v = open('flag').read()\nexcept FileNotFoundError: v = 0",
        lambda f: (f / "flag").write_text("1"),
    ),
    "tried by native code": (
        "try: v = len(pd.read_parquet('flag.parquet'))\nexcept FileNotFoundError: v = 0",
        lambda f: write(f / "flag.parquet", 1),
    ),
    "mtime": ("v = os.path.getmtime('data/a.csv')", lambda f: os.utime(f / "data/a.csv", (1, 1))),
    "listdir": ("v = sorted(os.listdir('data'))", lambda f: (f / "data/new").touch()),
    "scandir": ("v = sorted(e.name for e in os.scandir('data'))", lambda f: (f / "data/new").touch()),
    "walk": ("v = sorted(sum((n for *_, n in os.walk('data')), []))", lambda f: (f / "data/sub/new").touch()),
    "glob": ("import glob; v = len(glob.glob('data/*.csv'))", lambda f: (f / "data/new.csv").touch()),
    "glob from a folder": (
        "import glob; v = len(glob.glob('*.csv', root_dir='data'))",
        lambda f: (f / "data/new.csv").touch(),
    ),
    "path glob": ("v = len(list(Path('data').glob('*.csv')))", lambda f: (f / "data/new.csv").touch()),
    "path rglob": ("v = len(list(Path('data').rglob('*.csv')))", lambda f: (f / "data/sub/new.csv").touch()),
    "iterdir": ("v = len(list(Path('data').iterdir()))", lambda f: (f / "data/new").touch()),
    "a new file for a pattern of SQL": (
        "v = duckdb.sql(\"select count(*) from 'data/*.csv'\").fetchall()",
        lambda f: write(f / "data/b.csv", 1),
    ),
    "a new file for arrow": (
        "v = len(pa.dataset.dataset('sets').to_table())",
        lambda f: write(f / "sets/b.parquet", 1),
    ),
}


@pytest.fixture(scope="module", params=[False, True], ids=["told by the system", "told by the code"])
def looks(request, zygote, tmp_path_factory):
    """Every look in a folder of its own, so that the change for one is none for another."""
    folder = tmp_path_factory.mktemp("looks")
    book = Book(zygote, folder, blind=request.param)
    for at, (look, (code, _)) in enumerate(LOOKS.items()):
        here = folder / str(at)
        (here / "data/sub").mkdir(parents=True)
        write(here / "data/a.csv", 1)
        write(here / "sets/a.parquet", 1)
        book.cells += [f"os.chdir({str(here)!r})", step(look, code)]
    runs = [book.run()]
    for at in range(len(LOOKS)):
        (folder / str(at) / "unrelated.txt").touch()
    runs.append(book.run())
    for at, (_, change) in enumerate(LOOKS.values()):
        change(folder / str(at))
    return [*runs, book.run(), book.run()]


@pytest.mark.parametrize("look", LOOKS)
def test_what_a_step_looks_at_lists_or_tries_is_an_input(looks, look):
    slug = re.sub(r"\W+", "_", look)
    assert [run.count(slug) for run in looks] == [1, 0, 1, 0]


# ---- written -----------------------------------------------------------------------------------------------

TO_CSV = "pd.DataFrame({'a': [1]}).to_csv('out.csv', index=False); v = 1"
TO_PARQUET = "pd.DataFrame({'a': [1]}).to_parquet('out.parquet'); v = 1"
MAKERS = {"python": (TO_CSV, "out.csv"), "native": (TO_PARQUET, "out.parquet")}


@pytest.mark.parametrize("maker", MAKERS)
def test_c70_a_product_that_is_gone_is_made_again_and_a_changed_one_is_reported(book, maker):
    code, file = MAKERS[maker]
    nb = book(step("make", code), "%keel why make")
    assert nb.run() == ["make"]
    assert nb.run() == []
    (nb.folder / file).write_bytes(b"something else")
    assert nb.run() == []
    assert f"{file} changed since" in nb.out[1]
    (nb.folder / file).unlink()
    assert nb.run() == ["make"]
    assert f"file {file} is missing" in nb.err[0]
    assert nb.run() == []


def test_a_file_made_and_removed_within_a_step_is_nothing(book):
    nb = book(step("tmp", "open('t.csv', 'w').write('1'); v = open('t.csv').read(); os.remove('t.csv')"))
    assert nb.run() == ["tmp"]
    assert nb.run() == []
    (nb.folder / "t.csv").write_text("another's")
    assert nb.run() == []


def test_a_log_is_no_input_of_the_step_that_appends_to_it_and_one_of_every_other(book):
    log = "with open('run.log', 'a') as f: print(f.write('line'), file=f)\nv = 1"
    nb = book(step("log", log), step("read", "v = open('run.log').read()"))
    assert nb.run() == ["log", "read"]
    assert nb.run() == []
    with open(nb.folder / "run.log", "a") as file:
        file.write("by hand")
    assert nb.run() == ["read"]


REWRITES = {
    "python": "d = pd.read_csv('x.csv'); d['a'] += 1; d.to_csv('x.csv', index=False); v = d.a.sum()",
    "in place": "f = open('x.csv', 'r+'); v = f.read(); f.seek(0); f.write(v.replace('1', '2')); f.close(); del f",
}


@pytest.mark.parametrize("code", REWRITES.values(), ids=REWRITES)
def test_a_step_that_rewrites_what_it_read_holds_for_what_it_found_and_for_what_it_left(book, code):
    nb = book(step("up", code))
    write(nb.folder / "x.csv", 1)
    found = (nb.folder / "x.csv").read_bytes()
    assert nb.run() == ["up"]
    left = (nb.folder / "x.csv").read_bytes()
    assert left != found
    assert nb.run() == [], "it holds what the step left"
    (nb.folder / "x.csv").write_bytes(found)
    assert nb.run() == [], "it holds what the step found"
    write(nb.folder / "x.csv", 5)
    assert nb.run() == ["up"]
    assert nb.run() == []


def test_a_native_rewrite_of_what_was_read_holds_for_what_it_left(book):
    nb = book(step("up", "d = pd.read_parquet('x.parquet'); d['a'] += 1; d.to_parquet('x.parquet'); v = d.a.sum()"))
    write(nb.folder / "x.parquet", 1)
    assert nb.run() == ["up"]
    assert nb.run() == []
    write(nb.folder / "x.parquet", 5)
    assert nb.run() == ["up"]
    assert nb.run() == []


def test_a_product_that_a_step_below_rewrites_or_removes_is_not_made_again(book):
    nb = book(
        step("make", TO_CSV),
        step("up", "d = pd.read_csv('out.csv'); d['a'] += 1; d.to_csv('out.csv', index=False); v = d.a.sum()"),
        step("gone", "v = pd.read_csv('out.csv').a.sum(); os.remove('out.csv')"),
    )
    assert nb.run() == ["make", "up", "gone"]
    assert nb.run() == []


def test_a_step_above_that_writes_anew_makes_the_reader_below_execute(book):
    """The rule for products of steps below never vouches for a step above."""
    nb = book(
        "p = 1",
        step("make", "pd.DataFrame({'a': [p]}).to_csv('x.csv', index=False); v = 1"),
        step("up", "d = pd.read_csv('x.csv'); d['a'] += 10; d.to_csv('x.csv', index=False); v = d.a.sum()"),
    )
    assert nb.run() == ["make", "up"]
    assert nb.run() == []
    nb.cells[0] = "p = 2"
    assert nb.run() == ["make", "up"]
    assert nb.out[2] == "12\n"
    nb.cells += ["p = 3", nb.cells[1], nb.cells[2]]
    assert nb.run() == ["make", "up"], "again in the same kernel"
    assert nb.out[-1] == "13\n"


def test_what_a_plain_cell_writes_is_an_input_by_content(book):
    nb = book("open('x.txt', 'w').write('1')", step("read", "v = open('x.txt').read()"))
    assert nb.run() == ["read"]
    assert nb.run() == [], "written again with the same content"
    nb.cells[0] = "open('x.txt', 'w').write('2')"
    assert nb.run() == ["read"]


def test_a_value_that_names_a_file_which_is_not_read_is_no_input(zygote, tmp_path):
    """``cfg["out"]`` goes with every step that reads ``cfg``: only the system can tell that it does not read it."""
    nb = Book(
        zygote,
        tmp_path,
        "cfg = {'lr': 0.1, 'out': 'model.txt', 'data': Path('x.parquet')}",
        step("fit", "v = pd.read_parquet(cfg['data']).a.sum() * cfg['lr']"),
        step("save", "Path(cfg['out']).write_text(str(v))"),
    )
    write(tmp_path / "x.parquet", 10)
    (tmp_path / "model.txt").write_text("of last week")
    assert nb.run() == ["fit", "save"]
    assert nb.run() == []
    (tmp_path / "model.txt").unlink()
    assert nb.run() == ["save"]
    write(tmp_path / "x.parquet", 20)
    assert nb.run() == ["fit", "save"]


def test_another_journal_leaves_no_watch_behind(book):
    count = (
        "import os\nlinks = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') "
        "if os.path.islink(f'/proc/self/fd/{n}')]\nprint(sum('inotify' in link for link in links))"
    )
    once, thrice = (
        book(step("one", "v = 1"), count),
        book(step("one", "v = 1"), "%keel journal a", "%keel journal b", "%keel journal c", count),
    )
    once.run()
    thrice.run()
    assert thrice.out[-1] == once.out[-1]

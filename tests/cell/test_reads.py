"""What a cell reads and writes, form by form."""

from __future__ import annotations

import sys

import pytest

from tests.cell.reading import names_of

NOTHING: set[str] = set()


@pytest.mark.parametrize(
    ("cell", "reads", "stores", "maybe"),
    [
        # Every form that binds a name.
        ("x = y", {"y"}, {"x"}, NOTHING),
        ("x = y = z", {"z"}, {"x", "y"}, NOTHING),
        ("(a, [b, *c]), d.e, f[g] = v", {"v", "d", "f", "g"}, {"a", "b", "c"}, NOTHING),
        ("x: int = y", {"y", "int"}, {"x"}, NOTHING),
        ("x: int", {"int"}, NOTHING, NOTHING),
        ("x += y", {"x", "y"}, {"x"}, NOTHING),
        ("(x := y)", {"y"}, {"x"}, NOTHING),
        ("a and (x := y)", {"a", "y"}, NOTHING, {"x"}),
        ("(x := y) and a", {"a", "y"}, {"x"}, NOTHING),
        ("z = (x := 1) if a else (x := 2)", {"a"}, {"x", "z"}, NOTHING),
        ("a < (x := b) < (y := c)", {"a", "b", "c"}, {"x"}, {"y"}),
        ("import a.b, c as d", NOTHING, {"a", "d"}, NOTHING),
        ("from a import b, c as d", NOTHING, {"b", "d"}, NOTHING),
        ("for x in xs: y = x", {"xs"}, NOTHING, {"x", "y"}),
        ("for x in [1, 2]: y = x", NOTHING, {"x", "y"}, NOTHING),
        ("for x in range(3): y = x", {"range"}, {"x", "y"}, NOTHING),
        ("for x in range(0): y = x", {"range"}, NOTHING, {"x", "y"}),
        ("for x in range(n): y = x", {"range", "n"}, NOTHING, {"x", "y"}),
        ("for i, x in enumerate([a]): pass", {"enumerate", "a"}, {"i", "x"}, NOTHING),
        ("for x in [1]:\n  if a: break\n  y = 1", {"a"}, {"x"}, {"y"}),
        ("for x in xs: pass\nelse: y = 1", {"xs"}, {"y"}, {"x"}),
        ("for x in xs:\n  if x: break\nelse: y = 1", {"xs"}, NOTHING, {"x", "y"}),
        ("while a: x = 1", {"a"}, NOTHING, {"x"}),
        ("while True:\n  x = f()\n  if x: break\n  y = x", {"f"}, {"x"}, {"y"}),
        ("with open(p) as f: x = f.read()", {"open", "p"}, {"f", "x"}, NOTHING),
        ("with m as f: x = 1", {"m"}, {"f"}, {"x"}),
        ("with suppress(E), open(p) as f: x = 1", {"suppress", "E", "open", "p"}, NOTHING, {"f", "x"}),
        ("with open(p) as (a, b[c]): pass", {"open", "p", "b", "c"}, {"a"}, NOTHING),
        ("async with session() as s: x = await s.get()", {"session"}, {"s"}, {"x"}),
        ("async for x in xs: y = x", {"xs"}, NOTHING, {"x", "y"}),
        ("if a: x = 1", {"a"}, NOTHING, {"x"}),
        ("if a: x = 1\nelse: x = 2", {"a"}, {"x"}, NOTHING),
        ("if a: x = 1\nelif b: x = 2\nelse: raise E", {"a", "b", "E"}, {"x"}, NOTHING),
        ("if __name__ == '__main__': x = 1", {"__name__"}, {"x"}, NOTHING),
        ("try: x = f()\nexcept E: x = None", {"f", "E"}, {"x"}, NOTHING),
        ("try: x = f()\nexcept E: pass", {"f", "E"}, NOTHING, {"x"}),
        ("try: x = f()\nexcept E: raise", {"f", "E"}, {"x"}, NOTHING),
        ("try: x = f()\nfinally: y = 1", {"f"}, {"x", "y"}, NOTHING),
        ("try: f()\nexcept E: pass\nelse: x = 1", {"f", "E"}, NOTHING, {"x"}),
        ("try: f()\nexcept* E as e: x = 1", {"f", "E"}, NOTHING, {"x", "e"}),
        ("def f(a, *b, c=d, **e): return a, b, c, e, g", {"d"}, {"f"}, NOTHING),
        ("@deco\ndef f(): return g", {"deco", "g"}, {"f"}, NOTHING),
        ("def f(a: T) -> R: pass", {"T", "R"}, {"f"}, NOTHING),
        ("from __future__ import annotations\ndef f(a: T) -> R: pass", NOTHING, {"annotations", "f"}, NOTHING),
        ("async def f(): return g", NOTHING, {"f"}, NOTHING),
        ("class A(B, metaclass=M):\n  x = y\n  z = x", {"B", "M", "y"}, {"A"}, NOTHING),
        ("class A:\n  x = x", {"x"}, {"A"}, NOTHING),
        ("class A:\n  if c: x = 1\n  y = x", {"c", "x"}, {"A"}, NOTHING),
        (
            "match v:\n  case A(b=c, d=[e, *f]): x = 1\n  case {'k': g, **h} as i: pass",
            {"v", "A"},
            NOTHING,
            set("cefxghi"),
        ),
        ("match v:\n  case B.C: x = 1\n  case _: x = 2", {"v", "B"}, {"x"}, NOTHING),
        ("global x\nx = 1", NOTHING, {"x"}, NOTHING),
        ("x = [y for y in ys if y > z]", {"ys", "z"}, {"x"}, NOTHING),
        ("x = {k: v for k, v in d.items()}", {"d"}, {"x"}, NOTHING),
        ("x = [(w := y) for y in ys]", {"ys"}, {"x"}, {"w"}),
        ("x = [y for row in rows for y in row if (w := y)]", {"rows"}, {"x"}, {"w"}),
        ("f = lambda a, b=c: a + b + d", {"c", "d"}, {"f"}, NOTHING),
        ("print(f'{x:{w}} {y!r}')", {"print", "x", "w", "y"}, NOTHING, NOTHING),
        ("x = yield_ if a else b", {"yield_", "a", "b"}, {"x"}, NOTHING),
        ("assert a, (x := b)", {"a", "b"}, NOTHING, {"x"}),
        # The order of things.
        ("df = load()\ndf.head()", {"load"}, {"df"}, NOTHING),
        ("df.head()\ndf = load()", {"df", "load"}, {"df"}, NOTHING),
        ("x = x + 1", {"x"}, {"x"}, NOTHING),
        ("def f(): return y\ny = 1\nf()", NOTHING, {"f", "y"}, NOTHING),
        ("def f(): return y\nf()\ny = 1", {"y"}, {"f", "y"}, NOTHING),
        ("def f(): return g()\ndef g(): return y\ny = 1\nf()", NOTHING, {"f", "g", "y"}, NOTHING),
        ("h = f\ndef f(): return y", {"f"}, {"h", "f"}, NOTHING),
        ("def g(): return f()\nh = g\ndef f(): return y\nh()", {"f", "y"}, {"g", "h", "f"}, NOTHING),
        ("class A:\n  def m(self): return y\ny = 1\nA().m()", NOTHING, {"A", "y"}, NOTHING),
        ("class A:\n  def m(self): return y\nA().m()\ny = 1", {"y"}, {"A", "y"}, NOTHING),
        ("@dataclass\nclass A:\n  def m(self): return y\ny = 1\nA().m()", {"dataclass"}, {"A", "y"}, NOTHING),
        ("for i in [1, 2]:\n  if i > 1: f()\n  def f(): return y", {"f", "y"}, {"i", "f"}, NOTHING),
        ("def f():\n  global n\n  n = 1\nf()", NOTHING, {"f"}, {"n"}),
        ("def f():\n  global n\n  n += 1\nf()", {"n"}, {"f"}, {"n"}),
        ("def f():\n  global n\n  n = 1\n  return n\nf()", NOTHING, {"f"}, {"n"}),
        ("def f():\n  def g():\n    global n\n    n = 1\n  g()\nf()", NOTHING, {"f"}, {"n"}),
        ("def f(x):\n  def g():\n    nonlocal x\n    x = y\n  return g\nf(1)", {"y"}, {"f"}, NOTHING),
        ("class A:\n  def m(self): return __x\nA().m()", {"_A__x"}, {"A"}, NOTHING),
        ("(lambda: (x, y))\nx = 1", {"x", "y"}, {"x"}, NOTHING),
        ("g = (y for y in ys if k)\nk = 1", {"ys", "k"}, {"g", "k"}, NOTHING),
        # Names that leave.
        ("x = 1\ndel x", NOTHING, NOTHING, {"x"}),
        ("del x\nx = 1", NOTHING, {"x"}, NOTHING),
        ("try: f()\nexcept E as e: print(e)\nprint(e)", {"f", "E", "print", "e"}, NOTHING, {"e"}),
        # What looks like a string and is code.
        ("eval('a + b')", {"eval", "a", "b"}, NOTHING, NOTHING),
        ("exec('x = y')", {"exec", "y"}, {"x"}, NOTHING),
        ("globals()['x'] = globals()['y']", {"y"}, {"x"}, NOTHING),
        ("if 'df' not in globals(): df = load()", {"df", "load"}, NOTHING, {"df"}),
    ],
)
def test_reads_and_stores(cell: str, reads: set[str], stores: set[str], maybe: set[str]) -> None:
    names = names_of(cell)
    assert (names.reads | names.late_reads, names.stores, names.maybe_stores) == (reads, stores, maybe)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="syntax of Python 3.12")
@pytest.mark.parametrize(
    ("cell", "reads", "stores"),
    [
        ("type X[T] = list[T] | Y", {"list", "Y"}, {"X"}),
        ("def f[T: B](a: T) -> list[T]: return g", {"list"}, {"f"}),
        ("class A[T](B[T]): pass", {"B"}, {"A"}),
    ],
)
def test_type_parameters_are_no_names_of_the_notebook(cell: str, reads: set[str], stores: set[str]) -> None:
    names = names_of(cell)
    assert (names.reads - {"B"}, names.stores) == (reads - {"B"}, stores)


@pytest.mark.parametrize(
    ("cell", "reads", "stores"),
    [
        ("%time y = f(x)", {"f", "x"}, {"y"}),
        ("z = %time f(x)", {"f", "x"}, {"z"}),
        ("%%time\na = b\nc = a", {"b"}, {"a", "c"}),
        ("%%time --no-raise-error\na = b", {"b"}, {"a"}),
        ("%%capture out --no-stderr\na = b", {"b"}, {"a", "out"}),
        ("%%prun -q -s cumtime\na = b", {"b"}, {"a"}),
        ("%timeit -n 10 -r3 f(x)", {"f", "x"}, set()),
        ("%%timeit s = q\nt = s + v", {"q", "v"}, set()),
        ("# keel: step a\nfiles = !ls {d} $x", {"d", "x"}, {"files"}),
        ("!echo $x {y + 1} '$not' $$pid", {"x", "y"}, set()),
        ("%cd {folder}", {"folder"}, set()),
        ("%%bash -s $x\necho $y {z}", {"x"}, set()),
        ("%%time\n%time y = f(x)\n!echo {y} $w", {"f", "x", "w"}, {"y"}),
        ("%aimport mymod", set(), {"mymod"}),
        ("%matplotlib inline", set(), set()),
        ("x?", {"x"}, set()),
    ],
)
def test_c64_magics_and_shell_lines_show_what_they_hide(cell: str, reads: set[str], stores: set[str]) -> None:
    names = names_of(cell)
    assert (names.reads, names.stores, names.reads_everything) == (reads, stores, "")


def test_a_magic_that_nobody_knows_may_run_its_text_or_not() -> None:
    names = names_of("%%memray_flamegraph\nx = y")
    assert (names.reads, names.stores, names.maybe_stores) == ({"y"}, set(), {"x"})


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("eval(text)", "it calls eval()"),
        ("exec(code)", "it calls exec()"),
        ("ns = globals()", "it calls globals()"),
        ("show(**locals())", "it calls locals()"),
        ("vars()", "it calls vars()"),
        ("get_ipython().user_ns['x']", "it uses user_ns"),
        ("import sys\nsys._getframe().f_globals", "it uses f_globals"),
        ("%run -i script.py", "it uses %run -i"),
        ("%run other.ipynb", "it uses %run on a notebook"),
        ("%whos", "it uses %whos"),
        ("import __main__", "it imports __main__"),
        ("%%time\nx = (", "the code of %time cannot be read"),
        ("def f(): return globals()\nf()", "it calls globals()"),
        ("get_ipython().run_line_magic(name, line)", "it uses run_line_magic"),
    ],
)
def test_what_reads_everything_says_so(cell: str, reason: str) -> None:
    assert names_of(cell).reads_everything == reason


@pytest.mark.parametrize(
    "cell",
    [
        "model.eval()",
        "df.eval('a + b')",
        "vars(x)",
        "eval(text, {'a': 1})",
        "exec(code, ns)",
        "def f(): return locals()\nf()",
        "def f(): return globals()",
        "def eval(t): return t\neval(text)",
        "np.stack(xs)",
    ],
)
def test_what_only_looks_like_it_does_not(cell: str) -> None:
    assert names_of(cell).reads_everything == ""


def test_names_are_known_to_be_the_cells_own_where_other_functions_run() -> None:
    names = names_of("df = load()\ndf.head()\nplot()\nlog(df)\nrest = 1")
    assert names.stored_before["plot"] == {"df"}
    assert names.stored_before["load"] == set()
    assert names.stored_before["log"] == {"df"}


@pytest.mark.parametrize(
    ("cell", "late"),
    [
        ("for e in range(n):\n  loss = f(e)\nprint(loss)", {"loss"}),
        ("for e in range(n):\n  loss = f(e)\nprint(loss, e)", {"loss", "e"}),
        ("print(loss)\nfor e in range(n):\n  loss = f(e)", set()),
        ("for e in range(n):\n  print(loss)\n  loss = f(e)", set()),
        ("loss = loss + 1", set()),
        ("if a: x = 1\ny = x\nif b: x = 2", set()),
        ("if a: x = 1\ntry: x\nexcept NameError: pass", set()),
        ("if a: x = 1\nprint('x' in globals())", set()),
        ("def f():\n  try: return x\n  except NameError: pass\nif a: x = 1\nf()", set()),
        ("def f(): return x\nif a: x = 1\nf()", {"x"}),
        ("def f():\n  global x\n  x = 1\nf()\nprint(x)", {"x"}),
    ],
)
def test_late_reads_come_after_every_store(cell: str, late: set[str]) -> None:
    names = names_of(cell)
    assert names.late_reads == late
    assert not names.late_reads & names.reads


@pytest.mark.parametrize(
    ("cell", "together"),
    [
        ("if a:\n  x = 1\n  y = f()", {("x", "y")}),
        ("if a: x = 1\nelse: y = 2", set()),
        ("try:\n  x = 1\n  y = f()\nexcept E: pass", set()),
        ("for i in xs:\n  if c: break\n  x = 1\n  y = 2", set()),
        ("for i in xs:\n  x = 1", {("i", "x")}),
        ("def f():\n  global x\n  x = 1\nif a:\n  f()\n  y = 1", set()),
    ],
)
def test_names_of_one_unconditional_block_share_their_fate(cell: str, together: set[tuple[str, str]]) -> None:
    blocks = names_of(cell).blocks
    pairs = {(a, b) for a in blocks for b in blocks if a < b and blocks[a] and blocks[a] == blocks[b]}
    assert pairs == together


@pytest.mark.parametrize(
    ("cell", "deletes", "maybe"),
    [
        ("del x", {"x"}, set()),
        ("if a: del x", set(), {"x"}),
        ("x = 1\ndel x", {"x"}, set()),
        ("del x\nx = 1", set(), {"x"}),
        ("del (a, [b]), c[0], d.e", {"a", "b"}, set()),
        ("try: f()\nexcept E as e: pass", set(), {"e"}),
        ("def f():\n  global x\n  del x\nf()", set(), {"x"}),
    ],
)
def test_deletions(cell: str, deletes: set[str], maybe: set[str]) -> None:
    names = names_of(cell)
    assert (names.deletes, names.maybe_deletes) == (deletes, maybe)


@pytest.mark.parametrize(
    ("cell", "suspects"),
    [
        ("x[0] = 1", {"x"}),
        ("x.a = 1", {"x"}),
        ("x += 1", {"x"}),
        ("x.append(1)", {"x"}),
        ("f(x)", {"f", "x"}),
        ("for r in rows: r.append(1)", {"rows", "r"}),
        ("y = x", {"x"}),
        ("print(len(x), x + 1, x > 2, f'{x}')", {"print", "len"}),
        ("m = x.mean() + x['a'].sum() + x.shape[0]", set()),
        ("if x: pass", set()),
        ("m = max(x)", {"max", "x"}),
        ("y = d[k]", {"d"}),
    ],
)
def test_a_name_is_suspect_unless_it_is_only_looked_at(cell: str, suspects: set[str]) -> None:
    assert names_of(cell).mutation_suspects == suspects


@pytest.mark.parametrize(
    ("cell", "modules"),
    [
        ("import a.b", {"a.b"}),
        ("from a.b import c", {"a.b", "a.b:c"}),
        ("from . import c", {".", ".:c"}),
        ("import importlib\nm = importlib.import_module('a.b')", {"importlib", "a.b"}),
        ("def f():\n  import a\nf()", {"a"}),
        ("def f():\n  import a", set()),
        ("from a import *", {"a"}),
    ],
)
def test_c28_imported_modules_are_known(cell: str, modules: set[str]) -> None:
    assert names_of(cell).modules == modules


def test_a_star_import_binds_what_nobody_knows_before() -> None:
    names = names_of("from math import *\nx = sqrt(2)")
    assert names.writes_unknown == "from math import *"
    assert names.reads == {"sqrt"}


def test_functions_are_known_by_their_place() -> None:
    names = names_of("def f(): return a\n\nclass C:\n    def m(self): return b\n\ng = lambda: (c, lambda: d)")
    assert {at: defined.reads for at, defined in names.defined.items()} == {
        (1, 0): {"a"},
        (3, 0): {"b"},
        (4, 4): {"b"},
        (6, 4): {"c", "d"},
        (6, 16): {"d"},
    }


def test_deep_nesting_is_no_failure() -> None:
    assert names_of("x = " + "+".join(["y"] * 700)).reads_everything.startswith("its expressions are nested")
    assert names_of("x = " + "+".join(["y"] * 100)).reads == {"y"}

"""The digest of code: what counts and what does not (C27)."""

from __future__ import annotations

import ast
import keyword
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.core.fingerprint import code_digest, definition_digest, format_only
from tests.cell.reading import ipython_syntax, parsed


def digest(cell: str) -> str:
    return code_digest(parsed(cell))


SAME = [
    ("x=1", "x = 1  # one\n\n\n"),
    ("# keel: step a --ttl 2h\nx = 1", "# keel: step b\nx = 1"),
    ("f('a', b)", 'f(\n    "a",\n    b,\n)'),
    ("x = (1)", "x = 1"),
    ("x = 'a' 'b'", 'x = "ab"'),
    ("x = 0xFF", "x = 255"),
    ("x = 1_000", "x = 1000"),
    ("x = 1e3", "x = 1000.0"),
    ("x = u'a'", "x = 'a'"),
    ("a = 1; b = 2", "a = 1\nb = 2"),
    ("del (a, b)", "del a, b"),
    ("for (a, b) in c: pass", "for a, b in c:\n    pass"),
    ("if x:\n  y = 1", "if x:\n        y = 1"),
    ("class A(): pass", "class A:\n    pass"),
    ("x = 1;", "x = 1"),
    ("%time  y = f( x )", "%time y = f(x)"),
    ("%%time\ny = f( x )  # slow", "%%time\n\ny = f(x)"),
    ("x = f'{a}'", 'x = f"{a}"'),
]
DIFFERENT = [
    ("x = 1", "x = 1.0"),
    ("x = 1", "x = True"),
    ("x = 0.0", "x = -0.0"),
    ("x = 'a'", "x = b'a'"),
    ("x = '1'", "x = 1"),
    ("x = None", "x = 'None'"),
    ("print('a')", "print('a ')"),
    ("def f():\n  'doc'", "def f():\n  'other'"),
    ("f(x)", "f(x);"),
    ("f(a)(b)", "f(a, b)"),
    ("{None: x}", "{**x}"),
    ("x: (yield) = 3", "x: (yield 3)"),
    ("x = 1j", "x = 1"),
    ("x = ...", "x = None"),
    ("from a import b", "from .a import b"),
    ("async def f(): pass", "def f(): pass"),
    ("def f(a, /): pass", "def f(a): pass"),
    ("f(*a)", "f(a)"),
    ("x = a if b else c", "x = b if a else c"),
    ("x[1:2]", "x[1:2:None]"),
    ("%time y = f(x)", "y = f(x)"),
    ("%time y = f(x)", "%timeit y = f(x)"),
    ("%%timeit -n 1\nf()", "%%timeit -n 2\nf()"),
    ("!ls a", "!ls b"),
    ("%%bash\necho  a", "%%bash\necho a"),
    ("%%writefile a.py\nx = 1", "%%writefile a.py\nx=1"),
    ("%matplotlib inline", "%matplotlib widget"),
    ("f'{a!r}'", "f'{a}'"),
    ("x = 0x" + "9" * 5000, "x = 0x" + "9" * 4999 + "8"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_c27_formatting_and_comments_do_not_count(one: str, other: str) -> None:
    assert digest(one) == digest(other)
    assert format_only(ipython_syntax(one), ipython_syntax(other), transform=ipython_syntax)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_everything_else_counts(one: str, other: str) -> None:
    assert digest(one) != digest(other)
    assert not format_only(ipython_syntax(one), ipython_syntax(other), transform=ipython_syntax)


def test_what_is_not_python_is_not_the_same_with_another_format() -> None:
    assert not format_only("x = (", "x = ( ", transform=ipython_syntax)


def test_the_digest_is_the_same_in_every_python_and_every_version_of_keel() -> None:
    # Pinned: a change of the format makes every record of every user execute again.
    cell = "import numpy as np\n\ndef f(x, *, k=1.5):\n    return [v * k for v in x if v]\n\ny = f({'a': b'b', **z})"
    assert digest(cell) == "977f5aceaa6da0e9cebde97d89b60433"


def test_a_definition_counts_with_its_decorators_and_not_with_its_surroundings() -> None:
    one = ast.parse("a = 1\n\n@d\ndef f(): return 1").body[1]
    moved = ast.parse("@d\ndef f():\n    return 1  # same").body[0]
    bare = ast.parse("def f(): return 1").body[0]
    assert definition_digest(one) == definition_digest(moved) != definition_digest(bare)


def test_long_sums_are_no_failure() -> None:
    tree = "x = " + "+".join(["y"] * 700)
    assert definition_digest(ast.parse(tree)) == definition_digest(ast.parse(tree + "\n# end"))


NAMES = st.from_regex(r"[a-z]{1,3}", fullmatch=True).filter(lambda name: not keyword.iskeyword(name))
LITERALS = st.one_of(
    st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.binary(max_size=3), st.booleans()
)
EXPRESSIONS = st.recursive(
    st.one_of(NAMES, LITERALS.map(repr)),
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("f({}, k={})".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{{}: {}}}".format, inner, inner),
        st.builds("(lambda q: {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}[{}:{}]".format, NAMES, inner, inner),
    ),
    max_leaves=8,
)
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, NAMES, EXPRESSIONS),
    st.builds("if {}:\n  {} = {}".format, EXPRESSIONS, NAMES, EXPRESSIONS),
    st.builds("def {}(q, w={}):\n  return {}".format, NAMES, EXPRESSIONS, EXPRESSIONS),
)
CELLS = st.lists(STATEMENTS, min_size=1, max_size=4).map("\n".join)


@settings(max_examples=80, deadline=None)
@given(CELLS)
def test_a_formatter_never_changes_the_digest(cell: str) -> None:
    # ast.unparse is the strongest formatter there is: it keeps nothing of the text but the tree.
    reformatted = ast.unparse(ast.parse(cell))
    spaced = "\n\n# note\n".join(reformatted.split("\n")) if "'''" not in reformatted else reformatted
    assert digest(reformatted) == digest(cell) == digest(textwrap.dedent(spaced))


@settings(max_examples=80, deadline=None)
@given(CELLS, CELLS)
def test_equal_digests_are_equal_trees(one: str, other: str) -> None:
    assert (digest(one) == digest(other)) == (ast.dump(ast.parse(one)) == ast.dump(ast.parse(other)))

"""Random programs are run on a namespace that records what Python itself reads and writes: the analysis must
never miss a read, and never call a store sure that did not happen."""

from __future__ import annotations

import ast
import contextlib
import dis
import random
import sys
import types
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keel_notebook.core.cellcode import ParsedCell
from keel_notebook.core.reads import analyse

NAMES = ["a", "b", "c", "d", "e"]
FUNCTIONS = ["f", "g"]


class Value:
    """A value that can be used in any way; truth and failure are dice."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def __bool__(self) -> bool:
        return self.dice.random() < 0.5

    def __call__(self, *args: Any, **_: Any) -> Value:
        for arg in args:
            if callable(arg) and not isinstance(arg, Value | type):
                arg()
        if self.dice.random() < 0.15:
            raise ValueError
        return self

    def __iter__(self) -> Any:
        return iter([self] * self.dice.randrange(3))

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __add__(self, _: Any) -> Value:
        return self

    __radd__ = __add__

    def __getitem__(self, _: Any) -> Value:
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        if self.dice.random() < 0.3:
            raise KeyError

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value) if name == "dice" else None


class Recorder(dict[str, Any]):
    """A namespace that notes, in order, what is read of its first state, stored and deleted."""

    def __init__(self, start: dict[str, Any]) -> None:
        super().__init__(start)
        self.loads: list[tuple[str, frozenset[str]]] = []
        self.touched: set[str] = set()
        self.stored: set[str] = set()
        self.hidden = 0

    def __getitem__(self, name: str) -> Any:
        self.loads.append((name, frozenset(self.touched)))
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name != "__annotations__":  # Python's own
            self.touched.add(name)
            self.stored.add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self.touched.add(name)
        super().__delitem__(name)


def expressions(depth: int) -> st.SearchStrategy[str]:
    name = st.sampled_from(NAMES)
    leaf = st.one_of(name, st.just("1"), name.map(lambda n: f"{n}[0]"), name.map(lambda n: f"{n}.x"))
    if depth == 0:
        return leaf
    inner = expressions(depth - 1)
    function = st.sampled_from(FUNCTIONS)
    return st.one_of(
        leaf,
        st.builds("({} + {})".format, inner, inner),
        st.builds("{}({})".format, name, inner),
        function.map("{}()".format),
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({} := {})".format, name, inner),
        st.builds("a(lambda: {})".format, inner),
        st.builds("[{} for {} in {} if {}]".format, inner, name, inner, inner),
        st.builds("list({} for {} in {})".format, inner, name, name),
        st.builds("{{{}: ({} := 1) for {} in b}}".format, name, st.sampled_from(FUNCTIONS), st.just("i")),
        st.builds('f"{{{}}}"'.format, name),
    )


def block(statements: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    return st.lists(statements, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def simple(depth: int) -> st.SearchStrategy[list[str]]:
    name, value = st.sampled_from(NAMES), expressions(depth)
    lines = st.one_of(
        st.builds("{} = {}".format, name, value),
        st.builds("{}, {} = {}, 1".format, name, name, value),
        st.builds("{}, b[0], {} = 1, {}, 1".format, name, name, value),
        st.builds("{} += {}".format, name, value),
        st.builds("{}[0] = {}".format, name, value),
        st.builds("{}: int = {}".format, name, value),
        st.builds("{}: {}".format, name, name),
        st.builds("import math as {}".format, name),
        name.map("del {}".format),
        value,
        st.just("assert True, a"),
    )
    return lines.map(lambda line: [line])


def jumps() -> st.SearchStrategy[list[str]]:
    return st.sampled_from([["if a: break"], ["if b: continue"], ["if c:", "    d = 1", "    break"]])


def compound(inner: st.SearchStrategy[list[str]], depth: int) -> st.SearchStrategy[list[str]]:
    name, value, body = st.sampled_from(NAMES), expressions(1), block(inner)
    looped = block(st.one_of(inner, jumps()))
    function = st.sampled_from(FUNCTIONS)
    return st.one_of(
        st.builds(lambda v, b, o: [f"if {v}:", *indented(b), "else:", *indented(o)], value, body, body),
        st.builds(lambda n, v, b: [f"for {n} in {v}:", *indented(b)], name, value, looped),
        st.builds(lambda n, b: [f"for {n} in range(2):", *indented(b)], name, looped),
        st.builds(lambda n, b, o: [f"for {n} in (1, 2):", *indented(b), "else:", *indented(o)], name, looped, body),
        st.builds(lambda v, b: [f"while {v}:", *indented(b)], value, looped),
        st.builds(lambda b: ["while True:", *indented([*b, "break"])], looped),
        st.builds(
            lambda b, n, h, o, f: [
                *["try:", *indented(b), f"except (ValueError, KeyError) as {n}:", *indented(h)],
                *["else:", *indented(o), "finally:", *indented(f)],
            ],
            *[body, name, body, body, body],
        ),
        st.builds(lambda b: ["try:", *indented(b), "except Exception:", "    pass"], body),
        st.builds(lambda n, b: [f"with suppress(Exception) as {n}:", *indented(b)], name, body),
        st.builds(lambda n, b: [f"with nullcontext() as {n}, suppress(Exception):", *indented(b)], name, body),
        st.builds(lambda n, b: [f"with suppress(Exception), nullcontext(a(1)) as {n}:", *indented(b)], name, body),
        st.builds(lambda f, b: [f"def {f}():", *indented(b)], function, body),
        st.builds(lambda f, g, b: [f"def {f}():", f"    global {g}", *indented(b)], function, name, body),
        st.builds(lambda f, v: [f"{f} = lambda: {v}"], function, value),
        st.builds(lambda f, p, b: [f"def {f}({p}=1):", *indented(b)], function, name, body),
        st.builds(lambda f, b: [f"class {f}:", *indented(b), "    def __init__(self): a"], function, body),
        st.builds(
            lambda v, n, b, m: [
                *[f"match {v}:", f"    case [{n}, *e]:", *indented(indented(b))],
                *[f"    case {m} if c:", "        pass"],
            ],
            *[value, name, body, name],
        ),
    )


def statements(depth: int) -> st.SearchStrategy[list[str]]:
    if depth == 0:
        return simple(1)
    return st.one_of(simple(2), compound(statements(depth - 1), depth))


programs = st.lists(statements(2), min_size=1, max_size=6).map(
    lambda parts: "\n".join(line for part in parts for line in part) + "\n"
)


def run(code: types.CodeType, present: set[str], seed: int) -> tuple[Recorder, bool]:
    dice = random.Random(seed)
    namespace = Recorder(
        {name: Value(dice) for name in present}
        | {"suppress": contextlib.suppress, "nullcontext": contextlib.nullcontext, "__name__": "__main__"}
    )
    turns = 0

    def count(_frame: Any, event: str, _arg: Any) -> Any:
        nonlocal turns
        turns += event == "line"
        if turns > 400:
            raise TimeoutError
        return count

    sys.settrace(count)
    try:
        exec(code, namespace)
    except Exception:  # noqa: BLE001 random programs fail in any way
        return namespace, False
    finally:
        sys.settrace(None)
    return namespace, True


def unrecorded(code: types.CodeType) -> set[str]:
    """Names that are somewhere stored by STORE_GLOBAL, which does not pass a recorder's ``__setitem__``."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in {"STORE_GLOBAL", "DELETE_GLOBAL"}}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= unrecorded(constant)
    return found


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs, st.sets(st.sampled_from(NAMES + FUNCTIONS)), st.integers(0, 1000))
def test_the_analysis_covers_whatever_python_does(source: str, present: set[str], seed: int) -> None:
    try:
        tree = ast.parse(source)
        code = compile(tree, "<cell>", "exec")
    except SyntaxError:
        return  # such as a name that is both a parameter and global
    names = analyse(ParsedCell(source, tree))
    ran, well = run(code, present, seed)
    blind = unrecorded(code)
    direct = {name for name, _ in ran.loads} & {*NAMES, *FUNCTIONS}
    assert direct <= names.mentioned
    for name, touched in ran.loads:
        if name in names.mentioned:
            assert names.stored_before[name] <= touched | blind, (name, touched)
            if name not in touched | blind:
                assert name in names.reads | names.late_reads
                assert not (name in names.late_reads and name in ran.stored and well), name
    assert ran.stored <= names.stores | names.maybe_stores
    if well:
        assert names.stores <= ran.stored | blind
        assert names.stores <= ran.keys()
        assert not names.deletes - ran.stored - blind & ran.keys()
        for one, its in names.blocks.items():
            for other, others in names.blocks.items():
                if others and others <= its and other in ran.stored:
                    assert one in ran.stored | blind, (one, other)
    assert present - ran.keys() <= names.deletes | names.maybe_deletes

"""Which names are one object, and how arrays lie in memory: inputs of the steps for which they matter (DESIGN 6)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from keel_notebook.capture.attributes import attributes_set
from keel_notebook.core.asks import asks
from keel_notebook.core.sharing import SHARING, AsItIs, Pattern, accepted, differing
from tests.crash.shells import Zygote
from tests.support.lives import cases, lives_before_and_after_the_edit

CASES = cases(Path(__file__).parent / "tables" / "sharing.txt")
HANDED_ON = {"two_names_joined"}
"""A replay binds every name of the object that it puts back: nothing has to execute."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote("pandas")
    yield made
    made.close()


def test_objects_that_become_one_or_two_are_seen_and_equal_ones_replay(zygote: Zygote, tmp_path: Path) -> None:
    edited = lives_before_and_after_the_edit(zygote, tmp_path, CASES)
    assert {name for name, decision in edited.decided.items() if decision == "replayed"} == HANDED_ON


CHAIN = """
r = [1]; p = [r]; q = [1]
# ---
%%keel_step box
box = [p[0], q]
# ---
%%keel_step grow
p[0].append(2)
q.append(3)
# ---
print(p, q, box)
"""


def test_what_a_replay_put_back_is_no_difference(zygote: Zygote, tmp_path: Path) -> None:
    """What lies deep in objects of plain cells comes back as a copy: ``grow`` brings the two together again."""
    cells = ["%load_ext keel_notebook", *(cell.strip("\n") for cell in CHAIN.split("# ---\n"))]
    table = "print({s['name']: s['decision'] for s in __import__('keel_notebook').status().to_dict()['steps']})"
    first = zygote.run(tmp_path, cells).printed[-1]
    assert first == "[[1, 2]] [1, 3] [[1, 2], [1, 3]]\n"
    again = zygote.run(tmp_path, [*cells, table])
    assert again.printed[-2] == first
    assert again.printed[-1] == "{'box': 'replayed', 'grow': 'replayed'}\n"


@pytest.mark.parametrize(
    ("code", "identity", "layout", "equality"),
    [
        ("a is b", True, False, False),
        ("a is not b", True, False, False),
        ("a is None or type(a) is list", False, False, False),
        ("id(a)", True, False, False),
        ("q = copy.deepcopy(p)", True, False, False),
        ("pickle.dumps(p)", True, False, False),
        ("json.dumps(p)", False, False, False),
        ("a.base is None", True, False, False),
        ("a.flags.c_contiguous", False, True, False),
        ("a.ravel('K')", False, True, False),
        ("np.array(a, order='A')", False, True, False),
        ("a == b", False, False, True),
        ("a in b", False, False, True),
        ("set(a)", False, False, True),
        ("a + b < 3", False, False, False),
        ("def f(x): return x is a", True, False, False),
    ],
)
def test_what_code_asks(code: str, identity: bool, layout: bool, equality: bool) -> None:
    found = asks(ast.parse(code))
    assert (found.identity, found.layout, found.equality) == (identity, layout, equality)


def test_which_names_a_statement_changes_while_it_binds_them() -> None:
    assert asks(ast.parse("a += 1\nb = a\nc.x += 1")).augmented == {"a"}


RECORDED = {SHARING: Pattern(("a", "b"), {"a,b": "t1"}, ("c",)).told()}


@pytest.mark.parametrize(
    ("now", "applied", "said"),
    [
        (Pattern(("a", "b"), {"a,b": "t1"}, ("c",)), (), []),
        (Pattern(("a", "b"), {"a,b": "t1"}), (), []),
        (Pattern(("a", "b"), {}, ("c",)), (), [("a", "shares nothing with b any more")]),
        (Pattern(("a", "b"), {"a,b": "t2"}), (), [("a", "shares other parts with b")]),
        (Pattern(("a", "b"), {"a,a": "t", "a,b": "t1"}), (), [("a", "holds one object in other places")]),
        (Pattern(("a", "b"), {"a,b": "t1"}, ("d",)), (), [("d", "shares an object with a, b now")]),
        (Pattern(("a", "b"), {}), ("a",), []),
    ],
)
def test_differences_in_words(now: Pattern, applied: tuple[str, ...], said: list[tuple[str, str]]) -> None:
    assert [(name, detail) for name, detail in differing(RECORDED, AsItIs(now), applied)] == said
    assert list(differing(accepted(RECORDED, AsItIs(now)), AsItIs(now))) == []


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_was_put_back_tells_nothing(name: str) -> None:
    assert list(differing(RECORDED, AsItIs(Pattern(("a", "b")), put_back=frozenset({name})))) == []


def test_what_functions_set_in_their_own_variables_is_no_attribute_of_a_module() -> None:
    text = """
class Session:
    def __init__(s, p):
        s.p = p
        module.q = p
def f():
    local = 1
    local.x = 2
    setattr(local, "y", 2)
    setattr(module, "z", 2)
module.w = 1
"""
    assert set(attributes_set(ast.parse(text))) == {"module.q", "module.z", "module.w"}

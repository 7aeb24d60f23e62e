"""Values that are too large or too deep to be written out as a tree: equal as unfolded values, and only then."""

import copy
import itertools
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.payload.folds import FoldWalk
from keel_notebook.payload.memory import Contents
from keel_notebook.payload.shapes import Shapes
from keel_notebook.payload.trees import NotATree
from tests.payload.conftest import make_kernel

KERNEL = make_kernel()
KERNEL.run("""
import collections
class P:
    def __init__(self, **held): self.__dict__.update(held)
class Q(P): pass
Pair = collections.namedtuple("Pair", "left right")
Other = collections.namedtuple("Other", "left right")
""")


def folded(value):
    return FoldWalk(Shapes(KERNEL.cells, Contents()), b"k" * 32).digest(value)


def neighbours(count=9_000, last=0):
    """Nodes that lead to each other on more and more ways: some hundred thousand items as a tree, 14 levels deep."""
    nodes = [{"id": at, "name": f"n{at}", "nbr": []} for at in range(count)]
    for at in range(1, count):
        nodes[at]["nbr"].append(nodes[at // 2])
    nodes[0]["id"] = last
    return nodes, {node["name"]: node for node in nodes}


def test_a_graph_that_shares_its_nodes_counts_by_what_they_are(digest):
    here = digest(neighbours())
    assert here == digest(neighbours()) == digest(pickle.loads(pickle.dumps(neighbours())))
    nodes, _ = neighbours()
    assert here == digest(
        (nodes, {node["name"]: copy.deepcopy(node) if at % 50 == 0 else node for at, node in enumerate(nodes)})
    )  # equal, not the same
    assert here != digest(neighbours(last=1)) != digest(neighbours(last=True))


def test_values_digested_together_have_the_digests_that_they_have_alone(kernel):
    nodes, index = neighbours()
    ring = [nodes[0]]
    ring.append(ring)
    digest = kernel.digester.together(Contents())
    for value in (nodes, ring, index, nodes[1:], [index, ring], nodes):
        assert digest(value, None).digest == kernel.digest(value).digest


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 2.0, float("nan"), float("inf")]),
    st.sampled_from(["", "1", "None", "é", "\udc80"]),
    st.sampled_from([b"", b"1", 2**80, ..., NotImplemented]),
)


def containers(inside):
    few = st.lists(inside, max_size=4)
    names = st.sampled_from(["a", "b", "c"])
    return st.one_of(
        few,
        few.map(tuple),
        st.dictionaries(names, inside, max_size=3),
        st.sets(st.one_of(SCALARS, st.tuples(SCALARS, SCALARS)), max_size=4),
        st.frozensets(SCALARS, max_size=3),
        st.dictionaries(SCALARS, inside, max_size=3),
        st.builds(
            lambda held, cls: KERNEL.space[cls](**held),
            st.dictionaries(names, inside, max_size=3),
            st.sampled_from("PQ"),
        ),
        st.builds(
            lambda left, right, cls: KERNEL.space[cls](left, right), inside, inside, st.sampled_from(["Pair", "Other"])
        ),
    )


VALUES = st.recursive(SCALARS, containers, max_leaves=25)


@settings(max_examples=300, deadline=None)
@given(VALUES, VALUES)
def test_both_walks_call_the_same_values_equal(one, other):
    """The tree is written out as it is, so that it cannot be wrong; this walk agrees with it on every pair."""
    equal = KERNEL.digest(one).digest == KERNEL.digest(other).digest
    assert (folded(one) == folded(other)) == equal
    assert folded(one) == folded(copy.deepcopy(one))


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_what_is_shared_and_what_is_only_equal_is_one(value):
    shared = [value, (value, [value])]
    assert folded(shared) == folded([copy.deepcopy(value), (copy.deepcopy(value), [value])])
    assert folded(shared) != folded([value, (value, [value, value])])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1], [True]),
        ([1, None], [1.0, None]),
        ([0.0], [-0.0]),
        (["a"], [b"a"]),
        ([[], ()], [(), []]),
        ({"a": [1]}, [("a", [1])]),
        ({1: "x"}, {True: "x"}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2}, frozenset({1, 2})),
        ({(1, "a"), 2}, {(1, "b"), 2}),
        ([float(2)], [2]),
        ([["x"] * 9], [["x"] * 10]),
        (["x" * 70_000], ["x" * 69_999 + "y"]),
    ],
)
def test_what_differs_differs(one, other):
    assert folded(one) != folded(other)
    assert folded([one] * 10) != folded([one] * 9 + [other])


def test_sets_count_without_order_whatever_is_in_them():
    members = [("t", frozenset({at, "x"}), None) for at in range(40)]
    assert folded({*members}) == folded({*members[::-1]}) != folded({*members[1:]})


PLANS = st.lists(
    st.tuples(
        st.sampled_from(["list", "dict", "keyed", "P", "Q"]),
        st.lists(st.integers(0, 9), max_size=3),
        st.lists(SCALARS, max_size=2),
        st.sampled_from([1, 1, 1, 10]),
    ),
    min_size=1,
    max_size=10,
)


def tangled(plan):
    """Objects that hold scalars and each other: shared, and in circles."""
    empty = {"list": list, "dict": dict, "keyed": dict, "P": KERNEL.space["P"], "Q": KERNEL.space["Q"]}
    made = [empty[kind]() for kind, *_ in plan]
    for thing, (kind, edges, scalars, times) in zip(made, plan, strict=True):
        inside = [*scalars, *(made[edge % len(made)] for edge in edges)]
        if kind == "list":
            thing.extend(inside * times)
        else:
            held = thing if kind in ("dict", "keyed") else thing.__dict__
            held.update({at if kind == "keyed" and at else f"k{at}": each for at, each in enumerate(inside)})
    return made


def colours(made):
    """Which of some objects are equal, as plainly as can be: told apart by what is in them, again and again."""
    at = {id(thing): number for number, thing in enumerate(made)}
    found = [0] * len(made)

    def code(part):
        if id(part) in at:
            return ("one of them", found[at[id(part)]])
        return (type(part).__name__, part.hex() if isinstance(part, float) else repr(part))

    def seen(thing):
        held = thing if isinstance(thing, list | dict) else thing.__dict__
        keys = [(type(key).__name__, key) for key in held] if isinstance(held, dict) else ()
        parts = held.values() if isinstance(held, dict) else held
        return type(thing).__qualname__, tuple(keys), tuple(map(code, parts))

    for _ in made:
        numbers = {}
        found = [numbers.setdefault(each, len(numbers)) for each in map(seen, made)]
    return found


@settings(max_examples=300, deadline=None)
@given(PLANS)
def test_the_parts_of_a_tangle_are_equal_exactly_where_nothing_tells_them_apart(plan):
    made = tangled(plan)
    digests = [folded(value) for value in made]
    told = colours(made)
    for one, other in itertools.combinations(range(len(made)), 2):
        assert (digests[one] == digests[other]) == (told[one] == told[other]), (one, other)


@pytest.mark.parametrize("seed", range(4))
def test_many_objects_of_several_kinds_count_by_what_they_are(seed):
    """Enough of them to be numbered in long runs, some met twice, some equal and not the same."""
    chance, made = random.Random(seed), [[]]
    for at in range(8_000):
        part = made[chance.randrange(len(made))]
        made.append(
            chance.choice(
                [
                    {"id": at % 700, "part": part},
                    {"id": at, "part": part},
                    [part] * chance.randrange(3),
                    (at % 5, part),
                    KERNEL.space["P"](part=part, at=chance.choice([1, True, 1.0, None])),
                    {"part": at % 9},
                ]
            )
        )
    halves = made + copy.deepcopy(made[4_000:])
    assert folded([made, halves]) == folded(copy.deepcopy([made, halves]))
    assert folded(halves) == folded(made + made[4_000:]) != folded(made + made[4_001:])


def test_a_chain_of_20_000_takes_linear_time_and_no_stack(kernel):
    def chain(end):
        for at in range(20_000):
            end = [at, end]
        return end

    found = kernel.digest(chain(None))
    assert found.digest is not None
    assert found == kernel.digest(chain(None)) != kernel.digest(chain(0))


def test_short_and_long_ways_to_one_object_are_found_object_by_object():
    """A list of all links of a chain: as layers it would take as many looks as there are pairs of them."""
    links = [[0]]
    for at in range(3000):
        links.append([at, links[-1]])
    again = [list(link) for link in links]
    assert folded(links) == folded(links[:]) != folded(links[1:])
    assert folded(again) == folded(links)


def ring(names, size=1):
    """A circle of records, ``size`` times round."""
    nodes = [{"name": name, "next": None} for name in names * size]
    for at, node in enumerate(nodes):
        node["next"] = nodes[(at + 1) % len(nodes)]
    return nodes[0]


def test_a_cycle_counts_by_what_it_unfolds_to():
    here = folded(ring(["a", "b", "c"]))
    assert here == folded(ring(["a", "b", "c"])) == folded(ring(["a", "b", "c"], size=2))
    assert here == folded({"name": "a", "next": ring(["b", "c", "a"])})  # the same from one record further back
    assert len({here, *map(folded, (ring(["a", "b", "d"]), ring(["b", "c", "a"]), ring(["a", "c", "b"])))}) == 4


def test_the_patient_walk_looks_at_cycles_with_sets_and_at_those_that_take_many_rounds():
    class Holder:
        pass

    holder = Holder()
    holder.held = {holder, 1}
    with pytest.raises(NotATree):
        folded(holder)
    with pytest.raises(NotATree):
        folded(ring(["same"] * 100 + ["end"]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=6), st.integers(1, 3), VALUES)
def test_cycles_that_unfold_alike_have_one_digest_whatever_stands_beside_them(names, size, value):
    one, other = [value, ring(names)], [copy.deepcopy(value), ring(names, size)]
    here = KERNEL.digest(one).digest
    assert here == KERNEL.digest(other).digest != KERNEL.digest([value, ring([*names, "c"])]).digest
    together = KERNEL.digester.together(Contents())
    assert [together(each, None).digest for each in (one[1], one, other)] == [
        KERNEL.digest(each).digest for each in (one[1], one, other)
    ]

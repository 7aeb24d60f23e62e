"""Sharing, cycles and depth: digests look at the unfolded value, in linear time (traps 18)."""

import copy
import itertools
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.counted import counted
from tests.payload.conftest import make_kernel
from tests.payload.corpus import Node, tree

KERNEL = make_kernel()


def shared(levels):
    value = ["leaf"]
    for _ in range(levels):
        value = [value, value]
    return value


def unshared(levels):
    return ["leaf"] if levels == 0 else [unshared(levels - 1), unshared(levels - 1)]


def test_sharing_does_not_matter(digest):
    assert digest(shared(10)) == digest(unshared(10))
    leaf = ("x", 1)
    assert digest([leaf] * 5000) == digest([("x", n // n) for n in range(1, 5001)])


@pytest.mark.parametrize("levels", [22, 60, 4000])
def test_22_levels_of_shared_lists_do_not_explode(kernel, levels):
    value = shared(levels)
    with counted() as made:
        found = kernel.digest(value)
    assert found.digest is not None
    assert made.total() < 4_000 * levels  # and not 2**levels
    assert kernel.digest(shared(levels)).digest == found.digest
    assert kernel.digest([shared(levels), 1]).digest != found.digest


def test_a_value_that_contains_itself_has_a_digest(digest):
    once, twice = [], []
    once.append(once)
    twice.append([twice])
    assert digest(once) == digest(twice)  # both unfold to the same endless list
    assert digest(once) != digest([[]])
    around = {"me": None, "n": 1}
    around["me"] = around
    assert digest(around) == digest(copy.deepcopy(around))
    other = {"me": None, "n": 2}
    other["me"] = other
    assert digest(around) != digest(other)


def test_parents_and_neighbours_count_by_what_they_are(digest):
    assert digest(tree()) == digest(tree()) == digest(copy.deepcopy(tree()))
    changed = tree()
    next(iter(changed.neighbours)).name = "another"
    assert digest(changed) != digest(tree())


def doubly_linked(names):
    nodes = [Node(name) for name in names]
    for one, other in itertools.pairwise(nodes):
        one.next, other.parent = other, one
    return nodes


@pytest.mark.parametrize("names", [["same"] * 1000, [f"n{at}" for at in range(1000)]])
def test_a_long_doubly_linked_list_takes_linear_time(kernel, names):
    with counted() as made:
        found = kernel.digest(doubly_linked(names))
    assert found.digest is not None
    assert made.total() < 1_500 * len(names)
    assert kernel.digest(doubly_linked(names)).digest == found.digest
    changed = doubly_linked(names)
    changed[len(names) // 2].name = "other"
    assert kernel.digest(changed).digest != found.digest


def test_depth_is_no_limit(digest):
    value = None
    for at in range(20_000):
        value = (at, value)
    other = None
    for at in range(20_000):
        other = (at, other)
    assert digest(value) == digest(other) != digest((0, value))


def test_the_depth_of_the_call_does_not_matter(digest):
    value = []
    for _ in range(600):
        value = [value]

    def deeper(levels):
        return digest(value) if levels == 0 else deeper(levels - 1)

    assert deeper(0) == deeper(300)


GRAPHS = st.lists(
    st.tuples(st.sampled_from(["list", "dict", "node"]), st.lists(st.integers(0, 9), max_size=3), st.integers(0, 2)),
    min_size=1,
    max_size=10,
)


def built(plan):
    """A graph with sharing and cycles."""
    made = [{"list": list, "dict": dict, "node": lambda: Node("")}[kind]() for kind, _, _ in plan]
    for thing, (kind, edges, label) in zip(made, plan, strict=True):
        inside = [made[edge % len(made)] for edge in edges]
        if kind == "list":
            thing.extend([label, *inside])
        elif kind == "dict":
            thing.update({"label": label, **{f"to {at}": other for at, other in enumerate(inside)}})
        else:
            thing.name = label
            thing.neighbours = {other for other in inside if isinstance(other, Node)}
    return made[0]


@settings(max_examples=150, deadline=None)
@given(GRAPHS)
def test_graphs_built_twice_or_copied_have_one_digest(plan):
    found = KERNEL.digest(built(plan)).digest
    assert found is not None
    assert KERNEL.digest(built(plan)).digest == found
    assert KERNEL.digest(pickle.loads(pickle.dumps(built(plan)))).digest == found


@settings(max_examples=150, deadline=None)
@given(GRAPHS)
def test_a_label_changed_anywhere_in_a_graph_changes_the_digest(plan):
    kind, edges, label = plan[0]
    other = [(kind, edges, label + 5), *plan[1:]]
    assert KERNEL.digest(built(plan)).digest != KERNEL.digest(built(other)).digest

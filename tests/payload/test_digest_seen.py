"""A large value that was digested before is known again: by what it is, with which of its objects are one; no less."""

import copy
import gc
import pickle
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.core.ports import Known
from keel_notebook.payload import digest as digests
from keel_notebook.payload.folds import FoldWalk
from keel_notebook.payload.memory import Contents
from keel_notebook.payload.packing import Encoder
from keel_notebook.payload.shapes import Shapes
from tests.payload.conftest import make_kernel
from tests.payload.test_digest_folds import KERNEL, VALUES, folded, neighbours, ring


def stamp(value, kernel=KERNEL):
    return FoldWalk(Shapes(kernel.cells, Contents()), b"k" * 32).stamp(value)


@pytest.fixture
def walked(monkeypatch):
    """The values that had to be walked through."""
    found = []
    real = digests.StructuralDigester._patiently

    def walk(self, value, *rest):
        found.append(value)
        return real(self, value, *rest)

    monkeypatch.setattr(digests.StructuralDigester, "_patiently", walk)
    return found


def test_the_same_value_is_walked_through_once(walked):
    digester, value = make_kernel().digester, neighbours()
    first = digester.digest(value)
    assert digester.digest(value) == first
    assert len(walked) == 1
    assert digester.digest(copy.deepcopy(value)) == first  # the copy shares its texts in another way, or not
    assert make_kernel().digester.digest(value).digest == first.digest


def test_a_change_however_deep_is_seen_without_a_name_for_it(walked):
    digester, value = make_kernel().digester, neighbours()
    nodes, _ = value
    found = [digester.digest(value).digest]
    for change in (
        lambda: nodes[8_000].update(id=-1),
        lambda: nodes[8_000].update(id=True),
        lambda: nodes[8_000]["nbr"].append(nodes[3]),
        lambda: nodes[8_000].update(nbr=(nodes[4_000],)),
        lambda: nodes[8_000].update(late={1}),
    ):
        change()
        found.append(digester.digest(value).digest)
    assert len(set(found)) == len(found) == len(walked)
    nodes[8_000].pop("late")
    assert digester.digest(value).digest == found[-2]
    assert len(walked) == len(found)


CLASSES = """
class Site:
    kind = {kind!r}
    def __init__(self, name): self.name = name; self.links = []
class Other(Site): pass
"""


def sites(kernel, count=4_000):
    """Instances that lead to each other on many ways."""
    kernel.run(CLASSES.format(kind="a"))
    made = [kernel.space["Site"](f"n{at}") for at in range(count)]
    for at in range(1, count):
        made[at].links += [made[at // 2], made[at // 3]]
    return made


def test_instances_of_notebook_classes_are_known_again_and_a_changed_class_is_seen(walked):
    kernel = make_kernel()
    digester, value = kernel.digester, sites(kernel)
    found = [digester.digest(value).digest]
    assert digester.digest(value).digest == found[0]
    assert len(walked) == 1
    for change in (
        lambda: setattr(value[3_000], "name", "m"),
        lambda: setattr(value[3_000], "late", True),
        value[3_000].links.reverse,
        lambda: setattr(value[3_000], "__class__", kernel.space["Other"]),
        lambda: setattr(kernel.space["Site"], "kind", "b"),
    ):
        change()
        found.append(digester.digest(value).digest)
    assert len(set(found)) == len(found) == len(walked)
    assert digester.digest(value).digest == found[-1]
    assert len(walked) == len(found)


def test_what_a_value_reaches_is_found_although_it_was_known_again():
    kernel = make_kernel()
    kernel.run("k = 1\ndef f(): return k")
    value = [*neighbours(), kernel.space["f"]]
    found = kernel.digester.digest(value)
    assert "k" in found.reaches
    assert kernel.digester.digest(value) == found


@settings(max_examples=200, deadline=None)
@given(VALUES, VALUES, st.booleans())
def test_values_with_one_stamp_are_equal(one, other, shared):
    one, other = [one, one if shared else copy.deepcopy(one)], [other, other]
    assert stamp(one) == stamp(one)
    if stamp(one) == stamp(other):
        assert folded(one) == folded(other)


def test_stamps_tell_which_objects_are_one_and_take_any_depth():
    part = [1]
    assert stamp([part, part]) != stamp([part, [1]])
    chain = None
    for at in range(20_000):
        chain = [at, chain]
    assert stamp(chain) == stamp(chain) != stamp([20_000, chain])


def test_stamps_tell_apart_what_digests_tell_apart():
    values = [
        [1],
        [True],
        [1.0],
        ["1"],
        [b"1"],
        (1,),
        {1},
        frozenset({1}),
        {1: 1},
        [-0.0],
        [0.0],
        [bytearray(b"1")],
        [[1]],
    ]
    assert len({stamp(value) for value in values}) == len(values)
    assert stamp(ring(["a", "b"])) == stamp(ring(["a", "b"])) != stamp(ring(["a", "c"]))


def test_nothing_of_a_value_is_kept_alive():
    class Held(list):
        __slots__ = ("__weakref__",)

    digester, held = make_kernel().digester, Held()
    gone = weakref.ref(held)
    nodes, index = neighbours()
    digester.digest([nodes, index])
    digester.digest([nodes, index, held])
    del held
    gc.collect()
    assert gone() is None


def recorded(kernel, **names):
    return {write.name: write.digest for write in kernel.pack(names).writes}


def test_what_was_recorded_before_is_known_by_what_pickle_wrote_of_it(walked):
    kernel = make_kernel()
    nodes, index = neighbours(50_000)
    first = recorded(kernel, seed=1, nodes=nodes, index=index)
    times = len(walked)
    nodes, index = neighbours(50_000)
    assert recorded(kernel, seed=2, nodes=nodes, index=index)["index"] == first["index"]
    assert len(walked) == times
    for name, value in (("nodes", nodes), ("index", index)):
        assert make_kernel().digest(value).digest == first[name]


@pytest.mark.parametrize(
    "change",
    [
        lambda small, nodes: small.append(2),  # written before, and the large value only refers to it
        lambda small, nodes: nodes[7].update(id=True),
        lambda small, nodes: nodes.append(nodes[3]),
        lambda small, nodes: nodes[20_000].update(nbr=(small,)),
    ],
)
def test_what_differs_is_not_taken_for_what_was_recorded(change):
    kernel = make_kernel()
    made = []
    for changed in (False, True):
        small, (nodes, _) = [1], neighbours(50_000)
        nodes[20_000]["nbr"] = [small]
        if changed:
            change(small, nodes)
        made.append(recorded(kernel, small=small, nodes=nodes))
        assert made[-1]["nodes"] == make_kernel().digest(nodes).digest
    assert made[0]["nodes"] != made[1]["nodes"]


@pytest.mark.parametrize("odd", ["site", "buffer", "known"])
def test_what_pickle_does_not_tell_all_of_has_no_stamp(odd):
    kernel = make_kernel()
    kernel.run(CLASSES.format(kind="a"))
    nodes, _ = neighbours(50_000)
    parts = {"site": kernel.space["Site"]("a"), "buffer": pickle.PickleBuffer(b"x"), "known": [1] * 1000}
    nodes.append(parts[odd])
    known = {id(parts[odd]): (parts[odd], Known("e1", "p", "d"))} if odd == "known" else {}
    encoder = Encoder(kernel.cells, kernel.digester, lambda: kernel.space)
    assert encoder.encode([("nodes", nodes)], known, {}).stamps == [None]
    assert encoder.encode([("nodes", nodes[:-1])], known, {}).stamps != [None]
    assert encoder.encode([("x", parts[odd]), ("nodes", nodes[:-1])], known, {}).stamps[1:] == [None]

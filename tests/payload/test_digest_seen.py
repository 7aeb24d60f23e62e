"""A large plain value that was digested before is known again by its bytes, and by nothing else."""

import copy
import gc
import weakref

import pytest

from keel_notebook.payload import digest as digests
from keel_notebook.payload.streamed import stamp
from tests.payload.conftest import make_kernel
from tests.payload.test_digest_folds import neighbours, ring

KEY = b"k" * 32


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


def test_what_has_code_of_its_own_has_no_stamp():
    class Odd:
        pass

    class Text(str):
        __slots__ = ()

    for odd in (Odd(), Odd, Text("a"), 1j, ..., len, memoryview(b""), object()):
        assert stamp([1, {"a": (odd,)}], KEY) is None
    chain = None
    for at in range(100_000):
        chain = [at, chain]
    assert stamp(chain, KEY) is None


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
    assert len({stamp(value, KEY) for value in values}) == len(values)
    assert stamp(ring(["a", "b"]), KEY) == stamp(ring(["a", "b"]), KEY) != stamp(ring(["a", "c"]), KEY)


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

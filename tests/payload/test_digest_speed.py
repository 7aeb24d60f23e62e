"""How often Python has a turn while a large value is digested: what C walks through costs little (DESIGN 10)."""

import pytest

from tests.counted import calls
from tests.payload.conftest import make_kernel
from tests.payload.test_digest_folds import neighbours

VALUES = {
    "shared": neighbours,
    "records": lambda count: [{"id": at, "tags": ["a", str(at)], "score": at / 3} for at in range(count)],
    "text": lambda count: {f"key {at}": f"text {at}" for at in range(count)},
}


@pytest.mark.parametrize("name", VALUES)
def test_c36_a_digest_calls_nothing_for_each_object(name):
    digester, value = make_kernel().digester, VALUES[name](80_000)
    at_first = calls(lambda: digester.digest(value))
    assert at_first < 80_000 / 10
    assert calls(lambda: digester.digest(value)) <= at_first


def test_looking_how_far_a_graph_unfolds_takes_no_longer_than_writing_it_out():
    """Six thousand nodes are written out; a look at every one of them took ten times as long."""
    digester, value = make_kernel().digester, neighbours(6_000)
    assert calls(lambda: digester.digest(value)) < 12_000 * 15

"""What digests cost next to ``pickle.dumps`` of the same: ratios that twice the time would break (DESIGN 10)."""

import gc
import pickle
import time

import pytest

from tests.payload.conftest import make_kernel
from tests.payload.test_digest_folds import neighbours

pytestmark = pytest.mark.alone


def cpu(call):
    gc.collect()
    gc.disable()
    began = time.process_time()
    call()
    took = time.process_time() - began
    gc.enable()
    return took


VALUES = {
    "shared": (neighbours(50_000), 6, 3),
    "records": ([{"id": at, "tags": ["a", str(at)], "score": at / 3} for at in range(50_000)], 2.5, 2.5),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_digest_costs_a_few_times_what_the_pickler_takes_and_once_more_hardly_more_than_that(name):
    value, first, again = VALUES[name]
    found = []
    for _ in range(3):
        digester = make_kernel().digester
        floor = cpu(lambda: pickle.dumps(value, 5))
        found.append([cpu(lambda digester=digester: digester.digest(value)) / floor for _ in range(2)])
    assert min(ratio for ratio, _ in found) < first, found
    assert min(ratio for _, ratio in found) < again, found

"""A digest is the same in every process that shares the salt, whatever its hash seed (C34, M8)."""

import json
import os
import subprocess
import sys

from tests.payload.corpus import corpus

SCRIPT = """
import json, sys
from tests.payload.conftest import make_kernel
from tests.payload.corpus import corpus
kernel = make_kernel()
print(json.dumps({name: kernel.digest(value).digest for name, value in corpus(int(sys.argv[1]))}))
"""


def _elsewhere(seed, hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.getcwd()}
    made = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(seed)], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(made.stdout)


def test_c34_digests_are_equal_in_processes_with_other_hash_seeds(kernel):
    here = {name: kernel.digest(value) for name, value in corpus(1)}
    assert all(digested.digest for digested in here.values()), {n: d.reason for n, d in here.items() if not d.digest}
    for hash_seed in ("1", "2"):
        there = _elsewhere(1, hash_seed)
        assert there == {name: digested.digest for name, digested in here.items()}


def test_c34_digests_are_equal_for_values_made_twice(kernel):
    once = [kernel.digest(value).digest for _, value in corpus(7)]
    again = [kernel.digest(value).digest for _, value in corpus(7)]
    assert once == again

"""Kernels on one folder, one after the other, for the tests of durable calls."""

import pytest

from keel_notebook.engine import host
from keel_notebook.journal.memory import MemoryFolder
from tests.support.kernels import Kernel, ManualClock


@pytest.fixture(params=["memory", "disk"])
def folder(request, tmp_path):
    """What outlives a kernel: memory, or a real folder."""
    return MemoryFolder() if request.param == "memory" else tmp_path / ".keel"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def boot(folder, clock):
    """Starts the next kernel on the same folder; all of them are ended afterwards."""
    made = []

    def start(**options):
        kernel = Kernel(folder, clock=clock, **options)
        made.append(kernel)
        return kernel

    yield start
    for kernel in made:
        kernel.journal.close(clean=True)
    host.install(None)

"""Fixtures that start real kernels."""

import pytest
from hypothesis import HealthCheck, settings

from tests.crash.shells import Zygote
from tests.support.forks import Book
from tests.support.notebook import Notebook

# How long an example takes to make says more about the machine than about the strategy.
settings.register_profile("shared machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared machine")


@pytest.fixture
def notebook(tmp_path):
    """Makes notebooks in a folder of their own, and ends their kernels."""
    made = []

    def make(cells, **options):
        book = Notebook(tmp_path, cells, **options)
        made.append(book)
        return book

    yield make
    for book in made:
        book.close()


@pytest.fixture(scope="session")
def warm_process():
    """A process that forks shells."""
    process = Zygote()
    yield process
    process.close()


@pytest.fixture
def book(tmp_path, warm_process):
    """Makes notebooks whose runs are shells of their own, each in a process of its own, without a kernel."""
    return lambda cells: Book(warm_process, tmp_path, cells)

"""Fixtures that start real kernels."""

import compileall
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.crash.shells import Zygote
from tests.support.forks import Book
from tests.support.notebook import Notebook

# How long an example takes to make says more about the machine than about the strategy.
settings.register_profile("shared machine", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("shared machine")
_NOT_KEPT = pytest.StashKey[bool]()


def pytest_configure(config):
    """Compile the package once, as an installer does.

    Where ``PYTHONDONTWRITEBYTECODE`` is set, as in many images, each of a thousand kernels, shells and commands would
    compile it for itself: that is four times what the first step of a kernel costs. And each process of pytest would
    compile all tests: those are kept while they are collected. What tests import from their own folders is not: an
    edit of the same second and size would run as before.
    """
    config.stash[_NOT_KEPT] = sys.dont_write_bytecode
    sys.dont_write_bytecode = False
    if not hasattr(config, "workerinput"):  # else the process that started this one has done it
        compileall.compile_dir(Path(__file__).parents[1] / "keel_notebook", quiet=1)


def pytest_collection_finish(session):
    """All tests are imported."""
    sys.dont_write_bytecode = session.config.stash[_NOT_KEPT]


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

"""Fixtures that start real kernels."""

import pytest

from tests.support.notebook import Notebook


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

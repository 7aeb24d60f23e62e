"""Every journal that a test opens in this process ends with the test."""

from collections.abc import Iterator

import pytest

from tests.journal import journals


@pytest.fixture(autouse=True)
def no_journal_outlives_its_test() -> Iterator[None]:
    yield
    while journals.OPENED:
        journals.OPENED.pop().close(clean=True)

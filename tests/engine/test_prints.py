"""A function of a library that holds nothing is its own fingerprint: it is not digested again before every call."""

import functools
import io
import math

import pytest
from IPython.core.interactiveshell import _modified_open

from keel_notebook.engine.prints import still


def plain(x, y=1):
    return x


@functools.wraps(plain)
def wrapper(*args):
    return plain(*args)


@functools.wraps(plain)
def marked(*args):
    return plain(*args)


marked.seen = []


def closing(x):
    return lambda: x


def holds_a_list(x, y=[]):  # noqa: B006 - the case itself
    return x


def by_name(*, y=1):
    return y


def around_state():
    return 1


around_state.__wrapped__ = holds_a_list


@pytest.mark.parametrize("function", [plain, wrapper, _modified_open, io.open, math.sqrt])
def test_what_holds_nothing_is_still(function):
    assert still(function)


@pytest.mark.parametrize("function", [marked, closing([]), holds_a_list, by_name, around_state, [], dict])
def test_what_may_change_without_being_another_object_is_not(function):
    assert not still(function)

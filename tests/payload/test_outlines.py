"""Values without a digest: what of them can be compared (DESIGN 5, *Undigestible values*; traps 3)."""

import sqlite3
import sys
import threading
import types

import pytest


@pytest.fixture
def library():
    """An installed library whose client holds a lock, and changes by being used."""
    module = types.ModuleType("httpclient")
    exec(
        "import threading\n"
        "class Client:\n"
        "    def __init__(self): self.lock = threading.Lock(); self.cookies = []\n"
        "class Options:\n"
        "    def __init__(self, n): self.n = n\n",
        module.__dict__,
    )
    sys.modules["httpclient"] = module
    yield module
    del sys.modules["httpclient"]


def test_objects_of_libraries_count_by_type_alone(kernel, library):
    client = library.Client()
    assert kernel.digest(client).digest is None
    fresh = kernel.digester.outline(client)
    assert fresh.weak
    client.cookies.append("used")
    assert kernel.digester.outline(client).digest == fresh.digest
    with sqlite3.connect(":memory:") as connection:
        other = kernel.digester.outline(connection)
    connection.close()
    assert None is not other.digest != fresh.digest


def test_objects_of_the_notebook_count_also_by_their_attributes(kernel, library):
    kernel.run("class Service:\n    def __init__(self, client, model): self.client, self.model = client, model")
    make = kernel.space["Service"]
    one, other = (kernel.digester.outline(make(library.Client(), model)) for model in ("m1", "m2"))
    assert one.weak
    assert None is not one.digest != other.digest
    assert kernel.digester.outline(make(library.Client(), "m1")).digest == one.digest
    assert kernel.digester.outline([library.Options(1)]).digest != kernel.digester.outline([library.Options(2)]).digest


def test_objects_of_local_modules_too(kernel, library):
    kernel.cells.modules["httpclient"] = kernel.cells.module("httpclient")
    client = library.Client()
    before = kernel.digester.outline(client).digest
    client.cookies.append("x")
    assert kernel.digester.outline(client).digest != before


def test_generators_and_what_holds_them_stay_unknown(kernel):
    assert kernel.digester.outline([1, (i for i in ())]).reason == "[1] (generator)"
    assert kernel.digester.outline({"lock": threading.Lock()}).digest is not None


def test_what_has_a_digest_has_an_outline_that_is_not_weak(kernel):
    assert not kernel.digester.outline({"a": [1, {2, 3}]}).weak

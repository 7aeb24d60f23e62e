"""A promise made in a step is a value like any other: it comes back, and can be asked and waited for."""

import pytest

pytestmark = pytest.mark.crash

CELLS = """
import keel_notebook as keel
# ---
%%keel_step ask
hit("ask"); p = keel.promise("approve"); open("token", "w").write(p.token); waiting = {"for": [p]}
# ---
%%keel_step look
hit("look"); name = p.name
# ---
from keel_notebook.engine.host import installed
from keel_notebook.engine.waits import resolve
parts = installed().calls(needed=True).parts
print(name, p is waiting["for"][0], p.peek(), p.token is None, p.claim_notice())
"""
ANSWER = 'resolve(parts.journal, parts.clock, promise_id=p.id, token=open("token").read(), value="yes")'


def test_a_promise_comes_back_and_is_answered(book):
    notebook = book(CELLS)
    assert notebook.shows() == "approve True None False True"
    assert notebook.shows() == "approve True None True False", "the notice was claimed"
    assert notebook.shows(ANSWER, "print(p.result(timeout=5))") == "yes"
    assert notebook.shows("print(p.result(timeout=5), p)").startswith("yes <keel.Promise approve ")
    assert notebook.hits == "ask look"
    token = (notebook.folder / "token").read_bytes()
    kept = [path for path in (notebook.folder / ".keel").rglob("*") if path.is_file()]
    assert not any(token in path.read_bytes() for path in kept), "never the token (Z30)"

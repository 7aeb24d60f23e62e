"""What a person gives to ``keel.call`` and its like by mistake is refused in words, and nothing is recorded of it."""

import traceback

import pytest

import keel_notebook as keel
from keel_notebook.core.model import Kind

ASK = "def ask(x): return x + 1\n"

MISTAKES = [
    ("keel.map(range(10), ask)", TypeError, "keel.map takes a function first, and this is of type range: keel.map(fn,"),
    ("keel.map(ask, 5)", TypeError, "keel.map goes through items, and a value of type int has none: keel.map("),
    ("keel.call(ask(3))", TypeError, "keel.call takes a function first, and this is of type int: keel.call(fn, *args)"),
    ("keel.defer(ask(3))", TypeError, "keel.defer takes a function first"),
    ("keel.durable(ask(3))", TypeError, "keel.durable takes a function first"),
    ("keel.undo(ask(3))", TypeError, "keel.undo takes a function first"),
    ("keel.loop(5, state=['x'])", TypeError, "keel.loop goes through items"),
    ("await_(keel.gather(ask(3)))", TypeError, "keel.gather goes through items"),
    ("await_(keel.gather(ask(3), ask(4)))", TypeError, "keel.gather takes what can be awaited, not a value of type"),
    ("await_(keel.gather([ask(3)]))", TypeError, "keel.gather takes what can be awaited, not a value of type"),
    ("keel.sleep(-1)", ValueError, "keel.sleep takes 0 seconds or more, not -1"),
    ("keel.sleep(float('nan'))", ValueError, "keel.sleep takes 0 seconds or more"),
    ("keel.sleep(None)", TypeError, 'keel.sleep takes seconds or a text like "2h", not a value of type NoneType'),
    ("await_(keel.asleep(-0.5))", ValueError, "keel.asleep takes 0 seconds or more, not -0.5"),
]  # fmt: skip


def await_(awaitable):
    """What a cell's top-level ``await`` does with something that ends at once."""
    awaitable.send(None)


@pytest.mark.parametrize(("line", "kind", "said"), MISTAKES)
def test_a_mistake_is_said_in_words_at_the_persons_own_line(boot, line, kind, said):
    kernel = boot()
    kernel.names["await_"] = await_
    with pytest.raises(kind) as raised:
        kernel.step("s", ASK + line, end=False)
    assert said in str(raised.value)
    shown = [frame for frame, _ in traceback.walk_tb(raised.tb) if "__tracebackhide__" not in frame.f_locals]
    assert "/keel_notebook/" not in shown[-1].f_code.co_filename, "keel's own frames are none of the person's business"
    assert not kernel.entries(Kind.CALL)
    assert not kernel.entries(Kind.SLEEP)


@pytest.mark.parametrize(("line", "kind", "said"), MISTAKES)
def test_so_it_is_where_nothing_is_recorded(line, kind, said):
    space = {"keel": keel, "await_": await_}
    exec(ASK, space)
    with pytest.raises(kind) as raised:
        exec(line, space)
    assert said in str(raised.value)


def test_what_can_be_gone_through_and_called_still_is(boot):
    class Old:
        def __getitem__(self, at):
            return [1, 2][at]

    space = boot()
    space.names["old"] = Old()
    space.step("s", "out = keel.map(str, old); keel.sleep(0)")
    assert space.names["out"] == ["1", "2"]

"""Durable calls: found by step, key and occurrence; valid by function and arguments (DESIGN 5; C71, C74, C77)."""

# ruff: noqa: E501 - a cell that is given to a kernel is one text

import pytest

from keel_notebook.core.decide import Mode
from keel_notebook.core.lifecycle import FORGET, RERUN
from keel_notebook.core.model import Kind, Status
from keel_notebook.errors import DivergenceError

# What was paid is counted in a module, so that it is no value that ``ask`` reads.
ASK = """
import keel_paid
MODEL = "m1"
def ask(prompt):
    keel_paid.calls.append(prompt)
    return f"{MODEL}: {prompt}"
"""


@pytest.fixture(autouse=True)
def paid(monkeypatch):
    """What was really called, in order, outside of keel's sight."""
    import sys
    import types

    module = types.ModuleType("keel_paid")
    module.calls = []
    monkeypatch.setitem(sys.modules, "keel_paid", module)
    return module.calls


def asked(kernel, cell, prompts, **options):
    kernel.names["prompts"] = prompts
    kernel.step("evals", cell, **options)
    return kernel.names["out"]


EACH = "out = [keel.call(ask, p) for p in prompts]"


def test_a_recorded_call_is_given_back_and_its_function_is_not_called(boot, paid):
    first = boot()
    first.run(ASK)
    assert asked(first, EACH, ["a", "b"], end=False) == ["m1: a", "m1: b"]
    first.kill()
    second = boot()
    second.run(ASK)
    assert asked(second, EACH, ["a", "b"]) == ["m1: a", "m1: b"]
    assert paid == ["a", "b"]


def test_c71_a_loop_killed_anywhere_pays_for_exactly_the_missing_ones(boot, paid):
    for dead_after in (0, 3, 7):
        kernel = boot()
        kernel.run(ASK)
        asked(kernel, EACH, [str(n) for n in range(dead_after)], end=False)
        kernel.kill()
    kernel = boot()
    kernel.run(ASK)
    assert len(asked(kernel, EACH, [str(n) for n in range(10)])) == 10
    assert paid == [str(n) for n in range(10)]


def test_one_prompt_inserted_at_the_head_of_a_thousand_costs_one(boot, paid):
    prompts = [f"p{n}" for n in range(1_000)]
    first = boot()
    first.run(ASK)
    asked(first, EACH, prompts)
    first.kill()
    del paid[:]
    second = boot()
    second.run(ASK)
    out = asked(second, EACH, ["new", *prompts], identity="other inputs")
    assert paid == ["new"]
    assert out[0] == "m1: new"
    assert out[-1] == "m1: p999"


def test_c77_an_edited_model_that_the_function_reads_costs_all_and_going_back_costs_none(boot, paid):
    for model, wanted in (("m1", 3), ("m2", 3), ("m1", 0)):
        kernel = boot()
        kernel.run(ASK.replace('"m1"', f'"{model}"'))
        assert asked(kernel, EACH, ["a", "b", "c"]) == [f"{model}: {p}" for p in "abc"]
        assert len(paid) == wanted
        del paid[:]
        kernel.kill()


def test_a_value_that_is_rebound_or_changed_between_two_calls_is_seen(boot, paid):
    kernel = boot()
    kernel.run(
        "cfg = {'m': 1}\nN = 1\nimport keel_paid\ndef ask(p):\n    keel_paid.calls.append(p)\n    return p * cfg['m'] * N\n"
    )
    for change, wanted in (("", 2), ("cfg['m'] = 3", 6), ("N = 5", 30), ("cfg['m'] = 1; N = 1", 2)):
        kernel.run(change)
        kernel.step("s", "out = keel.call(ask, 2)")
        assert kernel.names["out"] == wanted
    assert paid == [2, 2, 2], "the last one is the first one again"


def test_a_change_in_the_code_of_a_function_that_the_function_calls_is_seen(boot, paid):
    kernel = boot()
    kernel.run(ASK)
    kernel.run("def outer(p):\n    return ask(p)\n")
    kernel.step("s", "out = keel.call(outer, 'x')")
    kernel.run(ASK.replace('f"{MODEL}: {prompt}"', "prompt"))
    kernel.step("s", "out = keel.call(outer, 'x')")
    assert kernel.names["out"] == "x"
    kernel.run("# a comment\n" + ASK.replace('f"{MODEL}: {prompt}"', "prompt  # and another"))
    kernel.step("s", "out = keel.call(outer, 'x')")
    assert paid == ["x", "x"]


def test_the_same_call_made_three_times_has_three_results(boot, paid):
    cell = "out = [keel.call(draw) for _ in range(3)]"
    source = "import keel_paid\ndef draw():\n    keel_paid.calls.append(1)\n    return len(keel_paid.calls)\n"
    first = boot()
    first.run(source)
    first.step("s", cell)
    first.kill()
    second = boot()
    second.run(source)
    second.step("s", cell)
    assert second.names["out"] == [1, 2, 3]
    assert [(e.key, e.occurrence) for e in second.entries()] == [(second.entries()[0].key, n) for n in (1, 2, 3)]


def test_a_key_names_and_does_not_vouch_unless_it_is_trusted(boot, paid):
    kernel = boot()
    kernel.run(ASK)
    for prompt in ("a", "b"):
        kernel.step("s", f"out = keel.call(ask, {prompt!r}, key='k')")
        assert kernel.names["out"] == f"m1: {prompt}"
    kernel.step("s", "out = keel.call(ask, 'c', key='k', trust_key=True)")
    assert kernel.names["out"] == "m1: b", "the newest under the key"
    assert paid == ["a", "b"]


def test_lambdas_of_a_loop_are_found_by_their_key(boot, paid):
    cell = "import keel_paid\nout = [keel.call(lambda i=i: (keel_paid.calls.append(i), i * i)[1], key=i) for i in range(10)]"
    for _ in range(2):
        kernel = boot()
        kernel.step("evals", cell, end=False)
        assert kernel.names["out"] == [n * n for n in range(10)]
        kernel.kill()
    assert paid == list(range(10))


@pytest.mark.parametrize(("word", "calls"), [(RERUN, 4), (FORGET, 4), ("revive", 2)])
def test_rerun_and_forget_reject_the_calls_of_a_step_too(boot, paid, word, calls):
    kernel = boot()
    kernel.run(ASK)
    asked(kernel, EACH, ["a", "b"])
    kernel.mark("evals", Kind.RETIRE, word)
    asked(kernel, EACH, ["a", "b"])
    asked(kernel, EACH, ["a", "b"])
    assert len(paid) == calls


def test_a_failed_call_is_recorded_raised_as_it_is_and_made_again(boot, paid):
    kernel = boot()
    kernel.run("import keel_paid\ndef f(x):\n    keel_paid.calls.append(x)\n    raise LookupError('x')\n")
    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            kernel.step("s", "keel.call(f, 1, key='item 3')")
        assert "key item 3" in caught.value.__notes__[0]
    assert paid == [1, 1]
    assert [entry.status for entry in kernel.entries()] == [Status.FAILED] * 2
    assert kernel.entries()[0].error.type == "LookupError"
    assert not kernel.said, "it is no record that cannot be read: it is none"


def test_a_kept_failure_is_falsy_and_never_replayed_as_a_success(boot, paid):
    source = "import keel_paid\ndef f(x):\n    keel_paid.calls.append(x)\n    if len(keel_paid.calls) == 1: raise OSError\n    return x\n"
    kernel = boot()
    kernel.run(source)
    kernel.step("s", "out = keel.call(f, 1, on_error='keep')")
    assert not kernel.names["out"]
    assert kernel.names["out"].type == "OSError"
    kernel.step("s", "out = keel.call(f, 1, on_error='keep')")
    assert kernel.names["out"] == 1


def test_an_interrupt_records_nothing_and_the_call_is_made_again(boot, paid):
    kernel = boot()
    kernel.run(
        "import keel_paid\ndef f():\n    keel_paid.calls.append(1)\n    if len(keel_paid.calls) == 1: raise KeyboardInterrupt\n    return 7\n"
    )
    with pytest.raises(KeyboardInterrupt):
        kernel.step("s", "out = keel.call(f)")
    kernel.step("s", "out = keel.call(f)")
    assert kernel.names["out"] == 7
    assert [entry.status for entry in kernel.entries()] == [Status.OK]


def test_calls_inside_a_call_have_places_of_their_own(boot, paid):
    source = """
    import keel_paid
    def inner(x):
        keel_paid.calls.append(x)
        return len(keel_paid.calls)
    def outer(x):
        return keel.call(inner, x), keel.call(inner, x)
    """
    cell = "out = keel.call(outer, 1), keel.call(inner, 1)"
    first = boot()
    first.run(source)
    first.step("s", cell)
    was = first.names["out"]
    first.kill()
    second = boot()
    second.run(source)
    second.step("s", cell)
    assert second.names["out"] == was == ((1, 2), 3)
    assert len(second.entries()) == 4


def test_replay_mode_gives_what_is_recorded_and_refuses_the_rest_with_e031(boot, paid):
    first = boot()
    first.run(ASK)
    asked(first, EACH, ["a"])
    first.kill()
    second = boot(mode=Mode.REPLAY)
    second.run(ASK)
    assert asked(second, EACH, ["a"]) == ["m1: a"]
    with pytest.raises(DivergenceError, match="no record") as refused:
        asked(second, EACH, ["b"])
    assert "KEEL_MODE=replay" in refused.value.report()
    assert "%keel" not in refused.value.report().replace("%config Keel", ""), "no wish helps there"
    assert paid == ["a"]


def test_what_cannot_be_compared_runs_every_time_and_says_so_once(boot, paid):
    kernel = boot()
    kernel.run("import keel_paid\ndef f(g):\n    keel_paid.calls.append(1)\n    return 1\n")
    for _ in range(2):
        kernel.step("s", "for _ in range(2):\n    keel.call(f, (i for i in ()), key=1)")
    assert len(paid) == 4
    assert len([line for line in kernel.said if "runs every time" in line]) == 2, "once for each run of the cell"


def test_a_result_that_cannot_be_stored_is_given_and_the_call_is_made_again(boot, paid):
    kernel = boot()
    kernel.run("import keel_paid, threading\ndef f():\n    keel_paid.calls.append(1)\n    return threading.Lock()\n")
    kernel.step("s", "out = keel.call(f)")
    assert hasattr(kernel.names["out"], "acquire")
    kernel.step("s", "out = keel.call(f)")
    assert len(paid) == 2
    assert "not stored" in kernel.said[0]


@pytest.mark.parametrize(
    "value", ["'x' * 3_000_000", "list(range(400_000))", "(1, 2)", "{3, 4}", "{'a': [1.5, None]}", "10**30", "b'\\0'"]
)
def test_results_of_any_kind_and_size_come_back_equal_and_of_the_same_type(boot, value):
    first = boot()
    first.run(f"def f():\n    return {value}\n")
    first.step("s", "out = keel.call(f)")
    first.kill()
    second = boot()
    second.run(f"def f():\n    return {value}\n")
    second.step("s", "out = keel.call(f)")
    assert second.names["out"] == first.names["out"]
    assert type(second.names["out"]) is type(first.names["out"])
    assert len(second.entries()) == 1


def test_a_result_larger_than_a_mebibyte_is_an_object_of_its_own(boot):
    kernel = boot()
    kernel.run("def f():\n    return 'x' * 3_000_000\n")
    kernel.step("s", "keel.call(f)")
    assert kernel.entries()[0].payload.head.object is not None


def test_aliases_inside_a_result_survive(boot):
    source = "def f():\n    row = [1]\n    return [row, row]\n"
    for _ in range(2):
        kernel = boot()
        kernel.run(source)
        kernel.step("s", "out = keel.call(f)")
        assert kernel.names["out"][0] is kernel.names["out"][1]
        kernel.kill()


def test_an_implicit_step_serves_calls_outside_of_steps(boot, paid):
    for _ in range(2):
        kernel = boot()
        kernel.run(ASK)
        kernel.step("cell-7", "out = keel.call(ask, 'x')", resumed=())
        kernel.kill()
    assert paid == ["x"]


def test_without_keel_calls_run_plainly(paid):
    import keel_notebook.api as keel
    from keel_notebook.engine import host

    host.install(None)
    assert keel.call(lambda x, y=0: x + y, 1, y=2) == 3
    assert keel.map(lambda x: x + 1, [1, 2]) == [2, 3]
    assert list(keel.loop(range(2), state=["x"])) == [0, 1]
    assert keel.uuid4().version == 4


@pytest.mark.parametrize(
    "result",
    [
        "'sk-abcdef0123456789abcdef'",
        "{'user': 'me', 'password': 'hunter22'}",
        "['ok', 'ghp_' + 'a1' * 12]",
        "('x', 'sk-abcdef0123456789abcdef')",
    ],
)
def test_c103_a_result_that_looks_like_a_credential_is_never_written_and_the_call_is_made_again(boot, paid, result):
    kernel = boot()
    kernel.run(f"import keel_paid\ndef f():\n    keel_paid.calls.append(1)\n    return {result}\n")
    for _ in range(2):
        kernel.step("s", "out = keel.call(f)")
    assert kernel.names["out"] == eval(result)
    assert len(paid) == 2
    for entry in kernel.entries():
        raw = kernel.journal.read(entry.payload.head)
        assert not any(word in raw for word in (b"sk-abc", b"hunter22", b"ghp_a1"))
    assert "credential" in kernel.said[0]


def test_c103_a_function_that_is_named_for_its_secret_is_believed(boot, paid):
    kernel = boot()
    kernel.run("def get_api_key():\n    return 'correct horse'\n")
    kernel.step("s", "out = keel.call(get_api_key)")
    assert b"horse" not in kernel.journal.read(kernel.entries()[0].payload.head)

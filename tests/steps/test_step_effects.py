"""Steps that must not happen twice: `%%keel_step --effect …` (Z4, Z15, Z19-Z23, O14; DESIGN 3.1, 5)."""

import pytest

from keel_notebook.core.model import Kind, Status
from keel_notebook.errors import DiskFullError

PAY = """%%keel_step pay --effect exactly_once {more}
hit("paid")
if die: raise SystemExit("killed")
receipt = amount * 10
"""


def pay(more=""):
    return PAY.format(more=more)


def died_while_paying(book, more=""):
    """The kernel vanishes inside the body: an intent stands and nobody knows how it ended."""
    book.ok("amount, die = 5, False")
    book.dies_in(pay(more))
    book.ok("amount, die = 5, False")


def test_z4_the_intent_is_synced_before_the_body_and_the_result_before_the_reply(book):
    synced = []
    journal = book.session.attached().journal.inner
    append = journal.append
    journal.append = lambda entry, *, synced=False: (seen.append((str(entry.kind), str(entry.status), synced)), append(entry, synced=synced))  # fmt: skip  # noqa: E501
    seen = []
    book.ok("amount, die = 5, False")
    book.shell.user_ns["look"] = lambda: synced.extend(seen)
    book.ok(pay() + "look()\n")
    assert ("step", "intent", True) in synced, "acknowledged before the body runs"
    assert ("step", "ok", True) in seen
    [entry] = book.entries()
    assert (entry.effect, entry.status, entry.fence) == ("exactly_once", Status.OK, 1)


def test_z15_a_committed_step_is_not_fired_again_by_a_rerun_a_death_or_a_lost_value(book):
    book.ok("amount, die = 5, False")
    book.ok(pay())
    book.again("amount, die = 5, False", pay())
    assert (book["receipt"], book.hits) == (50, ["paid"])
    book.ok("%keel rerun pay")
    assert "--new-key" in book.ok(pay()).err
    book.ok("%keel forget pay")
    assert "does not happen again" in book.ok(pay()).err
    assert book.hits == ["paid"]


def test_z15_edited_code_with_the_same_inputs_is_refused_and_a_new_key_fires(book):
    book.ok("amount, die = 5, False")
    book.ok(pay())
    edited = pay() + "note = 'edited'\n"
    refused = book.run(edited)
    assert (refused.code, book.hits) == ("E031", ["paid"])
    assert "only its code differs" in str(refused.error)
    assert "`%keel rerun pay --new-key` does it again" in refused.error.report()
    assert "accept" not in refused.error.report(), "what does not help is not advised"
    for wish in ("%keel rerun pay", "%keel accept pay", "%keel forget pay"):
        assert "`%keel rerun pay --new-key` does it again" in str(book.ok(wish).result), "it has no effect, and says so"
        assert book.run(edited).code == "E031"
    book.ok("%keel rerun pay --new-key")
    book.ok(edited)
    assert book.hits == ["paid", "paid"]
    book.again("amount, die = 5, False", edited)
    assert book.hits == ["paid", "paid"], "the new key holds for good"


def test_other_inputs_are_another_effect_and_that_is_said_before_it_fires(book):
    book.ok("amount, die = 5, False")
    book.ok(pay())
    book.ok("amount = 7")
    assert "pay executes: input amount 5 -> 7" in book.ok(pay()).err
    book.ok("amount = 5")
    assert book.ok(pay()).err == "", "that one is done as well: its own record comes back"
    assert (book["receipt"], book.hits) == (50, ["paid", "paid"])


@pytest.mark.parametrize(("effect", "way_out"), [("exactly_once", " --new-key"), ("at_least_once", "")])
def test_the_way_out_of_a_difference_that_stops_a_guarded_step_is_one_that_works(book, effect, way_out):
    book.ok("amount = 5")
    cell = f"%%keel_step pay --effect {effect} --on-divergence fail\nhit(amount)\n"
    book.ok(cell)
    book.ok("amount = 7")
    refused = book.run(cell)
    assert refused.code == "E031"
    assert f"`%keel rerun pay{way_out}`" in refused.error.report()
    assert "nothing is accepted" in str(book.ok("%keel accept pay").result)
    book.ok(f"%keel rerun pay{way_out}")
    book.ok(cell)
    assert book.hits == ["5", "7"]


def test_in_replay_mode_no_wish_is_advised(book, monkeypatch):
    monkeypatch.setattr(book.session.settings, "mode", "replay")
    refused = book.run("%%keel_step fit\n1\n")
    assert refused.code == "E031"
    assert "KEEL_MODE" in refused.error.report()
    assert "%keel rerun" not in refused.error.report()


def test_a_step_that_nobody_knows_is_the_same_error_whatever_is_asked(book):
    book.ok("%%keel_step fit\n1\n")
    for line in ("forget", "revive", "rerun", "accept", "why", "diff"):
        unknown = book.run(f"%keel {line} fot")
        assert unknown.code == "E002", line
        assert "did you mean fit?" in str(unknown.error)


def test_with_a_key_of_its_own_a_committed_result_comes_back_whatever_differs_and_says_so(book):
    book.ok("amount, die = 5, False")
    book.ok(pay("--key order-1"))
    book.ok("amount = 7")
    assert "does not happen again" in book.ok(pay("--key order-1") + "#\nmore = 1\n").err
    assert (book["receipt"], book.hits) == (50, ["paid"])
    book.ok(pay("--key order-2"))
    assert book.hits == ["paid", "paid"]


def test_z20_z21_without_a_word_an_intent_without_a_result_stops_and_fires_nothing(book):
    died_while_paying(book)
    for _ in range(2):
        refused = book.run(pay())
        assert (refused.code, book.hits) == ("E060", ["paid"])
        assert "begun in run 1" in str(refused.error)
    assert book.entries(Kind.AUDIT) == []


def test_z21_z22_skip_takes_it_as_done_is_audited_once_and_leaves_no_old_value(book):
    died_while_paying(book)
    book.shell.user_ns["receipt"] = "older"
    for _ in range(2):
        assert "nothing ran" in book.ok(pay("--on-ambiguous skip")).err
        assert "receipt" not in book.shell.user_ns
    assert book.run("receipt").code == "E020"
    [audit] = book.entries(Kind.AUDIT)
    assert (audit.ambient["on_ambiguous"], audit.payload) == ("skip", None)
    assert len(audit.ambient["idempotency_key"]) == 16, "the first 8 bytes, in hex"
    assert book.hits == ["paid"]
    assert book.ok("%keel").result is not None


def test_z21_z23_rerun_fires_again_under_the_same_key_without_a_second_intent(book):
    body = "%%keel_step pay --effect exactly_once --on-ambiguous rerun\nhit(keel.idempotency_key())\n"
    book.dies_in(body)
    book.ok("1")
    journal = book.session.attached().journal.inner
    written, append = [], journal.append
    journal.append = lambda entry, **how: (written.append((entry.kind, entry.status)), append(entry, **how))
    book.ok(body)
    written = [one for one in written if one[0] is not Kind.PLAIN]
    assert written == [(Kind.AUDIT, Status.OK), (Kind.STEP, Status.OK)], "the intent that stands is its own, too"
    book.ok(body)
    first, second = book.hits
    assert first == second, "one key in every attempt (K40)"
    assert [e.status for e in book.entries()] == [Status.INTENT, Status.OK]
    [entry] = [e for e in book.entries() if e.status is Status.OK]
    assert entry.idempotency_key == first
    assert len(book.entries(Kind.AUDIT)) == 1


def test_an_ambiguous_step_that_keeps_killing_its_kernel_is_dead_at_the_cap(book):
    died_while_paying(book, "--on-ambiguous rerun")
    for _ in range(2):
        book.dies_in(pay("--on-ambiguous rerun")).ok("amount, die = 5, False")
    assert book.run(pay("--on-ambiguous rerun")).code == "E032"
    assert book.hits == ["paid"] * 3


def test_a_failed_guarded_step_runs_again_under_its_key_and_an_interrupted_one_is_ambiguous(book):
    book.ok("boom = RuntimeError('503')")
    cell = "%%keel_step pay --effect exactly_once --ignore boom\nhit(keel.idempotency_key())\nif boom: raise boom\n"
    assert isinstance(book.run(cell).error, RuntimeError)
    book.ok("boom = None")
    book.ok(cell)
    assert len(book.hits) == 2
    assert len(set(book.hits)) == 1
    book.ok("boom = KeyboardInterrupt()")
    stop = cell.replace("pay", "mail")
    book.run(stop)
    book.ok("boom = None")
    assert book.run(stop).code == "E060", "nobody knows how far it came"


def test_z19_at_least_once_runs_again_after_a_death_under_the_lease_and_its_class_is_recorded(book):
    cell = "%%keel_step mail --effect at_least_once\nhit('mailed')\n"
    book.dies_in(cell)
    book.ok(cell)
    book.ok(cell)
    assert book.hits == ["mailed", "mailed"]
    assert [e.effect for e in book.entries()] == ["at_least_once"] * 2


def test_k42_without_a_journal_guarded_steps_refuse_and_idempotent_ones_go_on(book, monkeypatch):
    book.shutdown()
    (book.folder / "taken").write_text("a file stands where the journal should be")
    monkeypatch.setenv("KEEL_JOURNAL", str(book.folder / "taken"))
    book.boot()
    refused = book.run("%%keel_step pay --effect exactly_once\nhit('paid')\n")
    assert (refused.code, book.hits) == ("E054", [])
    assert "not durable" in book.ok("%%keel_step fit\nhit('fit')\n").err
    assert book.hits == ["fit"]


def test_a_journal_that_cannot_take_the_intent_stops_a_guarded_step_before_its_body(book, monkeypatch):
    book.ok("1")
    journal = book.session.attached().journal.inner

    def full(entry, *, synced=False):
        raise DiskFullError(journal="j", detail="no room")

    monkeypatch.setattr(journal, "append", full)
    assert book.run("%%keel_step pay --effect exactly_once\nhit('paid')\n").code == "E053"
    assert "not durable" in book.ok("%%keel_step fit\nhit('fit')\n").err
    assert book.hits == ["fit"]


def test_where_nobody_tells_which_notebook_runs_guarded_steps_refuse_until_the_flow_is_named(book, monkeypatch):
    book.shutdown()
    monkeypatch.delenv("JPY_SESSION_NAME")
    book.boot()
    cell = "%%keel_step pay --effect exactly_once\nhit('paid')\n"
    refused = book.run(cell)
    assert (refused.code, book.hits) == ("E006", [])
    assert "%keel flow NAME" in str(refused.error)
    book.ok("%keel flow orders")
    book.ok(cell)
    assert book.hits == ["paid"]


def test_a_copy_of_a_notebook_asks_before_it_does_what_the_original_did(book, monkeypatch):
    (book.folder / "a.ipynb").write_text("{}")
    cell = "%%keel_step pay --effect exactly_once\nhit('paid')\n"
    book.ok(cell)
    book.shutdown()
    monkeypatch.setenv("JPY_SESSION_NAME", str(book.folder / "copy.ipynb"))
    book.boot()
    refused = book.run(cell)
    assert (refused.code, book.hits) == ("E060", ["paid"])
    book.ok("%keel rerun pay --new-key")
    book.ok(cell)
    assert book.hits == ["paid", "paid"]


@pytest.mark.parametrize(
    "line",
    ["--on-ambiguous skip", "--kind money", "--always --effect exactly_once", "--effect at_least_once --kind cost"],
)
def test_options_that_contradict_each_other_are_refused(book, line):
    assert book.run(f"%%keel_step pay {line}\nhit('paid')\n").code == "E001"
    assert book.hits == []


def test_a_guarded_step_inside_another_cell_is_refused(book):
    book.run("%%capture\nget_ipython().run_cell_magic('keel_step', 'pay --effect exactly_once', 'hit(1)')\n")
    assert book.hits == []


def test_o16_the_lease_is_held_when_the_intent_is_written(book):
    book.ok("1")
    journal = book.session.attached().journal.inner
    append, held = journal.append, []

    def watched(entry, *, synced=False):
        if entry.status is Status.INTENT:
            guard = book.session.leader().calls_of_flow().parts.guard
            seen = guard._lease.seen()
            held.append((guard._lease.held, seen.holder is not None, seen.fence == entry.fence > 0))
        append(entry, synced=synced)

    journal.append = watched
    book.ok("%%keel_step pay --effect exactly_once\npaid = 1\n")
    book.ok("def f(i): return i")
    book.ok("%%keel_step t\nkeel.call(f, 1, effect='exactly_once')\n")
    assert held == [(True, True, True)] * 2

"""Taking back what steps did: `%%keel_undo`, ``keel.undo``, `%keel undo` (O26-O28)."""

import pytest

from keel_notebook.core.model import Kind, Status
from keel_notebook.core.undo import BY_HAND
from keel_notebook.engine import undoing
from tests.steps.conftest import Vanished

STEPS = [f"%%keel_step s{i}\nv{i} = {i}\nhit('do{i}')\n" for i in (1, 2, 3)]
UNDOS = [f"%%keel_undo s{i}\nhit(f'undo{{v{i}}}')\n" for i in (1, 2, 3)]
CELLS = [cell for pair in zip(STEPS, UNDOS, strict=True) for cell in pair]
DONE = ["do1", "do2", "do3"]


def run(book, cells=CELLS):
    for cell in cells:
        book.ok(cell)


def status(book):
    return [e.ambient["status"] for e in book.entries(Kind.MARKER) if "undo" in e.ambient]


def test_o26_undos_run_last_first_each_a_journaled_step_and_none_twice(book):
    run(book)
    said = book.ok("%keel undo").out
    assert book.hits == [*DONE, "undo3", "undo2", "undo1"]
    assert "s3" in said
    journaled = [(e.step, e.status) for e in book.entries(Kind.UNDO) if e.step.startswith("undo:")]
    assert journaled == [(f"undo:s{i}", Status.OK) for i in (3, 2, 1)]
    assert status(book) == ["compensating", "failed"]
    assert "nothing to undo" in str(book.ok("%keel undo").result)
    run(book)
    assert book.hits[6:] == DONE, "an undone step executes when it is wanted again"


def test_o26_an_undo_is_bound_again_at_a_replay_with_the_value_that_was_journaled(book):
    cell = "%%keel_step order\nids = [7, 8]\nfor i in ids: keel.undo(cancel, i)\nids.append(9)\n"
    book.ok("def cancel(i): hit(f'cancel{i}')")
    book.ok(cell)
    book.again("def cancel(i): hit(f'cancel{i}')", cell)
    book.ok("%keel undo order")
    assert book.hits == ["cancel8", "cancel7"]


def test_o26_the_order_is_that_in_which_things_happened_not_that_of_the_last_replays(book):
    pay = "%%keel_step pay --effect exactly_once\nhit('pay')\nkeel.undo(hit, 'refund')\n"
    hotel = "%%keel_step hotel\nhit('hotel')\nkeel.undo(hit, 'cancel')\n"
    for cell in (pay, hotel, pay):
        book.ok(cell)
    book.again(hotel, pay)
    book.ok("%keel undo")
    assert book.hits == ["pay", "hotel", "cancel", "refund"]


@pytest.mark.parametrize(
    ("line", "why"), [("%keel undo s1", "it was undone"), ("%keel forget s1", "its records were forgotten")]
)
def test_what_was_undone_or_forgotten_is_not_shown_as_there_and_executes_for_that_reason(book, line, why):
    run(book, CELLS[:4])
    book.again(*CELLS[:4])
    book.ok(line)
    rows = {row.name: row for row in book.ok("%keel").result.report.steps}
    assert [(row.state, row.decision, row.why) for row in [rows.get("s1")] if row] in ([], [("stale", None, why)])
    assert rows["s2"].state == "replayed"
    assert [row.why for row in book.ok("%keel plan").result.report.rows if row.step == "s1"] == [why]
    book.ok(STEPS[0])
    assert book.entries(Kind.STEP, "s1")[-1].why == why


def test_an_undone_guarded_step_happens_again_for_that_reason(book):
    pay = "%%keel_step pay --effect exactly_once\nkeel.undo(hit, 'refund')\n"
    book.ok(pay)
    book.ok("%keel undo")
    book.ok(pay)
    assert [e.why for e in book.entries(Kind.STEP, "pay")] == ["there is no record of it", "it was undone"]


def test_what_was_undone_or_forgotten_is_not_restored_and_its_name_is_listed_with_the_reason(book):
    book.ok("%%keel_step hotel\nroom = 7; keel.undo(hit, 'cancel')\n")
    book.ok("%%keel_step other\nzz = 8\n")
    book.ok("%%keel_step kept\nk = 9\n")
    book.ok("%keel undo hotel")
    book.ok("%keel forget other")
    book.kill()
    book.boot()
    report = book.session.restore()
    assert report.restored == ("k",)
    reasons = {lost.name: lost.reason for lost in report.missing}
    assert reasons["room"] == "run step hotel: it was undone"
    assert reasons["zz"] == "run step other: its records were forgotten"
    assert not {"room", "zz"} & book.shell.user_ns.keys()
    assert book.session.restore(["room", "zz"]).restored == ()
    book.session.restore(["zz"], run=True)
    assert book["zz"] == 8
    assert "room" not in book.shell.user_ns
    assert book.hits == ["cancel"]


def test_o26_registering_again_replaces_and_a_step_that_failed_can_be_undone(book):
    book.ok("def cancel(what): hit(what)")
    cell = "%%keel_step order\nkeel.undo(cancel, 'cancelled')\nraise OSError\n"
    book.run(cell)
    book.run(cell)
    book.ok("%keel undo")
    assert book.hits == ["cancelled"]
    book.ok("%%keel_step other\nx = 1\n")
    book.ok("%%keel_undo other\nhit('old')\n")
    book.ok("%%keel_undo other\nhit('new')\n")
    book.ok("%keel undo other")
    assert book.hits[-1] == "new"
    assert "old" not in book.hits


def test_o27_compensating_and_the_undo_itself_are_synced_before_the_undo_runs(book):
    seen, safe = [], []
    run(book, CELLS[:1])
    journal = book.session.attached().journal.inner
    append = journal.append

    def noted(entry, *, synced=False):
        append(entry, synced=synced)
        safe.append((entry.kind, entry.ambient.get("status", entry.step), entry.status, synced))

    book.shell.user_ns["look"] = lambda: seen.extend(status(book) + [e.step for e in book.entries(Kind.UNDO)])
    book.ok("%%keel_undo s1\nlook()\n")
    journal.append = noted
    book.ok("%keel undo")
    assert seen == ["compensating", "s1", "undo:s1"]
    assert [one for one in safe if one[0] is not Kind.PLAIN] == [
        (Kind.MARKER, "compensating", Status.OK, True), (Kind.UNDO, "undo:s1", Status.RUNNING, True),
        (Kind.UNDO, "undo:s1", Status.OK, True), (Kind.RETIRE, "s1", Status.OK, True),
        (Kind.MARKER, "failed", Status.OK, True),
    ]  # fmt: skip


def test_o27_an_undo_that_fails_says_so_stays_open_and_is_done_when_asked_again(book):
    run(book, CELLS[:4])
    book.ok("broken = True")
    book.ok("%%keel_undo s1\nif broken: raise OSError('no line')\nhit('undo1')\n")
    refused = book.run("%keel undo")
    assert refused.code == "E062"
    assert "compensate:OSError" in str(refused.error)
    assert status(book) == ["compensating"]
    assert book.run("%%keel_step s4\nhit('do4')\n").code == "E062", "nothing goes forward meanwhile"
    book.ok("broken = False")
    book.ok("%keel undo")
    assert book.hits == ["do1", "do2", "undo2", "undo1"]


def test_o27_an_undo_that_always_fails_is_taken_as_done_by_a_persons_word_and_blocks_nothing_any_more(book):
    run(book, CELLS[:4])
    book.ok("%%keel_step s3\nhit('do3')\nkeel.undo(hit, 'undo3')\nkeel.undo(lambda: 1 / 0)\n")
    refused = book.run("%keel undo")
    assert "%keel undo --skip s3" in refused.error.report()
    book.again(*CELLS[:4])  # s3 is not even back: what it needs is gone
    assert book.run("%keel undo").code == "E006"
    assert "s3" in book.ok("%keel undo --skip s3").out
    assert book.hits == [*DONE, "undo2", "undo1"]
    skipped = [e for e in book.entries(Kind.UNDO, "undo:s3") if e.status is Status.SKIPPED]
    assert [e.why for e in skipped] == [BY_HAND] * 2, "the journal says whose word it was"
    assert status(book) == ["compensating", "failed"]
    book.ok("%%keel_step s4\nhit('do4')\n")
    assert "nothing to undo" in str(book.ok("%keel undo").result)
    assert book.hits[-1] == "do4"


def test_only_what_an_undoing_left_in_the_middle_can_be_skipped(book):
    run(book, CELLS[:4])
    for line, code in (
        ("--skip s1", "E006"), ("--skip", "E001"), ("s1 --skip s2", "E001"), ("--skip --s1", "E001"), ("--all", "E001"),
    ):  # fmt: skip
        assert book.run(f"%keel undo {line}").code == code, line
    assert book.hits == ["do1", "do2"]
    book.ok("%keel undo")
    assert book.hits == ["do1", "do2", "undo2", "undo1"]


def test_o28_after_a_death_in_the_middle_steps_come_back_nothing_goes_forward_and_the_rest_is_undone(book, monkeypatch):
    run(book)
    carry_out = undoing.Undoer._carry_out

    def vanish(undoer, done, registration):
        if done.step == "s2":
            raise Vanished
        return carry_out(undoer, done, registration)

    with monkeypatch.context() as patch:
        patch.setattr(undoing.Undoer, "_carry_out", vanish)
        assert isinstance(book.run("%keel undo").error, Vanished)
    book.kill()
    book.boot()
    assert book.run("%keel undo").code == "E006", "s1 and s2 are not back in this kernel"
    for cell in [*STEPS[:1], UNDOS[0], STEPS[1], UNDOS[1]]:
        book.ok(cell)
    assert book.run(STEPS[2]).code == "E062", "what was undone is not done again meanwhile"
    book.ok("%keel undo")
    assert book.hits == ["do1", "do2", "do3", "undo3", "undo2", "undo1"]
    book.ok(STEPS[2])


def test_o26_the_prefix_is_reserved_and_an_undo_registers_no_undo(book):
    assert book.run("%%keel_step undo:x\n1\n").code == "E001"
    assert book.run("keel.undo(print)").code == "E006", "outside a step"
    assert book.run("%%keel_undo nothing\n1\n").code == "E006"
    book.ok("def nested(): keel.undo(print)")
    book.ok("%%keel_step s\nkeel.undo(nested)\n")
    assert "compensate:E006" in str(book.run("%keel undo").error)


def test_o26_what_could_not_be_found_again_after_a_death_is_refused_when_it_is_registered(book):
    refused = book.run("%%keel_step s\nimport threading\nkeel.undo(print, threading.Lock())\n")
    assert refused.code == "E020"
    assert "the undo print of step s cannot be kept" in refused.error.report()
    assert "plain values" in refused.error.report()


def test_an_undone_guarded_step_may_happen_again_under_a_new_key(book):
    pay = "%%keel_step pay --effect exactly_once\nhit(keel.idempotency_key())\nkeel.undo(hit, 'refund')\n"
    book.ok(pay)
    book.ok("%keel undo pay")
    book.ok(pay)
    first, refund, second = book.hits
    assert refund == "refund"
    assert first != second


def test_o11_no_undo_runs_between_two_attempts_of_a_flow_and_each_is_there_once_after_them(book):
    cells = [*CELLS[:4], "%%keel_step s3\nhit('do3')\nif fails: raise OSError\n"]
    book.ok("fails = True")
    run(book, cells[:4])
    for _ in range(2):
        assert isinstance(book.run(cells[4]).error, OSError)
        run(book, cells[:4])
    book.ok("fails = False")
    book.ok(cells[4])
    assert book.hits == ["do1", "do2", "do3", "do3", "do3"], "what ended replays, nothing is undone"
    book.ok("%keel undo")
    assert book.hits[5:] == ["undo2", "undo1"]


def test_o26_an_undo_that_is_recorded_as_done_is_not_done_twice_by_a_kernel_that_registers_it_again(book, monkeypatch):
    run(book, CELLS[:2])

    def vanish(undoer, entries, done):
        raise Vanished

    with monkeypatch.context() as patch:
        patch.setattr(undoing.Undoer, "_retire", vanish)
        assert isinstance(book.run("%keel undo").error, Vanished)
    book.kill()
    book.boot()
    run(book, CELLS[:2])
    book.ok("%keel undo")
    assert book.hits == ["do1", "undo1"]


def test_o26_z23_an_undo_that_a_death_cut_off_runs_again_under_the_same_key(book, monkeypatch):
    cells = [STEPS[0], "%%keel_undo s1\nhit(keel.idempotency_key())\n"]
    run(book, cells)
    append = undoing.replace

    def vanish(entry, **changed):
        if changed.get("status") is Status.OK:
            raise Vanished
        return append(entry, **changed)

    with monkeypatch.context() as patch:
        patch.setattr(undoing, "replace", vanish)
        assert isinstance(book.run("%keel undo").error, Vanished)
    book.kill()
    book.boot()
    run(book, cells)
    book.ok("%keel undo")
    _, first, second = book.hits
    assert first == second


def test_o26_in_a_step_that_cannot_be_recorded_an_undo_is_refused_for_that_reason(book, monkeypatch):
    from keel_notebook.errors import JournalUnreachableError

    book.ok("%%keel_step before\nx = 1\n")
    stepper = book.session.leader().attached.stepper

    def unreadable(*_, **__):
        raise JournalUnreachableError(journal="j", detail="a drive is gone")

    monkeypatch.setattr(type(stepper), "look", unreadable)
    ran = book.run("%%keel_step a\nkeel.undo(print, 1)\n")
    assert ran.code == "E054"
    assert "could never be found again" in str(ran.error)
    monkeypatch.undo()
    assert book.run("keel.undo(print, 1)\n").code == "E006", "outside a step it is a slip"


def test_the_way_out_that_a_failed_undo_names_works(book):
    book.ok("%%keel_step s\nkeel.undo(lambda: 1 / 0)\n")
    failed = book.run("%keel undo").error
    assert failed.code == "E062"
    assert "%keel undo --skip s" in failed.report()
    assert book.run("%%keel_step after\nx = 1\n").code == "E062"
    book.ok("%keel undo --skip s")
    book.ok("%%keel_step after\nx = 1\n")


def test_o26_two_undos_of_one_step_run_last_registered_first(book):
    book.ok("%%keel_step a\nkeel.undo(hit, 'u1'); keel.undo(hit, 'u2'); keel.undo(print)\n")
    book.ok("%keel undo")
    assert book.hits == ["u2", "u1"]

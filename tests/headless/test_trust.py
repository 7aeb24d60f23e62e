"""Whose records these are (DESIGN 8): nothing of a stranger is unpickled, one's own go along (C07, C103)."""

import json
import os
import shutil
import stat

import pytest

from keel_notebook.core.ids import journal_id

FEATS = ("%%keel_step feats\nhit('f'); feats = {i * i for i in range(4)}", "print(sorted(feats))")


@pytest.fixture
def elsewhere(job, tmp_path):
    """The folder after a journey: everything but the owner's key came along."""
    job.write(*FEATS)
    job.cells(*FEATS)
    job.call("keel_notebook", "sql", "select 1", "--in", job.path)  # no ingest is at work while it is copied
    job.owners = job.env["XDG_CONFIG_HOME"]
    job.folder = tmp_path / "drive"
    shutil.copytree(tmp_path, job.folder, ignore=shutil.ignore_patterns("config", "drive"))
    job.path = job.folder / "a.ipynb"
    job.env["XDG_CONFIG_HOME"] = str(tmp_path / "new machine")
    return job


def the_id(job):
    return journal_id((job.folder / ".keel" / "salt").read_bytes())


def test_c07_a_journal_of_another_key_stops_and_says_the_one_line_to_set(elsewhere):
    shown = elsewhere.cells(*FEATS)
    assert (shown[0]["error"], elsewhere.hits) == ("UntrustedError", "f")
    assert "KEEL-E050" in shown[0]["text"]
    assert f"KEEL_TRUST={the_id(elsewhere)}" in shown[0]["text"]
    assert elsewhere.cells("%keel restore")[0]["error"] == "UntrustedError"

    shown = elsewhere.cells(*FEATS, KEEL_TRUST=the_id(elsewhere))
    assert shown[1]["out"] == "[0, 1, 4, 9]\n"
    assert "records of another key trusted" in shown[0]["err"]
    assert elsewhere.cells(*FEATS)[1]["out"] == "[0, 1, 4, 9]\n", "said once, it stays said"
    elsewhere.env["XDG_CONFIG_HOME"] = elsewhere.owners
    assert elsewhere.cells(*FEATS)[1]["out"] == "[0, 1, 4, 9]\n", "the older seal stays valid for its owner"
    assert elsewhere.hits == "f"


def test_the_id_of_another_journal_trusts_nothing(elsewhere):
    assert elsewhere.cells(*FEATS, KEEL_TRUST="0" * 16)[0]["error"] == "UntrustedError"


def test_c07_keel_key_file_on_the_drive_needs_no_word(elsewhere):
    key = os.path.join(elsewhere.owners, "keel", "owner.key")
    assert elsewhere.cells(*FEATS, KEEL_KEY_FILE=key)[1]["out"] == "[0, 1, 4, 9]\n"
    assert elsewhere.hits == "f"


def test_keel_trust_in_the_notebook_and_in_a_terminal(elsewhere):
    shown = elsewhere.cells("%keel trust", *FEATS)
    assert "trusted: from now on" in shown[0]["result"]
    assert shown[2]["out"] == "[0, 1, 4, 9]\n"
    elsewhere.env["XDG_CONFIG_HOME"] += " too"
    found = json.loads(elsewhere.call("keel_notebook", "trust", elsewhere.path, "--json")[0])
    assert found["records"] > 0
    assert elsewhere.cells(*FEATS)[1]["out"] == "[0, 1, 4, 9]\n"
    assert elsewhere.call("keel_notebook", "trust", elsewhere.path)[0] == "every record is yours\n"
    assert elsewhere.hits == "f"


def test_doctor_says_that_the_records_are_sealed_with_another_key_and_how_to_trust_them(elsewhere):
    out = elsewhere.call("keel_notebook", "doctor", elsewhere.path, code=1)[0]
    assert out.startswith("1 thing to put right")
    for words in ("1 step recorded with another key than yours", "KEEL-E050", "keel trust", "KEEL_KEY_FILE"):
        assert words in " ".join(out.split())
    shown = elsewhere.cells("%keel doctor")[0]
    assert "1 thing to put right" in shown["result"]
    trusted = elsewhere.call("keel_notebook", "doctor", elsewhere.path, KEEL_TRUST=the_id(elsewhere))[0]
    assert trusted.startswith("all is well")
    elsewhere.call("keel_notebook", "trust", elsewhere.path)
    assert elsewhere.call("keel_notebook", "doctor", elsewhere.path)[0].startswith("all is well")


def test_a_key_file_that_is_not_there_is_said_and_not_made_where_something_is_recorded(job):
    job.write(*FEATS)
    job.cells(*FEATS)
    typo = job.folder / "onwer.key"
    shown = job.cells(*FEATS, KEEL_KEY_FILE=str(typo))[0]
    assert shown["error"] == "WrongFileError"
    for words in ("KEEL-E008", str(typo), "there is no file"):
        assert words in shown["text"]
    for words in (["trust"], ["doctor"]):
        out, err = job.call("keel_notebook", *words, job.path, code=1, KEEL_KEY_FILE=str(typo))
        assert "KEEL_KEY_FILE" in out + err
        assert "there is no" in out + err
    assert not typo.exists()
    assert job.cells(*FEATS)[1]["out"] == "[0, 1, 4, 9]\n"
    assert job.hits == "f"


BOMB = """%%keel_step x
class Bomb:
    def __reduce__(self):
        return (open, ("pwned.txt", "w"))
x = [Bomb()]
print("<script>alert(1)</script>")"""


def test_a_hostile_record_is_listed_and_never_loaded(job):
    """The attacker knows the folder and its salt, not the owner's key."""
    job.write(BOMB)
    theirs = job.env["XDG_CONFIG_HOME"]
    job.env["XDG_CONFIG_HOME"] = str(job.folder / "attacker")
    assert job.cells(BOMB, "%keel why x")[1]["error"] == ""
    assert job.status()["x"]["bytes"] > 0
    (job.folder / "pwned.txt").unlink(missing_ok=True)  # what a check of the record may have made in their own process
    job.env["XDG_CONFIG_HOME"] = theirs
    for cell in (BOMB, "%%keel_step x\nx = 1", "%keel restore x"):
        assert job.cells(cell)[0]["error"] == "UntrustedError"
    job.cells("%keel why x", "%keel status", "%keel plan")
    for words in (["status"], ["plan"], ["log"], ["show", "x", "--in"], ["why", "x", "--in"], ["doctor"]):
        job.call("keel_notebook", *words, job.path, code=None)
    job.call("keel_notebook", "sql", "select * from steps", "--in", job.path)
    assert not (job.folder / "pwned.txt").exists()


def test_files_and_folders_of_a_journal_are_for_their_owner_only(job):
    before = os.umask(0)
    try:
        job.cells(*FEATS, "import os; big = os.urandom(2_000_000)", "%%keel_step big\nkept = big * 2")
        job.call("keel_notebook", "sql", "select 1", "--in", job.folder)
    finally:
        os.umask(before)
    keel = job.folder / ".keel"
    for path in (keel, *keel.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((job.folder / "config" / "keel" / "owner.key").stat().st_mode) == 0o600


def test_c103_a_credential_is_nowhere_in_the_journal_and_in_no_answer(job):
    canary = "sk-test-1234567890abcdef"
    cells = [
        f"# Parameters\napi_key = '{canary}'",
        "%%keel_step ask\nr = len(api_key); header = {'Authorization': 'Bearer ' + api_key}; print(r, api_key)",
        "%%keel_step fails\nraise ValueError(api_key)",
    ]
    job.write(*cells)
    job.cells(*cells)
    for path in (job.folder / ".keel").rglob("*"):
        if path.is_file():
            assert canary.encode() not in path.read_bytes(), path
    for words in (["status"], ["plan"], ["log"], ["show", "ask", "--in"], ["why", "fails", "--in"], ["doctor"]):
        out, err = job.call("keel_notebook", *words, job.path, code=None)
        assert canary not in out + err, words


@pytest.mark.kernel
def test_keel_run_trust_strict_and_frozen_say_it_to_the_kernel(elsewhere):
    job = elsewhere
    job.run(code=1)
    job.run("--trust", "--strict")
    assert job.hits == "f", "trusted records replay, and a strict flow that completed is a pure replay"
    job.write(*FEATS, "%%keel_step more\nhit('more')")
    assert job.run("--frozen", code=1)[-2]["error"] == "DivergenceError"
    assert job.hits == "f"


def test_a_journal_is_packed_and_unpacked_from_the_notebook(job, tmp_path):
    """C07: `%keel export` where it was recorded, `%keel import` where there is no journal yet."""
    job.write(*FEATS)
    [_, _, packed] = job.cells(*FEATS, "%keel export all.keel")
    assert packed["result"].endswith("files in all.keel")
    first, job.folder = job.folder, tmp_path / "there"
    job.folder.mkdir()
    job.path = job.folder / "a.ipynb"
    job.write(*FEATS)
    shutil.copy(first / "all.keel", job.folder)
    shown = job.cells("%keel import all.keel", *FEATS)
    assert shown[0]["result"] == f"the journal is {job.folder / '.keel'}"
    assert (shown[2]["out"], job.hits) == ("[0, 1, 4, 9]\n", "")
    assert job.cells("%keel import all.keel")[0]["error"] == "WrongFileError"

"""Promises from the command line: listed, answered by name or token while the kernel is dead (Z31-Z33, Z37)."""

import json
import time

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from keel_notebook.core.kernels import COMMAND
from keel_notebook.core.model import Entry, Kind, Status, entry_id
from keel_notebook.core.ports import FlowRecords, RunEnd, RunSeen, RunStart
from keel_notebook.core.resuming import resumed_runs
from keel_notebook.engine.waits import token_hash
from keel_notebook.front.cli import keel
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.flows import find_flow
from keel_notebook.payload.seal import OwnerSeal, owner_key

TOKEN = "5ec4e7" + "0" * 58


class Clock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


@pytest.fixture
def waits(tmp_path, monkeypatch):
    """Writes a run whose step waits for promises: ``waits(name, …)`` gives their ids."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("KEEL_JOURNAL", "KEEL_TOKEN", "KEEL_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)

    def write(*names, key=""):
        folder, notebook = tmp_path / ".keel", tmp_path / "a.ipynb"
        notebook.write_text('{"cells": []}')
        flow = find_flow(folder, notebook=notebook, key=key).id
        seal = OwnerSeal(owner_key(path=None))
        journal = open_journal(folder, clock=Clock, seal=seal, notebook=str(notebook), cwd=".", rest_s=None)
        head = {"flow": flow, "run": journal.run, "step": "ask", "status": Status.RUNNING, "started_at": time.time()}
        journal.append(Entry(entry=entry_id(journal.run, 1), seq=1, kind=Kind.STEP, **head))
        ids = [f"{flow}:{at:020}" for at in range(len(names))]
        for at, (name, promise) in enumerate(zip(names, ids, strict=True), 2):
            kept = {"name": name, "token_hash": token_hash(flow, promise, TOKEN)}
            entry = Entry(entry=entry_id(journal.run, at), seq=at, kind=Kind.PROMISE, key=promise, **head)
            journal.append(replace(entry, call="promise", ambient=kept))
        journal.close(clean=False)
        return ids

    return write


def run(*words, code=0, **env):
    done = CliRunner(env=env).invoke(keel, [*map(str, words)])
    assert done.exit_code == code, done.output
    assert TOKEN not in done.output
    return done.output


def status(folder):
    return json.loads(run("status", folder / "a.ipynb", "--json"))


def test_what_waits_is_listed_without_its_token_and_answered_by_its_name(waits, tmp_path):
    ids = waits("deploy", "mail")
    before = status(tmp_path)
    assert [(wait["name"], wait["step"], wait["id"]) for wait in before["waits"]] == [
        ("deploy", "ask", ids[0]),
        ("mail", "ask", ids[1]),
    ]
    assert "ask waits for deploy since" in run("status", tmp_path / "a.ipynb")
    run("resolve", "deploy", "--value", "1", "--in", tmp_path, KEEL_TOKEN=TOKEN)
    assert "answered before" in run("resolve", "deploy", "--in", tmp_path, KEEL_TOKEN=TOKEN)
    run("resolve", "mail", "--as-owner", "--in", tmp_path)
    after = status(tmp_path)
    assert "waits" not in after
    assert (after["run"], after["status"]) == (before["run"], before["status"]), "an answer is no run"


def test_z33_a_token_alone_finds_its_promise_and_a_wrong_one_is_never_repeated(waits, tmp_path):
    waits("deploy", "mail")
    assert "E071" in run("resolve", TOKEN[::-1], "--in", tmp_path, code=1)
    assert "did you mean deploy" in run("resolve", "deplyo", "--in", tmp_path, code=1, KEEL_TOKEN=TOKEN)
    refused = CliRunner().invoke(keel, ["resolve", "mail", "--token", TOKEN[::-1], "--in", str(tmp_path)])
    assert refused.exit_code == 1
    assert "E070" in refused.output
    assert TOKEN[::-1] not in refused.output
    run("resolve", TOKEN, "--in", tmp_path)
    assert len(status(tmp_path)["waits"]) == 1


def test_a_name_that_several_have_is_not_guessed(waits, tmp_path):
    ids = waits("deploy", key="alpha=1") + waits("deploy", key="alpha=2")
    said = run("resolve", "deploy", "--in", tmp_path, code=1, KEEL_TOKEN=TOKEN)
    assert all(promise in said for promise in ids)
    run("resolve", ids[1], "--in", tmp_path, KEEL_TOKEN=TOKEN)


def test_an_answer_between_two_runs_does_not_end_what_is_gone_on_with():
    """The run that died is gone on with, although a command that ended in order wrote after it."""

    def seen(number, end, notebook=""):
        return RunSeen(RunStart(number, "h", 1, "b", 0.0, notebook), end)

    runs = {1: seen(1, RunEnd.DIED), 2: seen(2, RunEnd.CLEAN, COMMAND)}
    assert resumed_runs(FlowRecords("f", (), runs), 3, 10.0, day=lambda _: "", asked=True) == {1}
    runs[2] = seen(2, RunEnd.CLEAN, "/n/a.ipynb")
    assert resumed_runs(FlowRecords("f", (), runs), 3, 10.0, day=lambda _: "", asked=True) == frozenset()

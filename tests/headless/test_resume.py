"""``keel resume``: runs that were left in the middle go on, each by one winner (K37, O17, O25, Z38)."""

import json
import re
import signal

import pytest

pytestmark = pytest.mark.kernel

PAY = """%%keel_step pay
import os, time
def pay(i):
    hit(f'p{i}')
    while i == 3 and not os.path.exists('go'):
        time.sleep(0.02)
    return i
paid = [keel.call(pay, i) for i in range(6)]"""
IMPORT = "import keel_notebook as keel"


def killed_after(job, word, *words):
    """Start ``keel run``, kill its process when the file of hits holds ``word``, and wait until it is gone."""
    running = job.start("keel_notebook", "run", job.path, "--json", *words)
    for line in running.stdout:
        if json.loads(line).get("step") == "pay":
            break
    job.wait_for(word, running)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=60)


def test_k37_o25_of_two_that_resume_a_killed_run_one_finishes_it_and_pays_only_for_the_missing(job):
    job.write("alpha = 1", IMPORT, PAY, "%%keel_step after\nhit('after'); total = sum(paid)", tags={0: "parameters"})
    killed_after(job, "p3", "-p", "alpha", "0.5")
    out, _ = job.call("keel_notebook", "resume", job.path, "--dry-run", "--json")
    assert json.loads(out)["jobs"][0]["look"] in {"goes on", "kernel runs"}
    rivals = [job.start("keel_notebook", "resume", job.folder, "--json") for _ in range(2)]
    job.wait_for("p3 p3")
    (job.folder / "go").touch()
    told = []
    for rival in rivals:
        out, said = rival.communicate(timeout=120)
        assert rival.returncode == 0, said
        told.append([json.loads(line) for line in out.splitlines()])
    loser, winner = sorted(told, key=lambda events: events[-1]["went_on"])
    assert [events[-1]["went_on"] for events in (loser, winner)] == [0, 1]
    assert job.hits == "p0 p1 p2 p3 p3 p4 p5 after"
    last = winner[-2]
    assert (last["event"], last["exit_code"], last["executed"]) == ("finished", 0, 2)
    assert last["output"].endswith("a.run-alpha=0.5.ipynb")
    assert not list((job.folder / ".keel/jobs").glob("*.json")), "what is over is not gone on with"


def test_z38_a_run_that_sleeps_goes_on_when_its_timer_is_due_and_one_that_waits_when_it_is_answered(job):
    job.write(
        IMPORT,
        "%%keel_step pay\nhit('before'); keel.sleep('3s'); hit('slept')\n"
        "promise = keel.promise('deploy'); print(promise.token, file=open('token', 'w'), flush=True)\n"
        "hit('asks'); said = promise.result(); hit(said)",
    )
    killed_after(job, "before")
    watching = job.start("keel_notebook", "resume", job.folder, "--watch", "--json")
    job.wait_for("asks", watching)
    out, _ = job.call("keel_notebook", "status", job.path, "--json")
    (wait,) = json.loads(out)["waits"]
    assert (wait["name"], wait["step"], wait["kind"]) == ("deploy", "pay", "promise")
    token = (job.folder / "token").read_text().strip()
    shown, _ = job.call("keel_notebook", "status", job.path)
    assert "deploy" in shown
    assert token not in shown + out
    watching.send_signal(signal.SIGTERM)
    said, _ = watching.communicate(timeout=120)
    events = [json.loads(line) for line in said.splitlines()]
    assert [event["status"] for event in events if event["event"] == "stopped"] == ["terminated"]
    assert job.hits == "before before slept asks"

    before = json.loads(out)["run"]
    job.call("keel_notebook", "resolve", "deploy", "--in", job.path, "--value", '"yes"', KEEL_TOKEN=token)
    after = json.loads(job.call("keel_notebook", "status", job.path, "--json")[0])
    assert after["run"] == before, "an answer is no run"
    assert "waits" not in after
    job.call("keel_notebook", "resume", job.folder)
    assert job.hits.split()[-1] == "yes"
    assert re.findall("slept", job.hits) == ["slept"] * 2, "the body runs again, its timer does not"

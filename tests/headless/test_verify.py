"""``keel verify`` and ``KEEL_MODE=verify`` (issue 4, 7): execute, compare, record nothing."""

import hashlib
import json

import pytest

pytestmark = pytest.mark.kernel


def journal(job):
    """Every file of the journal with its content, leases and locks aside."""
    folder = job.folder / ".keel"
    paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "journal.lock")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def verify(job, *words, code=0, **env):
    """``keel verify``: its report, and the steps by name."""
    out, _ = job.call("keel_notebook", "verify", job.path, *words, "--json", code=code, **env)
    report = json.loads(out)
    return report, {step["step"]: step for step in report["steps"]}


def at_rest(job):
    """The journal once everything is ingested."""
    job.call("keel_notebook", "sql", "select 1", "--in", job.path)
    return journal(job)


STEPS = [
    "import json, os, random, uuid",
    "%%keel_step load\nhit('load'); rows = [1, 2, 3]\nprint('rows', len(rows))",
    "%%keel_step draw\nhit('draw'); lucky = random.random()",
    "%%keel_step follow\nhit('follow'); twice = lucky * 2",
    "%%keel_step shown\nhit('shown'); print(uuid.uuid4())",
    "%%keel_step pay --effect exactly_once\nhit('pay'); receipt = 7",
    "%%keel_step after\nhit('after'); total = receipt + len(rows); client = open(os.devnull)",
]


def test_each_step_is_executed_and_compared_and_the_journal_stays_as_it_is(job):
    """Nothing is recorded, nothing that must happen once happens twice, and each difference has its cause."""
    job.write(*STEPS)
    job.run()
    before = at_rest(job)
    report, steps = verify(job, code=1)
    assert journal(job) == before
    assert (report["status"], report["holds"]) == ("finished", False)
    assert {name: step["verdict"] for name, step in steps.items()} == {
        "load": "same",
        "draw": "differs",
        "follow": "changed",
        "shown": "differs",
        "after": "same",
        "pay": "not compared",
    }
    assert steps["draw"]["names"][0].startswith("lucky 0.")
    assert steps["draw"]["causes"] == ["it draws from the module random"]
    assert steps["follow"]["changed"][0].startswith("input lucky 0.")
    assert steps["shown"]["outputs"] == "output 1 (stream) shows something else"
    assert steps["after"]["unknown"] == ["client"]
    assert job.hits.split().count("pay") == 1
    assert job.hits.split().count("load") == 2


def test_only_the_named_steps_execute_and_the_kernel_s_mode_says_the_same_in_a_notebook(job):
    job.write("%%keel_step load\nhit('load'); rows = [1, 2]", "%%keel_step fit\nhit('fit'); score = sum(rows)")
    job.run()
    before = at_rest(job)
    report, steps = verify(job, "fit")
    assert (report["holds"], list(steps), job.hits) == (True, ["fit"], "load fit fit")
    [shown] = job.cells("%keel verify load")
    assert "1 step executed, every record holds" in shown["result"]
    slip = "KEEL-E002: step lod is not known here; did you mean load?"
    assert slip in job.call("keel_notebook", "verify", job.path, "lod", code=2)[1]
    assert slip in job.cells("%keel verify lod")[0]["text"]
    assert job.hits == "load fit fit load"
    before = at_rest(job)  # the kernel that asked has a run of its own
    cells = job.cells(
        "%%keel_step load\nhit('load'); rows = [1, 3]",
        "%%keel_step fit\nhit('fit'); score = sum(rows)",
        "%%keel_step fresh\nscore / 0",
        KEEL_MODE="verify",
    )
    assert [cell["err"] for cell in cells] == [
        "keel: load: changed: code changed; rows [1, 2] -> [1, 3]\n",
        "keel: fit: changed: input rows [1, 2] -> [1, 3]; score 3 -> 4\n",
        "keel: fresh: failed ZeroDivisionError\n",
    ]
    assert journal(job) == before


def test_what_was_never_recorded_is_said_before_a_kernel_starts(job):
    job.write("%%keel_step a\nhit('a')")
    out, _ = job.call("keel_notebook", "verify", job.path, "--json", code=1)
    assert json.loads(out)["error"]["code"] == "E054"
    assert not (job.folder / ".keel").exists()
    assert job.hits == ""


def test_files_are_written_again_as_the_help_says(job):
    job.write("%%keel_step out --makes out.csv\nwith open('out.csv', 'w') as f: print('n', file=f)")
    job.run()
    made = (job.folder / "out.csv").stat().st_mtime_ns
    verify(job)
    assert (job.folder / "out.csv").stat().st_mtime_ns > made
    out, _ = job.call("keel_notebook", "verify", "--help")
    assert "files that the steps write are written again" in " ".join(out.split())

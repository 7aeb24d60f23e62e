"""``keel run`` (issue 4, 7): parameters, resuming, what it writes and tells, how it ends (C78, C05, C66, C68)."""

import json
import os
import signal
import subprocess
import sys

import nbformat
import pytest
from click.testing import CliRunner

from keel_notebook.front.cli import keel

from .conftest import printed

pytestmark = pytest.mark.kernel

FIT = "%%keel_step fit\nhit(f'fit{alpha}'); score = alpha * 10\nprint('score', score)"


def test_c78_every_parameter_set_has_a_flow_of_its_own_and_what_finished_replays(job):
    job.write(
        "alpha = 0.5", FIT, "# keel: step report\nhit(f'rep{score}')\nprint('rep', score)", tags={0: "parameters"}
    )
    job.run("-p", "alpha", "0.1")
    job.run("-p", "alpha", "0.2")
    events = job.run("-p", "alpha", "0.1")
    job.run("-p", "alpha", "0.2", "--key", "again")
    assert job.hits == "fit0.1 rep1.0 fit0.2 rep2.0 fit0.2 rep2.0", "--key tells apart what the values do not"
    assert printed(job.folder / "a.run-alpha=0.1.ipynb")[-2:] == ["score 1.0\n", "rep 1.0\n"]
    assert printed(job.folder / "a.run-alpha=0.2.ipynb")[-2:] == ["score 2.0\n", "rep 2.0\n"]
    flows = json.loads(job.call("keel_notebook", "status", job.path, "--json")[0])
    assert flows["status"] == "finished"

    begun, *_, last = events
    assert (begun["event"], begun["cells"], begun["key"]) == ("started", 6, "alpha=0.1")
    ended = [(event["step"], event["decision"]) for event in events if event["event"] == "ended"]
    assert ended == [(None, None)] * 4 + [("fit", "replayed"), ("report", "replayed")]
    assert (last["event"], last["exit_code"], last["replayed"], last["executed"]) == ("finished", 0, 2, 0)


def test_c103_a_credential_among_the_parameters_is_for_the_kernel_only(job):
    secret = "sk-live-CANARY0123456789abcdef"
    job.write("api_key = ''; n = 0", "%%keel_step s\nhit(str(len(api_key)))", tags={0: "parameters"})
    job.run("-p", "api_key", secret, "-p", "n", "3")
    assert job.hits == str(len(secret))
    book = nbformat.read(job.folder / "a.run-n=3.ipynb", as_version=4)
    assert book.cells[3].source == "# Parameters\napi_key = '…'\nn = 3\n"
    for path in job.folder.rglob("*"):
        assert not path.is_file() or b"CANARY" not in path.read_bytes(), path


def test_a_failing_step_ends_the_run_and_the_next_run_goes_on_there(job):
    """C66: nothing after a failed cell runs, the exit code says so, what had finished is not done again."""
    job.write("%%keel_step load\nhit('load'); n = 3", "%%keel_step fit\nhit('fit'); n / 0", "hit('never')")
    events = job.run(code=1)
    assert job.hits == "load fit"
    assert [(event["status"], event.get("error")) for event in events if event["event"] == "ended"][-1] == (
        "failed",
        "ZeroDivisionError",
    )
    assert (events[-1]["event"], events[-1]["status"]) == ("stopped", "failed")
    book = nbformat.read(job.folder / "a.run.ipynb", as_version=4)
    assert book.cells[3].outputs[-1]["ename"] == "ZeroDivisionError"
    assert book.cells[4].outputs == []
    job.write("%%keel_step load\nhit('load'); n = 3", "%%keel_step fit\nhit('fit'); n / 1", "hit('end')")
    _, said = job.call("keel_notebook", "run", job.path)
    assert job.hits == "load fit fit end"
    assert "[3/5] load replayed" in said
    assert "finished in" in said


@pytest.mark.parametrize(
    ("cells", "message", "line", "source"),
    [
        (["%%keel_step fit\n\nraise ValueError('alpha\\nbeta')"], "alpha", 3, "raise ValueError('alpha\\nbeta')"),
        (["def deep(n):\n    return n / 0", "%%keel_step fit\n\n\ndeep(3)"], "division by zero", 4, "deep(3)"),
        (["import json\njson.loads('{')"], "Expecting property name", 2, "json.loads('{')"),
        (["api_key = 'x'\nraise ValueError('api_key=sk-live-CANARY0123456789abcdef')"], "", 2, "raise ValueError("),
    ],
    ids=["its own", "through a function", "in a library", "with a credential"],
)  # fmt: skip
def test_what_a_failed_cell_said_and_where_is_told(job, cells, message, line, source):
    job.write("%%keel_step load\nn = 3", *cells)
    _, said = job.call("keel_notebook", "run", job.path, code=1)
    error = next(text for text in said.splitlines() if text.strip().startswith(("ValueError:", "Zero", "JSONDecode")))
    assert message in error
    assert f"line {line} of the cell: {source}" in said
    assert f"the whole traceback is in {job.folder / 'a.run.ipynb'}" in said
    assert "CANARY" not in said
    ended = [event for event in job.run(code=1) if event["event"] == "ended"][-1]
    assert (ended["line"], "message" in ended, "source" in ended) == (line, False, False)
    assert ", run 2 failed," in job.call("keel_notebook", "status", job.path)[0].partition("\n")[0]


def test_a_dead_kernel_has_an_exit_code_of_its_own_and_the_step_is_dead_at_its_cap(job):
    """C05: the refusal of a dead step is an ordinary failure of the next run."""
    job.write(
        "%%keel_step load\nhit('load'); n = 3",
        "%%keel_step fit --max-attempts 1\nhit('fit')\nimport os; os.kill(os.getpid(), 9)",
    )
    events = job.run(code=3)
    assert (events[-1]["status"], events[-2]["status"]) == ("died", "died")
    events = job.run(code=1)
    assert events[-2]["error"] == "DeadError"
    assert job.hits == "load fit"


def test_a_cell_over_its_timeout_is_interrupted_and_not_counted_as_a_death(job):
    job.write("%%keel_step load\nhit('load')", "%%keel_step slow\nhit('slow')\nimport time; time.sleep(600)")
    events = job.run("--timeout", "5s", code=4)
    assert events[-1]["status"] == "timeout"
    step = job.status()["slow"]
    assert (step["state"], step["attempts"]) == ("interrupted", 1)


@pytest.mark.parametrize(
    ("sent", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_a_signal_ends_the_run_in_order(job, sent, code, word):
    job.write("%%keel_step load\nhit('load')", "%%keel_step slow\nhit('slow')\nimport time; time.sleep(600)")
    running = job.start("keel_notebook", "run", job.path, "--json")
    for line in running.stdout:
        event = json.loads(line)
        if event["event"] == "begins" and event["step"] == "slow":
            break
    _wait_for_file(job, "slow")
    running.send_signal(sent)
    rest, said = running.communicate(timeout=60)
    assert running.returncode == code, said
    assert json.loads(rest.splitlines()[-1])["status"] == word
    assert job.status()["slow"]["state"] == "interrupted"
    assert job.status()["load"]["state"] == "saved"


def _wait_for_file(job, word):
    import time

    while word not in job.hits:
        time.sleep(0.02)


def test_c68_nobody_is_ever_asked(job):
    job.write("%%keel_step ask\nname = input('who? ')")
    events = job.run(code=1)
    assert events[-2]["error"] == "StdinNotImplementedError"


def test_what_cannot_be_run_is_said_before_a_kernel_starts(job, monkeypatch):
    monkeypatch.chdir(job.folder)
    job.write("x = alpha = 1", tags={0: "parameters"})
    (job.folder / "b.ipynb").write_text("[")
    for words, code, told in (
        (["gone.ipynb"], 2, "E002"),
        (["."], 2, "E002"),
        (["b.ipynb"], 1, "E008"),
        (["a.ipynb", "-p", "no-name", "1"], 1, "E001"),
        (["a.ipynb", "-p", "xx", "1"], 2, "E002"),
        (["a.ipynb", "--timeout", "soon"], 1, "E001"),
        (["a.ipynb", "--kernel", "no-such-kernel"], 1, "E009"),
    ):
        done = CliRunner().invoke(keel, ["run", *words, "--json"])
        last = json.loads(done.stdout.splitlines()[-1])
        assert (done.exit_code, last["exit_code"], last["error"]["code"]) == (code, code, told), words
    assert CliRunner().invoke(keel, ["run", "b.ipynb"]).stderr.startswith("KEEL-E008: ")
    assert "did you mean alpha?" in CliRunner().invoke(keel, ["run", "a.ipynb", "-p", "alpah", "1"]).stderr


TOOLS = {
    "papermill": ["papermill", "a.ipynb", "out.ipynb", "--no-progress-bar"],
    "nbconvert": ["nbconvert", "--to", "notebook", "--execute", "a.ipynb", "--output", "out.ipynb"],
    "jupyter execute": ["jupyter", "execute", "a.ipynb", "--output", "out.ipynb"],
    "nbclient": [
        "this",
        "import nbformat, nbclient; book = nbformat.read('a.ipynb', 4); "
        "nbclient.execute(book); nbformat.write(book, 'out.ipynb')",
    ],
}


def test_every_tool_replays_what_keel_run_recorded_once_the_flow_is_named(job):
    """Equal behaviour under papermill, nbclient, jupyter execute and nbconvert: one flow, one set of records."""
    job.write("k = 2", "%%keel_step fit\nhit('fit'); score = k * 10\nprint('score', score)\nscore")
    job.run("--flow", "sweep")
    shown = nbformat.read(job.folder / "a.run.ipynb", as_version=4).cells[3].outputs
    for tool, words in TOOLS.items():
        if words[0] == "this":
            subprocess.run(
                [sys.executable, "-c", words[1]], cwd=job.folder, env=job.env | {"KEEL_FLOW": "sweep"}, check=True
            )
        else:
            module, *rest = words
            module = {"jupyter": "jupyter_core"}.get(module, module)
            job.call(module, *rest, KEEL_FLOW="sweep")
        assert job.hits == "fit", tool
        assert nbformat.read(job.folder / "out.ipynb", as_version=4).cells[3].outputs == shown, tool
        os.unlink(job.folder / "out.ipynb")


def test_a_tool_that_is_told_the_path_shares_what_keel_run_recorded(job):
    """docs/headless.md: the path makes the flow, parameters its key; a name is a flow of its own."""
    job.write("alpha = 0.5", FIT, tags={0: "parameters"})
    job.run()
    job.run("-p", "alpha", "0.1")
    execute = ("jupyter_core", "execute", "a.ipynb", "--output", "out.ipynb")
    job.call(*execute, JPY_SESSION_NAME="a.ipynb")
    papermill = ("papermill", "a.ipynb", "out.ipynb", "--no-progress-bar", "-p", "alpha", "0.1")
    job.call(*papermill, JPY_SESSION_NAME="a.ipynb", KEEL_FLOW_KEY="alpha=0.1")
    assert job.hits == "fit0.5 fit0.1"
    job.call(*execute, KEEL_FLOW="a")
    assert job.hits == "fit0.5 fit0.1 fit0.5"


@pytest.mark.parametrize(
    ("named", "hint"), [("nosuch.ipynb", "there is no such file"), (".", "it must be a file that ends with .ipynb")]
)
def test_what_is_no_notebook_is_told_from_what_is_not_there(tmp_path, monkeypatch, named, hint):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(keel, ["run", named])
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert f"notebook {named} is not known here; {hint}\n" in done.output


def test_a_notebook_in_another_folder_runs_and_is_verified_and_its_sockets_are_gone(job):
    """The kernel, in the notebook's folder, and its client, in this one, find the same sockets."""
    job.path = job.folder / "g" / "a.ipynb"
    job.path.parent.mkdir()
    asks = "from ipykernel import get_connection_info as about\nhit(about(unpack=True)['ip'])"
    job.write(asks, "%%keel_step fit\nhit('fit'); n = 3")
    job.call("keel_notebook", "run", "g/a.ipynb")
    said, _ = job.call("keel_notebook", "verify", "g/a.ipynb")
    assert "1 step executed, every record holds" in said
    first, fit, second, again = (job.path.parent / "hits.txt").read_text().split()
    assert (fit, again) == ("fit", "fit")
    assert os.path.isabs(first)
    assert os.path.isabs(second)
    assert not os.path.exists(os.path.dirname(first))
    assert not os.path.exists(os.path.dirname(second))
    assert not [path for path in job.folder.rglob("*") if path.is_socket()]


def test_a_long_path_of_the_temporary_folder_does_not_keep_a_kernel_from_starting(job):
    """The system takes no more than about a hundred bytes for the path of a socket."""
    deep = job.folder / ("t" * 60) / ("u" * 60)
    deep.mkdir(parents=True)
    job.write("%%keel_step fit\nhit('fit')")
    job.run(TMPDIR=str(deep))
    assert job.hits == "fit"
    assert not list(deep.iterdir())


@pytest.mark.parametrize(
    ("output", "cell", "ran"),
    [
        ("a.ipynb/x.ipynb", "1", ""),
        ("gone/x.ipynb", "1", ""),
        ("out/x.ipynb", "import shutil; shutil.rmtree('out', ignore_errors=True)", "a b"),
    ],
    ids=["a file is no folder", "no folder", "its folder goes while it runs"],
)
def test_an_executed_notebook_that_cannot_be_written_stops_a_run_before_it_begins_and_none_in_the_middle(
    job, output, cell, ran
):
    (job.folder / "out").mkdir()
    job.write("%%keel_step a\nhit('a')", cell, "%%keel_step b\nhit('b')")
    out, said = job.call("keel_notebook", "run", job.path, "--output", output, code=1)
    assert "Traceback" not in out + said
    assert "KEEL-E008" in said
    assert output in said
    assert job.hits == ran
    left, _ = job.call("keel_notebook", "resume", "--dry-run", code=None)
    assert job.path.name not in left, "what ran to its end is no job that was left"
    job.run()
    assert job.hits == "a b"


def test_the_executed_notebook_goes_to_standard_output_where_that_is_asked_for(job):
    job.write("%%keel_step a\nprint('ünder')")
    out, said = job.call("keel_notebook", "run", job.path, "--output", "-")
    assert nbformat.reads(out, as_version=4).cells[2].outputs[0].text == "ünder\n"
    assert "a executed" in said
    assert (job.folder / "a.run.ipynb").read_text("utf-8") == out
    assert not (job.folder / "-").exists()
    job.call("keel_notebook", "run", job.path, "--output", "-", "--json", code=1)


def test_of_two_runs_at_once_the_second_is_refused_before_it_touches_the_file_that_the_first_writes(job):
    """Whatever its flow is, and whichever way it names the file; a run that was killed holds nobody up."""
    job.write("hit('begun')\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.02)", "hit('end')")
    first = job.start("keel_notebook", "run", job.path, "--json")
    job.wait_for("begun", first)
    output = job.folder / "a.run.ipynb"
    (job.folder / "link.ipynb").symlink_to(output)
    before = output.read_bytes(), output.stat().st_ino
    for words in ([], ["--key", "k", "-o", output], ["--flow", "other", "-o", job.folder / "link.ipynb"]):
        *events, last = job.run(*words, code=5)
        assert not events
        assert (last["status"], last["exit_code"], last["error"]["code"]) == ("refused", 5, "E035")
        assert f"pid {first.pid}" in last["error"]["what"]
    _, said = job.call("keel_notebook", "run", job.path, code=5)
    assert "a.run.ipynb is written by another" in said
    assert before == (output.read_bytes(), output.stat().st_ino)
    first.kill()
    first.communicate(timeout=60)
    (job.folder / "go").touch()
    assert job.run()[-1]["status"] == "finished"
    assert not list(job.folder.glob(".*.lock"))
    assert job.hits.split()[-1] == "end"

"""The command line on real journals: written by the real writer, read beside it, never unpickled."""

import json
import os
import pickle
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from keel_notebook.capture.outputs import pack_messages
from keel_notebook.core.ids import default_flow, named_flow
from keel_notebook.core.model import Blob, Kind, Status
from keel_notebook.core.ports import Message, RunEnd
from keel_notebook.front.cli import keel
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.flows import find_flow
from keel_notebook.payload.seal import OwnerSeal, owner_key

from .conftest import HOSTILE, Story

DOCS = Path(__file__).parents[2] / "docs" / "cli.md"


class Clock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


@pytest.fixture(autouse=True)
def own_settings(monkeypatch, tmp_path):
    """Nobody's settings but the test's own."""
    for name in [name for name in os.environ if name.startswith("KEEL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def writes():
    """Writes stories into journals as kernels would; kernels that are ``OPEN`` stay so until the test ends."""
    kept = []

    def write(story, folder, *, notebook=None, name="", key=""):
        flow = find_flow(folder, notebook=notebook, name=name, key=key).id
        seal = OwnerSeal(owner_key(path=None))
        for run, seen in story.runs.items():
            journal = open_journal(folder, clock=Clock, seal=seal, notebook=str(notebook or ""), cwd=".", rest_s=None)
            assert journal.run == run
            for entry in story.entries:
                if entry.run == run:
                    journal.append(replace(entry, flow=flow))
            if seen.end == RunEnd.OPEN:
                kept.append(journal)
            else:
                journal.close(clean=seen.end == RunEnd.CLEAN)
        return folder

    yield write
    for journal in kept:
        journal.close(clean=True)


def save(path, *sources):
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(book, path)


@pytest.fixture
def nb(tmp_path, three_steps, writes):
    """nb.ipynb, whose kernel died and whose second kernel replayed load; the path of the notebook."""
    path = tmp_path / "nb.ipynb"
    save(path, "import math\ncutoff = 3", *(f"%%keel_step {name}\n{name} = 1" for name in ("load", "fit", "plot")))
    writes(three_steps, tmp_path / ".keel", notebook=path)
    return path


def run(*words, code=0):
    """What a command prints, after its exit code is checked."""
    result = CliRunner().invoke(keel, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result.output


def run_json(*words, code=0):
    return json.loads(run(*words, "--json", code=code))


# status ----------------------------------------------------------------------------------------------------------


def test_status_of_a_notebook_is_the_pinned_object(nb):
    found = run_json("status", nb)
    assert list(found) == ["flow", "status", "run", "holder", "steps", "saved_s"]
    assert (found["status"], found["run"]) == ("running", 2)
    assert f"pid {os.getpid()} on " in found["holder"]
    states = {step["name"]: (step["state"], step["decision"]) for step in found["steps"]}
    assert states == {"load": ("replayed", "replayed"), "fit": ("saved", None), "plot": ("interrupted", None)}
    assert found["saved_s"] == pytest.approx(599.98)


def test_status_as_text(nb):
    lines = run("status", nb).split("\n")
    assert lines[0].startswith(f"{nb}, run 2 running (pid {os.getpid()} on ")
    assert [line.split()[0] for line in lines[1:5]] == ["step", "load", "fit", "plot"]


def test_status_of_a_folder_has_the_newest_flow_first_and_the_others(nb, story, writes, monkeypatch):
    monkeypatch.chdir(nb.parent)
    assert run_json("status")["others"] == []
    story._run = 2
    story.run(RunEnd.CLEAN).step("tune")
    writes(story, nb.parent / ".keel", name="sweep")
    found = run_json("status", ".")
    assert found["flow"] == named_flow("sweep", "")
    assert [flow["steps"][0]["name"] for flow in found["others"]] == ["load"]
    assert run_json("status", "--flow", "sweep")["flow"] == named_flow("sweep", "")
    assert run("status").count(" run ") == 2


def test_an_edited_cell_is_diverged_and_its_followers_stale(nb):
    save(nb, "%%keel_step load\nload = 2", "%%keel_step fit\nfit = 1")
    states = {step["name"]: step["state"] for step in run_json("status", nb)["steps"]}
    assert (states["load"], states["fit"]) == ("diverged", "stale")


@pytest.fixture
def sweep(tmp_path, writes):
    """nb.ipynb, which ran without parameters and with alpha=0.9, which failed, and with alpha=0.3; its path."""
    path = tmp_path / "nb.ipynb"
    save(path, "alpha = 0.1", "%%keel_step work\nwork = 1")
    took = 60.0
    for run, key in enumerate(["", "alpha=0.9", "alpha=0.3"], 1):
        told = Story()
        told._run, took = run - 1, took + 60
        told.run(RunEnd.CLEAN).step(
            "work", Status.FAILED if "9" in key else Status.OK, took=took, why=f"as of {took:.0f}"
        )
        writes(told, tmp_path / ".keel", notebook=path, key=key)
    return path


@pytest.mark.parametrize(
    ("words", "key", "took"),
    [
        ([], "alpha=0.3", "4 min"),
        (["-p", "alpha", "0.9"], "alpha=0.9", "3 min"),
        (["--key", "alpha=0.9"], "alpha=0.9", "3 min"),
        (["--key", ""], "", "2 min"),
        (["-p", "alpha", "0.3"], "alpha=0.3", "4 min"),
    ],
)
def test_of_several_parameter_sets_an_answer_says_which_or_is_of_the_one_that_is_named(sweep, words, key, took):
    for command in (["plan", sweep], ["why", "work", "--in", sweep], ["log", sweep], ["show", "work", "--in", sweep]):
        said = run(*command, *words)
        which = "alpha=0.3, which ran last; also recorded: alpha=0.9, no parameters (`-p NAME VALUE`, or `--key KEY`)"
        assert said.startswith(which) is not bool(words), command
        minutes = int(took.split()[0])
        own = {"plan": f" run {minutes - 1}", "why": f"as of {minutes * 60}"}
        assert own.get(command[0], took) in said, command
    headlines = [line for line in run("status", sweep, *words).splitlines() if ", run " in line]
    assert headlines[0].startswith(f"{sweep} [{key}]," if key else f"{sweep}, ")
    assert len(headlines) == (1 if words else 3)


def test_a_parameter_set_that_never_ran_is_named_with_those_that_did(sweep):
    said = run("plan", sweep, "-p", "alpha", "0.8", code=2)
    assert "parameter set alpha=0.8 is not known here; did you mean alpha=0.9?" in said


def test_a_notebook_that_nobody_named_is_found_in_the_folders_default_flow(tmp_path, three_steps, writes):
    save(tmp_path / "nb.ipynb", "pass")
    writes(three_steps, tmp_path / ".keel")
    assert run_json("status", tmp_path / "nb.ipynb")["flow"] == default_flow()


def test_keel_journal_names_the_folder(nb, tmp_path, monkeypatch):
    (tmp_path / ".keel").rename(tmp_path / "elsewhere")
    run("status", nb, code=1)
    monkeypatch.setenv("KEEL_JOURNAL", str(tmp_path / "elsewhere"))
    assert run_json("status", nb)["run"] == 2
    monkeypatch.delenv("KEEL_JOURNAL")
    assert run_json("status", tmp_path / "elsewhere")["run"] == 2


def test_errors_of_the_command_line_advise_about_the_command_line(tmp_path, nb):
    for command in (
        ("resolve", "deploy", "--value", "yes", "--in", nb),
        ("mv", tmp_path, tmp_path / "x.ipynb"),
        ("status", tmp_path / "empty" / "x.ipynb"),
    ):
        advice = run_json(*command, code=1)["error"]["next"]
        assert "cell" not in advice
        assert "%keel" not in advice
    assert "`keel resolve --help`" in run_json("resolve", "p", "--value", "yes", "--in", nb, code=1)["error"]["next"]


def test_no_journal_and_no_notebook_are_said(tmp_path, nb):
    found = run_json("status", tmp_path / "empty" / "x.ipynb", code=1)["error"]
    assert (found["code"], list(found)) == ("E054", ["code", "title", "what", "why", "next"])
    assert "nothing was recorded here yet" in found["what"]
    unknown = run_json("status", tmp_path / "other.ipynb", code=2)["error"]
    assert (unknown["code"], "`keel status FOLDER`" in unknown["next"]) == ("E002", True)
    (tmp_path / "empty").mkdir()
    for command in (["log"], ["plan"], ["why", "x", "--in"], ["show", "x", "--in"], ["sql", "select 1", "--in"]):
        assert run_json(*command, tmp_path / "empty", code=1)["error"]["code"] == "E054"


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_go_through_the_whole_command_line(kind, tmp_path, story, writes):
    name = HOSTILE[kind]
    story.run(RunEnd.DIED).step(name, writes={"x": "d"}, why=name)
    writes(story, tmp_path / ".keel")
    assert run_json("status", tmp_path)["steps"][0]["name"] == name
    for command in (
        ["status", tmp_path],
        ["log", tmp_path],
        ["show", name, "--in", tmp_path],
        ["why", name, "--in", tmp_path],
    ):
        text = run(*command)
        assert not set(text) & {"\x1b", "\x07", "\r", "\u202e", "\u2028", "\0"}


# log, show, why, plan ----------------------------------------------------------------------------------------------


def test_log_lists_entries_newest_last(nb, three_steps):
    found = run_json("log", nb)["entries"]
    assert [entry["entry"] for entry in found] == [entry.entry for entry in three_steps.entries]
    assert [entry["step"] for entry in run_json("log", nb, "--step", "load")["entries"]] == ["load", "load"]
    assert [entry["step"] for entry in run_json("log", nb, "--limit", "2")["entries"]] == ["plot", "load"]
    assert run("log", nb).count("\n") == len(three_steps.entries) + 1
    run("log", nb, "--step", "nope", code=2)
    run("log", nb, "--limit", "0", code=2)


@pytest.fixture
def with_outputs(tmp_path, story, writes):
    """A step that printed, showed a table and failed, in a journal."""
    messages = [
        Message("stream", {"name": "stdout", "text": "\x1b[31mred\x1b[0m\n" + "line\n" * 300}),
        Message("display_data", {"data": {"text/plain": "a table", "text/html": "<script>alert(1)</script>"}}),
        Message("error", {"ename": "E", "evalue": "v", "traceback": ["Traceback", "boom"]}),
        Message("comm_open", {"comm_id": "1"}),
    ]
    packed = pack_messages(messages)
    story.run().step("load", reads={"path": "p"}, writes={"df": "d1"}, outputs=Blob(len(packed), inline=packed))
    writes(story, tmp_path / ".keel")
    return tmp_path


def test_show_gives_names_inputs_code_and_outputs_as_text(with_outputs, story):
    found = run_json("show", "load", "--in", with_outputs)
    assert found["writes"] == [{"name": "df", "type": "int", "bytes": 8, "digest": "d1", "preview": "d1"}]
    assert found["inputs"][0]["name"] == "path"
    assert found["source"] == story.entries[0].source
    assert found["trusted"]
    stream, table, error = found["outputs"]
    assert stream["text"].startswith("red\nline\n")
    assert table == {"kind": "display_data", "text": "a table", "also": ["text/html"]}
    assert error["text"] == "Traceback\nboom"
    text = run("show", "load", "--in", with_outputs)
    assert "<script>" not in text
    assert "and 101 more lines: --all shows them" in text
    assert "more lines" not in run("show", "load", "--in", with_outputs, "--all")
    assert run_json("show", story.entries[0].entry, "--in", with_outputs) == found


def test_show_knows_attempts_that_left_no_record(nb):
    assert run_json("show", "plot", "--in", nb)["status"] == "running"
    assert run_json("show", "9.9", "--in", nb, code=2)["error"]["what"].startswith("entry 9.9 is not known")
    assert "did you mean load?" in run_json("show", "lod", "--in", nb, code=2)["error"]["what"]


def test_why_says_it_in_one_sentence_first(nb):
    assert run("why", "load", "--in", nb).startswith("load replayed: code and inputs are those of run 1, ")
    assert run_json("why", "plot", "--in", nb)["attempts"][0]["end"] == "died"
    run("why", "nope", "--in", nb, code=2)


def test_plan_reads_the_notebook_file(nb):
    found = run_json("plan", nb)["cells"]
    assert [cell["action"] for cell in found] == ["runs", "replays", "replays", "executes"]
    nb.unlink()
    assert [cell["step"] for cell in run_json("plan", nb)["cells"]] == ["", "load", "fit", "plot"]


def test_sql_is_answered_by_a_child(nb):
    found = run_json("sql", "select step, status from steps order by stamp", "--in", nb)
    assert found == {"columns": ["step", "status"], "rows": [["load", "ok"], ["fit", "ok"], ["plot", "running"]]}
    assert run("sql", "select", "count(*) as n, null as nothing", "from", "steps", "--in", nb).split() == [
        *("n", "nothing", "3", "NULL", "1", "row"),
    ]
    assert run_json("sql", "drop table entries", "--in", nb, code=1)["error"]["code"] == "E007"


# doctor ------------------------------------------------------------------------------------------------------------


def findings(*words, code=0):
    return {found["topic"]: found for found in run_json("doctor", *words, code=code)["findings"]}


def test_doctor_finds_a_sound_journal_well(nb):
    found = findings(nb)
    assert found["contents"]["said"].startswith("1 flow, 2 runs; ")
    assert f"run 2: pid {os.getpid()} on " in found["kernel"]["said"]
    assert found["locks"]["said"] == "files can be written and locked"
    assert found["key"]["level"] == "ok"
    assert run("doctor", nb).startswith("all is well")


def test_what_doctor_found_leaves_what_is_to_be_done_on_the_screen(nb):
    head, *lines = run("doctor", nb).splitlines()[1:]
    found = head.index("found")
    (at,) = [at for at, line in enumerate(lines) if line.startswith("packages")]
    assert lines[at + 1].startswith(" " * found), "the packages go on in a second line"
    assert max(map(len, lines[at : at + 2])) <= found + 80


def test_doctor_changes_nothing(nb):
    def files():
        return sorted(str(path) for path in nb.parent.rglob("*") if path.suffix != ".rss")  # the live kernel's own

    before = files()
    run("doctor", nb)
    run("doctor", nb.parent / "nothing here")
    assert files() == before


def test_doctor_names_what_is_to_be_put_right(nb, tmp_path, monkeypatch):
    key = tmp_path / "config" / "keel" / "owner.key"
    key.chmod(0o644)
    (tmp_path / ".keel").chmod(0o755)
    found = findings(nb, code=1)
    assert (found["key"]["level"], found["key"]["next"]) == ("bad", f"chmod 600 {key}")
    assert found["access"]["level"] == "warn"
    assert run("doctor", nb, code=1).startswith("1 thing to put right, ")


def test_doctor_names_a_missing_package_with_its_pip_line(nb, monkeypatch):
    from keel_notebook.front import doctor

    monkeypatch.setattr(doctor, "NEEDED", ("click", "no-such-package-of-keel"))
    shown = run_json("doctor", nb, code=1)["findings"]
    [missing] = [found for found in shown if found["level"] == "bad"]
    assert missing["next"] == f"{sys.executable} -m pip install no-such-package-of-keel"


def test_c94_doctor_advises_against_cloud_folders(tmp_path):
    (tmp_path / "Dropbox" / "project").mkdir(parents=True)
    assert "Dropbox synchronises this folder" in run("doctor", tmp_path / "Dropbox" / "project")


def test_doctor_tells_damage_and_full_disks(nb, monkeypatch):
    import shutil

    (nb.parent / ".keel" / "damaged").mkdir()
    (nb.parent / ".keel" / "damaged" / "notes.txt").write_text("run 1: a torn frame\n")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 96, 4))
    found = findings(nb, code=1)
    assert found["damage"]["said"] == "run 1: a torn frame"
    assert found["room"]["level"] == "bad"


# What it never does ------------------------------------------------------------------------------------------------


class Bomb:
    def __reduce__(self):
        return (os.system, ("touch fired",))


def test_z30_a_malicious_pickle_stays_bytes_in_every_command(tmp_path, story, writes, monkeypatch):
    bomb = pickle.dumps(Bomb(), protocol=5)
    entry = story.run().step("load", writes={"df": "d1"}, outputs=Blob(len(bomb), inline=bomb))
    story.entries[0] = replace(entry, payload=replace(entry.payload, head=Blob(len(bomb), inline=bomb)))
    writes(story, tmp_path / ".keel")
    (tmp_path / "config" / "keel" / "owner.key").unlink()  # somebody else's journal
    monkeypatch.chdir(tmp_path)
    for command in (["status"], ["log"], ["why", "load"], ["plan"], ["doctor"], ["sql", "select * from entries"]):
        code = 1 if command == ["doctor"] else 0  # it says that nothing can be replayed
        run(*command, code=code)
        run(*command, "--json", code=code)
    assert "KEEL-E051" in run_json("show", "load")["trouble"]
    assert not (tmp_path / "fired").exists()
    assert "1 record not written with your key" in run("status")
    assert run_json("plan")["cells"][0]["action"] == "stops"


def loaded(*words, cwd):
    """The modules that a command has loaded, from a process of its own."""
    script = (
        "import sys; from keel_notebook.front.cli import keel\n"
        "try: keel(sys.argv[1:], standalone_mode=False)\n"
        "except BaseException as error: print(repr(error), file=sys.stderr)\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], cwd=cwd, capture_output=True, text=True, check=True
    )
    assert not done.stderr, done.stderr
    return set(done.stdout.rstrip().split("\n")[-1].split())


def test_commands_load_only_what_they_need(nb):
    cwd = nb.parent
    for words in (["explain", "E031"], ["status", nb], ["why", "load"], ["log"], ["plan", nb], ["show", "load"]):
        modules = loaded(*words, cwd=cwd)
        assert not modules & {"duckdb", "numpy", "pandas", "ipywidgets", "rich", "keel_notebook.payload.pickles"}
        assert not any(name.startswith("keel_notebook.payload.") and name.endswith("codec") for name in modules)
    assert not loaded("explain", "E031", cwd=cwd) & {"IPython", "blake3", "msgpack", "keel_notebook.journal"}


def test_explain_and_status_start_quickly(nb):
    def cpu_s(*words):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], check=True, capture_output=True, cwd=nb.parent)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    floor = min(cpu_s("-c", "import click, msgpack, msgspec, blake3") for _ in range(3))
    for words, most in ((["explain", "E031"], 4.0), (["status", str(nb)], 7.0)):
        best = min(cpu_s("-m", "keel_notebook", *words) for _ in range(3))
        assert best < most * floor, (
            f"{words}: {best:.2f} s of work, an interpreter with what it is made of {floor:.2f} s"
        )


def test_a_terminal_gets_colours_and_a_pipe_does_not(nb):
    import pty

    primary, secondary = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "keel_notebook", "status", str(nb)],
        stdout=secondary,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "160"},
    )
    os.close(secondary)
    shown = b""
    while True:
        try:
            if not (part := os.read(primary, 65536)):
                break
        except OSError:  # Linux says that the other end is closed
            break
        shown += part
    assert child.wait(30) == 0
    os.close(primary)
    assert b"\x1b[" in shown
    assert b"replayed" in shown


def test_output_is_printed_whatever_the_encoding(tmp_path, story, writes):
    story.run().step("日本", why="…")
    writes(story, tmp_path / ".keel")
    env = os.environ | {"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "keel_notebook", "status", str(tmp_path)], capture_output=True, env=env, check=True
    )
    assert rb"\u65e5\u672c" in done.stdout


# The docs ----------------------------------------------------------------------------------------------------------


def test_every_command_and_option_is_in_the_docs():
    text = DOCS.read_text("utf-8")
    for name, command in keel.commands.items():
        assert re.search(rf"^### .*`keel {name}\b", text, re.MULTILINE), name
        assert command.help, name
        for option in command.params:
            if option.param_type_name == "option":
                assert f"`{option.opts[0]}" in text, f"{name} {option.opts[0]}"
        assert any("--json" in option.opts for option in command.params), "every command has --json"


def test_the_docs_show_the_pinned_json_and_the_exit_codes():
    text = DOCS.read_text("utf-8")
    for key in ("flow", "status", "run", "holder", "steps", "saved_s", "replay_s", "not_stored"):
        assert f'"{key}"' in text
    assert all(f"| {code} |" in text for code in (0, 1, 2))


# lanes, revive -----------------------------------------------------------------------------------------------------


def test_lanes_are_listed_with_where_they_left(tmp_path, story, writes):
    story.run().step("load", writes={"x": "d1"})
    story.step("fork", kind=Kind.MARKER, lane="lane-2", key="lane:fork", ambient={"from": ""}, why="code changed")
    story.step("load", lane="lane-2", writes={"x": "d2"})
    writes(story, tmp_path / ".keel")
    main, second = run_json("lanes", tmp_path)["lanes"]
    assert (main["name"], main["current"], main["steps"], main["left"]) == ("main", False, 1, None)
    assert (second["name"], second["current"], second["left"], second["why"]) == (
        "lane-2",
        True,
        "main",
        "code changed",
    )
    assert run("lanes", tmp_path).splitlines()[1].startswith("* lane-2")


def test_a_dead_step_is_revived_from_the_command_line(tmp_path, story, writes):
    for _ in range(3):
        story.run(RunEnd.DIED).step("fit", Status.RUNNING)
    writes(story, tmp_path / ".keel")
    before = run_json("status", tmp_path)
    assert before["steps"][0]["state"] == "dead"
    run("revive", "gone", "--in", tmp_path, code=2)
    assert "may run again" in run("revive", "fit", "--in", tmp_path)
    after = run_json("status", tmp_path)
    assert (after["steps"][0]["state"], after["run"]) == ("interrupted", before["run"])


@pytest.mark.parametrize(
    "words", [("status",), ("log",), ("plan",), ("lanes",), ("doctor",), ("gc", "--dry-run"), ("fsck",)]
)
def test_every_command_takes_its_place_with_in_as_well_as_by_a_word(words, nb, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    by_word = CliRunner().invoke(keel, [words[0], str(nb), *words[1:]])
    with_in = CliRunner().invoke(keel, [*words, "--in", str(nb)])
    assert with_in.exit_code == by_word.exit_code == 0
    if words[0] != "doctor":  # what it says of the drive and its room may be another a moment later
        assert with_in.output == by_word.output
    twice = CliRunner().invoke(keel, [*words, str(nb), "--in", str(tmp_path)])
    assert (twice.exit_code, "the place is named already" in twice.stderr) == (1, True)

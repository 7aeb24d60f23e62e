"""Renaming, packing and unpacking a journal, and answering a promise, from the command line (issue 4, 5 and 8)."""

import io
import json
import stat
import tarfile

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from keel_notebook.core.jobs import Job, job_id
from keel_notebook.core.model import Kind, Status
from keel_notebook.core.parameters import flow_key
from keel_notebook.engine.waits import token_hash
from keel_notebook.front.cli import keel
from keel_notebook.front.cli_run import default_output
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.flows import find_flow
from keel_notebook.journal.jobs import Jobs
from keel_notebook.payload.seal import OwnerSeal, owner_key

from .test_cli import Clock, nb, own_settings, run, run_json, save, writes  # noqa: F401 - fixtures


@pytest.mark.parametrize("renamed", ["by keel", "by hand before"])
def test_mv_takes_the_records_along(nb, renamed):  # noqa: F811
    new = nb.with_name("renamed.ipynb")
    before = run_json("status", nb)
    if renamed == "by hand before":
        nb.rename(new)
    assert run_json("mv", nb, new)["flows"] == 1
    assert new.is_file()
    assert not nb.exists()
    assert run_json("status", new)["flow"] == before["flow"]
    assert run_json("status", nb, code=2)["error"]["code"] == "E002"


def test_mv_refuses_what_would_mix_two_notebooks(nb, tmp_path, story, writes):  # noqa: F811
    other = tmp_path / "other.ipynb"
    save(other, "pass")
    assert run_json("mv", nb, other, code=1)["error"]["code"] == "E008"
    (tmp_path / "sub").mkdir()
    assert run_json("mv", nb, tmp_path / "sub" / "b.ipynb", code=1)["error"]["code"] == "E008"
    assert run_json("mv", nb, tmp_path, code=1)["error"]["code"] == "E001"
    assert run_json("status", nb)["run"] == 2


def test_mv_refuses_a_name_that_nothing_goes_by(nb):  # noqa: F811
    """Neither a record nor a file: a slip of the pen must not look like a rename."""
    new = nb.with_name("renamed.ipynb")
    error = run_json("mv", nb.with_name("nc.ipynb"), new, code=2)["error"]
    assert error["code"] == "E002"
    assert error["what"].endswith(f"did you mean {nb}?")
    assert "no such file" in error["why"]
    assert not new.exists()
    assert run_json("mv", nb, new)["flows"] == 1


def test_a_packed_journal_says_the_same_elsewhere(nb, tmp_path):  # noqa: F811
    packed = tmp_path / "journal.keel"
    assert run_json("export", packed, "--in", nb)["files"] > 3
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600
    assert run_json("export", packed, "--in", nb, code=1)["error"]["code"] == "E008"
    there = tmp_path / "there"
    there.mkdir()
    save(there / "nb.ipynb", "pass")
    run("import", packed, "--in", there)
    assert (there / ".keel" / "salt").read_bytes() == (tmp_path / ".keel" / "salt").read_bytes()
    assert not (there / ".keel" / "leases").exists()
    here, moved = run_json("status", nb), run_json("status", there / "nb.ipynb")
    assert moved["flow"] == here["flow"]
    assert [(s["name"], s["bytes"], s["recorded_at"]) for s in moved["steps"]] == [
        (s["name"], s["bytes"], s["recorded_at"]) for s in here["steps"]
    ]
    assert run_json("import", packed, "--in", there, code=1)["error"]["code"] == "E008"


def _archive(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for name, kind in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd" if kind != tarfile.REGTYPE else ""
            info.size = 4 if kind == tarfile.REGTYPE else 0
            archive.addfile(info, io.BytesIO(b"evil"))


@pytest.mark.parametrize(
    "member",
    [
        ("../evil", tarfile.REGTYPE),
        ("objects/../../evil", tarfile.REGTYPE),
        ("/tmp/evil", tarfile.REGTYPE),
        ("objects/link", tarfile.SYMTYPE),
        ("objects/link", tarfile.LNKTYPE),
        ("objects/pipe", tarfile.FIFOTYPE),
        ("leases/f.json", tarfile.REGTYPE),
    ],
)
def test_an_archive_that_is_no_journal_leaves_nothing_behind(tmp_path, member):
    _archive(tmp_path / "evil.keel", ("salt", tarfile.REGTYPE), member)
    assert run_json("import", tmp_path / "evil.keel", "--in", tmp_path, code=1)["error"]["code"] == "E008"
    assert not (tmp_path / ".keel").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00"])
def test_a_file_that_is_no_archive_is_said(tmp_path, content):
    (tmp_path / "x.keel").write_bytes(content)
    assert run_json("import", tmp_path / "x.keel", "--in", tmp_path, code=1)["error"]["code"] == "E008"


TOKEN = "5ec2e7" * 10


@pytest.fixture
def promised(nb, story):  # noqa: F811
    """A promise that a dead kernel made; its id."""
    folder = nb.parent / ".keel"
    flow = find_flow(folder, notebook=nb).id
    promise = f"{flow}:{'a' * 20}"
    journal = open_journal(folder, clock=Clock, seal=OwnerSeal(owner_key(path=None)), notebook="", cwd="", rest_s=None)
    story._run = journal.run - 1
    story.run()
    made = story.step(
        "gate", Status.RUNNING, kind=Kind.PROMISE, key=promise, call="promise",
        ambient={"token_hash": token_hash(flow, promise, TOKEN), "name": "go"},
    )  # fmt: skip
    from msgspec.structs import replace

    journal.append(replace(made, flow=flow), synced=True)
    journal.close(clean=False)
    return promise


def test_z33_a_promise_is_answered_with_its_token_only(nb, promised):  # noqa: F811
    """Z32, Z33, Z37: while the kernel is gone, from another process, once."""
    where = ("--in", nb)
    wrong = run_json("resolve", promised, "--token", "wrong", *where, code=1)["error"]
    assert wrong["code"] == "E070"
    assert "wrong" not in json.dumps(wrong)
    assert run_json("resolve", promised[:-1] + "b", "--token", TOKEN, *where, code=1)["error"]["code"] == "E071"
    assert run_json("resolve", promised, "--token", TOKEN, "--value", "yes", *where, code=1)["error"]["code"] == "E001"
    found = run_json("resolve", promised, "--token", TOKEN, "--value", '{"ok": true}', *where)
    assert found == {"promise": promised, "resolved": True, "first": True}
    assert not run_json("resolve", promised, "--token", TOKEN, "--value", "false", *where)["first"]


@pytest.mark.parametrize("given", ["environment", "standard input"])
def test_the_token_need_not_stand_on_the_command_line(nb, promised, given):  # noqa: F811
    env, text = ({"KEEL_TOKEN": TOKEN}, "") if given == "environment" else ({}, TOKEN + "\n")
    done = CliRunner().invoke(keel, ["resolve", promised, "--in", str(nb)], env=env, input=text)
    assert (done.exit_code, TOKEN in done.output) == (0, False), done.output


def test_gc_says_what_goes_and_refuses_what_it_cannot_read(nb, story, writes):  # noqa: F811
    found = run_json("gc", nb, "--dry-run")
    assert (found["dry_run"], found["objects"], found["over_budget"]) == (True, 0, 0)
    assert run("gc", nb, "--dry-run").startswith("nothing to let go")
    assert run_json("gc", nb, "--keep", "soon", code=1)["error"]["code"] == "E001"
    assert run_json("gc", nb, "--budget", "much", code=1)["error"]["code"] == "E001"


@pytest.mark.parametrize("output", ["", "elsewhere.ipynb"])
@pytest.mark.parametrize("parameters", [(), (("alpha", 0.5), ("n", 3))])
def test_mv_takes_the_jobs_along_that_were_left_and_no_other(nb, parameters, output):  # noqa: F811
    key = flow_key(dict(parameters), "k")
    usual = default_output(nb, key)
    job = Job(
        id=job_id(str(nb), "", key), notebook=str(nb), output=output or str(usual), key="k", flow="", timeout="2h",
        parameters=parameters, tries=2, mark="1.7", began_at=5.0,
    )  # fmt: skip
    jobs = Jobs(nb.parent / ".keel", OwnerSeal(owner_key(path=None)))
    other = replace(job, id=job_id("other", "", key), notebook=str(nb.with_name("other.ipynb")))
    running = replace(job, id=job_id(str(nb), "named", key), flow="named")
    jobs.begin(job).leave()
    jobs.begin(other).leave()
    held = jobs.begin(running)
    new = nb.with_name("renamed.ipynb")
    assert run_json("mv", nb, new)["jobs"] == 1
    held.leave()
    found = {one.id: one for one, _ in jobs.listed()}
    moved = replace(
        job, id=job_id(str(new), "", key), notebook=str(new), output=output or str(default_output(new, key))
    )
    assert found == {moved.id: moved, other.id: other, running.id: running}

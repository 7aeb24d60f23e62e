"""Which flow a notebook is (DESIGN 5, C90, C92): found by an id of its own, not by its path."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from keel_notebook.core.ids import default_flow, named_flow
from keel_notebook.core.model import Digest
from keel_notebook.errors import JournalUnreachableError
from keel_notebook.journal import troubles
from keel_notebook.journal.disk import open_journal
from keel_notebook.journal.flows import adopt, find_flow, known_flows, note_first_step
from keel_notebook.journal.reader import read_journal
from tests.journal.journals import KeySeal, RealClock, entry, killed_child, opened

CODE = Digest("c" * 32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    opened(tmp_path / "project" / ".keel")
    return tmp_path / "project" / ".keel"


def notebook(folder: Path, name: str = "a.ipynb") -> Path:
    path = folder.parent / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    return path


def test_a_notebook_is_the_same_flow_every_time_and_another_one_is_not(folder: Path) -> None:
    a, b = notebook(folder), notebook(folder, "b.ipynb")
    assert find_flow(folder, notebook=a).id == find_flow(folder, notebook=a).id
    assert find_flow(folder, notebook=a).id != find_flow(folder, notebook=b).id
    assert find_flow(folder, notebook=a).notebook == str(a)


def test_k1_a_name_and_its_key_are_a_flow_whatever_the_notebook(folder: Path) -> None:
    a = notebook(folder)
    assert find_flow(folder, notebook=a, name="nightly").id == named_flow("nightly", "")
    assert find_flow(folder, notebook=None, name="nightly").id == named_flow("nightly", "")
    assert find_flow(folder, notebook=a, name="nightly", key="2024").id == named_flow("nightly", "2024")
    assert find_flow(folder, notebook=a, name="nightly").name == "nightly"


def test_c78_a_key_alone_is_another_flow_of_the_same_notebook(folder: Path) -> None:
    a = notebook(folder)
    assert len({find_flow(folder, notebook=a, key=key).id for key in ("", "alpha=1", "alpha=2")}) == 3


def test_c92_where_nobody_tells_it_is_the_folders_default_flow(folder: Path) -> None:
    assert find_flow(folder, notebook=None).id == default_flow()


def test_two_ways_to_the_same_place_are_one_flow(folder: Path, tmp_path: Path) -> None:
    a = notebook(folder)
    (tmp_path / "link").symlink_to(folder.parent)
    through_link = find_flow(tmp_path / "link" / ".keel", notebook=tmp_path / "link" / "a.ipynb")
    assert through_link.id == find_flow(folder, notebook=a).id
    assert through_link.id == find_flow(folder, notebook=folder.parent / "sub" / ".." / "a.ipynb").id


def test_eight_kernels_that_open_a_new_notebook_at_once_agree(folder: Path) -> None:
    a = notebook(folder)
    children = [
        killed_child(lambda fd: bool(os.write(fd, find_flow(folder, notebook=a).id.encode()))) for _ in range(8)
    ]
    readings = [child.__enter__()[1] for child in children]
    found = {os.read(reading, 100) for reading in readings}
    for child in children:
        child.__exit__(None, None, None)
    assert found == {find_flow(folder, notebook=a).id.encode()}


def test_c90_a_folder_that_moves_with_its_notebook_keeps_the_flow(folder: Path, tmp_path: Path) -> None:
    before = find_flow(folder, notebook=notebook(folder)).id
    shutil.move(folder.parent, tmp_path / "elsewhere")
    assert find_flow(tmp_path / "elsewhere" / ".keel", notebook=tmp_path / "elsewhere" / "a.ipynb").id == before


def test_c90_a_renamed_notebook_takes_its_flow_along(folder: Path) -> None:
    a = notebook(folder)
    before = note_first_step(find_flow(folder, notebook=a), CODE)
    b = a.rename(folder.parent / "b.ipynb")
    assert find_flow(folder, notebook=b).id != before.id, "at first nothing tells that it is the same"
    adopted = adopt(folder, notebook=b, first_code=CODE)
    assert adopted is not None
    assert adopted.id == before.id
    assert adopted.notebook == str(b)
    assert find_flow(folder, notebook=b).id == before.id
    assert adopt(folder, notebook=b, first_code=CODE) is None, "it has a first step now"
    assert [flow.id for flow in known_flows(folder)] == [before.id]


@pytest.mark.parametrize("why", ["copy", "other code", "two fit", "named", "no code", "other key", "own step"])
def test_c90_a_copy_or_a_doubtful_case_is_a_new_flow(folder: Path, why: str) -> None:
    a = notebook(folder)
    if why == "named":
        find_flow(folder, notebook=a, name="n")
        note_first_step(find_flow(folder, notebook=a, name="n"), CODE)
    else:
        note_first_step(find_flow(folder, notebook=a, key="k" if why == "other key" else ""), CODE)
    if why == "two fit":
        note_first_step(find_flow(folder, notebook=notebook(folder, "a2.ipynb")), CODE)
        (folder.parent / "a2.ipynb").unlink()
    if why != "copy":
        a.unlink()
    b = notebook(folder, "b.ipynb")
    new = find_flow(folder, notebook=b)
    if why == "own step":
        note_first_step(new, Digest("e" * 32))
    code = {"other code": Digest("d" * 32), "no code": None}.get(why, CODE)
    assert adopt(folder, notebook=b, first_code=code) is None
    assert find_flow(folder, notebook=b).id == new.id


def test_the_first_step_follows_its_edits(folder: Path) -> None:
    a = notebook(folder)
    flow = note_first_step(find_flow(folder, notebook=a), CODE)
    assert note_first_step(flow, CODE) is flow
    assert note_first_step(flow, None) is flow
    edited = note_first_step(flow, Digest("e" * 32))
    assert find_flow(folder, notebook=a).first_code == edited.first_code == "e" * 32
    assert note_first_step(find_flow(folder, notebook=None), CODE).first_code is None


def test_a_damaged_flow_file_is_set_aside_and_a_newer_one_is_refused(folder: Path) -> None:
    a = notebook(folder)
    flow = find_flow(folder, notebook=a)
    Path(flow.file).write_text("{half")
    assert find_flow(folder, notebook=a).id != flow.id
    assert "damaged" in troubles(folder)[0]
    kept = json.loads(Path(flow.file).read_text())
    Path(flow.file).write_text(json.dumps({**kept, "schema": "keel.flow/v2", "check": None}))
    with pytest.raises(JournalUnreachableError, match="newer"):
        find_flow(folder, notebook=a)


@pytest.mark.parametrize("at", range(0, 180, 9))
def test_c82_a_bit_flipped_in_a_flow_file_leads_to_no_other_flow(folder: Path, at: int) -> None:
    a = notebook(folder)
    flow = find_flow(folder, notebook=a)
    raw = bytearray(Path(flow.file).read_bytes())
    raw[at] ^= 0x11
    Path(flow.file).write_bytes(raw)
    assert find_flow(folder, notebook=a).id == flow.id or "damaged" in troubles(folder)[0]


def test_c82_the_flow_of_a_damaged_file_is_found_again_by_its_runs(folder: Path) -> None:
    a = notebook(folder)
    flow = note_first_step(find_flow(folder, notebook=a), CODE)
    journal = open_journal(folder, clock=RealClock(), seal=KeySeal(), notebook=str(a), cwd="/", rest_s=None)
    journal.append(entry(journal, flow=flow.id))
    journal.close(clean=True)
    Path(flow.file).write_text("{half")
    known_flows(folder)  # whoever lists them sets it aside
    assert find_flow(folder, notebook=a).id == flow.id
    assert "damaged" in troubles(folder)[0]
    assert find_flow(folder, notebook=notebook(folder, "b.ipynb")).id != flow.id


def test_the_reader_lists_flows_with_notebook_activity_and_runs(folder: Path) -> None:
    a = notebook(folder)
    flow, quiet = find_flow(folder, notebook=a), find_flow(folder, notebook=None, name="quiet")
    for _ in range(2):
        journal = opened(folder)
        journal.append(entry(journal, flow=flow.id))
        journal.close(clean=True)
    journal.close(clean=True)
    active, silent = read_journal(folder, seal=None).flows()
    assert (active.id, active.notebook, active.runs) == (flow.id, str(a), (2, 3))
    assert active.newest is not None
    assert (silent.id, silent.name, silent.newest, silent.runs) == (quiet.id, "quiet", None, ())

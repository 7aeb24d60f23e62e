"""Which files count by name, because an installer put them there (DESIGN 6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from keel_notebook.capture.installed import is_installed

FILES = {
    "lib/model/__init__.py": True,
    "lib/model/deep/part.py": True,
    "lib/single.py": True,
    "lib/own.py": False,
    "lib/modelling/__init__.py": False,
    "own.py": False,
    "model/__init__.py": False,
}


@pytest.mark.parametrize("name", FILES)
def test_what_an_installer_put_into_a_folder_of_its_own_choice_is_installed(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    monkeypatch.syspath_prepend(str(tmp_path))
    record = tmp_path / "lib" / "model-1.0.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.write_text(
        "model/__init__.py,sha256=x,1\nmodel/deep/part.py,,\nsingle.py,,\nmodel-1.0.dist-info/RECORD,,\n../bin/m,,\n"
    )
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    assert is_installed(str(path)) is FILES[name]


@pytest.mark.parametrize("content", [b"\xff\xfe", b'"', b"own.py,\0"])
def test_a_record_that_cannot_be_read_installs_nothing(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "a-1.dist-info").mkdir()
    (tmp_path / "a-1.dist-info" / "RECORD").write_bytes(content)
    assert not is_installed(str(tmp_path / "model.py"))

"""Which flow a notebook is: a random id, kept with the notebook's path relative to the journal (DESIGN 5).

One small file per flow in ``flows/``, created whole under a name that follows from the path, so that two kernels
which open the same notebook at once agree. A folder that moves with its notebooks keeps its flows; a notebook
that is renamed takes its flow along once its first step is known (C90).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import time
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from keel_notebook.core.ids import default_flow, named_flow, text_digest
from keel_notebook.core.model import Digest, FlowId
from keel_notebook.errors import JournalUnreachableError, UnknownNameError, WrongFileError
from keel_notebook.journal.damage import set_aside, was_set_aside
from keel_notebook.journal.faults import spoken
from keel_notebook.journal.folder import Folder
from keel_notebook.journal.wholefiles import create_whole, read_whole, replace_whole

_SCHEMA: Final = "keel.flow/v1"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
"""What an id is made of: files are named after it, so that one of a stranger must not lead elsewhere."""


class FlowSeen(Struct, frozen=True):
    """A flow as it is found in a journal."""

    id: FlowId
    name: str = ""
    """The name that a person gave it; empty if its notebook's path is its only name."""
    key: str = ""
    notebook: str = ""
    """Absolute path of the notebook; empty where nobody tells."""
    newest: float | None = None
    """When something was last recorded, seconds since the epoch; None if never, or if not looked for."""
    runs: tuple[int, ...] = ()
    first_code: Digest | None = None
    """Code of the first step that was executed in it, for ``adopt``."""
    file: str = ""
    """Where this is kept; empty for the default flow."""
    auto_s: float | None = None
    """In auto mode: cells slower than this are replayed, seconds. None: every step is marked."""

    @property
    def title(self) -> str:
        """What people call it: its name, else its notebook's, with its key."""
        called = self.name or os.path.basename(self.notebook) or self.id
        return f"{called} ({self.key})" if self.key else called


def find_flow(folder: Path, *, notebook: Path | None, name: str = "", key: str = "") -> FlowSeen:
    """The flow of a notebook or name, made if it is not there. Kernels that ask at once get the same.

    ``name`` wins over the path; without both it is the folder's default flow. Raises DiskFullError and
    JournalUnreachableError; where the folder is only readable, a flow that is not kept in it.
    """
    place = Folder(folder)
    path = "" if notebook is None else _absolute(notebook)
    if name:
        wanted = FlowSeen(named_flow(name, key), name, key, path, file=f"{place.flows}/{named_flow(name, key)}")
    elif path:
        wanted = FlowSeen(_random_id(), "", key, path, file=_file_of(place, path, key))
    else:
        return FlowSeen(default_flow())
    with spoken(place.path):
        return _found_or_made(place, wanted)


def seen_flow(folder: Path, *, notebook: Path | None, name: str = "", key: str = "") -> FlowSeen:
    """As ``find_flow``, and nothing is made or kept: for who only compares.

    Raises UnknownNameError (E002) where the journal does not know the notebook or the name.
    """
    path = "" if notebook is None else _absolute(notebook)
    if not name and not path:
        return FlowSeen(default_flow())
    wanted = named_flow(name, key) if name else _file_of(Folder(folder), path, key)
    for flow in known_flows(folder):
        if wanted == (flow.id if name else flow.file):
            return replace(flow, file="")
    what, told = ("flow", name) if name else ("notebook", path)
    raise UnknownNameError(what=what, name=told, hint="; nothing was recorded of it here")


def known_flows(folder: Path | str) -> list[FlowSeen]:
    """Every flow that a notebook or a name stands for. Raises OSError.

    Files that are damaged, or of a newer version of keel, are left out.
    """
    place = Folder(folder)
    try:
        names = sorted(os.listdir(place.flows))
    except FileNotFoundError:
        return []
    found: list[FlowSeen] = []
    for name in names:
        with contextlib.suppress(JournalUnreachableError):
            flow = None if name.startswith(".") else _read(place, f"{place.flows}/{name}")
            found += [] if flow is None else [flow]
    return found


def note_first_step(flow: FlowSeen, code: Digest | None) -> FlowSeen:
    """Keep the code of the first step that was executed in a flow, and return the flow with it.

    Where that cannot be written, the flow as it was: a later kernel notes it, and no record needs it.
    """
    if not flow.file or code is None or flow.first_code == code:
        return flow
    place = Folder(os.path.dirname(os.path.dirname(flow.file)))
    noted = replace(flow, first_code=code)
    try:
        replace_whole(flow.file, _encoded(place, noted))
    except OSError:
        return flow
    return noted


def note_auto(flow: FlowSeen, auto_s: float | None) -> FlowSeen:
    """Keep whether the flow is in auto mode (`%keel auto`), and return the flow with it.

    The default flow, which stands for no notebook in particular, keeps nothing. Raises DiskFullError and
    JournalUnreachableError.
    """
    noted = replace(flow, auto_s=auto_s)
    if flow.file and flow.auto_s != auto_s:
        place = Folder(os.path.dirname(os.path.dirname(flow.file)))
        with spoken(place.path):
            replace_whole(flow.file, _encoded(place, noted))
    return noted


def adopt(folder: Path, *, notebook: Path, first_code: Digest | None, key: str = "") -> FlowSeen | None:
    """Take over the one flow with equal first-step code whose notebook is gone: the notebook was renamed (C90).

    None where the notebook's own flow already has a first step, where no flow or more than one fits, and where
    the fitting one's notebook is still there (then this one is a copy). Raises DiskFullError and
    JournalUnreachableError.
    """
    place = Folder(folder)
    path = _absolute(notebook)
    target = _file_of(place, path, key)
    with spoken(place.path):
        own = _read(place, target)
        if first_code is None or (own is not None and own.first_code is not None):
            return None
        equal = [
            flow
            for flow in known_flows(place.path)
            if flow.first_code == first_code and not flow.name and flow.key == key and flow.file != target
        ]
        gone = [flow for flow in equal if not os.path.exists(flow.notebook)]
        if len(gone) != 1:
            return None
        try:
            os.replace(gone[0].file, target)  # one of two kernels that race gets it, the other stays a new flow
        except FileNotFoundError:
            return None
        adopted = replace(gone[0], notebook=path, file=target)
        with contextlib.suppress(OSError):  # only what people see: the file lies under the new path already
            replace_whole(target, _encoded(place, adopted))
        return adopted


def move_flows(folder: Path, old: Path, new: Path) -> int:
    """Let the flows of notebook ``old`` be those of ``new``, which must have none with a step; how many moved.

    Raises WrongFileError (E008) where ``new`` has records of its own, DiskFullError and JournalUnreachableError.
    """
    place = Folder(folder)
    before, after = _absolute(old), _absolute(new)
    with spoken(place.path):
        flows = known_flows(place.path)
        taken = [flow for flow in flows if flow.notebook == after and not flow.name and flow.first_code is not None]
        if taken:
            raise WrongFileError(where=f"notebook {new.name}", detail="has records of its own")
        moved = [flow for flow in flows if flow.notebook == before]
        for flow in moved:
            file = flow.file if flow.name else _file_of(place, after, flow.key)
            if file != flow.file:
                os.replace(flow.file, file)
            replace_whole(file, _encoded(place, replace(flow, notebook=after, file=file)))
    return len(moved)


def _found_or_made(place: Folder, wanted: FlowSeen) -> FlowSeen:
    found = _read(place, wanted.file)
    if found is None:
        if was_set_aside(place, wanted.file):
            wanted = _found_by_runs(place, wanted)
        try:
            os.makedirs(place.flows, mode=0o700, exist_ok=True)
            create_whole(wanted.file, _encoded(place, wanted))
        except OSError:
            if os.access(place.path, os.W_OK):
                raise
            return wanted  # a folder that is only readable: nothing is going to be recorded under this flow
        found = _read(place, wanted.file) or wanted
    if found.notebook != wanted.notebook and wanted.notebook:
        found = replace(found, notebook=wanted.notebook)
        with contextlib.suppress(OSError):  # only what people see
            replace_whole(found.file, _encoded(place, found))
    return found


def _found_by_runs(place: Folder, wanted: FlowSeen) -> FlowSeen:
    from keel_notebook.journal.lostflows import flow_of_runs  # noqa: PLC0415 it reads this module, and is hardly needed

    known = {flow.id for flow in known_flows(place.path)}
    lost = None if wanted.name else flow_of_runs(place, _relative(place, wanted.notebook), known=known)
    return wanted if lost is None else replace(wanted, id=lost)


def _read(place: Folder, file: str) -> FlowSeen | None:
    try:
        raw = _parsed(file)
    except FileNotFoundError:
        return None
    except ValueError:
        with contextlib.suppress(OSError):
            set_aside(place, [file], "A file that says which notebook is which flow was damaged.")
        return None
    if raw.get("schema") != _SCHEMA:
        raise JournalUnreachableError(
            journal=place.path, detail="it was written by a newer version of keel", case="newer"
        )
    notebook = str(raw.get("notebook", ""))
    if notebook:
        notebook = os.path.normpath(os.path.join(os.path.dirname(place.path), notebook))
    code, auto = raw.get("first_code"), raw.get("auto")
    return FlowSeen(
        FlowId(raw["flow"]),
        str(raw.get("name", "")),
        str(raw.get("key", "")),
        notebook,
        first_code=Digest(code) if isinstance(code, str) else None,
        file=file,
        auto_s=float(auto) if isinstance(auto, int | float) else None,
    )


def _parsed(file: str) -> dict[str, Any]:
    for last in (False,) * 20 + (True,):
        try:
            raw = json.loads(read_whole(file))
            if isinstance(raw, dict) and _is_plain(raw.get("flow")) and _is_whole(raw):
                return raw
        except ValueError:
            pass
        if not last:
            time.sleep(0.01)  # made without links, by a kernel that has not written it yet
    raise ValueError("not a flow")


def _is_plain(ident: object) -> bool:
    return isinstance(ident, str) and _PLAIN.fullmatch(ident) is not None


def _is_whole(raw: dict[str, Any]) -> bool:
    return raw.get("check") in {None, _check(raw)}  # None: written before files had one


def _check(raw: dict[str, Any]) -> Digest:
    return text_digest("flow file", json.dumps({**raw, "check": None}, sort_keys=True))


def _encoded(place: Folder, flow: FlowSeen) -> bytes:
    kept: dict[str, Any] = {"schema": _SCHEMA, "flow": flow.id, "name": flow.name, "key": flow.key}
    kept["notebook"] = _relative(place, flow.notebook) if flow.notebook else ""
    kept["first_code"] = flow.first_code
    if flow.auto_s is not None:
        kept["auto"] = flow.auto_s
    kept["check"] = _check(kept)
    return json.dumps(kept, indent=1).encode("utf-8", "surrogatepass")


def _random_id() -> FlowId:
    return FlowId("f" + secrets.token_hex(12))


def _file_of(place: Folder, notebook: str, key: str) -> str:
    return f"{place.flows}/p-{text_digest('notebook', _relative(place, notebook), key)}"


def _absolute(notebook: Path) -> str:
    # Folders are resolved, so that two ways to the same place agree; a notebook that is itself a link is not.
    return os.path.join(os.path.realpath(notebook.parent), notebook.name)


def _relative(place: Folder, notebook: str) -> str:
    return os.path.relpath(notebook, os.path.realpath(os.path.dirname(place.path)))

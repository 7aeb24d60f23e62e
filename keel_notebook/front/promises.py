"""Which promise a person means: by its id, its name, or the token that was shown when it was made (Z31-Z33).

Nothing is answered here. A token that is on the command line in the place of a name is never repeated in a message.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from keel_notebook.core.model import Entry, Kind
from keel_notebook.core.waiting import open_waits
from keel_notebook.core.why import hint
from keel_notebook.engine.waits import TOKEN_BYTES, token_hash
from keel_notebook.errors import NotNowError, UnknownPromiseError
from keel_notebook.front.cli_open import OpenFlow

_TOKEN = re.compile(rf"[0-9a-f]{{{2 * TOKEN_BYTES}}}")


class Meant(Struct, frozen=True):
    """The promise that is meant, and the token where that is how it was named."""

    id: str
    token: str = ""


def meant(flows: Sequence[OpenFlow], said: str) -> Meant:
    """The promise behind an id, a name or a token. One that waits goes before one that was answered.

    Raises UnknownPromiseError (E071); NotNowError (E006) where a name is that of several.
    """
    made = [(flow, entry) for flow in flows for entry in _made(flow.records.entries)]
    if any(entry.key == said for _, entry in made):
        return Meant(said)
    named = [(flow, entry) for flow, entry in made if entry.ambient.get("name") == said]
    waiting = {wait.id for flow in flows for wait in open_waits(flow.records.entries)}
    chosen = [pair for pair in named if pair[1].key in waiting] or named[-1:]
    if len(chosen) > 1:
        ids = ", ".join(f"{entry.key} ({flow.title})" for flow, entry in chosen)
        raise NotNowError(
            where=f"the promise {said}", detail=f"it is there {len(chosen)} times, give its id: {ids}", case="many"
        )
    if chosen:
        return Meant(chosen[0][1].key)
    if _TOKEN.fullmatch(said):
        for flow, entry in made:
            if hmac.compare_digest(token_hash(flow.records.flow, entry.key, said), str(entry.ambient["token_hash"])):
                return Meant(entry.key, said)
        raise UnknownPromiseError(promise="none has this token")
    names = {str(entry.ambient.get("name", "")) for _, entry in made if entry.key in waiting}
    raise UnknownPromiseError(promise=said + (hint(said, names) if names else ""))


def _made(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.kind is Kind.PROMISE and entry.call == "promise"]

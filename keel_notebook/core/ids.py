"""Ids and digests of plain text: the only place where they are made (STYLE 5)."""

from __future__ import annotations

import hashlib

from keel_notebook.core.model import Digest, FlowId


def text_digest(*parts: str) -> Digest:
    """32 hex digits over length-prefixed parts, so that moved boundaries never collide (Z3)."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        state.update(len(raw).to_bytes(8, "big"))
        state.update(raw)
    return Digest(state.hexdigest())


def journal_id(salt: bytes) -> str:
    """What a journal is called where somebody trusts it (KEEL_TRUST); it goes wherever its folder goes."""
    return text_digest("journal", salt.hex())[:16]


def named_flow(name: str, key: str) -> FlowId:
    """The id of a flow that a person named: a pure function of name and key (K1)."""
    return FlowId("n" + text_digest("flow", name, key)[:24])


def default_flow() -> FlowId:
    """The flow of a folder in which nobody says which notebook runs."""
    return FlowId("default")

"""Whether an answer says that the work behind it is still going on (the poll layer). What cannot be judged is final."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from keel_notebook.core.callrules import Poll


def pending(payload: Any, poll: Poll) -> bool:
    """Whether to ask again: the answer has the field, and its value is none of those that end it."""
    document = _document(payload)
    if document is None or poll.field not in document:
        return False
    value = document[poll.field]
    return not (isinstance(value, str) and value in poll.terminal)


def _document(payload: Any) -> dict[str, Any] | None:
    """The object in an answer: the payload itself, or the body of an HTTP envelope."""
    if not isinstance(payload, dict):
        return None
    if "body_b64" not in payload and not {"status", "headers"} <= payload.keys():
        return payload
    body = payload.get("body_b64")
    if not isinstance(body, str):
        return None
    try:
        raw = base64.b64decode(body, validate=True)
        if base64.b64encode(raw).decode("ascii") != body:
            return None  # another spelling of the same bytes: whoever wrote it does not mean what we would read
        found = json.loads(raw)
    except (binascii.Error, ValueError):
        return None
    return found if isinstance(found, dict) else None

"""What a refusal says that the mode made (DESIGN 3.5): no wish and no edit of the step helps there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from keel_notebook.core.decide import Mode

IN_MODE: Final[Mapping[Mode, Mapping[str, str]]] = {
    Mode.REPLAY: {
        "why": "In replay mode (KEEL_MODE=replay) what holds is put back and nothing executes: here nothing holds.",
        "next": "Run it without KEEL_MODE=replay (`%config Keel.mode = 'live'`): in replay mode nothing executes.",
    },
    Mode.VERIFY: {
        "why": "In verify mode (KEEL_MODE=verify) what must not happen twice is put back, never done.",
        "next": "Run it without KEEL_MODE=verify once, so that there is a record to put back.",
    },
}
"""``why`` and ``next`` of an E031, instead of those of the catalogue."""

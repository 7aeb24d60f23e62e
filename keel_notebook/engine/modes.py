"""What a refusal says that the mode made (DESIGN 3.5): no wish and no edit of the step helps there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from keel_notebook.core.decide import Mode

IN_MODE: Final[Mapping[Mode, str]] = {Mode.REPLAY: "replay", Mode.VERIFY: "verify"}
"""The case of an E031 in the catalogue."""

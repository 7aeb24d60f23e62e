"""Whether keel is off in this kernel, told first by whatever shows steps: a table of records looks as if it were on."""

from __future__ import annotations

from keel_notebook.front.page import Line, Page, Tone
from keel_notebook.session import Session


def off_said(session: Session) -> str:
    """That keel is off, and how it is switched on; empty where it is on."""
    if session.settings.mode == "off":
        how = 'mode off: KEEL_MODE or Keel.mode); `%config Keel.mode = "live"` switches it on'
    elif not session.on:
        how = "`%keel off`); `%keel on` switches it on"
    else:
        return ""
    return f"keel is off in this kernel, cells run plainly and nothing is recorded or replayed ({how}"


def with_switch(page: Page, session: Session) -> Page:
    """The page; where keel is off, that stands first."""
    said = off_said(session)
    return page.below(Line(said, Tone.BAD)) if said else page

"""The magics `%keel` and `%%keel_step`, and how keel comes into a shell (DESIGN 3.1).

`%%keel_step` itself does nothing in the usual case: the line is a marker that the session's input transformer finds
before IPython looks for magics. The magic exists for discovery (`%%keel_step?`) and for nested cells. Imported by
`%load_ext`, so it imports little: the subcommands are in ``commands``.
"""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from keel_notebook.core.options import parse_options
from keel_notebook.core.words import Effect
from keel_notebook.errors import KeelError, NotNowError, SettingsError
from keel_notebook.front import comm
from keel_notebook.front.settings import Keel
from keel_notebook.session import Session, rejected, say_nested

_ATTRIBUTE = "_keel_session"


def session_of(shell: Any) -> Session:
    """The session of a shell. Raises NotNowError where keel is not loaded in it."""
    session = getattr(shell, _ATTRIBUTE, None)
    if session is None:
        raise NotNowError(where="%keel", detail="keel is not loaded here", case="no_journal")
    assert isinstance(session, Session)
    return session


def load(shell: Any) -> None:
    """Start a session in this shell; nothing happens where one runs already."""
    if getattr(shell, _ATTRIBUTE, None) is not None:
        return
    settings = Keel(parent=shell)
    shell.configurables.append(settings)
    session = Session(shell, settings)
    setattr(shell, _ATTRIBUTE, session)
    shell.register_magics(KeelMagics(shell))
    session.start()
    comm.register(shell, session)


def unload(shell: Any) -> None:
    """End the session of this shell."""
    session = getattr(shell, _ATTRIBUTE, None)
    if session is not None:
        comm.unregister(shell)
        session.stop()
        shell.configurables.remove(session.settings)
        delattr(shell, _ATTRIBUTE)


def current(line: str) -> Any:
    """What `%keel LINE` answers in the running shell. Raises NotNowError where keel is not loaded."""
    from IPython.core.getipython import get_ipython  # noqa: PLC0415 the shell is known only when asked

    from keel_notebook.front.commands import run  # noqa: PLC0415 not at %load_ext

    return run(session_of(get_ipython()), line)


@magics_class
class KeelMagics(Magics):  # type: ignore[misc]  # IPython's Magics carries no types
    """The magics of keel."""

    @line_magic  # type: ignore[untyped-decorator]  # IPython carries no types
    def keel(self, line: str) -> Any:
        """What keel knows and does. `%keel help` lists the subcommands; alone it shows the table of steps."""
        from keel_notebook.front.commands import run  # noqa: PLC0415 not at %load_ext

        try:
            return run(session_of(self.shell), line)
        except KeelError as error:
            raise error from None

    @cell_magic  # type: ignore[untyped-decorator]  # IPython carries no types
    def keel_undo(self, line: str, cell: str) -> None:
        """Make this cell the undo of a step: `%%keel_undo NAME` as its first line, below the step's own cell.

        It does not run now. `%keel undo` runs the undos of all steps that were done, last done first.
        """
        name = line.strip().strip("'\"")
        if not name:
            raise SettingsError(where="%%keel_undo", detail="it reads `%%keel_undo NAME`")
        session_of(self.shell).undo_cell(name, cell)

    @cell_magic  # type: ignore[untyped-decorator]  # IPython carries no types
    def keel_step(self, line: str, cell: str) -> None:
        """Make this cell a durable step: `%%keel_step NAME [options]` as its first line.

        NAME finds the record; quote it if it has spaces. Options:

        --ttl DURATION          execute again when the record is older (500ms, 2s, 10m, 2h, 7d)
        --uses FILE …           files that count as inputs, also where their reader is not seen
        --makes FILE …          files that the step makes: missing or changed, it executes again
        --journal-file FILE …   the journal of an external command: changed in a run that failed, it is not run again
        --inputs NAME …         names that count as inputs besides those found
        --ignore NAME …         names that do not count
        --outputs NAME …        store these names only; where another one is read below, the step executes
        --always                a resource (client, connection): executed in every run, never stored
        --max-attempts N        kernel deaths in this step before it counts as dead (3)
        --on-divergence WORD    fail: stop where something differs; warn: say it and execute; branch: in a new lane
        --key K                 stands for code and inputs in the idempotency keys of the step and its calls
        --effect WORD           idempotent, at_least_once, exactly_once: what running it twice does to the world
        --retries N             try the body again after an error, N more times
        --backoff DURATION      the first wait before that; it doubles each time (200ms)
        --timeout DURATION      what one try may take
        --on-ambiguous WORD     of exactly_once, begun and nobody knows how it ended: fail, skip, rerun
        --kind WORD             of exactly_once, for the record: destructive, security, money, cost, custom

        Reached only where the line is not the cell's own first line (inside another cell magic, or in a nested
        run): the body then runs as a nested cell and is not recorded.
        """
        say_nested(line)
        if parse_options(line).effect is not Effect.IDEMPOTENT:
            detail = "what must not happen twice is recorded or not done: put the line on top of its own cell"
            raise rejected(NotNowError(where="%%keel_step inside another cell", detail=detail, case="cells"))
        result = self.shell.run_cell(cell)
        if not result.success:
            raise rejected(NotNowError(where="%%keel_step", detail="the nested cell failed; see above", case="cells"))

"""The comm target ``keel``: carries a front end's questions to a desk and the answers back (FRONTEND.md).

A message is ``{"id": int, "ask": str, …}``; its answer ``{"id", "ok", "answer" | "error"}``. The front end re-opens
the comm after every restart and gives every question a time-out, so nothing here waits for anybody.
"""

from __future__ import annotations

import threading
from typing import Any

from keel_notebook.session import Session

TARGET = "keel"


def register(shell: Any, session: Session) -> None:
    """Let front ends open the comm. Does nothing in a shell without a kernel."""
    comms = _comms(shell)
    if comms is not None:
        comms.register_target(TARGET, lambda comm, _: _opened(comm, shell, session))


def unregister(shell: Any) -> None:
    """Close the door again; open comms end with their front end."""
    comms = _comms(shell)
    if comms is not None:
        comms.targets.pop(TARGET, None)


def _comms(shell: Any) -> Any:
    return getattr(getattr(shell, "kernel", None), "comm_manager", None)


def _opened(comm: Any, shell: Any, session: Session) -> None:
    # The first question may come on a subshell before this has returned: listen first, import when asked.
    desks: list[Any] = []

    def desk() -> Any:
        if not desks:
            from keel_notebook.front.desk import Desk  # noqa: PLC0415 a kernel without a front end never needs it

            desks.append(Desk(session))
        return desks[0]

    def heard(message: Any) -> None:
        ask = message["content"]["data"]
        if not desk().on_main(ask):
            comm.send(_answered(desk(), ask))
        elif threading.current_thread() is threading.main_thread():
            comm.send(_between_cells(desk(), session, ask))
        else:  # called when the main thread is free: a cell that runs now ends first
            shell.kernel.io_loop.add_callback(lambda: comm.send(_between_cells(desk(), session, ask)))

    comm.on_msg(heard)
    comm.on_close(lambda _: [desk.close() for desk in desks])


def _between_cells(desk: Any, session: Session, ask: Any) -> dict[str, Any]:
    if session._gate._cell is not None:  # a cell that awaits lets go of the main thread in its middle
        busy = {"code": "E030", "text": "a cell is running: try again when it has ended"}
        return {"id": ask.get("id"), "ok": False, "error": busy}
    return _answered(desk, ask)


def _answered(desk: Any, ask: Any) -> dict[str, Any]:
    answered: dict[str, Any] = desk.answer(ask)
    return answered | {"id": ask.get("id")}

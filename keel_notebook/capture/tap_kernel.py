"""Records what a cell shows in a Jupyter kernel, at the one place through which all of it goes: ``session.send``.

Streams of all threads, output of child processes, displays, results, widget traffic: everything passes there (measured,
feasibility D). It is sent first and noted afterwards, so a person sees it at once (C14).
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from keel_notebook.aside import STRAY, parent_of
from keel_notebook.capture import livewidgets
from keel_notebook.capture.outstreams import OutStreams
from keel_notebook.capture.threads import at_work
from keel_notebook.capture.world import Children
from keel_notebook.core.fold import KINDS, Fold
from keel_notebook.core.live import CATCH, Live, needed
from keel_notebook.core.ports import Message
from keel_notebook.core.shown import Caps
from keel_notebook.errors import InternalError

_ROUND_S = 0.002
_QUIET_ROUNDS = 5
_PATIENT_ROUNDS = 20  # while a child of the cell still runs
_LATE_ROUNDS = 50
_DRAIN_ROUNDS = 500
_TOPICS = {"stream": "stream.{name}", "execute_result": "execute_result"}


class KernelTap:
    """The tap of an IPython kernel (port ``Tap``). One per kernel; a later one takes over from an earlier one.

    ``children`` says whether the cell started child processes, whose output may come in late.
    """

    def __init__(self, shell: Any, *, caps: Caps | None = None, children: Children | None = None) -> None:
        self._shell = shell
        self._kernel = shell.kernel
        self._caps = caps
        self._children = children or Children()
        self._recording: _Recording | None = None
        self._live = Live()
        self._streams = OutStreams(self._kernel, perf_counter)
        self._unmark: list[Callable[[], None]] = []
        self._listen()

    def open(self) -> None:
        """Start recording the messages of the running cell."""
        self._streams.look()
        strays = frozenset(thread.ident for thread in at_work(threading.enumerate()))
        self._streams.flush()  # what was said before the cell began is not part of it
        self._children.mark()
        parent = _header(self._shell.get_parent())
        self._recording = _Recording(parent.get("msg_id"), strays, Fold(caps=self._caps))
        self._unmark = [_mark_strays(stream, strays) for stream in self._streams] if strays else []

    def close(self) -> tuple[Message, ...]:
        """Stop, and give the messages: folded, capped, in order.

        Raises InternalError (E040) where recording itself failed: the cell's output was shown, but is not recorded.
        """
        recording, self._live = self._recording, Live()
        if recording is None:
            return ()
        try:
            self._streams.flush()
            if self._children.started():
                self._await_late_output(recording)
        finally:
            self._recording = None  # C19: what comes later is shown, and credited to nobody
            for unmark in self._unmark:
                unmark()
        messages = recording.finish()
        live = recording.live()
        self._live = replace(live, made=livewidgets.made(live.made))
        return messages

    def live(self) -> Live:
        """What the cell that was closed last showed of live widgets."""
        return self._live

    def replay(self, messages: Sequence[Message], live: Sequence[Message] = ()) -> None:
        """Send recorded messages again as the running cell's own, in their order, behind what it printed so far."""
        sent = live if live and livewidgets.all_alive(needed(tuple(live))) else messages
        if not sent:
            return
        self._streams.flush()
        parent = self._shell.get_parent()
        for message in sent:
            content = dict(message.content)
            if message.kind == CATCH:
                livewidgets.catch(content["model_id"], _header(parent).get("msg_id", "") if content["on"] else "")
                continue
            if message.kind == "error":
                continue  # kept for history: an error is never replayed (C67)
            if message.kind == "execute_result":
                content["execution_count"] = self._shell.displayhook.prompt_count
            self._kernel.session.send(
                self._kernel.iopub_socket,
                message.kind,
                content,
                parent=parent,
                ident=_TOPICS.get(message.kind, "display_data").format(**content).encode(),
                buffers=list(message.buffers),
                metadata=dict(message.metadata),
            )

    def detach(self) -> None:
        """Take the tap off the kernel's session, where nobody put another one on top of it."""
        session = self._kernel.session
        if getattr(session.send, "keel_tap", None) is self:
            del session.send
        self._recording = None

    # ---- the way in

    def _listen(self) -> None:
        session = self._kernel.session
        send = getattr(session.send, "keel_original", session.send)

        @functools.wraps(send)
        def tapped(stream: Any, msg_or_type: Any, *args: Any, **kwargs: Any) -> Any:
            if msg_or_type == "execute_input":
                self._streams.asked()
            sent = send(stream, msg_or_type, *args, **kwargs)  # C14: first shown, then noted
            recording = self._recording
            if recording is not None and sent is not None:
                buffers = kwargs.get("buffers") or (args[3] if len(args) > 3 else None) or sent.get("buffers")
                recording.note(sent, buffers or (), session)
            return sent

        tapped.keel_original = send  # type: ignore[attr-defined]  # so that a second load does not tap the tap
        tapped.keel_tap = self  # type: ignore[attr-defined]
        session.send = tapped
        self._listen_to_forks()

    def _listen_to_forks(self) -> None:
        """Forked children send their prints through a pipe to the output thread, past ``session.send``."""
        thread: Any = getattr(self._kernel, "iopub_thread", None)
        session, pipe = self._kernel.session, getattr(thread, "_pipe_in", None)
        if pipe is None:
            return

        def received(frames: list[bytes]) -> None:
            thread._handle_pipe_msg(frames)
            recording = self._recording
            if recording is not None and frames[0] == thread._pipe_uuid:
                _, parts = session.feed_identities(frames[1:])
                header, parent, metadata, content = (session.unpack(part) for part in parts[1:5])
                sent = {
                    "msg_type": header["msg_type"],
                    "parent_header": parent,
                    "metadata": metadata,
                    "content": content,
                }
                recording.note(sent, parts[5:], session)

        thread.schedule(lambda: pipe.on_recv(received))

    # ---- waiting for what is on its way

    def _await_late_output(self, recording: _Recording) -> None:
        """Child processes write into a pipe that a thread reads: wait until it has been quiet for a moment."""
        quiet, pause = 0, threading.Event()
        for rounds in range(_DRAIN_ROUNDS):
            noted, waiting = recording.noted, self._streams.unread()
            if rounds >= _LATE_ROUNDS and not waiting:
                return
            pause.wait(_ROUND_S)
            self._streams.flush()
            quiet = 0 if waiting or recording.noted != noted else quiet + 1
            if quiet >= (_PATIENT_ROUNDS if self._children.alive() else _QUIET_ROUNDS):
                return


class _Recording:
    """The messages of one cell, folded as they are noted; by any thread, but not in a forked child."""

    def __init__(self, cell: str | None, strays: frozenset[int | None], fold: Fold) -> None:
        self.noted = 0
        self._cell = cell
        self._strays = strays
        self._fold = fold
        self._lock = threading.RLock()  # a finaliser that displays may come in between
        self._pid = os.getpid()
        self._fault: Exception | None = None

    def note(self, sent: Any, buffers: Sequence[Any], session: Any) -> None:
        """Take a message that was sent, if the cell shows it. Never raises: the sender is the person's code."""
        kind, parent = sent.get("msg_type"), sent.get("parent_header", {})
        if kind not in KINDS or not self._cell or parent.get("msg_id") != self._cell:
            return
        if STRAY in parent or (kind != "stream" and threading.get_ident() in self._strays):
            return
        if os.getpid() != self._pid or self._fault is not None:
            return
        try:
            content = plain(sent["content"], session)
            content.pop("execution_count", None)  # that of the run that shows it
            message = Message(kind, content, plain(sent["metadata"], session), tuple(bytes(part) for part in buffers))
            with self._lock:
                self._fold.feed(message)
                self.noted += 1
        except Exception as fault:  # noqa: BLE001 - told in close(): a fault of the recording is not one of the cell
            self._fault = fault

    def live(self) -> Live:
        """The same with live widgets. After ``finish``."""
        with self._lock:
            return self._fold.live()

    def finish(self) -> tuple[Message, ...]:
        """What was noted, folded. Raises InternalError (E040) where something could not be noted."""
        with self._lock:
            if self._fault is None:
                try:
                    return self._fold.finish()
                except Exception as fault:  # noqa: BLE001 - told in the next line
                    self._fault = fault
        raise InternalError(doing="recorded the output", kind=type(self._fault).__name__) from self._fault


class _NotPlainError(Exception):
    """A value that JSON does not have: the session's own packer says what becomes of it."""


_ATOMS = frozenset({str, int, bool, type(None)})


def plain(content: Any, session: Any) -> Any:
    """A copy of a message's content as the front end receives it; shares nothing that can change."""
    try:
        return _copied(content)
    except (_NotPlainError, OverflowError):
        return session.unpack(session.pack(content))


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS or (kind is float and math.isfinite(value)):
        return value
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise _NotPlainError
        return {key: _copied(item) for key, item in value.items()}
    if kind in {list, tuple}:
        kinds = set(map(type, value))
        if kinds <= _ATOMS or (kinds <= {int, float} and all(map(math.isfinite, value))):
            return list(value)
        return [_copied(item) for item in value]
    raise _NotPlainError


def _header(message: Any) -> dict[str, Any]:
    header = message.get("header") if isinstance(message, dict) else None
    return header if isinstance(header, dict) else {}


def _mark_strays(stream: Any, strays: frozenset[int | None]) -> Callable[[], None]:
    """Give text of threads that earlier cells left running a parent of its own: shown as always, but not recorded.

    The stream keeps one buffer per parent, so it is never mixed with what the cell itself prints (C19). Returns what
    takes the mark off again.
    """
    write = stream.write
    patched = vars(stream).get("write")

    def marked(text: str) -> Any:
        if threading.get_ident() not in strays:
            return write(text)
        with parent_of(stream, {**stream.parent_header, STRAY: True}):
            return write(text)

    def unmark() -> None:
        if vars(stream).get("write") is not marked:
            return  # somebody patched it in the meantime: theirs goes on, through ours
        if patched is None:
            del stream.write
        else:
            stream.write = patched

    stream.write = marked
    return unmark

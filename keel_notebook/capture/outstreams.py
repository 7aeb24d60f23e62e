"""What was written to stdout and stderr and is still on its way to the front end.

Text waits in the stream's buffer for up to ``flush_interval``; what C code and children write into the descriptors
waits in a pipe that a thread of the stream reads. A cell's text is all there once both are empty and that thread is
back at its pipe. To know it costs microseconds; a trip to the output thread, with all others that want the
interpreter's lock, costs a small cell more than everything else that keel does.
"""

from __future__ import annotations

import ctypes
import os
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from keel_notebook.capture.threads import at_work

_FLUSH_S: Final = 10.0
"""As long as ipykernel itself waits for its output thread."""
_PAUSE_S: Final = 0.0005
_PAUSES: Final = 200
_libc: Final = ctypes.PyDLL(None)
"""Calls through it keep the interpreter's lock: right for what takes a microsecond, and nothing else."""


class OutStreams:
    """The kernel's own streams among those that print; a person may have put others in their place.

    ``elapsed`` gives seconds since some moment.
    """

    def __init__(self, kernel: Any, elapsed: Callable[[], float]) -> None:
        self._kernel = kernel
        self._elapsed = elapsed
        self._pipes: dict[Any, _Pipe] = {}
        self._quiet_at: float | None = None
        self.look()

    def __iter__(self) -> Any:
        return iter(self._pipes)

    def look(self) -> None:
        """Take in streams that were put in place since."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "pub_thread") and stream not in self._pipes:
                self._pipes[stream] = _Pipe(stream)

    def asked(self) -> None:
        """A cell is about to run: what is printed from now on is its own."""
        self._quiet_at = self._elapsed() if self._at_rest() else None

    def flush(self) -> None:
        """Have everything sent that was written so far. Costs next to nothing where nothing was."""
        if self._nothing_said():
            return
        self._settle()
        thread = getattr(self._kernel, "iopub_thread", None)
        if thread is None or not thread.thread.is_alive() or thread.thread is threading.current_thread():
            for stream in self._pipes:
                stream.flush()
            return
        done = threading.Lock()
        done.acquire()

        def send() -> None:
            try:
                for stream in self._pipes:
                    stream._flush()
            finally:
                done.release()

        thread.schedule(send)
        done.acquire(timeout=_FLUSH_S)

    def unread(self) -> bool:
        """Whether a child has written something that no thread has read yet."""
        return any(pipe.unread() for pipe in self._pipes.values())

    def _nothing_said(self) -> bool:
        """Whether it is certain that the cell has written nothing, or that it has all been sent.

        Text that was written since ``asked`` is sent by a timer not before ``flush_interval``, or because somebody
        asked for it: the main thread waits for that, and other threads must not be there.
        """
        if self._quiet_at is None or not self._at_rest():
            return False
        soonest = min((getattr(stream, "flush_interval", 0.0) for stream in self._pipes), default=0.0)
        return self._elapsed() - self._quiet_at < soonest and not at_work(threading.enumerate())

    def _at_rest(self) -> bool:
        # The pipes first: what their threads read is in the buffers once they are back.
        return all(pipe.at_rest() for pipe in self._pipes.values()) and not any(map(_holds, self._pipes))

    def _settle(self) -> None:
        """Let the threads that read the pipes pass on what is in them."""
        pause = threading.Event()
        for _ in range(_PAUSES):
            if all(pipe.at_rest() or not pipe.known for pipe in self._pipes.values()):
                return
            pause.wait(_PAUSE_S)


class _Pipe:
    """The pipe behind a stream's descriptor, and the thread that reads it."""

    def __init__(self, stream: Any) -> None:
        self._end: int | None = getattr(stream, "_fid", None)
        self._state: int | None = None
        self._waiting = ctypes.c_int()
        self._text = ctypes.create_string_buffer(64)
        reader = getattr(getattr(stream, "watch_fd_thread", None), "native_id", None)
        if self._end is not None and reader is not None:
            with suppress(OSError):  # not every system tells: then nothing is certain, and all is flushed
                self._state = os.open(f"/proc/self/task/{reader}/syscall", os.O_RDONLY | os.O_CLOEXEC)

    @property
    def known(self) -> bool:
        """Whether the system tells what the reading thread does."""
        return self._state is not None

    def unread(self) -> bool:
        """Whether bytes are in the pipe."""
        if self._end is None:
            return False
        _libc.ioctl(self._end, termios.FIONREAD, ctypes.byref(self._waiting))
        return self._waiting.value > 0

    def at_rest(self) -> bool:
        """Whether the pipe is empty and its reader waits at it, with nothing in its hands."""
        if self._end is None:
            return True
        if self._state is None or self.unread():
            return False
        got = _libc.pread(self._state, self._text, 63, 0)
        said = self._text.raw[: max(got, 0)].split(maxsplit=2)
        return len(said) > 1 and said[1] == b"%#x" % self._end


def _holds(stream: Any) -> bool:
    return bool(getattr(stream, "_flush_pending", True) or getattr(stream, "_buffers", True))

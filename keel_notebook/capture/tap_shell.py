"""Records what a cell shows in a plain IPython shell, where there is no kernel and no message: terminal, scripts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from keel_notebook.capture.threads import at_work
from keel_notebook.core.fold import Fold
from keel_notebook.core.live import Live
from keel_notebook.core.ports import Message
from keel_notebook.core.shown import Caps

_HOOK_STEPS = ("write_output_prompt", "finish_displayhook")


class ShellTap:
    """The tap of an ``InteractiveShell`` without a kernel (port ``Tap``).

    Sees what Python prints and displays; what child processes write to the terminal passes by.
    """

    def __init__(self, shell: Any, *, caps: Caps | None = None) -> None:
        self._shell = shell
        self._caps = caps
        self._fold: Fold | None = None
        self._lock = threading.RLock()  # a finaliser that prints may come in between
        self._apart = threading.local()
        self._strays: frozenset[int | None] = frozenset()
        self._tees: list[tuple[str, _Tee]] = []

    def open(self) -> None:
        """Start recording what the running cell shows."""
        self._strays = frozenset(thread.ident for thread in at_work(threading.enumerate()))
        self._fold = Fold(caps=self._caps)
        self._tees = [(name, _Tee(getattr(sys, name), name, self._printed)) for name in ("stdout", "stderr")]
        for name, tee in self._tees:
            setattr(sys, name, tee)
        self._wrap_displays()

    def close(self) -> tuple[Message, ...]:
        """Stop, and give the messages: folded, capped, in order."""
        for name, tee in self._tees:
            if getattr(sys, name) is tee:
                setattr(sys, name, tee.stream)
        for owner, name in self._wrapped():
            vars(owner).pop(name, None)
        with self._lock:
            fold, self._fold = self._fold, None
        return fold.finish() if fold is not None else ()

    def live(self) -> Live:
        """Nothing: a terminal shows no widgets."""
        return Live()

    def replay(self, messages: Sequence[Message], live: Sequence[Message] = ()) -> None:  # noqa: ARG002 - see ``live``
        """Print and display recorded messages again."""
        shell = self._shell
        for message in messages:
            content = message.content
            match message.kind:
                case "stream":
                    stream = getattr(sys, content["name"])
                    stream.write(content["text"])
                    stream.flush()
                case "execute_result":
                    shell.displayhook.write_output_prompt()
                    shell.displayhook.write_format_data(dict(content["data"]), dict(content.get("metadata", {})))
                    shell.displayhook.finish_displayhook()
                case "display_data" | "update_display_data":
                    shell.display_pub.publish(
                        dict(content["data"]),
                        dict(content.get("metadata", {})),
                        transient=dict(content.get("transient") or {}),
                        update=message.kind == "update_display_data",
                    )
                case _:
                    continue  # an error is kept for history and never replayed (C67)

    def _wrapped(self) -> list[tuple[Any, str]]:
        hook, publisher = self._shell.displayhook, self._shell.display_pub
        return [(publisher, "publish"), (publisher, "clear_output"), (hook, "write_format_data")] + [
            (hook, step) for step in _HOOK_STEPS
        ]

    def _wrap_displays(self) -> None:
        hook, publisher = self._shell.displayhook, self._shell.display_pub
        publish, clear, write = publisher.publish, publisher.clear_output, hook.write_format_data

        def published(data: Any, metadata: Any = None, *args: Any, **kwargs: Any) -> Any:
            kind = "update_display_data" if kwargs.get("update") else "display_data"
            transient = dict(kwargs.get("transient") or {})
            self._note(Message(kind, {"data": dict(data), "metadata": dict(metadata or {}), "transient": transient}))
            return self._unrecorded(publish, data, metadata, *args, **kwargs)

        def cleared(*args: Any, **kwargs: Any) -> Any:
            self._note(Message("clear_output", {"wait": bool(kwargs.get("wait", args[0] if args else False))}))
            return self._unrecorded(clear, *args, **kwargs)

        def written(data: Any, metadata: Any = None) -> Any:
            self._note(Message("execute_result", {"data": dict(data), "metadata": dict(metadata or {})}))
            return self._unrecorded(write, data, metadata)

        publisher.publish, publisher.clear_output, hook.write_format_data = published, cleared, written
        for step in _HOOK_STEPS:
            setattr(hook, step, self._quietly(getattr(hook, step)))

    def _quietly(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._unrecorded(call, *args, **kwargs)

    def _unrecorded(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Let a display print: what it prints is already noted as the display that it is."""
        self._apart.printing = True
        try:
            return call(*args, **kwargs)
        finally:
            self._apart.printing = False

    def _printed(self, name: str, text: str) -> None:
        if not getattr(self._apart, "printing", False):
            self._note(Message("stream", {"name": name, "text": text}))

    def _note(self, message: Message) -> None:
        if threading.get_ident() in self._strays:
            return
        with self._lock:
            if self._fold is not None:
                self._fold.feed(message)


class _Tee:
    """A stream that writes on as before and tells what was written. Goes on writing when nobody listens any more."""

    def __init__(self, stream: Any, name: str, written: Callable[[str, str], None]) -> None:
        self.stream = self.keel_beneath = stream
        self._name = name
        self._written = written

    def write(self, text: str) -> Any:
        count = self.stream.write(text)
        self._written(self._name, text)
        return count

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

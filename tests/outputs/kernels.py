"""A real kernel with a tap on it: cells are recorded and shown again, and what the client got is compared."""

import os
import textwrap
import time

from keel_notebook.capture.outputs import unpack_messages
from tests.support.starting import start_kernel

SETUP = """
import base64 as _b64, threading as _threading
from keel_notebook.capture import outputs as _outputs
from keel_notebook.capture.world import World as _World

_tap, _world, _kept, _seen = _outputs.make_tap(get_ipython()), _World(), {}, {}

def _on_main():
    return _threading.current_thread() is _threading.main_thread()

def _before(shell_info):
    if not _on_main():
        return
    _before.name = (shell_info.raw_cell or "").partition("# record ")[2].partition("\\n")[0]
    if _before.name:
        _world.open()
        _tap.open()

def _after(result):
    if _on_main() and _before.name:
        _kept[_before.name] = _outputs.pack_messages(_tap.close())
        _seen[_before.name] = _world.close()

def _send_kept(name):
    print(_b64.b64encode(_kept[name]).decode())

get_ipython().events.register("pre_run_cell", _before)
get_ipython().events.register("post_run_cell", _after)
"""


class TappedKernel:
    """Runs cells in a kernel and gives the messages that the client got for each."""

    def __init__(self):
        # ipykernel does not read what children write while it sees pytest around it
        env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        self.manager, self.client = start_kernel(env=env)
        self.run(SETUP)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def start(self, code):
        """Send a cell, and do not wait for it."""
        return self.client.execute(textwrap.dedent(code))

    def next_message(self, timeout=60):
        return self.client.get_iopub_msg(timeout=timeout)

    def run(self, code, timeout=60):
        """What the client gets for a cell, until it is over."""
        cell, got = self.start(code), []
        deadline = time.monotonic() + timeout
        while True:
            message = self.next_message(max(0.1, deadline - time.monotonic()))
            if message["parent_header"].get("msg_id") != cell:
                continue
            kind = message["msg_type"]
            if kind == "status" and message["content"]["execution_state"] == "idle":
                return got
            if kind not in {"status", "execute_input"}:
                got.append((kind, message["content"]))

    def record(self, name, code):
        """Run a cell under the tap; what the client got."""
        return self.run(f"# record {name}\n{textwrap.dedent(code)}")

    def replay(self, name):
        """Show what was recorded under a name again; what the client got."""
        return self.run(f"_tap.replay(_outputs.unpack_messages(_kept[{name!r}]))")

    def kept(self, name):
        """The messages that were recorded."""
        import base64

        ((_, content),) = merged(self.run(f"_send_kept({name!r})"))
        return unpack_messages(base64.b64decode(content["text"]))

    def value(self, expression):
        """An expression's repr in the kernel."""
        ((_, content),) = merged(self.run(f"print(repr({expression}))"))
        return content["text"].rstrip("\n")


def merged(got):
    """Messages with neighbouring text joined, as every front end joins it; counters of results left out."""
    out = []
    for kind, sent in got:
        content = {key: value for key, value in sent.items() if key != "execution_count"}
        if kind == "stream" and out and out[-1][0] == kind and out[-1][1]["name"] == content["name"]:
            out[-1][1]["text"] += content["text"]
        else:
            out.append((kind, content))
    return out

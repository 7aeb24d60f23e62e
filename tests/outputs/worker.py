"""A Python process that runs what it is sent: one side of a record and its replay."""

import base64
import json
import subprocess
import sys
from pathlib import Path

LOOP = """
import base64, json, os, sys
from keel_notebook.capture.ambient import AmbientWatch
import msgpack
space = {"watch": AmbientWatch(), "msgpack": msgpack}
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    code, expression = json.loads(line)
    try:
        exec(code, space)
        answer = ["value", base64.b64encode(msgpack.packb(eval(expression, space))).decode()]
    except BaseException as problem:
        answer = ["error", repr(problem)]
    print(json.dumps(answer), file=out, flush=True)
"""


class Worker:
    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(folder)
        )

    def value(self, expression, code=""):
        """What an expression is in the process, after it ran the code."""
        import msgpack

        self.process.stdin.write(json.dumps([code, expression]) + "\n")
        self.process.stdin.flush()
        kind, answer = json.loads(self.process.stdout.readline())
        if kind == "error":
            raise AssertionError(answer)
        return msgpack.unpackb(base64.b64decode(answer), strict_map_key=False)

    def run(self, code):
        self.value("None", code)

    def record(self, code):
        """What a step of this code changes."""
        self.run("state = watch.before()")
        self.run(code)
        return self.value("watch.after(state)")

    def replay(self, change):
        """Put a change back; what could not be."""
        return self.value(f"list(watch.apply({change!r}))")

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()

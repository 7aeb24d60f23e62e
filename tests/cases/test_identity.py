"""What comes back is what was there: types, identity, live globals (C43 to C47, C54, C59). One notebook for all."""

import importlib.util
import re
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.crash


class Same(NamedTuple):
    """Code of a plain cell, of a step, and an expression that is true live and after a restart."""

    name: str
    above: str
    step: str
    says: str


TABLE = (Path(__file__).parent / "tables" / "identity.txt").read_text("utf-8")
SAME = [
    Same(name, *(part.strip("\n") for part in re.split("^--$", code, flags=re.M)))
    for name, code in re.findall(r"^== (.+)$((?:\n(?!== ).*)*)", TABLE, flags=re.M)
]

TOP = """
import math, weakref, numpy as np, pandas as pd
import matplotlib; matplotlib.use("agg")
import matplotlib.pyplot as plt
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum, Flag
from functools import cached_property, partial, wraps
from typing import Generic, NamedTuple, TypeVar
K = 3
BIG = np.zeros(3_000_000)
"""


def test_what_comes_back_is_what_was_there(book):
    notebook = book("")
    same = [one for one in SAME if one.name != "estimator" or importlib.util.find_spec("sklearn")]
    steps = [f"%%keel_step s{n}\nhit('s{n}')\n{one.step}" for n, one in enumerate(same)]
    told = "\n".join(f"print({one.name!r}, bool({one.says}))" for one in same)
    notebook.cells = [TOP, *(one.above for one in same), *steps, told]
    for _ in range(2):
        assert notebook.shows() == "\n".join(f"{one.name} True" for one in same)
    assert notebook.hits == " ".join(f"s{n}" for n in range(len(same)))
    kept = sum(path.stat().st_size for path in (notebook.folder / ".keel").rglob("*") if path.is_file())
    assert kept < 8 * 3_000_000, "a function does not drag the notebook along (C54)"
    notebook.cells[0] = TOP.replace("K = 3", "K = 4")
    live = notebook.shows("print(f11(1), m9.f(), h14())").split("\n")[-1]
    assert live == "5 8 8", "functions see the notebook as it is now"


CODEC = """
import keel_notebook as keel
from keelgauge import Gauge
def register():
    keel.register(Gauge, dump=lambda g: g.degrees, load=lambda d: Gauge(d))
"""
GAUGE = """
import threading
class Gauge:
    def __init__(self, degrees): self.degrees, self.lock = degrees, threading.Lock()
"""


def test_a_package_brings_its_codecs_by_an_entry_point(book):
    notebook = book("""
import sys; sys.path.insert(0, "site-packages")
from keelgauge import Gauge
offset = Gauge(1)
# ---
%%keel_step make
hit("make"); gauge = Gauge(20)
# ---
%%keel_step read
hit("read"); sum_ = gauge.degrees + offset.degrees
# ---
print(sum_, type(gauge) is Gauge, gauge.lock.locked())
""")
    installed = notebook.folder / "site-packages"
    (installed / "keelgauge-1.0.dist-info").mkdir(parents=True)
    (installed / "keelgauge.py").write_text(GAUGE)
    (installed / "keelgauge_codecs.py").write_text(CODEC)
    about = installed / "keelgauge-1.0.dist-info"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: keelgauge\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[keel_notebook.codecs]\nkeelgauge = keelgauge_codecs:register\n")
    for _ in range(2):
        assert notebook.shows() == "21 True False"
    assert notebook.hits == "make read"
    notebook.edit(0, "Gauge(1)", "Gauge(2)")
    assert notebook.shows() == "22 True False"
    assert notebook.hits == "make read read"
    (about / "entry_points.txt").unlink()
    gone = notebook.run_all()
    assert gone.error == ""
    assert gone.printed[-1] == "22 True False\n", "a record that cannot be read makes its own step execute (C56)"
    assert notebook.hits.startswith("make read read make")


def test_looking_at_a_class_leaves_no_trace_in_it(book):
    nb = book("""
class Above: pass
class Slots: __slots__ = ("a",)
class Copied: pass
import copy; copy.copy(Copied())
# ---
# keel: step a
class Made: pass
one = [Made(), Above(), Slots(), Copied()]; one[2].a = 1
# ---
# keel: step b
two = [one[0], one[1]]
""")
    ask = 'print(["__slotnames__" in vars(cls) for cls in (Above, Slots, Copied, Made)])'
    for _ in range(2):
        assert nb.shows(ask) == "[False, False, True, False]"

"""Known sources of clock and entropy (DESIGN 5, Volatile), and what seeds before it draws (DESIGN 6, Seeds)."""

import ast
import datetime
import random
import time

import numpy as np
import pandas as pd
import pytest

from keel_notebook.capture.sources import Sources
from keel_notebook.core.clocks import Reads


class NoDefinitions:
    def belongs(self, thing):
        return thing.__globals__["__name__"] == __name__ if hasattr(thing, "__globals__") else False

    def of(self, thing):
        import inspect

        from keel_notebook.core.ports import Definition

        return Definition("d", frozenset(), inspect.getsource(thing))


def set_seed(n):
    """A helper as notebooks have it."""
    random.seed(n)
    np.random.seed(n)


def seeds_and_draws(n):
    np.random.seed(n)
    return np.random.rand()


def draws_and_seeds(n):
    x = np.random.rand()
    np.random.seed(n)
    return x


def stamped():
    return tomorrow() - 1


def tomorrow():
    return datetime.date.today().toordinal() + 1  # noqa: DTZ011 - what people write


def timed():
    return time.perf_counter()


NAMES = {
    "np": np, "pd": pd, "random": random, "time": time, "datetime": datetime, "dt": datetime.datetime,
    "clock": time.time, "seed": np.random.seed, "frame": pd.DataFrame({"time": [1]}), "set_seed": set_seed,
    "seeds_and_draws": seeds_and_draws, "draws_and_seeds": draws_and_seeds, "stamped": stamped, "timed": timed,
    "tomorrow": tomorrow,
}  # fmt: skip
SOURCES = Sources(NAMES, NoDefinitions())

DATE, MOMENT, CHANCE, NOTHING = Reads(date=True), Reads(moment=True), Reads(entropy=True), Reads()
CODE = {
    "time.time()": MOMENT,
    "clock()": MOMENT,
    "import time as t\nt.time_ns()": MOMENT,
    "import uuid\nuuid.uuid1()": MOMENT,
    "time.perf_counter(), time.monotonic(), time.sleep(1)": NOTHING,
    "timed()": NOTHING,
    "time.strftime('%Y')": DATE,
    "datetime.date.today()": DATE,
    "dt.now()": DATE,
    "today = dt.utcnow": DATE,
    "def f():\n    from datetime import date as d\n    return d.today()": DATE,
    "stamped()": DATE,
    "pd.Timestamp.now()": DATE,
    "pd.Timestamp('today'), np.datetime64('now')": DATE,
    "con.sql('select * from t where day = current_date')": DATE,
    "print('now'); pd.Timestamp('2020-01-01')": NOTHING,
    "frame.time.time": NOTHING,
    "import uuid\nuuid.uuid4()": CHANCE,
    "import os\nos.urandom(3)": CHANCE,
    "np.random.default_rng()": CHANCE,
    "np.random.default_rng(None)": CHANCE,
    "np.random.default_rng(3)": NOTHING,
    "random.Random(), random.Random(1)": CHANCE,
}


@pytest.mark.parametrize("code", CODE)
def test_sources_are_found_by_name_however_they_were_imported(code):
    assert SOURCES.read_by(ast.parse(code)) == CODE[code]


NUMPY, RANDOM = "numpy.random", "random"
SEEDS = {
    "np.random.seed(1); x = np.random.rand()": {NUMPY},
    "import numpy\nprint('a')\nt0 = time.time()\nnp.random.seed(3)": {NUMPY},
    "random.seed(1); np.random.seed(1)": {RANDOM, NUMPY},
    "seed(1)": {NUMPY},
    "set_seed(1)": {RANDOM, NUMPY},
    "x = seeds_and_draws(1); random.seed(1)": {NUMPY},
    "with open('x') as f:\n    random.seed(1)": {RANDOM},
    "np.random.seed()": set(),
    "x = np.random.rand(); np.random.seed(1)": set(),
    "x = draws_and_seeds(1)": set(),
    "x = anything(); np.random.seed(1)": set(),
    "np.random.seed(int(np.random.rand()))": set(),
    "if x: random.seed(1)": set(),
    "for i in x: random.seed(i)": set(),
    "def f(): np.random.seed(1)": set(),
}


@pytest.mark.parametrize("code", SEEDS)
def test_a_step_seeds_first_only_where_that_is_plain_to_see(code):
    assert SOURCES.seeds_first(ast.parse(code)) == SEEDS[code]

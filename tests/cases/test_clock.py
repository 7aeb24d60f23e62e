"""A clock read inside a step (DESIGN 5 and 6): an older record does not come back, and another day is another input."""

import pytest

pytestmark = pytest.mark.kernel

ZONES_OF_TWO_DAYS = ("XXX+12", "YYY-14")
"""26 hours apart: their dates differ whenever one looks."""


def test_an_older_record_of_a_step_that_read_a_clock_is_not_replayed(notebook):
    book = notebook("""
import time

def stamp():
    return time.time()
# ---
year = 1
# ---
%%keel_step clock
hit("clock"); x = (year, stamp())
# ---
%%keel_step pure
hit("pure"); y = year
""")
    book.run_all()
    book.edit(1, "1", "2")
    book.run_all()
    book.edit(1, "2", "1")
    book.run_all()
    assert book.hits == "clock pure clock pure clock"
    book.rerun()
    assert book.hits == "clock pure clock pure clock", "its newest record is replayed"
    assert "clock" in book.execute("%keel why clock").text


def test_a_date_read_inside_a_step_makes_the_day_an_input(notebook):
    book = notebook("""
import datetime as dt
# ---
%%keel_step report
hit("report"); today = dt.date.today()
# ---
%%keel_step timed
import time
hit("timed"); t0 = time.perf_counter(); y = 1
""")
    said = []
    for zone in ZONES_OF_TWO_DAYS:
        book.env["TZ"] = zone
        for _ in range(2):
            said.append(book.run_all()[1].stderr)
            book.shutdown()
    assert book.hits == "report timed report"
    assert said[1] == said[3] == ""
    assert "report executes: today's date" in said[2]

"""What is shown: aligned text, escaped HTML, and nothing of a journal that could do anything."""

import re
from html.parser import HTMLParser

import pytest

from keel_notebook.core.decide import Difference, Part
from keel_notebook.core.done import StepDone
from keel_notebook.core.model import Kind, NotStored, Status
from keel_notebook.core.plans import plan, planned_cell
from keel_notebook.core.ports import RunEnd
from keel_notebook.core.report import status
from keel_notebook.core.why import why
from keel_notebook.front.logtable import LogReport, LogTable
from keel_notebook.front.page import width
from keel_notebook.front.tables import PlanTable, StatusTable, WhyTable

from .conftest import HOSTILE


class Reader(HTMLParser):
    """Reads HTML as a browser would; fails on anything that keel never writes."""

    ALLOWED = ("div", "table", "thead", "tbody", "tr", "th", "td", "pre", "span")

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.rows, self.open, self.titles = [], [], []

    def handle_starttag(self, tag, attrs):
        assert tag in self.ALLOWED
        assert {name for name, _ in attrs} <= {"class", "style", "title", "scope"}
        self.titles += [value for name, value in attrs if name == "title"]
        assert not any("url(" in value or "expression" in value for name, value in attrs if name == "style")
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    def handle_comment(self, data):
        raise AssertionError("a comment")

    handle_decl = handle_pi = handle_comment


def read(page):
    reader = Reader()
    reader.feed(page._repr_html_())
    reader.close()
    assert reader.open == []
    return reader


def status_page(story, **more):
    return StatusTable(
        status(
            story.records, **{"done": {}, "now": story.now, "live": True, "notebook": "nb.ipynb", "order": ()} | more
        )
    )


def pages(story, name):
    """Every kind of page about a story, each with the hostile text in every place that can hold one."""
    story.run(RunEnd.CLEAN)
    lost = NotStored(name, name, name)
    story.step(name, reads={name: name}, writes={name: name}, not_stored=(lost,), why=name, source=name)
    story.step(name, Status.FAILED, reads={name: "other"}, why=name, source=name + "\nx = 1")
    differs = (Difference(Part.INPUT, name, name, name),)
    done = {name: StepDone(name, "refused", refusal="E031", why=name, differs=differs, source="x")}
    yield status_page(story, done=done, notebook=name)
    yield WhyTable(why(name, story.records, done))
    yield PlanTable(plan([planned_cell(1, name), planned_cell(2, "%%keel_step " + name)], story.records, now=0.0))
    yield LogTable(LogReport("f", tuple(story.entries), story.runs))


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_names_are_text_and_nothing_else(story, kind):
    for page in pages(story, HOSTILE[kind]):
        reader = read(page)
        text = str(page)
        text.encode()
        for line in [*text.split("\n"), *(field for row in reader.rows for field in row), *reader.titles]:
            assert line.isprintable() or "\u200d" in line, "no control characters, no direction marks"
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x1f\x7f-\x9f]", line)


def test_a_very_long_name_is_cut_in_the_middle_and_whole_in_the_title(story):
    name = HOSTILE["long"]
    story.run().step(name)
    page = status_page(story)
    reader = read(page)
    [shown] = [row[0] for row in reader.rows if row[0].startswith("xx")]
    assert len(shown) == 40
    assert "…" in shown
    assert shown.endswith("yyy")
    assert name in reader.titles
    assert max(map(len, str(page).split("\n"))) < 400


def test_columns_are_aligned_also_for_wide_and_combining_characters(story):
    story.run(RunEnd.OPEN)
    for name in ("a", HOSTILE["emoji"], HOSTILE["combining"], "日本語"):
        story.step(name)
    lines = str(status_page(story)).split("\n")[1:]
    starts = {width(line[: line.index(word)]) for line, word in zip(lines, ["state", *["recorded"] * 4], strict=True)}
    assert len(starts) == 1


def test_the_status_says_what_a_person_wants_to_know(three_steps):
    text = str(status_page(three_steps, now=three_steps.now + 3600))
    head, columns, load, fit, plot = text.split("\n")
    assert head == "nb.ipynb, run 2 running (pid 4711 on host), 2 of 3 steps saved, replay saved 10 min"
    assert columns.split() == ["step", "state", "decision", "when", "took", "saved", "size", "why"]
    assert re.split(r"\s{2,}", load) == [
        *("load", "replayed", "replayed", "50 min ago", "10 min", "10 min", "2.1 MB"),
        "code and inputs are those of the record",
    ]
    assert re.split(r"\s{2,}", fit)[:2] == ["fit", "saved"]
    assert "in the journal, not in memory" in fit
    assert re.split(r"\s{2,}", plot)[:2] == ["plot", "interrupted"]


def test_html_and_text_show_the_same_fields(three_steps):
    page = status_page(three_steps)
    text = [re.split(r"\s{2,}", line) for line in str(page).split("\n")[1:]]
    assert [[field for field in row if field] for row in read(page).rows] == text


def test_an_empty_status_says_how_to_begin(story):
    assert "%%keel_step NAME" in str(status_page(story))


def test_what_is_not_stored_is_listed_below(story):
    story.run(RunEnd.OPEN).step("load", not_stored=(NotStored("conn", "sqlite3.Connection", "lives in one process"),))
    assert str(status_page(story)).endswith("load: conn (sqlite3.Connection) is not stored: lives in one process")


def test_foreign_records_are_noted(story):
    entry = story.run().step("load")
    story.untrusted = frozenset({entry.entry})
    assert "1 record not written with your key" in str(status_page(story))


def test_a_page_fetches_nothing_and_follows_the_theme(three_steps):
    for page in (status_page(three_steps), WhyTable(why("fit", three_steps.records, {}))):
        html = page._repr_html_()
        assert "http" not in html
        assert "//" not in html
        assert "color:inherit" in html
        assert not re.search(r"[^-]color:(?!inherit)", html), "text takes the colour of the theme"


def test_why_begins_with_its_sentence(three_steps):
    text = str(WhyTable(why("load", three_steps.records, {})))
    assert text.startswith("load replayed: code and inputs are those of run 1, ")


def test_the_plan_counts_and_assumes(three_steps):
    cells = [planned_cell(1, "import math\ncutoff = 3"), planned_cell(2, "%%keel_step load\nload = 1")]
    text = str(PlanTable(plan(cells, three_steps.records, now=0.0)))
    assert text.startswith("Run All replays 1, runs 1 plain cell, what replays took 10 min\n")
    assert text.endswith("if plain cells give the values that they gave in run 2")


def test_the_log_shows_decisions_as_such(three_steps):
    lines = str(LogTable(LogReport("f", tuple(three_steps.entries), three_steps.runs))).split("\n")
    assert re.split(r"\s{2,}", lines[-1])[2:5] == ["load", "decision", "replayed"]
    assert re.split(r"\s{2,}", lines[-2])[2:5] == ["plot", "step", "died"], "its kernel did"


def test_many_alike_in_a_row_are_one_line_of_the_log(story):
    story.run()
    for key in range(1000):
        story.step("ask", kind=Kind.CALL, call="ask", key=str(key), took=1.0)
    story.step("ask", Status.FAILED, kind=Kind.CALL, call="ask", key="x", took=1.0)
    story.step("ask")

    def lines(**more):
        return str(LogTable(LogReport("f", tuple(story.entries), story.runs, **more))).split("\n")[1:]

    assert len(lines()) == 3
    assert re.split(r"\s{2,}", lines()[0])[1:6] == ["1.1 … 1.1000", "ask", "1000 calls of ask", "ok", "16 min 40 s"]
    assert len(lines(each=True)) == 1002
    assert len(lines(limit=2)) == 2
    assert len(LogReport("f", tuple(story.entries), story.runs, 2).to_dict()["entries"]) == 2, "a program gets entries"


def test_to_dict_is_that_of_the_report(three_steps):
    page = status_page(three_steps)
    assert page.to_dict() == page.report.to_dict()

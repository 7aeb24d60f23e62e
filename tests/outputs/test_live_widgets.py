"""Widgets live again after a replay in a new kernel, as far as their state can be given back (C17, C18)."""

import pytest

pytestmark = pytest.mark.kernel

VIEW = "application/vnd.jupyter.widget-view+json"
MOVE = """
from ipywidgets.widgets.widget import _instances
def move(number, **state):  # what the page sends when somebody moves a slider
    one = [w for w in _instances.values() if type(w).__name__ == "IntSlider"][number]
    one.comm.handle_msg({"content": {"data": {"method": "update", "state": state, "buffer_paths": []}}, "buffers": []})
"""

SHOWN = {
    "a name": "import ipywidgets as w\ns = w.IntSlider(value=7); display(s); print('under')",
    "no name": "import ipywidgets as w\ndisplay(w.IntSlider(value=7)); print('under')",
    "the last line": "import ipywidgets as w\nw.IntSlider(value=7)",
    "a box": (
        "import ipywidgets as w\nw.VBox([w.IntSlider(value=7), w.HBox([w.Label('k'), w.Dropdown(options=['a', 'b'])])])"
    ),
    "a later value": "import ipywidgets as w\ns = w.IntSlider(value=3); display(s); s.value = 7",
    "interact": "import ipywidgets as w\n@w.interact(x=7)\ndef f(x): print('x is', x)",
    "interactive": "import ipywidgets as w\ndef f(x): print('x is', x)\nw.interactive(f, x=7)",
    "a class of the notebook": (
        "import ipywidgets as w, traitlets as t\nclass Mine(w.IntSlider):\n"
        "    note = t.Unicode('n').tag(sync=True)\n"
        "    def __init__(self, **k): self.log_of = []; super().__init__(**k)\n"
        "    @t.observe('value')\n    def _moved(self, change): self.log_of.append(change.new)\n"
        "m = Mine(value=7); m"
    ),
}


def views(shown):
    return [output["data"][VIEW]["model_id"] for output in shown.outputs if VIEW in output.get("data", {})]


@pytest.mark.parametrize("source", SHOWN.values(), ids=SHOWN)
def test_c17_what_was_shown_lives_again_after_a_kill(notebook, source):
    look = "from ipywidgets.widgets.widget import _instances as live\nprint([*map(str, live)])"
    book = notebook([f"%%keel_step w\nhit('w')\n{source}", "print('done')"])
    first = book.run_all()
    again = book.rerun()
    assert book.hits == "w"
    assert again[0].outputs == first[0].outputs
    (view,) = views(again[0])
    assert view in book.execute(look).text
    assert book.execute(
        MOVE + "print([w.value for w in _instances.values() if 'IntSlider' in str(type(w).__mro__)])"
    ).text.endswith("[7]\n")


def test_c17_a_moved_slider_calls_what_observed_it_after_a_kill(notebook):
    book = notebook("""
%%keel_step w
hit("w")
import ipywidgets as w
s, seen = w.IntSlider(value=7), []
def note(change): seen.append(change.new)
s.observe(note, "value")
b = w.Button(description="go"); b.on_click(lambda _: seen.append("clicked"))
display(w.VBox([s, b]))
# ---
print(s.value, seen)
""")
    book.run_all()
    assert book.rerun()[1].text == "7 []\n"
    book.execute(MOVE)
    book.execute("move(0, value=9); b.click()")
    assert book.execute("print(s.value, seen)").text == "9 [9, 'clicked']\n"
    assert book.hits == "w"


def test_c17_interact_draws_again_where_it_is_moved_after_a_kill(notebook):
    book = notebook("""
%%keel_step w
hit("w")
import ipywidgets as w
drawn = []
def f(x): drawn.append(x); print("x is", x)
w.interact(f, x=7);
""")
    book.run_all()
    book.rerun()
    book.execute(MOVE)
    assert book.execute("move(0, value=9)").text == "x is 9\n"
    assert book.execute("print(drawn)").text == "[7, 9]\n"
    assert book.hits == "w"


def test_a_slider_that_a_person_moved_counts_by_its_value(notebook):
    book = notebook("""
%%keel_step w
import ipywidgets as w
s = w.IntSlider(value=7); display(s)
# ---
%%keel_step use
hit("use"); print("at", s.value)
# ---
print(s.value)
""")
    book.run_all()
    assert book.rerun()[1].text == "at 7\n"
    assert book.hits == "use"
    book.execute(MOVE)
    book.execute("move(0, value=9)")
    assert book.run(1).text == "at 9\n"
    assert book.hits == "use use"
    assert book.rerun()[1].text == "at 7\n"


def test_a_slider_changed_by_a_later_step_is_one_slider_after_a_kill(notebook):
    book = notebook("""
%%keel_step w
import ipywidgets as w
s = w.IntSlider(value=7); s
# ---
%%keel_step up
hit("up"); s.value = 8; s.description = "k"
# ---
%%keel_step box
hit("box"); both = w.VBox([s]); both
# ---
print(s.value, both.children[0] is s, s.description)
""")
    first = book.run_all()
    again = book.rerun()
    assert book.hits == "up box"
    assert again[3].text == "8 True k\n"
    assert [views(one) for one in again] == [views(one) for one in first]
    book.execute(MOVE)
    book.execute("move(0, value=9)")
    assert book.execute("print(s.value)").text == "9\n"


def test_an_output_widget_of_an_earlier_step_takes_more_after_a_kill(notebook):
    book = notebook("""
%%keel_step w
import ipywidgets as w
out = w.Output(); display(out)
with out: print("1")
# ---
%%keel_step more
hit("more")
with out: print("2")
print("under")
""")
    first = book.run_all()
    again = book.rerun()
    assert len(views(again[0])) == 1
    assert [one.outputs for one in again] == [one.outputs for one in first]
    assert book.hits == "more"


NOT_STORED = {
    "a lock": "import ipywidgets as w, threading\ns = w.IntSlider(value=7); s.lock = threading.Lock(); display(s)",
    "a credential": (
        "import ipywidgets as w\n"
        "s = w.IntSlider(value=7); display(w.VBox([s, w.Password(value='hunt' + 'er2')])); del s"
    ),
}


@pytest.mark.parametrize("source", NOT_STORED.values(), ids=NOT_STORED)
def test_c17_a_widget_that_cannot_come_back_is_a_still_picture_and_no_dead_view(notebook, source):
    book = notebook([f"%%keel_step w\n{source}"])
    book.run_all()
    (again,) = book.rerun()
    assert views(again) == []
    assert "IntSlider(value=7" in again.text
    assert "A live widget was here." in again.text
    assert all(b"hunter2" not in path.read_bytes() for path in book.journal().rglob("*") if path.is_file())


def test_restore_brings_a_widget_back_that_works(notebook):
    book = notebook("%%keel_step w\nimport ipywidgets as w\ns = w.IntSlider(value=7)\nb = w.VBox([s])")
    book.run_all()
    book.kill()
    book.start()
    book.execute("%load_ext keel_notebook")
    book.execute("%keel restore")
    shown = book.execute(MOVE + "move(0, value=9); print(s.value, b.children[0] is s); display(b)")
    assert shown.text.startswith("9 True\n")
    assert len(views(shown)) == 1

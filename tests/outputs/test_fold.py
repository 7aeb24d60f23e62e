"""What is kept of a cell's messages is what a person saw at its end (DESIGN 6, Outputs)."""

import itertools
import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keel_notebook.core.fold import Fold, fold
from keel_notebook.core.ports import Message
from keel_notebook.core.shown import weight
from tests.outputs.screens import jupyterlab

VIEW = "application/vnd.jupyter.widget-view+json"


def text(text, name="stdout"):
    return Message("stream", {"name": name, "text": text})


def display(plain, *, kind="display_data", shown_as="", **data):
    content = {"data": {"text/plain": plain, **data}, "metadata": {}, "transient": {}}
    if shown_as:
        content["transient"] = {"display_id": shown_as}
    return Message(kind, content)


def update(plain, shown_as):
    return display(plain, kind="update_display_data", shown_as=shown_as)


def clear(*, wait):
    return Message("clear_output", {"wait": wait})


def area(messages):
    """A notebook's output area, as JupyterLab fills it."""
    outputs, clear_next = [], False
    for message in messages:
        kind, content = message.kind, message.content
        if kind == "clear_output":
            clear_next = content["wait"]
            outputs = outputs if clear_next else []
        elif kind == "update_display_data":
            for output in outputs:
                if output.get("id") == content["transient"]["display_id"]:
                    output["data"] = content["data"]
        else:
            outputs, clear_next = ([] if clear_next else outputs), False
            if kind != "stream":
                outputs.append({"kind": kind, "data": content["data"], "id": content["transient"].get("display_id")})
            elif outputs and outputs[-1].get("name") == content["name"]:
                outputs[-1]["text"] += content["text"]
            else:
                outputs.append({"kind": kind, "name": content["name"], "text": content["text"]})
    shown = [{**o, "text": jupyterlab(o["text"])} if "text" in o else o for o in outputs]
    return [o for o in shown if o.get("text", ([1], 0))[0]]


names = st.sampled_from(["stdout", "stderr"])
pieces = st.lists(st.sampled_from(["a", "bcd", "\r", "\b", "\n", "12 ", "█"]), min_size=1, max_size=6).map("".join)
ids = st.sampled_from(["one", "two"])
messages = st.lists(
    st.one_of(
        st.builds(text, pieces, names),
        st.builds(text, pieces, names),
        st.builds(display, st.sampled_from("xyz")),
        st.builds(lambda plain, shown_as: display(plain, shown_as=shown_as), st.sampled_from("pqr"), ids),
        st.builds(update, st.sampled_from("uvw"), ids),
        st.builds(lambda wait: clear(wait=wait), st.booleans()),
        st.just(display("42", kind="execute_result")),
    ),
    max_size=14,
)


@given(sent=messages)
@settings(max_examples=120)
def test_a_front_end_shows_the_folded_messages_as_it_showed_all_of_them(sent):
    assert area(fold(sent)) == area(sent)


@given(sent=messages, cap=st.integers(600, 5000))
@settings(max_examples=120)
def test_folding_twice_is_folding_once(sent, cap):
    once = fold(sent, cap_bytes=cap, rich_cap_bytes=cap)
    assert fold(once, cap_bytes=cap, rich_cap_bytes=cap) == once


def test_a_row_that_is_simple_once_a_rewrite_is_gone_is_folded_as_such():
    assert fold([text("aa"), text("\ra\b\raa")]) == (text("aa"),)


lines = st.lists(st.integers(0, 900).map(lambda n: "é" * (n % 7) + "x" * n + "\n"), min_size=1, max_size=30)


@given(lines=lines, cuts=st.lists(st.integers(0, 20_000), max_size=10), cap=st.integers(700, 6000))
@settings(max_examples=120)
def test_c21_the_capped_text_is_the_same_however_the_stream_was_cut(lines, cuts, cap):
    whole = "".join(lines)
    places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    cut = [text(whole[a:b]) for a, b in itertools.pairwise(places)]
    kept = fold([text(whole)], cap_bytes=cap)
    assert fold(cut, cap_bytes=cap) == kept
    assert fold(kept, cap_bytes=cap) == kept


@given(lines=lines, cap=st.integers(700, 6000))
@settings(max_examples=120)
def test_c21_head_and_tail_are_kept_and_the_marker_counts_what_is_missing(lines, cap):
    whole = "".join(lines)
    (kept,) = fold([text(whole)], cap_bytes=cap)
    found = re.fullmatch(r"(?s)(.*?)… truncated, ([\d,]+) bytes …\n(.*)", kept.content["text"])
    if found is None:
        assert kept.content["text"] == whole
        assert len(whole.encode()) <= cap
        return
    head, missing, tail = found[1], int(found[2].replace(",", "")), found[3]
    if len(head.encode()) + missing + len(tail.encode()) > len(whole.encode()):
        head = head.removesuffix("\n")  # cut within a line: the marker has a line of its own
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert len(head.encode()) + missing + len(tail.encode()) == len(whole.encode())
    assert len(kept.content["text"].encode()) <= cap
    assert len(head.encode()) > cap // 4
    assert len(tail.encode()) > cap // 4 - 256


def test_c21_two_million_lines_take_no_memory_of_their_size():
    folding, some = Fold(), "".join(f"line {i}\n" for i in range(10_000))
    tracemalloc.start()
    for _ in range(200):
        folding.feed(text(some + "\n"))
    kept = folding.finish()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept[0].content["text"].endswith("line 9999\n\n")
    assert peak < 10 << 20  # of 20 MB that were printed


def test_c21_two_streams_in_turn_are_capped_with_one_marker():
    sent = [text(f"line {i}\n", ("stdout", "stderr")[i % 2]) for i in range(5_000)]
    kept = fold(sent, cap_bytes=10_000)
    joined = "".join(message.content["text"] for message in kept)
    assert joined.startswith("line 0\nline 1\n")
    assert joined.endswith("line 4998\nline 4999\n")
    assert joined.count("truncated") == 1
    assert sum(map(weight, kept)) < 20_000


def test_c21_printed_text_does_not_push_out_the_plots():
    sent = [text("x" * 300 + "\n") if i % 100 else display("plot", **{"image/png": f"{i}"}) for i in range(1_000)]
    kept = fold(sent, cap_bytes=10_000)
    assert sum(message.kind == "display_data" for message in kept) == 10


def test_c21_a_loop_of_displays_keeps_the_first_and_the_last():
    sent = [display(str(i), **{"image/png": "p" * 10_000}) for i in range(1_000)]
    kept = fold(sent, rich_cap_bytes=100_000)
    shown = [message.content["data"]["text/plain"] for message in kept if message.kind == "display_data"]
    assert shown[:2] == ["0", "1"]
    assert shown[-2:] == ["998", "999"]
    assert next(message.content["text"] for message in kept if message.kind == "stream").startswith("… truncated, ")


def test_c16_twenty_thousand_updates_are_one_line_of_a_few_bytes():
    sent = [text(f"\r{i}/20000", "stderr") for i in range(20_000)] + [text("\n", "stderr")]
    assert fold(sent) == (text("19999/20000\n", "stderr"),)


def test_an_update_of_a_display_of_an_earlier_cell_stays_an_update_and_only_the_last_one():
    assert fold([update("1", "far"), text("a"), update("2", "far")]) == (update("2", "far"), text("a"))


def test_an_update_of_an_earlier_display_survives_the_clearing_of_this_cell():
    assert fold([update("1", "far"), text("a"), clear(wait=False), text("b")]) == (update("1", "far"), text("b"))


def test_what_is_not_shown_is_not_kept():
    sent = [Message("status", {}), Message("execute_input", {"code": "1"}), Message("input_request", {}), text("a")]
    assert fold(sent) == (text("a"),)


# ---- widgets


def made(comm, model, **state):
    state |= {"_model_name": model + "Model"}
    return Message("comm_open", {"comm_id": comm, "target_name": "jupyter.widget", "data": {"state": state}})


def changed(comm, **state):
    return Message("comm_msg", {"comm_id": comm, "data": {"method": "update", "state": state}})


def view(comm, plain="Widget()"):
    return display(plain, **{VIEW: {"model_id": comm}})


def test_c17_a_live_widget_becomes_a_still_picture_with_its_last_value():
    (kept,) = fold([made("s", "IntSlider", value=7), view("s", "IntSlider(value=7)"), changed("s", value=9)])
    assert kept.kind == "display_data"
    assert set(kept.content["data"]) == {"text/plain", "text/html"}
    assert kept.content["data"]["text/plain"].startswith("IntSlider(value=9)\n[A live widget was here.")
    assert "A live widget was here." in kept.content["data"]["text/html"]


def test_c17_a_widget_made_by_an_earlier_cell_is_shown_by_its_text():
    (kept,) = fold([view("s", "IntSlider(value=7)")])
    assert kept.content["data"]["text/plain"].startswith("IntSlider(value=7)\n")
    assert VIEW not in kept.content["data"]


def test_c17_no_comm_message_is_ever_kept():
    sent = [made("s", "IntSlider", value=7), changed("s", value=8), Message("comm_close", {"comm_id": "s", "data": {}})]
    assert fold([*sent, text("under")]) == (text("under"),)


def test_c17_a_widget_that_brings_a_picture_of_itself_keeps_it():
    (kept,) = fold([made("c", "MPLCanvas"), display("Canvas()", **{VIEW: {"model_id": "c"}, "image/png": "aa"})])
    assert kept.content["data"] == {"text/plain": "Canvas()", "image/png": "aa"}


def test_c17_the_password_in_a_password_box_is_not_kept():
    kept = fold([made("p", "Password", value="hunter2"), view("p", "Password()"), changed("p", value="hunter22")])
    assert "hunter" not in repr(kept)


def tqdm(comm):
    return [
        made(f"{comm}l", "HTML", value="  0%"),
        made(f"{comm}b", "FloatProgress", value=0.0, min=0.0, max=10.0),
        made(f"{comm}r", "HTML", value=" 0/10 [00:00&lt;?, ?it/s]"),
        made(comm, "HBox", children=[f"IPY_MODEL_{comm}{part}" for part in "lbr"]),
        view(comm, "  0%|          | 0/10 [00:00<?, ?it/s]"),
        *(changed(f"{comm}b", value=float(i)) for i in range(11)),
        changed(f"{comm}r", value=" 10/10 [00:01&lt;00:00, 9.9it/s]"),
        changed(f"{comm}l", value="100%"),
    ]


def test_c17_a_notebook_progress_bar_becomes_its_final_text():
    (kept,) = fold(tqdm("t"))
    assert kept.content["data"] == {"text/plain": "100%|██████████| 10/10 [00:01<00:00, 9.9it/s]"}


def test_c17_a_progress_bar_that_was_closed_leaves_nothing():
    assert fold([*tqdm("t"), Message("comm_close", {"comm_id": "t", "data": {}}), text("done")]) == (text("done"),)


def test_c18_what_an_output_widget_caught_stands_where_the_widget_was_shown():
    sent = [
        made("o", "Output", msg_id="", outputs=[]),
        text("1\n"),
        changed("o", msg_id="m"),
        text("2\n"),
        changed("o", msg_id=""),
        view("o"),
        text("3\n"),
    ]
    assert fold(sent) == (text("1\n2\n3\n"),)


def test_c18_an_output_widget_that_was_never_shown_hides_what_it_caught():
    assert fold([made("o", "Output"), changed("o", msg_id="m"), text("2\n"), changed("o", msg_id=""), text("3\n")]) == (
        text("3\n"),
    )


def test_c18_what_an_output_widget_of_an_earlier_cell_caught_is_kept_where_it_was_printed():
    sent = [
        text("1\n"),
        changed("o", msg_id="m"),
        text("2\n"),
        clear(wait=True),
        text("two\n"),
        changed("o", msg_id=""),
    ]
    assert fold([*sent, text("3\n")]) == (text("1\ntwo\n3\n"),)


def test_c18_one_output_widget_in_another():
    sent = [made("a", "Output"), made("b", "Output"), view("a"), changed("a", msg_id="m"), text("in a\n"), view("b")]
    sent += [
        changed("b", msg_id="m"),
        text("in b\n"),
        changed("b", msg_id=""),
        text("a again\n"),
        changed("a", msg_id=""),
    ]
    assert fold([*sent, text("end\n")]) == (text("in a\nin b\na again\nend\n"),)


def test_c18_output_appended_by_hand_is_the_whole_of_it():
    out = {"output_type": "stream", "name": "stdout", "text": "x\n"}
    sent = [made("o", "Output", outputs=[]), view("o"), changed("o", outputs=[out]), changed("o", outputs=[out, out])]
    assert fold(sent) == (text("x\nx\n"),)


def test_interact_keeps_the_plot_and_names_the_slider():
    sent = [
        made("s", "IntSlider", value=3, description="k"),
        made("o", "Output"),
        made("v", "VBox", children=["IPY_MODEL_s", "IPY_MODEL_o"]),
        changed("o", msg_id="m"),
        display("<Figure>", **{"image/png": "aa"}),
        changed("o", msg_id=""),
        view("v", "interactive(...)"),
    ]
    slider, plot = fold(sent)
    assert slider.content["data"]["text/plain"].startswith("IntSlider(value=3, description='k')\n")
    assert plot.content["data"]["image/png"] == "aa"


@pytest.mark.parametrize("loop", [["IPY_MODEL_v"], ["IPY_MODEL_w"]])
def test_boxes_that_hold_each_other_end(loop):
    kept = fold([made("v", "VBox", children=loop), made("w", "VBox", children=["IPY_MODEL_v"]), view("v"), text("a")])
    assert kept == (text("a"),)

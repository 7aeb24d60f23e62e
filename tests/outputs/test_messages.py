"""Messages as bytes, and what a foreign journal's messages may still do (C23)."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.capture.outputs import has_script, pack_messages, sanitised, unpack_messages
from keel_notebook.core.ports import Message
from keel_notebook.errors import DamagedError

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
messages = st.lists(
    st.builds(
        Message,
        st.sampled_from(["stream", "display_data", "execute_result"]),
        st.dictionaries(st.text(), json, max_size=4),
        st.dictionaries(st.text(), json, max_size=2),
        st.lists(st.binary(), max_size=2).map(tuple),
    ),
    max_size=4,
)


@given(sent=messages)
def test_messages_come_back_as_they_were(sent):
    assert unpack_messages(pack_messages(sent)) == tuple(sent)


def test_the_bytes_say_what_they_are():
    assert msgpack.unpackb(pack_messages([]))["schema"] == "keel.outputs/v1"


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\xc1",
        pack_messages([])[:-1],
        msgpack.packb([1]),
        msgpack.packb({"schema": "other/v1", "messages": []}),
        msgpack.packb({"schema": "keel.outputs/v1", "messages": [[1, 2]]}),
    ],
)
def test_bytes_that_are_not_messages_are_damage(packed):
    with pytest.raises(DamagedError, match="KEEL-E051"):
        unpack_messages(packed)


def shown(**data):
    return Message(
        "display_data", {"data": {mime.replace("_", "/"): value for mime, value in data.items()}, "metadata": {}}
    )


ACTIVE = [
    shown(text_html="<b>hi</b><script>window.keelRan = 1</script>"),
    shown(text_html="<img src=x onerror='window.keelRan = 1'>"),
    shown(text_html="<a href=' javascript:alert(1)'>x</a>"),
    shown(text_html="<iframe src='x'></iframe>"),
    shown(text_markdown="hello <script>1</script>"),
    Message("display_data", {"data": {"image/svg+xml": "<svg><script>1</script></svg>"}}),
    Message("display_data", {"data": {"application/javascript": "1"}}),
    Message("execute_result", {"data": {"application/vnd.plotly.v1+json": {}}}),
]
INERT = [
    Message("stream", {"name": "stdout", "text": "<script>1</script>"}),
    shown(text_plain="<script>1</script>", image_png="aa"),
    shown(text_html="<table style='color: red'><tr><td><img src='data:image/png;base64,aa'></td></tr></table>"),
    Message("error", {"ename": "E", "evalue": "<script>", "traceback": []}),
]


@pytest.mark.parametrize("message", ACTIVE)
def test_c23_what_could_run_is_found_and_taken_out(message):
    assert has_script([message])
    safe = sanitised([message])
    assert not has_script(safe)
    assert "<script" not in repr(safe[0])
    assert "keelRan" not in repr(safe)
    assert safe[0].content["data"].keys() == {"text/plain"}
    assert "keel trust" in safe[-1].content["text"]


@pytest.mark.parametrize("message", INERT)
def test_c23_what_only_shows_is_no_script(message):
    assert not has_script([message])


def test_c23_text_and_pictures_stay_as_they_are_and_nothing_is_said():
    harmless = (INERT[0], INERT[1], INERT[3])
    assert sanitised(harmless) == harmless


def test_c23_a_page_becomes_its_visible_text():
    page = shown(text_html="<style>b {}</style><p>one <b>two</b></p><script>three</script>")
    assert sanitised([page])[0].content["data"]["text/plain"] == "one two"


def test_c23_the_text_form_is_preferred_to_the_page():
    assert sanitised([shown(text_html="<b>page</b>", text_plain="text")])[0].content["data"] == {"text/plain": "text"}

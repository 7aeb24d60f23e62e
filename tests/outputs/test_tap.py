"""What a cell shows in a real kernel is recorded while it is shown, and shown again as it was."""

import re

import pytest

from tests.outputs.kernels import merged

pytestmark = pytest.mark.kernel


def shown_again(kernel, code, name):
    """Record a cell, show it again, and check that a front end gets the same; what it gets."""
    live = merged(kernel.record(name, code))
    again = merged(kernel.replay(name))
    assert again == live
    return live


def test_c100_text_warnings_and_the_result_are_shown_again_in_order(kernel):
    code = 'import sys\nprint("a"); print("b"); print("warn", file=sys.stderr); 41 + 1'
    live = shown_again(kernel, code, "c100")
    assert [kind for kind, _ in live] == ["stream", "stream", "execute_result"]
    assert [content.get("text") for _, content in live] == ["a\nb\n", "warn\n", None]


def test_a_result_is_shown_under_the_number_of_the_cell_that_shows_it(kernel):
    ((_, first),) = kernel.record("count", "'x'")
    ((_, again),) = kernel.replay("count")
    assert again["execution_count"] == first["execution_count"] + 1
    assert again["data"] == {"text/plain": "'x'"}


def test_the_last_line_before_the_end_is_there_and_nothing_said_before_the_cell(kernel):
    kernel.run("""
        def say(info): print("said before")
        get_ipython().events.callbacks["pre_run_cell"].insert(0, say)
    """)
    kernel.record("last", "print('x' * 100_000); print('end', end='')")
    kernel.run("get_ipython().events.unregister('pre_run_cell', say)")
    (kept,) = kernel.kept("last")
    assert kept.content["text"] == "x" * 100_000 + "\nend"


def test_c14_the_first_line_is_on_screen_long_before_the_end(kernel):
    cell = kernel.start("# record c14\nimport time\nfor i in range(3): print(i, flush=True); time.sleep(0.5)")
    at = {}
    while "idle" not in at:
        message = kernel.next_message()
        if message["parent_header"]["msg_id"] == cell:
            text = message["content"].get("text") or message["content"].get("execution_state")
            at[str(text).strip()] = message["header"]["date"]
    assert (at["idle"] - at["0"]).total_seconds() > 1


def test_c13_a_figure_without_show_belongs_to_its_cell(kernel):
    kernel.run("%matplotlib inline\nimport matplotlib.pyplot as plt")
    live = shown_again(kernel, "plt.plot([1, 2, 3]);", "c13")
    assert [kind for kind, _ in live] == ["display_data"]
    assert "image/png" in live[0][1]["data"]
    assert kernel.run("print('x')")[0][1]["text"] == "x\n"


def test_c16_a_progress_line_is_stored_as_its_last_state(kernel):
    code = "import sys\nfor i in range(20000): sys.stderr.write(f'\\r{i}/20000')\nsys.stderr.write('\\n');"
    kernel.record("c16", code)
    assert merged(kernel.replay("c16")) == [("stream", {"name": "stderr", "text": "19999/20000\n"})]
    assert int(kernel.value("len(_kept['c16'])")) < 300


def test_c16_a_tqdm_bar_is_stored_as_its_last_state(kernel):
    kernel.record("tqdm", "from tqdm import tqdm\nfor _ in tqdm(range(3000), mininterval=0): pass")
    ((_, content),) = merged(kernel.replay("tqdm"))
    assert re.fullmatch(r"100%\|█+\| 3000/3000 \[.*\] *\n", content["text"])


def test_c24_all_representations_and_the_metadata_are_published_again(kernel):
    code = """
        display({"application/vnd.plotly.v1+json": {"data": [], "layout": {}},
                 "text/html": "<div>p</div>", "text/plain": "p"}, raw=True, metadata={"k": 1})
    """
    ((kind, content),) = shown_again(kernel, code, "c24")
    assert kind == "display_data"
    assert content["metadata"] == {"k": 1}
    assert content["data"]["application/vnd.plotly.v1+json"] == {"data": [], "layout": {}}


def test_what_is_recorded_does_not_change_with_the_object_that_was_shown(kernel):
    code = "d = {'text/plain': 'p', 'application/x+json': {'k': [1]}}\ndisplay(d, raw=True)\n"
    live = merged(kernel.record("alias", code + "d['application/x+json']['k'].append(2); d['text/plain'] = 'q'"))
    assert merged(kernel.replay("alias")) == live
    assert live[0][1]["data"] == {"text/plain": "p", "application/x+json": {"k": [1]}}


def test_content_that_json_does_not_have_is_recorded_as_the_front_end_got_it(kernel):
    code = """
        import datetime, warnings
        warnings.simplefilter("ignore")  # the session's own warning about NaN comes when it comes
        value = {1: float("nan"), "b": b"raw", "t": (1, 2), "d": datetime.date(2026, 1, 2), "big": 10**30}
        display({"text/plain": "x", "application/x+json": value}, raw=True)
    """
    shown_again(kernel, code, "odd")


def test_an_update_of_a_display_is_recorded_as_its_last_state_and_can_be_updated_later(kernel):
    kernel.record("handle", "h = display('one', display_id='h1')\nh.update('two')\nprint('after')")
    display, text = merged(kernel.replay("handle"))
    assert display[0] == "display_data"
    assert display[1]["data"]["text/plain"] == "'two'"
    assert display[1]["transient"] == {"display_id": "h1"}
    assert text[1]["text"] == "after\n"
    ((kind, _),) = kernel.record("later", "h.update('three')")
    ((again, content),) = merged(kernel.replay("later"))
    assert (kind, again) == ("update_display_data", "update_display_data")
    assert content["data"]["text/plain"] == "'three'"


def test_cleared_output_is_not_kept(kernel):
    code = "from IPython.display import clear_output\nprint('old'); clear_output(wait=True); print('new')"
    kernel.record("clear", code)
    assert merged(kernel.replay("clear")) == [("stream", {"name": "stdout", "text": "new\n"})]


def test_an_error_is_kept_for_history_and_never_shown_again(kernel):
    live = kernel.record("error", "print('before')\n1 / 0")
    assert [kind for kind, _ in live] == ["stream", "error"]
    assert [message.kind for message in kernel.kept("error")] == ["stream", "error"]
    assert merged(kernel.replay("error")) == [("stream", {"name": "stdout", "text": "before\n"})]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("system", "import os; os.system('echo child'); print('after')"),
        ("popen", "import subprocess; subprocess.run(['sh', '-c', 'echo child; sleep 0.05; echo late'])"),
        ("write", "import os; os.write(1, b'child\\n'); os.system('true');"),
        ("bang", "!echo child"),
        ("bash", "%%bash\necho child; echo err >&2"),
        ("fork", "import multiprocessing as mp\nwith mp.get_context('fork').Pool(1) as p: p.map(print, ['child'])"),
        ("thread", "import threading; t = threading.Thread(target=print, args=('child',)); t.start(); t.join()"),
    ],
)
def test_output_of_children_and_threads_is_recorded(kernel, name, code):
    if code.startswith("%%"):
        first, rest = code.split("\n", 1)
        kernel.run("from IPython.core.magic import register_cell_magic")
        code = f"get_ipython().run_cell_magic({first[2:]!r}, '', {rest!r})"
    kernel.record(name, code)
    texts = [message.content.get("text", "") for message in kernel.kept(name)]
    assert any("child\n" in text.replace("\r\n", "\n") for text in texts), texts
    if name == "popen":
        assert any("late\n" in text for text in texts)


@pytest.mark.parametrize("code", ["os.write(1, b'raw\\n')", "print('x', flush=True); os.write(2, b'raw\\n')"])
def test_what_goes_straight_into_a_descriptor_is_recorded_however_quick_the_cell_was(kernel, code):
    kernel.run("import os")
    for at in range(25):  # a thread has to read it first: some runs in ten lost it
        kernel.record(f"raw{at}", f"_ = {code}" if code.startswith("os") else code.replace("os.w", "_ = os.w"))
        assert any("raw\n" in message.content["text"] for message in kernel.kept(f"raw{at}")), at


LATE = """
import threading
go, done = threading.Event(), threading.Event()
threading.Thread(target=lambda: (go.wait(30), {late}, done.set())).start(); print("now")
"""


def test_c19_late_text_of_a_thread_is_credited_to_no_other_cell_and_not_lost(kernel):
    kernel.record("th", LATE.format(late="print('late')"))
    live = merged(kernel.record("other", "print('before'); go.set(); done.wait(30); print('other')"))
    assert "late\n" in "".join(content["text"] for _, content in live)
    assert [message.content for message in kernel.kept("th")] == [{"name": "stdout", "text": "now\n"}]
    assert [message.content for message in kernel.kept("other")] == [{"name": "stdout", "text": "before\nother\n"}]
    assert kernel.value("(_seen['th'].threads_left, _seen['other'].threads_left)") == "(1, 0)"


def test_c19_a_late_display_of_a_thread_is_credited_to_no_other_cell(kernel):
    kernel.record("thd", LATE.format(late="display('late')"))
    live = kernel.record("otherd", "go.set(); done.wait(30); display('own')")
    assert [content["data"]["text/plain"] for _, content in live] == ["'late'", "'own'"]
    assert [message.content["data"]["text/plain"] for message in kernel.kept("otherd")] == ["'own'"]


def test_c19_a_worker_of_an_older_pool_prints_for_the_cell_that_gave_it_the_work(kernel):
    kernel.record(
        "pool", "from concurrent.futures import ThreadPoolExecutor\nex = ThreadPoolExecutor(1); ex.submit(int).result()"
    )
    kernel.record("work", "ex.submit(print, 'from the pool').result()")
    assert [message.content["text"] for message in kernel.kept("work")] == ["from the pool\n"]
    assert kernel.value("_seen['pool'].threads_left") == "0"


def test_a_child_that_lives_on_does_not_hold_the_cell_up(kernel):
    kernel.record("server", "import subprocess; server = subprocess.Popen(['sleep', '300'])")
    kernel.run("import time; s = time.perf_counter(); _tap.open(); _tap._children.note(); _tap.close()")
    kernel.run("s = time.perf_counter() - s")
    assert 0.02 < float(kernel.value("s")) < 5
    kernel.run("server.kill(); server.wait()")


def test_c19_a_task_that_outlives_its_cell_prints_for_its_own(kernel):
    late = "async def late():\n    await go.wait(); print('task')"
    kernel.record("task", f"import asyncio\ngo = asyncio.Event()\n{late}\nt = asyncio.create_task(late())")
    kernel.record("next", "go.set(); await t; print('next')")
    assert kernel.kept("task") == ()
    assert [message.content["text"] for message in kernel.kept("next")] == ["next\n"]


def test_a_cell_of_a_subshell_that_runs_meanwhile_is_not_recorded(kernel):
    client = kernel.client
    request = client.session.msg("create_subshell_request")
    client.control_channel.send(request)
    subshell = client.get_control_msg(timeout=30)["content"]["subshell_id"]
    kernel.run("import threading; started, over = threading.Event(), threading.Event()")
    kernel.start("# record main\nstarted.set(); over.wait(30); print('main')")
    aside = client.session.msg("execute_request", {"code": "started.wait(30); print('aside'); over.set()"})
    aside["header"]["subshell_id"] = subshell
    client.shell_channel.send(aside)
    texts = []
    while len(texts) < 2:
        message = kernel.next_message()
        texts += [message["content"]["text"]] if message["msg_type"] == "stream" else []
    assert sorted(texts) == ["aside\n", "main\n"]
    assert [message.content["text"] for message in kernel.kept("main")] == ["main\n"]


def test_c21_a_flood_of_lines_has_a_head_a_tail_and_a_marker(kernel):
    kernel.record("c21", "for i in range(150_000): print('line', i)")
    ((_, content),) = merged(kernel.replay("c21"))
    text = content["text"]
    assert text.startswith("line 0\nline 1\n")
    assert text.endswith("line 149998\nline 149999\n")
    assert re.search(r"\n… truncated, [\d,]+ bytes …\n", text)
    assert len(text) <= 1 << 20


def test_c17_a_widget_is_replayed_as_a_still_picture(kernel):
    live = kernel.record(
        "w", "import ipywidgets as w\ns = w.IntSlider(value=7); display(s); print('under')\ns.value = 8"
    )
    assert {"comm_open", "comm_msg"} <= {kind for kind, _ in live}
    still, under = merged(kernel.replay("w"))
    assert still[1]["data"]["text/plain"].startswith("IntSlider(value=8)\n[A live widget was here.")
    assert set(still[1]["data"]) == {"text/plain", "text/html"}
    assert under[1]["text"] == "under\n"


def test_c17_a_notebook_progress_bar_is_replayed_as_its_last_state(kernel):
    kernel.record("bar", "from tqdm.notebook import tqdm as bar\nfor _ in bar(range(50), desc='go'): pass")
    ((kind, content),) = merged(kernel.replay("bar"))
    assert kind == "display_data"
    assert re.fullmatch(r"go: 100%\|██████████\| 50/50 \[.*it/s\]", content["data"]["text/plain"])


def test_c18_an_output_widget_is_replayed_as_what_it_caught(kernel):
    kernel.record("ow", "out = w.Output()\nprint('1')\nwith out: print('2')\ndisplay(out); print('3')")
    assert merged(kernel.replay("ow")) == [("stream", {"name": "stdout", "text": "1\n2\n3\n"})]


def test_binary_state_of_widgets_does_not_get_in_the_way(kernel):
    kernel.record("img", "display(w.Image(value=b'\\x89PNG', format='png')); print('x')")
    assert [kind for kind, _ in merged(kernel.replay("img"))] == ["display_data", "stream"]


def test_a_second_tap_does_not_record_twice(kernel):
    kernel.run("_tap = _outputs.make_tap(get_ipython())")
    kernel.record("twice", "print('once')")
    assert [message.content["text"] for message in kernel.kept("twice")] == ["once\n"]


def test_a_message_that_cannot_be_noted_is_shown_and_the_fault_is_told_at_the_end(kernel):
    kernel.run("""
        _tap2 = _outputs.make_tap(get_ipython())
        def break_it(message): raise RuntimeError("broken fold")
    """)
    live = kernel.run("""
        _tap2.open(); _tap2._recording._fold.feed = break_it
        print("shown")
        try: _tap2.close()
        except Exception as problem: print(type(problem).__name__, problem)
    """)
    ((_, content),) = merged(live)
    assert content["text"].startswith("shown\nInternalError KEEL-E040: keel failed while it recorded the output")
    kernel.run("_tap = _outputs.make_tap(get_ipython())")


def test_a_tap_that_is_detached_leaves_the_session_as_it_was(kernel):
    code = "k = get_ipython().kernel.session\n_tap.detach()\nprint('send' in vars(k))"
    assert merged(kernel.run(code))[0][1]["text"] == "False\n"
    kernel.run("_tap = _outputs.make_tap(get_ipython())")

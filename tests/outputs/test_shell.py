"""The tap of a plain IPython shell, without a kernel."""

import logging
import sys
import threading

import pytest
from IPython.core.interactiveshell import InteractiveShell

from keel_notebook.capture.outputs import KernelTap, ShellTap, make_tap


@pytest.fixture
def shell():
    shell = InteractiveShell.instance()  # what display() publishes through
    shell.run_cell("from IPython.display import display, clear_output")
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def record(shell, code):
    tap = make_tap(shell)
    tap.open()
    shell.run_cell(code, store_history=True)
    return tap.close()


def brief(messages):
    return [m.content.get("text") or (m.kind, m.content["data"]["text/plain"]) for m in messages]


def test_the_tap_fits_the_shell(shell):
    assert isinstance(make_tap(shell), ShellTap)
    assert not isinstance(make_tap(shell), KernelTap)


def test_prints_displays_and_the_result_are_recorded_in_order_and_still_printed(shell, capsys):
    code = "import sys\nprint('a'); print('warn', file=sys.stderr); display('shown'); 41 + 1"
    assert brief(record(shell, code)) == ["a\n", "warn\n", ("display_data", "'shown'"), ("execute_result", "42")]
    out, err = capsys.readouterr()
    assert "a\n'shown'\n" in out
    assert "42" in out
    assert err == "warn\n"


def test_what_was_recorded_is_printed_again(shell, capsys):
    messages = record(shell, "print('a'); display('shown'); 6 * 7")
    first = capsys.readouterr().out
    make_tap(shell).replay(messages)
    assert capsys.readouterr().out == first


def test_cleared_output_is_not_kept(shell):
    assert brief(record(shell, "print('old'); clear_output(); print('new')")) == ["new\n"]


def test_an_update_is_in_the_display_that_it_updates(shell):
    assert brief(record(shell, "h = display('one', display_id=True); h.update('two')")) == [("display_data", "'two'")]


def test_a_stream_that_somebody_kept_goes_on_writing_after_the_cell(shell, capsys):
    code = "import logging, sys\nhandler = logging.StreamHandler(sys.stderr)\nprint('x')"
    assert brief(record(shell, code)) == ["x\n"]
    shell.user_ns["handler"].emit(logging.LogRecord("n", 20, "f", 1, "later", (), None))
    assert capsys.readouterr().err == "later\n"


def test_the_streams_are_put_back(shell):
    before = sys.stdout, sys.stderr
    record(shell, "print('x')")
    assert (sys.stdout, sys.stderr) == before
    assert "publish" not in vars(shell.display_pub)


def test_c19_a_thread_of_an_earlier_cell_is_not_credited(shell, capsys):
    go, done = threading.Event(), threading.Event()
    shell.user_ns |= {"go": go, "done": done}
    record(shell, "import threading\nthreading.Thread(target=lambda: (go.wait(10), print('late'), done.set())).start()")
    assert brief(record(shell, "go.set(); done.wait(10); print('own')")) == ["own\n"]
    assert "late\n" in capsys.readouterr().out


def test_an_error_is_not_in_the_way(shell):
    assert "before\n" in "".join(m.content["text"] for m in record(shell, "print('before')\n1 / 0"))

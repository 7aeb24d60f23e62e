"""The desk and the comm in a real kernel: asked while a cell runs, over real comm messages (FRONTEND.md, C4)."""

import json
import time
from uuid import uuid4

import pytest

from keel_notebook.front import enable

pytestmark = pytest.mark.kernel

CELLS = """
%%keel_step load
hit("load")
rows = list(range(1000))
print("loaded")
# ---
total = sum(rows)
# ---
%%keel_step fit
hit("fit")
secret_token = "hunter2-hunter2-hunter2"
model = {"w": total}
model
"""


class Comm:
    """A front end's end of one comm: with an id of its own, as each front end has, and deaf to other comms."""

    def __init__(self, book):
        self.client = book.client
        self.id = uuid4().hex
        self.asked = 0
        self.send("comm_open", {"comm_id": self.id, "target_name": "keel", "data": {}})

    def send(self, kind, content):
        self.client.shell_channel.send(self.client.session.msg(kind, content))

    def ask(self, word, **more):
        self.asked += 1
        self.send("comm_msg", {"comm_id": self.id, "data": {"id": self.asked, "ask": word, **more}})
        return self.answer(self.asked)

    def answer(self, number):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=60)
            if message["content"].get("comm_id") != self.id:
                continue
            if message["msg_type"] == "comm_close":
                return None
            if message["msg_type"] == "comm_msg" and message["content"]["data"].get("id") == number:
                return message["content"]["data"]
        raise TimeoutError


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    from tests.support.notebook import Notebook

    book = Notebook(tmp_path_factory.mktemp("desk"), CELLS)
    assert [shown.status for shown in book.run_all()] == ["ok", "ok", "ok"]
    yield book
    book.close()


@pytest.fixture(scope="module")
def comm(ran):
    return Comm(ran)


def test_hello_tells_the_version_what_can_be_done_and_every_step(comm):
    said = comm.ask("hello")
    assert said["ok"]
    flow = said["answer"]["flow"]
    assert {step["name"]: step["state"] for step in flow["steps"]} == {"load": "recorded", "fit": "recorded"}
    assert "rerun" in said["answer"]["can"]
    assert flow["died"] is None


def test_an_edge_leads_through_a_plain_cell(comm):
    steps = {step["name"]: step for step in comm.ask("status")["answer"]["steps"]}
    assert steps["fit"]["reads"] == ["load"]
    assert steps["load"]["reads"] == []


def test_the_status_is_what_status_to_dict_gives(ran, comm):
    own = json.loads(ran.execute("import json, keel_notebook as k; print(json.dumps(k.status().to_dict()))").text)
    told = comm.ask("status")["answer"]
    pinned = own["steps"][0].keys()
    assert [{name: step[name] for name in pinned} for step in told["steps"]] == own["steps"]


def test_a_cell_edited_and_not_run_differs_and_the_details_have_both_sides(comm):
    cells = [{"name": "load", "source": '%%keel_step load\nhit("load")\nrows = list(range(9))'}]
    flow = comm.ask("cells", cells=cells)["answer"]
    load = next(step for step in flow["steps"] if step["name"] == "load")
    assert (load["state"], load["differs"]) == ("diverged", ["code"])
    details = comm.ask("why", step="load")["answer"]
    assert "range(1000)" in details["recorded_source"]
    assert "range(9)" in details["current_source"]
    assert details["recorded_outputs"] == [{"kind": "stdout", "text": "loaded\n"}]
    comm.ask("cells", cells=[])


def test_the_details_speak_of_an_edit_only_until_it_has_run(tmp_path):
    """Executed, the cell is that of its newest record; changed back, it is that of the record before."""
    from tests.support.notebook import Notebook

    with_rows = "%%keel_step load\nrows = list(range({}))\nprint('x' * {})".format
    book = Notebook(tmp_path, [with_rows(5, 30_000)])
    try:
        assert [shown.status for shown in book.run_all()] == ["ok"]
        comm = Comm(book)

        def sentence(source):
            comm.ask("cells", cells=[{"name": "load", "source": source}])
            return comm.ask("why", step="load")["answer"]

        assert "executes when it runs next" in sentence(with_rows(6, 5))["sentence"]
        assert book.execute(with_rows(6, 5)).status == "ok"
        told = sentence(with_rows(6, 5))
        assert told["sentence"].startswith("load executed")
        assert "range(5)" in told["recorded_source"]
        assert "range(6)" in told["current_source"]
        assert "is that of an older one" in sentence(with_rows(5, 30_000))["sentence"]
        (long,) = told["recorded_outputs"]
        assert len(long["text"]) + long["cut"] == 30_001, "what is left out is said"
    finally:
        book.close()


def test_only_formatting_is_no_difference(comm):
    spaced = '%%keel_step load\nhit( "load" )\nrows = list( range(1000) )  # all\nprint("loaded")'
    cells = [{"name": "load", "source": spaced}]
    flow = comm.ask("cells", cells=cells)["answer"]
    assert {step["state"] for step in flow["steps"]} == {"recorded"}
    assert comm.ask("why", step="load")["answer"]["format_only"]
    comm.ask("cells", cells=[])


def test_no_answer_holds_what_looks_like_a_secret(comm):
    told = [comm.ask(word, step="fit") for word in ("hello", "why", "timeline", "storage", "waiting")]
    assert all(answer["ok"] for answer in told)
    assert "hunter2" not in json.dumps(told)


def test_timeline_and_storage(comm):
    line = comm.ask("timeline", most=1)["answer"]
    assert [attempt["step"] for attempt in line["attempts"]] == ["fit"]
    assert line["older"] == 1
    stored = comm.ask("storage")["answer"]
    assert {step["name"]: step["records"] for step in stored["steps"]} == {"load": 1, "fit": 1}
    assert stored["segments"] > 0


def test_room_is_made_by_the_kernel_that_asks_and_what_it_holds_stays(tmp_path):
    from tests.support.notebook import Notebook

    book = Notebook(tmp_path, '%%keel_step load\nhit("load"); import os; rows = os.urandom(50_000)')
    try:
        assert [shown.status for shown in book.run_all()] == ["ok"]
        comm = Comm(book)
        assert comm.ask("room", keep_s=0)["answer"]["bytes"] == 0, "the newest record is needed"
        comm.ask("rerun", step="load")
        assert book.run(0).status == "ok"
        told = comm.ask("room", keep_s=0)["answer"]
        assert (told["records"], told["orphans"], told["bytes"] > 50_000) == (1, 0, True)
        assert comm.ask("room", keep_s=86_400)["answer"]["bytes"] == 0
        went = comm.ask("gc", keep_s=0)["answer"]
        assert went["said"].endswith(" are kept")
        assert (went["bytes"], went["objects"]) == (told["bytes"], told["objects"])
        assert comm.ask("gc", keep_s=0)["answer"]["said"] == "there was nothing to let go"
        digest = book.execute("import hashlib; print(hashlib.md5(rows).hexdigest())").text
        assert [shown.status for shown in book.rerun()] == ["ok"]
        assert book.execute("import hashlib; print(hashlib.md5(rows).hexdigest())").text == digest
        assert book.hits == "load load"
    finally:
        book.close()


def test_what_is_not_known_has_a_code_and_no_traceback(comm):
    refused = comm.ask("why", step="lod")
    assert (refused["ok"], refused["error"]["code"]) == (False, "E002")
    assert "did you mean load?" in refused["error"]["text"]
    assert comm.ask("dance")["error"]["code"] == "E001"


def test_rerun_executes_and_accept_replays(ran, comm):
    assert comm.ask("rerun", step="load")["ok"]
    assert ran.run(0).status == "ok"
    assert ran.hits == "load fit load"


def test_a_question_while_a_cell_runs_is_answered_after_it_where_there_are_no_subshells(ran, comm):
    sent = ran.client.execute("import time; time.sleep(1.0)")
    answered = comm.ask("status")
    assert answered["ok"], sent


def test_the_lineage_is_a_table_where_there_are_no_widgets(ran):
    shown = ran.execute("%keel lineage")
    forms = shown.outputs[-1]["data"]
    assert {"text/plain", "text/html"} <= forms.keys()
    assert "2 steps, all as recorded" in forms["text/plain"]
    assert "<script" not in forms["text/html"]
    assert "http" not in forms["text/html"]


def test_the_widget_keeps_no_payload_and_no_secret(ran):
    code = "import keel_notebook as k; w = k.lineage(); w._repr_mimebundle_(); print(w._widget.get_state(['flow']))"
    state = ran.execute(code).text
    assert "load" in state
    assert "hunter2" not in state
    assert "499500" not in state


# ---- keel enable


def test_enable_writes_one_file_and_disable_removes_it(tmp_path):
    file = enable.enable(str(tmp_path))
    assert [path.name for path in tmp_path.rglob("*.py")] == [enable.FILE]
    assert enable.enable(str(tmp_path)) == file
    assert enable.disable(str(tmp_path))
    assert not enable.disable(str(tmp_path))
    assert not file.exists()


def test_with_the_startup_file_the_first_step_is_recorded_without_load_ext(tmp_path):
    from tests.support.notebook import Notebook

    startup = tmp_path / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / enable.FILE).write_text(enable.STARTUP)
    book = Notebook(tmp_path, CELLS.replace('secret_token = "hunter2-hunter2-hunter2"\n', ""))
    book.cells[0] = "import sys; print('keel_notebook.session' in sys.modules)"
    try:
        first = book.run_all()
        assert [shown.status for shown in first] == ["ok", "ok", "ok"]
        assert book.shown[0].text.strip() == "False", "a cell that does not use keel loads nothing"
        assert [shown.status for shown in book.rerun()] == ["ok", "ok", "ok"]
        assert book.hits == "load fit"
        said = Comm(book).ask("hello")
        assert {step["state"] for step in said["answer"]["flow"]["steps"]} == {"replayed"}
    finally:
        book.close()


def test_with_a_variable_that_cannot_be_read_no_step_runs_plainly_without_a_word(tmp_path):
    from tests.support.notebook import Notebook

    startup = tmp_path / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / enable.FILE).write_text(enable.STARTUP)
    cells = ["1 + 1", "# keel: step a\nx = 1", "%%keel_step b\ny = 2"]
    book = Notebook(tmp_path, cells, env={"KEEL_MODE": "reply"})
    book.cells[0] = ""
    try:
        book.start()
        shown = [book._run(at) for at in range(len(book.cells))]
        assert [cell.status for cell in shown] == ["ok"] * 3 + ["error"] * 2
        assert all("KEEL_MODE" in cell.error for cell in shown[3:])
    finally:
        book.close()


def test_a_front_end_that_says_hello_first_loads_keel_where_it_is_enabled(tmp_path):
    from tests.support.notebook import Notebook

    startup = tmp_path / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / enable.FILE).write_text(enable.STARTUP)
    book = Notebook(tmp_path, CELLS)
    book.cells[0] = ""
    try:
        book.start()
        assert Comm(book).ask("hello")["answer"]["flow"]["steps"] == []
        typed = book.run(-1)
        assert (typed.status, typed.text) == ("ok", ""), "whoever types %load_ext all the same is told nothing"
        assert book.run(0).status == "ok"
        assert book.hits == "load"
    finally:
        book.close()


def test_a_kernel_without_keel_closes_the_comm(tmp_path):
    from tests.support.notebook import Notebook

    book = Notebook(tmp_path, CELLS)
    try:
        book.start()
        assert Comm(book).ask("hello") is None
    finally:
        book.close()


def test_auto_mode_is_switched_between_cells_and_told_with_the_flow(comm):
    assert comm.ask("status")["answer"]["auto"] is None
    assert comm.ask("auto")["answer"] == {"auto": 1.0}
    assert comm.ask("status")["answer"]["auto"] == 1.0
    assert comm.ask("auto")["answer"] == {"auto": None}


PROMISED = """
import keel_notebook as keel
# ---
%%keel_step ask
p = keel.promise("deploy")
token = p.token
n = 1
# ---
%%keel_step use
m = n + 1
"""


@pytest.fixture(scope="module")
def promised(tmp_path_factory):
    from tests.support.notebook import Notebook

    book = Notebook(tmp_path_factory.mktemp("promised"), PROMISED)
    assert [shown.status for shown in book.run_all()] == ["ok", "ok", "ok"]
    yield book
    book.close()


def test_an_open_promise_is_answered_without_its_token_and_once(promised):
    comm = Comm(promised)
    told = comm.ask("waiting")
    assert promised.execute("print(token)").text.strip() not in json.dumps(told)
    [wait] = told["answer"]["waits"]
    assert (wait["name"], wait["step"], wait["kind"]) == ("deploy", "ask", "promise")
    assert comm.ask("approve", promise="f:" + "0" * 20, value=True)["error"]["code"] == "E071"
    said = comm.ask("approve", promise=wait["id"], value={"size": 3})
    assert said["answer"] == {"said": "deploy is answered"}
    assert promised.execute("print(p.result(timeout=5))").text == "{'size': 3}\n"
    told = comm.ask("waiting")["answer"]
    assert told["waits"] == []
    assert [(one["name"], one["by"]) for one in told["answered"]] == [("deploy", "owner")]
    assert comm.ask("approve", promise=wait["id"], value=1)["error"]["code"] == "E071", "it is open no more"


def test_a_branch_keeps_what_was_recorded_and_both_lanes_can_be_used(promised):
    comm = Comm(promised)
    assert comm.ask("status")["answer"]["lanes"] == []
    assert comm.ask("branch", step="use")["answer"]["said"].startswith("lane-2 is in use")
    assert promised.execute("%%keel_step use\nm = n + 10", cell_id="cell-4").status == "ok"
    lanes = comm.ask("status")["answer"]["lanes"]
    assert [(lane["name"], lane["current"], lane["steps"]) for lane in lanes] == [
        ("main", False, 2),
        ("lane-2", True, 1),
    ]
    assert "n + 10" in comm.ask("why", step="use")["answer"]["current_source"]
    assert comm.ask("use", lane="main")["ok"]
    assert promised.execute("%%keel_step use\nm = n + 1", cell_id="cell-4").status == "ok"
    steps = {step["name"]: step["decision"] for step in comm.ask("status")["answer"]["steps"]}
    assert steps["use"] == "replayed", "what was recorded before the branch is as it was"
    assert promised.execute("print(m)").text == "2\n"
    assert comm.ask("use", lane="nope")["error"]["code"] == "E002"
    assert comm.ask("branch", step="nope")["ok"] is False

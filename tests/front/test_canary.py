"""No credential and no token in anything that keel says, whatever goes wrong (Z30): canaries through every code.

Each part is a notebook that a person could have written, run twice over; the error of its last cell has the code.
"""

import json
import shlex

import pytest
from click.testing import CliRunner

from keel_notebook.front.cli import keel

CANARY = "sk-live-CANARY0123456789abcdefCANARY"
KEY = f'api_key = "{CANARY}"'
ASK = f"""{KEY}
def ask(api_key): raise ValueError("no")"""

PARTS = {
    "E001": [f"%%keel_step s --ttl {CANARY}\nx = 1"],
    "E002": [KEY, "%%keel_step s\nx = len(api_key)", "%keel why t"],
    "E011": [KEY, "%%keel_step s\nimport threading\nkeel.call(threading.Event().wait, timeout=0.01, key=api_key)"],
    "E016": [
        KEY,
        "%%keel_step s\np = keel.promise('deploy'); print(p.token, file=open('token', 'w'), end='')",
        "p.result(timeout=0)",
    ],
    "E020": [
        KEY,
        "from keel_notebook.engine.waits import resolve\nfrom keel_notebook.engine import host",
        "%%keel_step s\np = keel.promise('deploy')\nparts = host.installed().calls(needed=True).parts\n"
        "resolve(parts.journal, parts.clock, promise_id=p.id, token=p.token, value={api_key})",
    ],
    "E031": [KEY, "%%keel_step s --on-divergence fail\nx = len(api_key)"],
    "E061": ["%config Keel.most_steps = 1", KEY, "%%keel_step s\nx = len(api_key)", "%%keel_step t\ny = x"],
    "E070": [
        "from keel_notebook.engine.waits import resolve\nfrom keel_notebook.engine import host",
        f"%%keel_step s\np = keel.promise('deploy')\n"
        f"parts = host.installed().calls(needed=True).parts\n"
        f"resolve(parts.journal, parts.clock, promise_id=p.id, token='{CANARY}', value=1)",
    ],
    "E071": [
        "from keel_notebook.engine.waits import resolve\nfrom keel_notebook.engine import host",
        f"%%keel_step s\nparts = host.installed().calls(needed=True).parts\n"
        f"resolve(parts.journal, parts.clock, promise_id='f:' + 20 * '0', token='{CANARY}', value=1)",
    ],
    "E060": [KEY, "%%keel_step s --effect exactly_once\nimport os; os.kill(os.getpid(), 9) if api_key else None"],
    "E032": [KEY, "%%keel_step s --max-attempts 1\nimport os; os.kill(os.getpid(), 9) if api_key else None"],
    "ValueError": [ASK, "%%keel_step s\nkeel.map(ask, [api_key], retries=1, progress=False)"],
}


@pytest.mark.parametrize("code", PARTS)
def test_z30_no_credential_is_in_anything_that_is_said(code, book, monkeypatch):
    notebook = book("\n# ---\n".join(["import keel_notebook as keel", "%keel flow sweep", *PARTS[code]]))
    run = notebook.run_all()
    if not run.error:  # the second run has what the first one recorded
        notebook.edit(-1, "x = len", "x = 1 + len") if code == "E031" else None
        run = notebook.run_all()
    assert code in run.error, run
    told = [run.error, *run.printed, *(cell.get("err", "") for cell in run.acknowledged)]
    monkeypatch.setenv("KEEL_JOURNAL", str(notebook.folder / ".keel"))
    asked = ["status", "status --json", "log --each --json", "show s --json", "why s", "diff s", "plan"]
    asked += ["sql 'select * from entries'"] if code == "E011" else []
    told += [CliRunner().invoke(keel, shlex.split(words)).output for words in asked]
    tokens = [path.read_text() for path in notebook.folder.glob("token")]
    for text in told:
        assert "CANARY" not in text
        assert not any(token in text for token in tokens)
    if code != "E001":  # nothing began
        shown = CliRunner().invoke(keel, ["status", "--json"]).stdout
        assert json.loads(shown).get("flow"), shown

"""What the README and the tutorial tell a newcomer to do, done: their own cells, in real kernels."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.kernel


def cells(page, *, section=None):
    """The code blocks of a page, or of the section whose heading holds ``section``."""
    text = (ROOT / page).read_text("utf-8")
    if section is not None:
        text = next(part for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:] if section in part.split("\n")[0])
    return [cell.rstrip("\n") for cell in re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)]


def decisions(book):
    return {name: step["decision"] for name, step in book.table().items()}


def test_the_tutorial(notebook):
    # The work is as slow as the page says it is; a test has no use for that.
    first = [cell.replace("time.sleep(1)", "time.sleep(0.01)") for cell in cells("docs/tutorial.md", section="1. ")]
    stop = cells("docs/tutorial.md", section="5. ")
    book = notebook([*first, *stop])
    measure, summarise, train = 1, 2, 3

    # 2. Kill it
    shown = book.run_all()
    again = book.rerun()
    assert decisions(book) == {"measure": "replayed", "summarise": "replayed", "train": "replayed"}
    assert [one.outputs for one in again] == [one.outputs for one in shown]
    assert again[measure].text.count("day ") == 5

    # 3. Change something
    book.edit(summarise, ".round(2)", ".round(3)")
    book.rerun()
    assert decisions(book)["measure"] == "replayed"
    assert decisions(book)["summarise"] == "executed"
    book.edit(measure, "rng =", "# the generator\nrng =")
    book.rerun()
    assert decisions(book)["measure"] == "replayed"

    # ... and 5. Stop instead of running again
    book.edit(measure, "size=1000", "size=500")
    changed = book.rerun()
    assert "measure executes: code" in changed[measure].stderr
    assert decisions(book)["summarise"] == "executed"
    assert len(changed) == train + 1
    assert changed[train].status == "error"
    assert "KEEL-E031" in changed[train].error
    assert "samples" in book.execute("%keel why summarise").text
    book.execute("%keel rerun train")
    assert book.run(train).status == "ok"

    book.edit(measure, "size=500", "size=1000")
    back = book.rerun()
    assert decisions(book)["measure"] == "replayed"
    assert back[measure].text == shown[measure].text
    assert "measure" in book.execute("%keel plan").text


def test_the_tutorials_files_and_connections(notebook, tmp_path):
    import pandas as pd

    (tmp_path / "data").mkdir()
    pd.DataFrame({"rate": [1.0, 2.0]}).to_parquet(tmp_path / "data" / "rates.parquet")
    reader = "%%keel_step count\nhit('count')\n[(total,)] = db.execute('select 1 + 1')\ntotal"
    book = notebook([*cells("docs/tutorial.md", section="4. "), reader])
    book.run_all()
    book.rerun()
    assert decisions(book)["rates"] == "replayed"
    assert decisions(book)["connect"] == "executed", "a connection is made anew in every run"
    assert decisions(book)["count"] == "replayed", "and is no reason to execute what uses it"
    pd.DataFrame({"rate": [1.0, 3.0]}).to_parquet(tmp_path / "data" / "rates.parquet")
    book.rerun()
    assert decisions(book)["rates"] == "executed"


def test_the_quick_start(notebook, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    sales = pd.DataFrame({"price": rng.uniform(1, 9, 300), "week": np.arange(300) % 52, "sold": rng.poisson(20, 300)})
    sales.to_csv(tmp_path / "sales.csv", index=False)
    book = notebook(cells("README.md", section="Quick start")[:3])
    shown = book.run_all()
    again = book.rerun()
    assert decisions(book) == {"load": "replayed", "train": "replayed"}
    assert [one.outputs for one in again] == [one.outputs for one in shown]

    book.edit(2, '"score:"', '"R2:"')
    changed = book.rerun()
    assert decisions(book) == {"load": "replayed", "train": "executed"}
    assert changed[2].stderr.startswith("keel: train executes: code")

    sales.assign(sold=sales["sold"] + 1).to_csv(tmp_path / "sales.csv", index=False)
    book.rerun()
    assert decisions(book) == {"load": "executed", "train": "executed"}
    assert "train" in book.execute("%keel").text


def test_every_how_to(notebook):
    """Each cell of the page runs; after a kill the steps replay and show the same."""
    book = notebook(cells("docs/howto.md"))
    shown = book.run_all()
    assert len(shown) == len(book.cells) - 2
    again = book.rerun()
    decided = decisions(book)
    assert set(decided) == {"answers", "features", "prices", "lesson", "cleaned"}
    assert set(decided.values()) == {"replayed"}
    marked = [at for at, cell in enumerate(book.cells[2:]) if "keel_step" in cell or "# keel: step" in cell]
    assert [again[at].outputs for at in marked] == [shown[at].outputs for at in marked]
    assert shown[1].text == "20"

"""Objects that fail when they are asked for their class: weak proxies of what is gone."""

import pytest

pytestmark = pytest.mark.kernel

MADE = "import weakref\nclass Bar: pass\ndead = weakref.proxy(Bar())"


@pytest.mark.parametrize("where", ["", "held = [dead, 1]", "class Box: pass\nheld = Box(); held.bar = dead"])
def test_what_has_no_class_to_ask_for_is_in_nobodys_way(notebook, where):
    book = notebook([
        f"%%keel_step make\n{MADE}\n{where}",
        "%%keel_step other\nhit('other'); xs = [1, 2]; ys = xs",
        "%%keel_step more\nhit('more'); xs.append(3); total = sum(ys)\ntotal",
        "print(total, xs is ys)",
    ])  # fmt: skip
    first = book.run_all()
    assert [one.status for one in first] == ["ok"] * 4
    assert "KEEL-E040" not in "".join(one.stderr for one in first)
    again = book.rerun()
    assert again[3].text == "6 True\n"
    assert "KEEL-E040" not in "".join(one.stderr for one in again)
    assert book.hits == "other more"

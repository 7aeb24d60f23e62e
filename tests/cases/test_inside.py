"""What a step keeps of the inside of other cells' values is the same object again (DESIGN 6: aliases across steps)."""

import pytest

MADE = """
from dataclasses import dataclass, field
class Net:
    def __init__(self):
        self.layers = [[1.0], [2.0]]; self.by = {"a": [3], 7: [4]}; self.arr = np.zeros(4)
@dataclass
class Point:
    xs: list = field(default_factory=list)
def make(): return {"net": Net(), "k": [9], "pair": ([5], [6]), "set": {1}, "p": Point([8])}
"""
SHARES = [
    ("x = cfg['k']", "x is cfg['k']"),
    ("x = cfg['net'].layers[1]; y = [x]", "x is cfg['net'].layers[1] and y[0] is x"),
    ("x = cfg['net'].by[7]", "x is cfg['net'].by[7]"),
    ("x = cfg['pair'][1]", "x is cfg['pair'][1]"),
    ("x = [cfg['set'], cfg['p']]", "x[0] is cfg['set'] and x[1].xs is cfg['p'].xs and x[1] is cfg['p']"),
    ("x = dict(cfg)", "x['k'] is cfg['k'] and x['net'] is cfg['net'] and x is not cfg"),
    ("x = cfg['net'].arr; v = cfg['net'].arr[1:3]", "x is cfg['net'].arr and np.shares_memory(v, x)"),
    ("x = (cfg['k'], lambda: 3)", "x[0] is cfg['k']"),
    ("x = cfg['net']; x2 = x.by", "x is cfg['net'] and x2 is x.by"),
    ("x = list(cfg['k'])", "x is not cfg['k']"),
    ("import copy; x = copy.deepcopy(cfg['net'])", "x is not cfg['net'] and x.by['a'] is not cfg['net'].by['a']"),
]


@pytest.mark.parametrize("by_a_step", [False, True], ids=["of a plain cell", "of a step"])
def test_parts_of_other_values_are_those_parts_again(book, by_a_step):
    steps = [
        f"# keel: step s{at}\nhit('s{at}')\n{code.replace('cfg', f'cfg{at}')}" for at, (code, _) in enumerate(SHARES)
    ]
    made = "\n".join(f"cfg{at} = make()" for at in range(len(SHARES)))
    first = f"# keel: step made\nhit('made')\n{made}" if by_a_step else made
    told = [f"print({at}, bool({says.replace('cfg', f'cfg{at}')}))" for at, (_, says) in enumerate(SHARES)]
    cells = [cell for pair in zip(steps, told, strict=True) for cell in pair]
    nb = book("\n# ---\n".join(["import numpy as np\n" + MADE, first, *cells]))
    hits = (["made"] if by_a_step else []) + [f"s{at}" for at in range(len(SHARES))]
    for _ in range(2):
        run = nb.run_all()
        assert not run.error
        assert [out for out in run.printed if out] == [f"{at} True\n" for at in range(len(SHARES))]
        assert nb.hits == " ".join(hits)


def test_without_the_other_value_a_copy_comes_back_and_a_changed_one_is_not_taken_for_it(book):
    nb = book("""
cfg = {"a": {"rows": [1, 2]}, "b": [3]}
# ---
# keel: step keeps
hit("keeps"); rows = cfg["a"]["rows"]; b = cfg["b"]
""")
    nb.run_all()
    whole = list(nb.cells)
    nb.cells = []
    assert nb.shows("%keel restore", "print(rows, b)") == "[1, 2] [3]"
    nb.cells = whole
    assert nb.shows("rows.append(5); print(cfg, rows)") == "{'a': {'rows': [1, 2, 5]}, 'b': [3]} [1, 2, 5]"
    assert nb.hits == "keeps"
    nb.edit(0, '"rows": [1, 2]', '"rows": [1, 7]')
    assert nb.shows("rows.append(5); print(cfg['a'], rows)") == "{'rows': [1, 7, 5]} [1, 7, 5]"
    assert nb.hits == "keeps keeps"


def test_what_a_step_changes_on_its_way_is_shared_as_it_left_it(book):
    nb = book("""
cfg = {"a": [1], "b": {"c": [2]}}
# ---
# keel: step changes
hit("changes"); cfg["a"].append(2); a = cfg["a"]; c = cfg["b"]["c"]
# ---
a.append(3); c.append(4); print(cfg, a is cfg["a"], c is cfg["b"]["c"])
""")
    shown = nb.shows()
    assert shown == "{'a': [1, 2, 3], 'b': {'c': [2, 4]}} True True"
    assert nb.shows() == shown
    assert nb.hits == "changes"


def test_keys_that_look_like_credentials_are_in_no_way(book):
    key = "sk-" + "proj0123456789abcdefghijABCDEFGHIJ"
    nb = book(f"""
cfg = {{{key!r}: [1, 2, 3]}}
# ---
# keel: step keeps
hit("keeps"); x = [v for v in cfg.values()][0]
# ---
print(x)
""")
    assert nb.shows() == nb.shows() == "[1, 2, 3]"
    written = b"".join(path.read_bytes() for path in (nb.folder / ".keel").rglob("*") if path.is_file())
    assert key.encode() not in written

"""Tensors in notebooks: content, sharing, gradients, generators. For where torch is there: keel does not need it."""

import pytest

from tests.crash.shells import Zygote
from tests.support.forks import Book

pytest.importorskip("torch", reason="torch is not installed, and keel does not need it")


@pytest.fixture(scope="module")
def with_torch():
    process = Zygote("torch")
    yield process
    process.close()


@pytest.fixture
def book(tmp_path, with_torch):
    return lambda cells: Book(with_torch, tmp_path, cells)


def test_tensors_come_back_as_they_were_and_as_one(book):
    nb = book("""
import torch
base = torch.arange(6.0)
# ---
# keel: step a
hit("a"); t = torch.ones(400_000); v = t[:3]; w = t.view(400, 1000); same = [t]
p = torch.nn.Parameter(torch.ones(3)); (p * 2).sum().backward()
# ---
# keel: step b
hit("b"); part = base[:2]; keeps = {"t": t, "base": base}; leaf = torch.ones(2, requires_grad=True)
# ---
v[0] = 7; part[1] = 5
print(t[0].item(), w[0, 0].item(), same[0] is t, keeps["t"] is t, keeps["base"] is base, base[1].item())
print(p.grad.tolist(), type(p).__name__, p.requires_grad, p.is_leaf, leaf.requires_grad, leaf.is_leaf)
""")
    shown = nb.shows()
    assert shown == "7.0 7.0 True True True 5.0\n[2.0, 2.0, 2.0] Parameter True True True True"
    assert nb.shows() == shown
    assert nb.hits == "a b"


@pytest.mark.parametrize(
    ("made", "edited"),
    [
        ("torch.ones(3)", "torch.zeros(3)"),
        ("torch.ones(3)", "torch.ones(3, dtype=torch.float64)"),
        ("torch.ones(3)", "torch.ones(3, 1)"),
        ("torch.ones(3)", "torch.ones(3, requires_grad=True)"),
        ("torch.nn.Parameter(torch.ones(3))", "torch.nn.Parameter(torch.ones(3), requires_grad=False)"),
        ("torch.nn.Linear(2, 2).requires_grad_(False).eval()", "torch.nn.Linear(2, 2).requires_grad_(False)"),
        (
            "(lambda p: p)(torch.nn.Parameter(torch.ones(2)))",
            "(lambda p: ((p * 2).sum().backward(), p)[1])(torch.nn.Parameter(torch.ones(2)))",
        ),
    ],
)
def test_what_differs_in_a_tensor_is_seen_and_what_is_equal_replays(book, made, edited):
    nb = book(f"""
import torch
torch.manual_seed(3)
x = {made}
# ---
# keel: step a
hit("a"); y = str(x)
# ---
print(y == str(x))
""")
    assert nb.shows() == nb.shows() == "True"
    assert nb.hits == "a"
    nb.edit(0, made, edited)
    assert nb.shows() == nb.shows() == "True"
    assert nb.hits == "a a"


def test_generators_go_on_and_seeds_are_inputs(book):
    nb = book("""
import torch
from torch import rand
g = torch.Generator().manual_seed(1)
# ---
torch.manual_seed(1)
# ---
# keel: step a
hit("a"); x = torch.rand(2)
# ---
# keel: step b
hit("b"); y = rand(2); z = torch.rand(2, generator=g); gen = torch.default_generator
# ---
print(x.tolist(), y.tolist(), z.tolist(), torch.rand(1).item(), torch.rand(1, generator=g).item())
print(gen is torch.default_generator)
""")
    first = nb.shows()
    assert first.endswith("True")
    assert nb.shows() == first
    assert nb.hits == "a b"
    nb.edit(1, "manual_seed(1)", "manual_seed(2)")
    other = nb.shows()
    assert other != first
    assert nb.hits == "a b a b"
    assert nb.shows() == other
    assert nb.hits == "a b a b"


@pytest.mark.parametrize(
    ("sets", "edited", "asks"),
    [
        ("torch.set_default_dtype(torch.float32)", "torch.set_default_dtype(torch.float64)", "torch.ones(1).dtype"),
        ("torch.set_grad_enabled(True)", "torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
        ("torch.set_printoptions(precision=4)", "torch.set_printoptions(precision=2)", "str(torch.tensor([1 / 3]))"),
        (
            "torch.use_deterministic_algorithms(False)",
            "torch.use_deterministic_algorithms(True)",
            "torch.are_deterministic_algorithms_enabled()",
        ),
    ],
)
def test_a_setting_of_torch_is_an_input(book, sets, edited, asks):
    nb = book(f"""
import torch
# ---
{sets}
# ---
# keel: step a
hit("a"); x = str({asks})
# ---
print(x == str({asks}))
""")
    assert nb.shows() == nb.shows() == "True"
    assert nb.hits == "a"
    nb.edit(1, sets, edited)
    assert nb.shows() == nb.shows() == "True"
    assert nb.hits == "a a"

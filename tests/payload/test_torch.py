"""Tensors: mapped like arrays, shared like arrays. Runs where torch is installed, which keel never asks for."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed, and keel does not need it")


def test_a_model_its_optimiser_and_its_tied_weights_come_back(kernel):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(600, 600), torch.nn.ReLU(), torch.nn.Linear(600, 600))
    model[2].weight = model[0].weight
    optimiser = torch.optim.Adam(model.parameters())
    data = torch.randn(8, 600)
    model(data).sum().backward()
    optimiser.step()
    names = {"model": model, "optimiser": optimiser, "data": data, "state": model.state_dict(), "out": model(data)}
    packed = kernel.pack(names)
    assert packed.not_stored == ()
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    weight = found["model"][0].weight
    assert found["model"][2].weight is weight
    assert found["optimiser"].param_groups[0]["params"][0] is weight
    assert found["state"]["0.weight"].data_ptr() == weight.data_ptr()
    assert torch.equal(found["model"](found["data"]), names["out"])
    assert torch.equal(weight.grad, model[0].weight.grad)
    for name, value in names.items():
        assert kernel.digest(found[name]).digest == kernel.digest(value).digest, name
    model(data).sum().backward()
    assert kernel.digest(model).digest != kernel.digest(found["model"]).digest


def test_views_of_a_tensor_stay_views(kernel):
    base = torch.zeros(1_000_000)
    packed = kernel.pack({"base": base, "part": base[:10], "turned": base.reshape(1000, 1000).T})
    assert packed.payload.bytes < 4_100_000
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    found["part"][3] = 7
    assert found["base"][3] == found["turned"][3, 0] == 7


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "int64", "complex64"])
def test_tensors_of_every_type(kernel, dtype):
    tensor = torch.ones(2, 3, dtype=getattr(torch, dtype))
    packed = kernel.pack({"a": tensor, "b": torch.zeros(0), "c": torch.tensor(1.5), "sparse": torch.eye(3).to_sparse()})
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    assert found["a"].dtype == tensor.dtype
    assert torch.equal(found["a"], tensor)
    assert torch.equal(found["sparse"].to_dense(), torch.eye(3))
    assert kernel.digest(copy.deepcopy(tensor)).digest == kernel.digest(tensor).digest

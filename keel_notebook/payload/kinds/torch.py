"""Kinds of torch: dense tensors in main memory, as numpy arrays over the same memory.

Tensors that share memory (tied weights, views) share it again, because the arrays do. A tensor in the middle of a
computation comes back as its value, without the way it was computed, as with ``torch.save``. Everything else (other
devices, sparse and quantised tensors) is left to torch's own pickling.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from keel_notebook.payload.kinds import Kind

_AS_INTEGERS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Types that numpy does not have, and the integers of the same width that stand in for them."""


def kinds() -> Iterator[Kind]:
    """All of them."""
    torch = _torch()
    yield Kind("torch.tensor", torch.Tensor, _take, _build)
    yield Kind("torch.parameter", torch.nn.Parameter, _take, _build_parameter)
    yield Kind("torch.view", TensorView, lambda v: v.parts, _build_view)


class TensorView:
    """A tensor on the memory of another one, which a record refers to. Only written, never met in a notebook."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts


def view_of(tensor: Any, host: Any) -> TensorView | None:
    """What makes a tensor out of another one that holds all its memory; None where it does not."""
    torch = _torch()
    plain = tensor.layout is torch.strided and tensor.is_leaf and tensor.grad is None and not tensor.__dict__
    if not plain or tensor.dtype != host.dtype or not host.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        return None
    if tensor.untyped_storage().data_ptr() != host.untyped_storage().data_ptr() or tensor.numel() == 0:
        return None
    offset = tensor.storage_offset() - host.storage_offset()
    last = offset + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    if offset < 0 or last >= host.numel():
        return None
    place = tuple(tensor.shape), tensor.stride(), offset
    return TensorView((host, *place, tensor.requires_grad, type(tensor) is not torch.Tensor))


def _build_view(host: Any, *how: Any) -> Any:
    shape, strides, offset, requires_grad, parameter = how
    tensor = host.detach().as_strided(shape, strides, host.storage_offset() + offset)
    if parameter:
        return _torch().nn.Parameter(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def _take(tensor: Any) -> tuple[Any, ...] | None:
    torch = _torch()
    dense = tensor.layout is torch.strided and tensor.device.type == "cpu" and not tensor.is_quantized
    if not dense or tensor.is_conj() or tensor.is_neg() or tensor.__dict__:
        return None
    dtype = str(tensor.dtype).removeprefix("torch.")
    detached = tensor.detach()
    if dtype in _AS_INTEGERS:
        detached = detached.view(getattr(torch, _AS_INTEGERS[dtype]))
    return dtype, detached.numpy(), tensor.requires_grad, tensor.grad if tensor.is_leaf else None


def _build(dtype: str, array: Any, requires_grad: bool, grad: Any) -> Any:
    torch = _torch()
    tensor = torch.from_numpy(array)
    if dtype in _AS_INTEGERS:
        tensor = tensor.view(getattr(torch, dtype))
    tensor.requires_grad_(requires_grad)
    tensor.grad = grad
    return tensor


def _build_parameter(dtype: str, array: Any, requires_grad: bool, grad: Any) -> Any:
    parameter = _torch().nn.Parameter(_build(dtype, array, False, None), requires_grad=requires_grad)
    parameter.grad = grad
    return parameter


def _torch() -> Any:
    return sys.modules["torch"] if "torch" in sys.modules else __import__("torch")

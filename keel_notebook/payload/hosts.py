"""Arrays that another record holds, and views that lie on their memory: they stay views (DESIGN 6)."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from keel_notebook.payload.buffers import bounds
from keel_notebook.payload.kinds.numpy import owner_of


class Hosts:
    """Journaled arrays on which others may lie."""

    def __init__(self, known: Iterable[Any]) -> None:
        known = list(known)
        self._tensors = [thing for thing in known if type(thing).__module__.partition(".")[0] == "torch"]
        arrays = [thing for thing in known if type(thing).__module__ == "numpy" and type(thing).__name__ == "ndarray"]
        self._ids = set(map(id, arrays))
        self._by_owner: dict[int, list[Any]] = {}
        for array in arrays:
            if array.flags.c_contiguous:  # numpy lays a view over one piece of memory only
                self._by_owner.setdefault(id(owner_of(array)), []).append(array)

    def of_tensor(self, tensor: Any) -> Any:
        """What makes a tensor out of a journaled one whose memory it has; None where there is none."""
        if not self._tensors or any(thing is tensor for thing in self._tensors):
            return None
        torch: Any = sys.modules["torch"]
        from keel_notebook.payload.kinds.torch import view_of  # noqa: PLC0415 - only where torch is there

        hosts = (thing for thing in self._tensors if isinstance(thing, torch.Tensor) and thing.device.type == "cpu")
        found = (view_of(tensor, host) for host in hosts if host.layout is torch.strided)
        return next((view for view in found if view is not None), None)

    def of(self, array: Any) -> Any:
        """The journaled array whose memory holds that of an array which is none itself; None where there is none."""
        if not self._ids or id(array) in self._ids:
            return None
        owner = owner_of(array)
        if id(owner) in self._ids:
            return owner
        low, high = bounds(array)
        found = ((host, bounds(host)) for host in self._by_owner.get(id(owner), ()))
        return next((host for host, (begin, end) in found if begin <= low and high <= end), None)

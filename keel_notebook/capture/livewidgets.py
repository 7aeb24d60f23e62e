"""The widgets that live in this kernel, by the ids of their models, as the page knows them. Imports no ipywidgets."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

_HOME = "ipywidgets.widgets.widget"


def alive(model: str) -> Any:
    """The widget of an id, or None."""
    home = sys.modules.get(_HOME)
    return None if home is None else home._instances.get(model)


def made(models: Iterable[str]) -> tuple[Any, ...]:
    """Those of the widgets that live."""
    return tuple(widget for widget in map(alive, models) if widget is not None)


def all_alive(models: Iterable[str]) -> bool:
    """Whether all of them live, so that their views show something."""
    return all(alive(model) is not None for model in models)


def catch(model: str, request: str) -> None:
    """Let an Output widget take what is shown for a request; for none where that is empty."""
    alive(model).msg_id = request

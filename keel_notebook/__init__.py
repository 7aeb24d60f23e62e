"""Durable notebook cells: kill the kernel, press Run All, everything that had finished is back.

``%load_ext keel_notebook`` switches it on. Importing this package alone does nothing and imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from keel_notebook.api import *  # noqa: F403 the names that ``__getattr__`` gives

__version__ = "0.1.0.dev0"
__all__ = ["__version__", "lineage", "load_ipython_extension", "register", "status", "unload_ipython_extension"]


def __getattr__(name: str) -> Any:
    """Durable calls and what belongs to them (``keel.call``, ``keel.map``, …), loaded when first used (DESIGN 3.2)."""
    unknown = AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("_"):
        raise unknown
    import keel_notebook.api as api  # noqa: PLC0415, PLR0402 ``from keel_notebook import`` would ask here again

    if name not in api.__all__:
        raise unknown
    found = globals()[name] = getattr(api, name)
    return found


def __dir__() -> list[str]:
    import keel_notebook.api as api  # noqa: PLC0415, PLR0402 as above

    return sorted({*__all__, *api.__all__})


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Switch keel on in this shell (`%load_ext keel_notebook`). Quiet, and safe to call twice."""
    from keel_notebook.front.magics import load  # noqa: PLC0415 importing the package must not import IPython

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Switch keel off again (`%unload_ext keel_notebook`). The journal stays."""
    from keel_notebook.front.magics import unload  # noqa: PLC0415 importing the package must not import IPython

    unload(shell)


def register(kind: type, dump: Any, load: Any) -> None:
    """Tell how values of a type are stored: ``dump(value) -> plain value``, ``load(plain value) -> value``."""
    from keel_notebook.payload import registry  # noqa: PLC0415 only those who register codecs pay for it

    registry.register(kind, dump, load)


def status() -> Any:
    """The table of this notebook's steps, as `%keel` shows it; ``.to_dict()`` gives it as data (DESIGN 3.4)."""
    from keel_notebook.front.magics import current  # noqa: PLC0415 needs a running shell

    return current("status")


def lineage() -> Any:
    """The lineage of this notebook, as `%keel lineage` shows it; ``.to_dict()`` gives it as data (DESIGN 3.2)."""
    from keel_notebook.front.magics import current  # noqa: PLC0415 needs a running shell

    return current("lineage")

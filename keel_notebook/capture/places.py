"""Folders in which files are nobody's work: temporary ones, and what programs keep for themselves (DESIGN 6, Files)."""

from __future__ import annotations

import glob
import os
import tempfile

_CACHES = ("XDG_CACHE_HOME", "MPLCONFIGDIR", "HF_HOME", "TORCH_HOME", "SCIKIT_LEARN_DATA")


class Places:
    """What kind of place a path is in. A place in which the notebook's folder lies is none of these."""

    def __init__(self, root: str) -> None:
        home = os.path.expanduser("~")
        here = tempfile.gettempdir()
        temporary = {here, os.path.realpath(here), "/tmp", "/var/tmp"}  # noqa: S108
        caches = {
            os.environ.get(name, "")
            for name in ("XDG_CACHE_HOME", "MPLCONFIGDIR", "HF_HOME", "TORCH_HOME", "SCIKIT_LEARN_DATA")
        }
        caches |= {os.path.join(home, name) for name in ("scikit_learn_data", "nltk_data", "seaborn-data")}
        self._root = os.path.join(root, "")
        self._home = os.path.join(home, "")
        self._temporary = self._without_root(temporary)
        self._caches = self._without_root(caches)

    def _without_root(self, folders: set[str]) -> tuple[str, ...]:
        ended = {os.path.join(folder, "") for folder in folders if os.path.isabs(folder)}
        return tuple(sorted(folder for folder in ended if not self._root.startswith(folder)))

    def is_temporary(self, full: str) -> bool:
        """Whether a path (absolute) lies where temporary files are."""
        return full.startswith(self._temporary)

    def is_cache(self, full: str) -> bool:
        """Whether it lies where programs keep what is their own affair: caches, and hidden folders of the home."""
        if full.startswith(self._caches):
            return True
        if not full.startswith(self._home):
            return False
        first, _, rest = full.removeprefix(self._home).partition("/")
        return bool(rest) and first[:1] == "." and not self._root.startswith(os.path.join(self._home, first, ""))

    def is_home(self, full: str) -> bool:
        """Whether it lies below the notebook's folder."""
        return full.startswith(self._root)


def beside(root: str, path: str) -> list[str] | None:
    """None where a path or pattern, seen from ``root``, names something that is there or nobody can tell.

    Else what lies in its folder, written as the path is: what may have been meant.
    """
    full = os.path.join(root, path)
    try:
        if os.path.exists(full) or next(glob.iglob(full, recursive=True, include_hidden=True), None) is not None:
            return None
        folder = os.path.dirname(path)
        return [os.path.join(folder, name) for name in os.listdir(os.path.join(root, folder))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return None

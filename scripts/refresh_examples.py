"""Execute the examples as plain notebooks and keep their outputs: what nbval compares every later run with.

They run in a copy of ``examples/`` without a journal, so that what is kept does not depend on what ran before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import nbclient
import nbformat

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LEFT_BY_RUNS = shutil.ignore_patterns(".keel", ".ipynb_checkpoints", "bill.csv")


def refresh(notebook: Path) -> None:
    """Execute one notebook with keel switched off and write it back, outputs and all."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(notebook.parent, Path(folder, "examples"), ignore=LEFT_BY_RUNS)
        document = nbformat.read(notebook, as_version=4)
        client = nbclient.NotebookClient(
            document,
            resources={"metadata": {"path": str(copy)}},
            record_timing=False,  # nothing in the file that changes from run to run
            coalesce_streams=True,
        )
        client.execute(env=os.environ | {"KEEL_MODE": "off"})
    # The version of the Python that ran it is no part of the example.
    document.metadata["language_info"] = {"name": "python"}
    nbformat.write(document, notebook)


if __name__ == "__main__":
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        refresh(path)

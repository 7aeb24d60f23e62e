"""`make bench`: every workload in a folder of its own, one report."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.report import Figure, markdown, write
from bench.workloads import WORKLOADS


def main() -> int:
    """Run the chosen workloads; the exit code says whether every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=[], help=", ".join(WORKLOADS))
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    chosen = parser.parse_args()
    # An installed package has its byte code beside it. A checkout must be allowed to write it: else kernels compile.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    figures: list[Figure] = []
    for name in chosen.workloads or WORKLOADS:
        with tempfile.TemporaryDirectory(prefix="keel-bench-") as folder:
            for figure in WORKLOADS[name](Path(folder)):
                figures.append(figure)
                print(markdown([figure]).splitlines()[-1], flush=True)
    write(figures, chosen.out)
    return 1 if any(figure.holds is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: figures, the contest with the peers, the correctness matrix; each in folders of its own, one report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import traceback
from dataclasses import asdict
from pathlib import Path

from bench import comparison
from bench.contest import contest, works
from bench.loop import loops
from bench.matrix import matrix
from bench.report import Figure, markdown, write
from bench.tools import CONTEST_ONLY, PEER_TOOLS, Keel
from bench.workloads import WORKLOADS

PARTS = {
    "contest": "the same work in every tool",
    "loop": "paid calls, killed",
    "matrix": "sixteen probes of correctness in every tool",
}


def main() -> int:
    """Run what was chosen; the exit code says whether every bound holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=[], help=", ".join((*WORKLOADS, *PARTS)))
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--scale", type=float, default=1.0, help="size of the contest's works; 1 is that of the report")
    parser.add_argument("--no-peers", action="store_true", help="keel and the plain kernel alone")
    parser.add_argument("--page", type=Path, help="write docs/comparison.md and its pictures from --out, run nothing")
    chosen = parser.parse_args()
    if chosen.page is not None:
        comparison.write_page(chosen.out, chosen.page)
        return 0
    # An installed package has its byte code beside it. A checkout must be allowed to write it: else kernels compile.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    names = chosen.workloads or (*WORKLOADS, *PARTS)
    peers = () if chosen.no_peers else PEER_TOOLS
    figures: list[Figure] = []
    failed: list[str] = []
    for name in filter(WORKLOADS.__contains__, names):
        with tempfile.TemporaryDirectory(prefix="keel-bench-", ignore_cleanup_errors=True) as folder:
            try:
                for figure in WORKLOADS[name](Path(folder)):
                    figures.append(figure)
                    print(markdown([figure]).splitlines()[-1], flush=True)
            except Exception:  # noqa: BLE001 - said in place of its figures; those of the others are still wanted
                failed.append(name)
                print(f"| {name} | failed |\n{traceback.format_exc()}", flush=True)
    if figures:
        write(figures, chosen.out)
    chosen.out.mkdir(parents=True, exist_ok=True)
    if "contest" in names:
        rows = contest((*peers, *(CONTEST_ONLY if peers else ())), scale=chosen.scale)
        titles = {name: work.title for name, work in works(1).items()}
        kept = {"scale": chosen.scale, "titles": titles, "rows": [asdict(row) for row in rows]}
        (chosen.out / "contest.json").write_text(json.dumps(kept, indent=1), "utf-8")
    if "loop" in names:
        paid = loops(peers=bool(peers))
        (chosen.out / "loop.json").write_text(json.dumps([asdict(row) for row in paid], indent=1), "utf-8")
    if "matrix" in names:
        found = matrix((Keel, *peers))
        (chosen.out / "matrix.json").write_text(json.dumps([asdict(one) for one in found], indent=1), "utf-8")
    comparison.write_report(chosen.out)
    return 1 if failed or any(figure.holds is False for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The CPU time of a score row in one process, beside that of another version of the program.

    python -m tests.benchmarks.scoring [FOLDER]

FOLDER is a checkout of the version before. Both are measured by turns, each in processes of its own; a figure
is the least of three turns. Rows are at `plan` fidelity and as in a batch of a Spark job, in which Python's
cyclic collector runs rarely.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

from tests.places import ROOT

TURNS = 3
COUNTING = ("range", "roundrobin", "sticky", "cooperative-sticky")
JOBS = {
    "microservices, 4 strategies that count": (COUNTING, 500, "ms a row"),
    "microservices, optimal": (("optimal",), 150, "ms a row"),
    "100,000 partitions, 500 members, sticky": (("sticky",), 0, "s"),
    "100,000 partitions, 500 members, range": (("range",), 0, "s"),
}
"""Strategies, rows (0: the giant group) and the unit of the figure."""


def main() -> None:
    """Print a table."""
    folders = {"now": ROOT, **({"before": Path(sys.argv[1])} if len(sys.argv) > 1 else {})}
    names = ["before", "now"] if "before" in folders else ["now"]
    sys.stdout.write(f"| CPU time | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}\n")
    for job, (_, _, unit) in JOBS.items():
        turns = [{name: _measured(folders[name], job) for name in names} for _ in range(TURNS)]
        cells = [f"{min(turn[name] for turn in turns):.2f} {unit}" for name in names]
        sys.stdout.write(f"| {job} | {' | '.join(cells)} |\n")
        sys.stdout.flush()


def _measured(root: Path, job: str) -> float:
    """Return the figure of a job with the program of a folder."""
    paths = os.pathsep.join([str(root / "plugins"), str(root)])
    command = [sys.executable, __file__, "--measure", job]
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
    answer = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return float(answer.stdout)


def _measure(job: str) -> float:
    from rebalance_lab.scoring.outcomes import Fidelity
    from rebalance_lab.scoring.rows import Job, Scorer
    from rebalance_lab.simulation.world.collector import collecting_rarely

    strategies, rows, _ = JOBS[job]
    scorer = Scorer(Job(strategies, Fidelity.PLAN, timeout=120.0))
    texts = list(_texts(rows))
    if rows:
        for text in texts[:10]:
            scorer.rows("warm", text)
    began = process_time()
    with collecting_rarely():
        scored = [row for text in texts for row in scorer.rows("row", text)]
    spent = process_time() - began
    assert all(row["status"] == "ok" for row in scored)
    return spent * 1_000 / len(scored) if rows else spent


def _texts(rows: int) -> Iterator[str]:
    from coordinator_core.registry.registry import default_registry

    if not rows:
        yield json.dumps(_giant())
    for number in range(rows):
        yield json.dumps(default_registry().workloads()["microservices"].generate(1, number))


def _giant() -> dict[str, Any]:
    topics = [f"t-{n}" for n in range(100)]
    return {
        "name": "giant",
        "duration": "10m",
        "topics": {name: {"partitions": 1_000, "rate": 1_000} for name in topics},
        "members": [{"id": "c", "count": 500, "topics": topics}],
        "events": [{"at": "5m", "leave": "c-3"}],
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        sys.stdout.write(f"{_measure(sys.argv[2])}\n")
    else:
        main()

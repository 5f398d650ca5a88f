"""The constant cost of ``rebalance-lab score``: the processor time of Java for few rows and for more.

    python -m tests.benchmarks.spark_commands [PYTHON ...]

Each PYTHON is an environment with the package, by default this one. With several of them, such as one with an
older version, *ratio* is the time of Java beside the first one in the same run. Each command runs once before
it is measured: the first one writes the archive of Java's classes. All of them score the same workloads.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

TICK = os.sysconf("SC_CLK_TCK")
RUNS = ((38, ("range",)), (2_000, ("range", "sticky")))


class Spent(NamedTuple):
    """Seconds of the processor in Java, in all other processes of a command, and on the clock."""

    java: float
    others: float
    wall: float


def main() -> None:
    """Print a table."""
    pythons = sys.argv[1:] or [sys.executable]
    print_line(
        "| rows | Python | Java, CPU s | others, CPU s | s | ratio |\n| --- | --- | --- | --- | --- | --- |"
    )
    with tempfile.TemporaryDirectory() as folder:
        for rows, strategies in RUNS:
            workload = f"{folder}/workload-{rows}"
            made = ["--profile", "microservices", "--rows", f"{rows}", "--out", workload]
            spent_in([pythons[0], "-m", "rebalance_spark", "generate", *made])
            chosen = [part for name in strategies for part in ("-s", name)]
            score = ["-m", "rebalance_spark", "score", workload, *chosen, "--fidelity", "plan", "--out"]
            first = 0.0
            for number, python in enumerate(pythons):
                for attempt in range(2):
                    spent = spent_in([python, *score, f"{folder}/{rows}-{number}-{attempt}"])
                    sleep(10)  # Java may still write its archive
                first = first or spent.java
                figures = (
                    f"{spent.java:.1f} | {spent.others:.1f} | {spent.wall:.1f} | {spent.java / first:.2f}"
                )
                print_line(f"| {rows:,} x {len(strategies)} | {python} | {figures} |")


def print_line(text: str) -> None:
    """To whoever waits for the next line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def spent_in(command: list[str]) -> Spent:
    """Run a command, and return the time of its processes, which is read every 50 ms."""
    began = perf_counter()
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    spent: dict[int, tuple[bool, float]] = {}
    while run.poll() is None:
        found = _processes()
        tree = {run.pid}
        while more := {pid for pid, (_, parent, _) in found.items() if parent in tree} - tree:
            tree |= more
        spent |= {pid: (found[pid][0] == "java", found[pid][2]) for pid in tree & found.keys()}
        sleep(0.05)
    if run.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {run.returncode}")
    java, others = (sum(s for is_java, s in spent.values() if is_java is which) for which in (True, False))
    return Spent(java, others, perf_counter() - began)


def _processes() -> dict[int, tuple[str, int, float]]:
    """Return name, parent and seconds of the processor of each process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        found[int(path.parent.name)] = (name, int(fields[1]), (int(fields[11]) + int(fields[12])) / TICK)
    return found


if __name__ == "__main__":
    main()

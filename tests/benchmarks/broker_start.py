"""The time, CPU time and memory that a broker takes to start in a process: the first, and another one.

    python -m tests.benchmarks.broker_start

prints a JSON list of [seconds, CPU seconds, MB] for both. `tests.benchmarks.kafka` calls it in new processes.
The first start imports the package.
"""

import json
import os
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time


def main() -> None:
    """Print what two starts take."""
    measured = []
    for _ in range(2):
        begun, cpu, before = perf_counter(), process_time(), resident_mb()
        from rebalance_kafka import BackgroundBroker

        BackgroundBroker({"t": 12}).start()
        measured.append((perf_counter() - begun, process_time() - cpu, resident_mb() - before))
    sys.stdout.write(json.dumps(measured))


def resident_mb(pid: int | str = "self") -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()

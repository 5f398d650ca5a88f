"""A Markdown table of the measured times: ``python -m tests.benchmarks.table results.json``.

Least CPU times in ms, and times of the same job in the faster of Apache Kafka's warm JVM and franz-go.
"""

import json
import sys
from pathlib import Path

CHANGES = ("fresh", "join", "leave")

REFERENCE = {  # (size, shape, job, assignor): fresh and join in ms, measured once on such a machine
    ("1kx10k", "equal", "assign", "cooperative-sticky"): (11, 20),
    ("1kx50k", "equal", "assign", "cooperative-sticky"): (20, 48),
    ("10kx100k", "equal", "assign", "cooperative-sticky"): (144, 266),
    ("2kx1m", "equal", "assign", "cooperative-sticky"): (107, 3_880),
    ("1kx10k", "equal", "assign", "range"): (78, 252),
    ("1kx50k", "equal", "assign", "range"): (196, 104),
    ("10kx100k", "equal", "assign", "range"): (3_430, 3_110),
    ("2kx1m", "equal", "assign", "range"): (1_820, 969),
    ("2kx1m", "equal", "assign", "roundrobin"): (648, 650),
    ("2kx1m", "equal", "assign", "sticky"): (66, 792),
    ("1kx10k", "disjoint", "assign", "sticky"): (12, 22),
    ("1kx50k", "disjoint", "assign", "sticky"): (47, 49),
    ("1kx10k", "half", "assign", "sticky"): (21, 6),
    ("1kx10k", "half", "assign", "cooperative-sticky"): (21, 6),
    ("1kx50k", "half", "assign", "sticky"): (53, 39),
    ("1kx50k", "half", "assign", "cooperative-sticky"): (53, 39),
    ("1kx10k", "equal", "leader", "range"): (None, 18),
    ("1kx10k", "equal", "leader", "roundrobin"): (None, 14),
    ("1kx10k", "equal", "leader", "sticky"): (None, 14),
    ("1kx10k", "equal", "leader", "cooperative-sticky"): (None, 14),
    ("1kx50k", "equal", "leader", "range"): (None, 86),
    ("1kx50k", "equal", "leader", "roundrobin"): (None, 141),
    ("1kx50k", "equal", "leader", "sticky"): (None, 93),
    ("1kx50k", "equal", "leader", "cooperative-sticky"): (None, 92),
}

SAME_WORK = {"unchanged": "leader", "objects": "assign"}
"""The job whose reference a job is compared with. That of *assign* goes from objects to objects."""

HEAD = ["size", "shape", "job", "assignor", *CHANGES, "reference fresh / join", "times as fast"]


def least(benchmarks):
    """Return (size, shape, job, assignor) -> change -> least time in ms, in the order measured."""
    found = {}
    for entry in benchmarks:
        info = entry["extra_info"]
        if "change" in info:
            row = found.setdefault((info["size"], info["shape"], info["job"], info["who"]), {})
            row[info["change"]] = entry["stats"]["min"] * 1000
    return found


def cells(key, measured):
    """Return a row: times, those of the reference, and ratios; a dash where there is none."""
    row = [*key, *(f"{measured[c]:.1f}" if c in measured else "-" for c in CHANGES)]
    size, shape, job, assignor = key
    same_work = size, shape, SAME_WORK.get(job, job), assignor
    reference = dict(zip(CHANGES, REFERENCE.get(same_work, (None, None)), strict=False))
    both = [c for c in ("fresh", "join") if reference[c] is not None and c in measured]
    row.append(
        " / ".join("-" if reference[c] is None else f"{reference[c]:,}" for c in reference) if both else "-"
    )
    row.append(" / ".join(f"{reference[c] / measured[c]:.1f}" for c in both) or "-")
    return row


def table(benchmarks):
    """Yield the lines of the table, and one line for each simulation."""
    yield HEAD
    yield ["---"] * len(HEAD)
    for key, measured in least(benchmarks).items():
        yield cells(key, measured)
    for entry in benchmarks:
        info = entry["extra_info"]
        if "messages" in info:
            fastest = entry["stats"]["min"]
            speed = f"{info['messages'] / fastest:,.0f} messages/s"
            yield ["rolling-deploy", speed, "simulate", info["who"], f"{fastest * 1000:.0f}", *["-"] * 4]


def main(path):
    """Print the table of a file."""
    benchmarks = json.loads(Path(path).read_text())["benchmarks"]
    for row in table(benchmarks):
        sys.stdout.write(f"| {' | '.join(row)} |\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

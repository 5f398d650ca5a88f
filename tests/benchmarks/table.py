"""A Markdown table from what pytest-benchmark measured: ``python -m tests.benchmarks.table results.json``.

Medians in ms. Beside them the targets: ten times faster than the faster of the JVM's and franz-go's
assignors, and how many times faster than the target the measured one is (below 1: slower).
"""

import json
import sys
from pathlib import Path

CHANGES = ("fresh", "join", "leave")

TARGETS = {  # (size, shape, assignor): fresh and join in ms
    ("1kx10k", "equal", "cooperative-sticky"): (1.1, 2.0),
    ("1kx50k", "equal", "cooperative-sticky"): (2.0, 4.8),
    ("10kx100k", "equal", "cooperative-sticky"): (14.4, 26.6),
    ("2kx1m", "equal", "cooperative-sticky"): (10.7, 388),
    ("1kx10k", "equal", "range"): (7.8, 25.2),
    ("1kx50k", "equal", "range"): (19.6, 10.4),
    ("10kx100k", "equal", "range"): (343, 311),
    ("2kx1m", "equal", "range"): (182, 96.9),
    ("2kx1m", "equal", "roundrobin"): (64.8, 65.0),
    ("2kx1m", "equal", "sticky"): (6.6, 79.2),
    ("1kx10k", "disjoint", "sticky"): (1.2, 2.2),
    ("1kx50k", "disjoint", "sticky"): (4.7, 4.9),
    ("1kx10k", "half", "sticky"): (120, 220),
    ("1kx50k", "half", "sticky"): (470, 490),
}

HEAD = [
    *("size", "shape", "assignor", "fresh", "join", "leave"),
    *("target fresh", "target join", "target / fresh", "target / join"),
]


def medians(benchmarks):
    """(size, shape, assignor) -> change -> median in ms, in the order measured."""
    found = {}
    for each in benchmarks:
        info = each["extra_info"]
        if "change" in info:
            row = found.setdefault((info["size"], info["shape"], info["who"]), {})
            row[info["change"]] = each["stats"]["median"] * 1000
    return found


def cells(key, measured):
    """One row: medians, targets, ratios; a dash where there is none."""
    target = dict(zip(("fresh", "join"), TARGETS.get(key, ()), strict=False))
    row = [*key, *(f"{measured[c]:.1f}" if c in measured else "-" for c in CHANGES)]
    row += [f"{target[c]:g}" if c in target else "-" for c in ("fresh", "join")]
    row += [
        f"{target[c] / measured[c]:.2f}" if c in target and c in measured else "-" for c in ("fresh", "join")
    ]
    return row


def table(benchmarks):
    """The lines of the table, and one line for each simulation."""
    yield HEAD
    yield ["---"] * len(HEAD)
    for key, measured in medians(benchmarks).items():
        yield cells(key, measured)
    for each in benchmarks:
        info = each["extra_info"]
        if "messages" in info:
            median = each["stats"]["median"]
            speed = f"{info['messages'] / median:,.0f} messages/s"
            yield ["rolling-deploy", speed, info["who"], f"{median * 1000:.0f}", *["-"] * 6]


def main(path):
    """Print the table of a file."""
    benchmarks = json.loads(Path(path).read_text())["benchmarks"]
    for row in table(benchmarks):
        sys.stdout.write(f"| {' | '.join(row)} |\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Send thousands of damaged requests to a broker and print what it holds afterwards.

    python -m tests.rebalance_kafka.malformed [FRAMES] [SEED]

Each request has its own connection, which is half-closed at once. After every 25 requests, a member of a
group must get its responses. The figures are taken after each fifth of the frames. Memory is that of the
process.
"""

import sys
from pathlib import Path
from random import Random
from time import perf_counter

from tests.rebalance_kafka.damage import damaged
from tests.rebalance_kafka.stand import LIMITS, Stand

PARTS = 5


def main() -> None:
    """Print a table."""
    frames = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    random = Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    begun = perf_counter()
    columns: list[dict[str, int]] = []
    with Stand(**LIMITS) as stand:
        for _ in range(PARTS):
            stand.throw(damaged(random) for _ in range(frames // PARTS))
            columns.append({**stand.figures(), "memory, MiB": _resident_bytes() // 2**20})
    _print(f"{frames:,} frames in {perf_counter() - begun:.0f} s\n")
    _print("| | " + " | ".join(f"after {frames * (n + 1) // PARTS:,}" for n in range(PARTS)) + " |")
    _print("| --- |" + " --- |" * PARTS)
    for name in columns[0]:
        _print(f"| {name} | " + " | ".join(f"{column[name]:,}" for column in columns) + " |")


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4_096


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()

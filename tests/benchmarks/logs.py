"""The speed and the memory of `diagnose` on large logs: ``python -m tests.benchmarks.logs [GB]``.

Of a broker's log, one line of a thousand is about a group. Times are CPU times, beside that of counting the
lines of the same file.
"""

import resource
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from rebalance_logs.causes import diagnosed
from rebalance_logs.clocks import shifts_of
from rebalance_logs.groups import groups_of
from rebalance_logs.reading import BLOCK, read_logs

OTHER = (
    "[2026-03-01 10:00:00,{0:03}] INFO [Log partition=orders-{1}, dir=/var/lib/kafka] Rolled new log segment"
    " at offset {0}{1} in 3 ms. (kafka.log.Log)\n"
)
AT = "[2026-03-01 {hour:02}:{minute:02}:{second:02}"
ROUND = (
    f"{AT},100] INFO [GroupCoordinator 3]: Preparing to rebalance group pay in state PreparingRebalance"
    " with old generation {number} (__consumer_offsets-7) (reason: Updating metadata for member c-1-x"
    " during Stable; client reason: not provided)\n"
    f"{AT},900] INFO [GroupCoordinator 3]: Stabilized group pay generation {{next}}"
    " (__consumer_offsets-7) with 3 members\n"
)


def written(path: Path, size: int) -> None:
    """Write a log of about so many bytes."""
    block = "".join(OTHER.format(number % 1_000, number % 97) for number in range(2_000))
    with path.open("w") as file:
        for number in range(max(1, size // len(block))):
            file.write(block)
            at = number % 86_400
            times = {"hour": at // 3_600, "minute": at // 60 % 60, "second": at % 60}
            file.write(ROUND.format(number=number, next=number + 1, **times))


def counted(path: Path) -> int:
    """Return the number of lines."""
    lines = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            lines += block.count(b"\n")
    return lines


def main(gigabytes: float) -> None:
    """Print the figures."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        written(path, int(gigabytes * 1e9))
        size = path.stat().st_size / 1e6
        begun = process_time()
        lines = counted(path)
        counting = process_time() - begun
        begun = process_time()
        logs = read_logs([str(path)])
        reading = process_time() - begun
        begun = process_time()
        rounds = sum(len(diagnosed(group).group.rounds) for group in groups_of(logs, shifts_of(logs)))
        answering = process_time() - begun
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    sys.stdout.write(
        f"{size:,.0f} MB, {lines:,} lines: read at {size / reading:.0f} MB/s, {reading / counting:.1f} times"
        f" as long as to count them; {rounds:,} rounds answered in {answering:.1f} s; at most {most:.0f} MB\n"
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 1.0)

"""The time of whole commands, and the lines that `assign` does in a CPU second.

    python -m tests.benchmarks.startup [TIMES]

Commands take turns, so that other work on the machine slows down all of them. Of each the least CPU time
counts, with that of its processes, and the least time on the wall. *Ratio* is that of the CPU times to Python
without a program. Lines per second are without the start of the command.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from time import perf_counter
from typing import NamedTuple

from tests.places import ROOT, SCENARIOS

TIMES = 7
LINES = 2_000
COMMAND = (sys.executable, "-c", "from rebalance_lab.cli.main import run; run()")
SHORT = str(SCENARIOS / "scale-out.yaml")
COMMANDS: Mapping[str, Sequence[str]] = {
    "python -c pass": (sys.executable, "-c", "pass"),
    "python -c 'import typer'": (sys.executable, "-c", "import typer"),
    "python -c 'import numpy'": (sys.executable, "-c", "import numpy"),
    "rebalance-lab --help": (*COMMAND, "--help"),
    "rebalance-lab --version": (*COMMAND, "--version"),
    "rebalance-lab schema": (*COMMAND, "schema"),
    "rebalance-lab compare scale-out.yaml": (*COMMAND, "compare", SHORT),
    "rebalance-lab compare scale-out.yaml -j 2": (*COMMAND, "compare", SHORT, "-j", "2"),
}
LONG_TIMES = 3
LONG: Mapping[str, Sequence[str]] = {
    f"rebalance-lab {' '.join(words)}": (*COMMAND, words[0], str(SCENARIOS / words[1]), *words[2:])
    for words in (
        ("compare", "mentions-day.yaml"),
        ("compare", "killed-pods.yaml"),
        ("simulate", "rolling-deploy.yaml", "-s", "range"),
        ("simulate", "killed-pods.yaml", "-s", "range"),
    )
}
"""Commands whose simulation takes longer than their start. They are measured at most `LONG_TIMES` times."""
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


class Seconds(NamedTuple):
    """The time of a command."""

    cpu: float
    wall: float


def main() -> None:
    """Print two tables."""
    times = int(sys.argv[1]) if sys.argv[1:] else TIMES
    found = {**_least(COMMANDS, times), **_least(LONG, min(times, LONG_TIMES))}
    floor = found["python -c pass"].cpu
    _write("| command | CPU ms | wall ms | ratio |", "| --- | --- | --- | --- |")
    for name, (cpu, wall) in found.items():
        _write(f"| `{name}` | {1_000 * cpu:,.0f} | {1_000 * wall:,.0f} | {cpu / floor:.1f} |")
    _write("", "| assign, 10 members x 60 partitions | lines per CPU second | without a limit of time |")
    _write("| --- | --- | --- |", *_assigned(times))


def _assigned(times: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "groups.jsonl"
        one = Path(folder) / "one.jsonl"
        for title, owned, alike in (
            ("equal subscriptions, nothing owned", False, True),
            ("equal subscriptions, a member is new", True, True),
            ("subscriptions overlap by half, a member is new", True, False),
        ):
            lines = list(_groups(owned=owned, alike=alike))
            path.write_text("".join(lines))
            one.write_text("".join(lines[: len(ASSIGNORS)]))
            assign = (*COMMAND, "assign")
            unlimited = (*assign, "--timeout", "0")
            found = _least(
                {
                    "start": (*assign, str(one)),
                    "limit": (*assign, str(path)),
                    "none": (*unlimited, str(path)),
                },
                times,
            )
            start = found["start"].cpu
            speeds = [(LINES - len(ASSIGNORS)) / (found[name].cpu - start) for name in ("limit", "none")]
            yield f"| {title} | {speeds[0]:,.0f} | {speeds[1]:,.0f} |"


def _groups(*, owned: bool, alike: bool) -> Iterator[str]:
    """Yield lines for `assign`: five topics of twelve partitions, and every assignor in turn."""
    random = Random(14)
    topics = {f"orders-{t}": {"partitions": 12} for t in range(5)}
    for number in range(LINES):
        members = [
            {"id": f"consumer-{m}-{random.getrandbits(32):08x}", "topics": _some(random, topics, alike)}
            for m in range(10)
        ]
        if owned:
            for topic in topics:
                owners = [member for member in members[1:] if topic in member["topics"]]
                for partition in range(12 if owners else 0):
                    owner = owners[partition % len(owners)]
                    owner.setdefault("owned", []).append([topic, partition])
                    owner["generation"] = 7
        assignor = ASSIGNORS[number % len(ASSIGNORS)]
        document = {"name": f"group-{number}", "assignor": assignor, "topics": topics, "members": members}
        yield json.dumps(document) + "\n"


def _some(random: Random, topics: Mapping[str, object], alike: bool) -> list[str]:
    return list(topics) if alike else [t for t in topics if random.random() < 0.5] or [next(iter(topics))]


def _least(commands: Mapping[str, Sequence[str]], times: int) -> dict[str, Seconds]:
    """Return the least times of each command."""
    found: dict[str, list[Seconds]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            found[name].append(_seconds(command))
    return {name: Seconds(*map(min, zip(*every, strict=True))) for name, every in found.items()}


def _seconds(command: Sequence[str]) -> Seconds:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    paths = os.pathsep.join((str(ROOT), str(ROOT / "plugins")))
    environ = {**os.environ, "PYTHONPATH": paths}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ)
    wall, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def _write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""The number of Python calls for each heartbeat exchange in the simulator, with every message.

    python -m tests.benchmarks.calls [--by-function]

A group at rest sends heartbeats and nothing else. The calls of a short run are subtracted from those of a
longer one, so that what happens once cancels out. An exchange is a request and its response, at both sides.
The figures are the same on every machine. ``--by-function`` lists the calls of one exchange by function.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from tests.places import ROOT

HEARTBEATS, MEMBERS, INTERVAL_MS = 400, 4, 3_000
SHORT_MS = 60_000
LONG_MS = SHORT_MS + HEARTBEATS // MEMBERS * INTERVAL_MS
STRATEGIES = ("range", "range+server-side", "range+reconcile")
NOT_IN_A_RUN = "3h"
"""An interval that is longer than a run."""


def document(duration_ms: int) -> Mapping[str, Any]:
    """Return a scenario without records, commits and new metadata."""
    return {
        "name": "at-rest",
        "duration": duration_ms,
        "topics": {"t": {"partitions": 8}},
        "members": [{"id": "m", "count": MEMBERS, "topics": ["t"]}],
        "config": {
            "enable.auto.commit": False,
            "heartbeat.interval.ms": INTERVAL_MS,
            "max.poll.interval.ms": NOT_IN_A_RUN,
            "metadata.max.age.ms": NOT_IN_A_RUN,
        },
    }


def calls_of(duration_ms: int, strategy: str) -> tuple[Counter[CodeType], int]:
    """Return the number of calls of each function in a run, and the number of requests."""
    scenario = parse_scenario(document(duration_ms), where="at-rest")
    registry, calls = default_registry(), Counter[CodeType]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    sys.setprofile(count)
    try:
        trace = simulate(scenario, strategy, registry, every_message=True)
    finally:
        sys.setprofile(None)
    return calls, sum(trace.ended.messages.values())


def per_heartbeat(strategy: str) -> dict[CodeType, float]:
    """Return the calls of each function for one heartbeat exchange."""
    calls_of(SHORT_MS, strategy)  # what the process remembers is there afterwards
    longer, of_longer = calls_of(LONG_MS, strategy)
    shorter, of_shorter = calls_of(SHORT_MS, strategy)
    longer.subtract(shorter)
    return {code: count / (of_longer - of_shorter) for code, count in longer.items() if count}


def main() -> None:
    """Print a table of strategies, and the functions if they are wanted."""
    sys.stdout.write("| strategy | Python calls of a heartbeat |\n| --- | --- |\n")
    for strategy in STRATEGIES:
        calls = per_heartbeat(strategy)
        sys.stdout.write(f"| {strategy} | {sum(calls.values()):.1f} |\n")
        if "--by-function" in sys.argv[1:]:
            for code, count in sorted(calls.items(), key=lambda entry: -entry[1]):
                file = Path(code.co_filename)
                place = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file.name
                sys.stdout.write(f"{count:8.2f} {code.co_qualname} ({place})\n")


if __name__ == "__main__":
    main()

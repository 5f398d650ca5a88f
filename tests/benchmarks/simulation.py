"""The CPU time of simulations, with every message and without the periodic ones of groups at rest.

    python -m tests.benchmarks.simulation [--quick]

A run and its metrics are measured in this process. Of runs that leave out messages the least CPU time counts.
*Left out* is the share of the requests that were counted and not simulated. `--quick` has
smaller groups, shorter times and fewer rows.
"""

import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from random import Random
from time import perf_counter, process_time
from typing import Any, NamedTuple, TypeAlias

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.replay import read_traffic, replay
from rebalance_lab.scenarios.scenario import Scenario, parse_scenario
from rebalance_lab.scenarios.workloads import microservices
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import Run
from rebalance_lab.simulation.world.collector import collecting_rarely
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.measuring import measure
from tests.places import ROOT, SCENARIOS

STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
TRAFFIC = ROOT / "tests" / "data" / "mentions_per_5min.csv"
DAY_MS, HOUR_MS, INTERVAL_MS = 24 * 3_600_000, 3_600_000, 300_000
TIMES = 3
"""The number of times of which the least counts. Runs with every message are done once."""
EVENTS = 20
"""The events of the runs of a day, a week and a month."""

Document: TypeAlias = Mapping[str, Any]


class Case(NamedTuple):
    """Scenarios that are run under strategies. Without ``both``, not every message is simulated."""

    title: str
    scenarios: Sequence[Scenario]
    strategies: Sequence[str] = ("range",)
    both: bool = True


class Cost(NamedTuple):
    """The cost of a case, and its numbers of requests."""

    cpu: float
    wall: float
    requests: int
    left_out: int


def main() -> None:
    """Print two tables."""
    quick = "--quick" in sys.argv[1:]
    _write("| run | every message, CPU s | wall s | CPU s | wall s | ratio | requests | left out |")
    _write("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in _cases(quick):
        _write(_row(case, 1 if quick else TIMES))
    _write("", "| workload | protocol, CPU ms a row | plan, CPU ms a row | ratio |")
    _write("| --- | --- | --- | --- |")
    for title, documents in _workloads(5 if quick else 40):
        _write(_workload_row(title, [_scenario(document) for document in documents], 1 if quick else TIMES))


# --- runs


def _cases(quick: bool) -> Iterator[Case]:
    day = load_scenario(SCENARIOS / "mentions-day.yaml")
    yield Case("mentions-day, four strategies", [day], STRATEGIES[:1] if quick else STRATEGIES)
    for name in ("rolling-deploy", "killed-pods"):
        yield Case(f"{name}, range", [load_scenario(SCENARIOS / f"{name}.yaml")])
    for days, title in ((1, "a day"), (7, "a week"), (30, "a month"))[: 2 if quick else 3]:
        yield Case(f"{title} of mentions, {EVENTS} events", [_scenario(_mentions(days))], both=days == 1)
    days = 7 if quick else 30
    yield Case(f"{days} days of mentions, members fall behind", [_scenario(_mentions(days, 1))], both=False)
    count = 100 if quick else 1_000
    title = f"{count:,} members x {10 * count:,} partitions, an hour"
    yield Case(title, [_scenario(_large(count))], ("cooperative-sticky",), both=False)


def _mentions(days: int, process_rate: int = 10) -> Document:
    """Return days of the same traffic with the same number of events, crashes and restarts in turn.

    Members keep up with the traffic at the default rate. At 1 record/s they fall behind every day.
    """
    with (SCENARIOS / "mentions_one_day.csv").open(newline="") as file:
        rows = [[int(text) for text in row[1:]] for row in list(csv.reader(file))[1:]]
    rows = rows[: DAY_MS // INTERVAL_MS] * days
    length_ms = len(rows) * INTERVAL_MS
    random = Random(days)
    events = []
    for number in range(EVENTS // 2):
        name = f"m-{random.randrange(5)}"
        at_ms = length_ms * (2 * number + 1) // (EVENTS + 1)
        events.append({"at": at_ms, "crash": name})
        events.append({"at": at_ms + length_ms // (EVENTS + 1), "restart": name})
    return {
        "name": f"mentions-{days}",
        "duration": length_ms,
        "topics": {"mentions": {"partitions": 10, "rates_rows": rows, "interval": INTERVAL_MS}},
        "members": [{"id": "m", "count": 5, "topics": ["mentions"], "process_rate": process_rate}],
        "events": events,
        "config": {"max.poll.records": 10},
    }


def _large(count: int) -> Document:
    """Return a group of many members with ten partitions each, a join, a leave and a crash in an hour."""
    topics = {f"t-{number:02}": {"partitions": count // 10, "rate": count} for number in range(100)}
    member = {"topics": list(topics), "process_rate": 200}
    return {
        "name": f"large-{count}",
        "duration": HOUR_MS,
        "topics": topics,
        "members": [{"id": "m", "count": count, **member}],
        "events": [
            {"at": "15m", "join": {"id": "late", **member}},
            {"at": "30m", "leave": "m-1"},
            {"at": "45m", "crash": "m-2"},
        ],
    }


def _row(case: Case, times: int) -> str:
    some = min(_cost(case, False) for _ in range(times))
    cells = ["-", "-", f"{some.cpu:.2f}", f"{some.wall:.2f}", "-"]
    if case.both:
        every = _cost(case, True)
        assert every.requests == some.requests
        cells = [
            f"{every.cpu:.2f}",
            f"{every.wall:.2f}",
            f"{some.cpu:.2f}",
            f"{some.wall:.2f}",
            f"{every.cpu / some.cpu:.1f}",
        ]
    share = some.left_out / some.requests
    return f"| {' | '.join([case.title, *cells, f'{some.requests:,}', f'{share:.1%}'])} |"


def _cost(case: Case, every_message: bool) -> Cost:
    """Run all scenarios of a case under all strategies, with their metrics."""
    registry = default_registry()
    requests = left_out = 0
    cpu, wall = process_time(), perf_counter()
    for scenario in case.scenarios:
        for strategy in case.strategies:
            run = Run(scenario, strategy, registry, every_message=every_message)
            trace = _finished(run)
            measure(trace, registry)
            requests += sum(trace.ended.messages.values())
            left_out += sum(run.left_out.values())
    return Cost(process_time() - cpu, perf_counter() - wall, requests, left_out)


@collecting_rarely()
def _finished(run: Run) -> Trace:
    """Advance a run to its end, as `simulate` does."""
    run.advance(run.scenario.duration_ms)
    return run.finish()


# --- rows of workloads


def _workloads(rows: int) -> Iterator[tuple[str, Iterator[Document]]]:
    yield "microservices, 15 minutes", map(partial(microservices, 1), range(rows))
    traffic = read_traffic(str(TRAFFIC))
    yield "replay, two hours", (replay(1, row, rates_csv=traffic) for row in range(rows))


def _workload_row(title: str, scenarios: Sequence[Scenario], times: int) -> str:
    registry = default_registry()

    @collecting_rarely()
    def simulated() -> None:
        for scenario in scenarios:
            measure(_finished(Run(scenario, "cooperative-sticky", registry)), registry)

    @collecting_rarely()
    def planned() -> None:
        for scenario in scenarios:
            measure(plan(scenario, "cooperative-sticky", registry), registry, planned=True)

    taken = list(chain.from_iterable((_cpu(simulated), _cpu(planned)) for _ in range(times)))
    protocol_ms, plan_ms = (1_000 * min(taken[kind::2]) / len(scenarios) for kind in (0, 1))
    return f"| {title} | {protocol_ms:.1f} | {plan_ms:.1f} | {protocol_ms / plan_ms:.1f} |"


def _cpu(work: Callable[[], None]) -> float:
    before = process_time()
    work()
    return process_time() - before


def _scenario(document: Document) -> Scenario:
    return parse_scenario(document, where=document["name"], registry=default_registry())


def _write(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""What predictions are worth: how near they came to runs of real clients in scenarios like the one at hand.

The runs are those of the calibration, in ``calibrated.json``: cells of a client library, a way of rebalancing
and an event. A scenario is like a cell if its members have this client and batches of about this length, and
if the event of the cell is one of its events.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from coordinator_core.assigning.assignor import is_cooperative
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.scenarios.settings import setting_in
from rebalance_lab.simulation.process.batches import Batches
from rebalance_lab.verdicts.finding import Finding, found
from rebalance_lab.verdicts.words import listed_names

LIKE = 3
"""Batches are like those of a cell if they are at most so many times shorter or longer."""

MIGRATION = "migration"
EAGER, COOPERATIVE, RECONCILED = "eager", "cooperative", "KIP-848"


class Cell(msgspec.Struct, frozen=True):
    """The real runs of a scenario of the calibration.

    ``met`` of ``runs`` had a stopped time in the predicted range, which has 90 % of twenty seeds.
    """

    client: str
    way: str
    event: str
    batch_ms: int
    runs: int
    met: int


@cache
def cells() -> tuple[Cell, ...]:
    """Return the cells of the calibration."""
    path = Path(__file__).parent / "calibrated.json"
    return msgspec.json.decode(path.read_bytes(), type=tuple[Cell, ...])


def worth(scenario: Scenario, strategies: Iterable[Strategy], registry: Registry) -> Finding:
    """Return what real runs that are near a scenario say of figures under some strategies."""
    near, why = _like(scenario, registry)
    if not near:
        return found("no-real-run", reason=why)
    ways = {strategy.name: way_of(strategy, registry) for strategy in strategies}
    parts = list(_counts(near, [way for way in _distinct(ways.values()) if way]))
    if not parts:
        return found("no-real-run", reason=f"there is none of {listed_names(list(ways))}")
    unlike = [name for name, way in ways.items() if way not in {cell.way for cell in near}]
    return found("worth", parts=parts, rest=f"; none is of {listed_names(unlike)}" if unlike else "")


def way_of(strategy: Strategy, registry: Registry) -> str:
    """Return how a strategy rebalances, as real runs did it; "" if none did."""
    if strategy.static or strategy.delay_ms is not None:
        return ""
    if strategy.protocol == "reconcile":
        return RECONCILED
    if strategy.protocol != DEFAULT_PROTOCOL:
        return ""
    return COOPERATIVE if is_cooperative(registry.assignor(strategy.name)) else EAGER


def _like(scenario: Scenario, registry: Registry) -> tuple[list[Cell], str]:
    """Return the cells that are like a scenario; if there are none, why."""
    batch_ms = longest_batch_ms(scenario, registry)
    if not batch_ms:
        return [], "its members handle records in no time"
    clients = {member.application.client for member in scenario.members}
    of_client = [cell for cell in cells() if cell.client in clients]
    if not of_client:
        return [], f"its client is none of {listed_names(_distinct(cell.client for cell in cells()))}"
    events = _distinct(kinds_of(scenario))
    of_event = [cell for cell in of_client if cell.event in events]
    if not of_event:
        known = ", ".join(_distinct(cell.event for cell in of_client))
        return [], f"none of its events ({', '.join(events) or 'there are none'}) is one of {known}"
    near = [c for c in of_event if c.batch_ms <= LIKE * batch_ms and batch_ms <= LIKE * c.batch_ms]
    lengths = listed_names(_distinct(_seconds(cell.batch_ms) for cell in of_event))
    there = f"{lengths} in the real runs with {listed_names(_distinct(cell.event for cell in of_event))}"
    return near, f"a batch of max.poll.records takes its members {_seconds(batch_ms)}, and {there}"


def kinds_of(scenario: Scenario) -> list[str]:
    """Return the kinds of the events of a scenario. A restart with another protocol is one of its own."""
    return [MIGRATION if getattr(e.arguments, "protocol", "") else e.kind for e in scenario.events]


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _counts(near: Sequence[Cell], ways: Iterable[str]) -> Iterator[str]:
    for way in ways:
        own = [cell for cell in near if cell.way == way]
        if own:
            yield f"{sum(cell.met for cell in own)} of {sum(cell.runs for cell in own)} ({way})"


def _seconds(time_ms: float) -> str:
    return f"{time_ms / 1_000:.2g} s"


def longest_batch_ms(scenario: Scenario, registry: Registry) -> float:
    """Return the mean time of a batch of max.poll.records, of the members with the longest."""

    def batch_ms(member: Member) -> float:
        config = {**scenario.config, **member.overrides.config}
        return Batches.of(member, setting_in(config, "max.poll.records", registry)).mean_ms

    return max(map(batch_ms, scenario.members), default=0.0)

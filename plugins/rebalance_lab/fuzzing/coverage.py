"""What runs have reached: requests of kinds of members in states of the group, and how they were answered."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.traces.invariants import Invariants

NO_ANSWER = "no answer"
_CONTENT = ("Metadata", "ListOffsets", "Fetch", "FindCoordinator")
"""Requests that every broker answers alike in every state of a group."""


class CoverageCell(NamedTuple):
    """A request of a kind of member in a state of the group, and the error of its answer."""

    family: str
    state: str
    request: str
    member: str
    answer: str


@dataclass(slots=True)
class Coverage:
    """The cells that runs have reached, with how often."""

    counts: Counter[CoverageCell] = field(default_factory=Counter)
    _open: list[tuple[str, str, str, Exchange]] = field(default_factory=list)

    def observer(self, scenario: Scenario, watch: Invariants) -> Callable[[Exchange], None]:
        """Return a function that is called with each exchange when its request is sent."""
        kinds = {
            member.id: _kind(member.application.client, member.instance_id) for member in scenario.members
        }

        def sent(exchange: Exchange) -> None:
            request = type(exchange.request).__name__.removesuffix("Request")
            if request not in _CONTENT:
                self._open.append(
                    (watch.now.state or "none", request, kinds.get(exchange.client, "java"), exchange)
                )

        return sent

    def close(self, family: str) -> None:
        """Count the exchanges of a run that has ended."""
        for state, request, member, exchange in self._open:
            self.counts[CoverageCell(family, state, request, member, _answer(exchange))] += 1
        self._open.clear()

    def add(self, other: Mapping[CoverageCell, int]) -> int:
        """Add what another run has reached, and return how many cells are new."""
        new = sum(cell not in self.counts for cell in other)
        self.counts.update(other)
        return new


def _kind(client: str, instance_id: str | None) -> str:
    return f"{client}, static" if instance_id else client


def _answer(exchange: Exchange) -> str:
    if exchange.response is None:
        return NO_ANSWER
    error = getattr(exchange.response, "error", ErrorCode.NONE)
    rows = getattr(exchange.response, "partitions", ())
    errors = [row.error for row in rows if getattr(row, "error", ErrorCode.NONE)]
    found = ErrorCode(error or (errors[0] if errors else ErrorCode.NONE))
    return found.name

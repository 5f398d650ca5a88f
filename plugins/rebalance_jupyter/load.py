"""The load over time: the lag of the group, the rates of partitions, and the load of each consumer."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from coordinator_core.protocol import events as ev
from rebalance_jupyter.series import Series, add, largest_of, line
from rebalance_lab.traces.timeline import Change, Timeline

MOST_RATES = 50_000
"""The most rates of a topic that are sent. Of more, those with the largest sum of each stretch are."""


class Loads:
    """The load of a run, read from a timeline: what is produced, what consumers can handle, and the lag.

    A trace has the lag of the group and of each consumer, and not that of a single partition.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._now = timeline
        self._rates: dict[str, list[list[Any]]] = {}
        self._loads: dict[str, Series] = {}
        self._process_rates: dict[str, Series] = {}
        self._lag: list[list[float]] = []
        timeline.after.append(self._see)
        timeline.measured.append(self._measured)

    @property
    def lag(self) -> list[list[float]]:
        """The points of the line of the lag: all records that are not handled, measured from time to time."""
        return line(self._lag)

    @property
    def rates(self) -> dict[str, list[list[Any]]]:
        """The records/s of each topic: a time, and a rate for each partition or one that all have."""
        return {topic: self._thinned(steps) for topic, steps in self._rates.items()}

    def of(self, client: str, thin: Callable[[Series], Series]) -> dict[str, Series]:
        """Return the sum of the rates of the partitions that a consumer owns, and what it can handle.

        Both in records/s over time. ``process_rate`` is None where nothing limits a consumer, or none runs.
        """
        return {
            "load": thin(self._loads.get(client, [])) if any(map(_flows, self._rates.values())) else [],
            "process_rate": self._process_rates.get(client, []),
        }

    def _see(self, change: Change) -> None:
        event = change.event
        if isinstance(event, ev.RatesChanged):
            rates = [_short(rate) for rate in event.rates]
            same = len(set(rates)) == 1
            self._rates.setdefault(event.topic, []).append([self._now.at_ms, rates[0] if same else rates])
            for client in self._now.consumers:
                self._note(client)
        elif isinstance(event, ev.MemberStarted | ev.ApplicationStarted):
            self._limit(event.client)
        elif isinstance(event, ev.MemberStopped | ev.ConsumerFailed) and event.client in self._process_rates:
            add(self._process_rates[event.client], self._now.at_ms, None)
        if self._now.rates and (change.given_up or change.taken):
            self._note(event.client)  # type: ignore[union-attr]

    def _limit(self, client: str) -> None:
        """Note what a consumer can handle. Of a time there is one value, although two events have it."""
        series = self._process_rates.setdefault(client, [])
        if series and series[-1][0] == self._now.at_ms:
            series.pop()
        handles = self._now.consumers[client].handles
        add(series, self._now.at_ms, handles and _short(handles))

    def _note(self, client: str) -> None:
        consumer = self._now.consumers.get(client)
        owned = consumer.owned if consumer is not None else ()
        load = sum(map(self._now.rate, owned))
        if load or client in self._loads:
            add(self._loads.setdefault(client, []), self._now.at_ms, _short(load))

    def _measured(self, at_ms: int, event: ev.LagMeasured) -> None:
        self._lag.append([at_ms, round(event.lag, 1)])

    @staticmethod
    def _thinned(steps: list[list[Any]]) -> list[list[Any]]:
        count = max(len(_listed(rates)) for _, rates in steps)
        return largest_of(steps, MOST_RATES // max(1, count), lambda step: sum(_listed(step[1])))


def _short(rate: float) -> float:
    """Return a rate with the digits that are shown, and some more."""
    return float(f"{rate:.5g}")


def _listed(rates: Any) -> Sequence[float]:
    return rates if isinstance(rates, list) else [rates]


def _flows(steps: list[list[Any]]) -> bool:
    return any(chain.from_iterable(_listed(rates) for _, rates in steps))

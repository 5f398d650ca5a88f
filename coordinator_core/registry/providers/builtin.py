"""The built-in providers. An entry point of the plugin group ``rebalance_lab``.

With ``reported-rates``, ``reported-lags`` and ``reported-work`` each member measures its partitions. The
leader uses the reports, and remembers earlier ones for partitions whose owner has left. With
``scenario-rates`` and ``scenario-lags`` the host knows all loads, as the simulator does.
"""

from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import TypeAlias

import msgspec

from coordinator_core.model import (
    NO_PARTITIONS,
    Cluster,
    GroupSubscription,
    Partitions,
    TopicInfo,
    TopicPartition,
)
from coordinator_core.registry.hookspecs import ProviderSpec, hookimpl
from coordinator_core.registry.host import Host, Load, Seen
from coordinator_core.registry.providers.report import Estimate, Report, decode_report, encode_report

Measure: TypeAlias = Callable[[Estimate | Load], float]


def by_rate(load: Estimate | Load) -> float:
    """Weigh a partition by its records/s."""
    return load.rate


def by_lag(load: Estimate | Load) -> float:
    """Weigh a partition by its lag in records."""
    return load.lag


WORK_SECONDS = 600.0
"""The time ahead for which work is counted."""


def by_work(load: Estimate | Load) -> float:
    """Weigh a partition by its work in the next minutes: its lag and the records that will be produced."""
    return load.lag + load.rate * WORK_SECONDS


def with_weights(cluster: Cluster, weights: Mapping[TopicPartition, float]) -> Cluster:
    """Return the cluster with these weights.

    An unknown partition has the mean weight of its topic, or of all partitions if its topic is unknown. If no
    weight is known, the cluster is returned as it is.
    """
    topics = cluster.topics
    known = {tp: w for tp, w in weights.items() if tp.partition < cluster.partition_count(tp.topic)}
    if not known:
        return cluster
    of_topic: dict[str, list[float]] = {}
    for tp, weight in known.items():
        of_topic.setdefault(tp.topic, []).append(weight)
    overall = fmean(known.values())

    def weighted(topic: str, info: TopicInfo) -> TopicInfo:
        usual = fmean(of_topic[topic]) if topic in of_topic else overall
        listed = tuple(known.get(TopicPartition(topic, n), usual) for n in range(info.partitions))
        return msgspec.structs.replace(info, weights=listed)

    return Cluster({topic: weighted(topic, info) for topic, info in topics.items()})


def with_capacities(group: GroupSubscription, capacities: Mapping[str, float]) -> GroupSubscription:
    """Return the group with these capacities, or as it is unless all are known."""
    if not group or any(m not in capacities for m in group):
        return group
    return GroupSubscription(
        {m: msgspec.structs.replace(s, capacity=capacities[m]) for m, s in group.items()}
    )


class Reported:
    """Weights from the reports of the members.

    The rate of a partition is the mean since its member got it. Old hours count less. A report is made once
    between two assignments, so that a request that is sent again has the same report.
    """

    def __init__(self, host: Host, measure: Measure) -> None:
        self._host, self._measure = host, measure
        self._assigned = NO_PARTITIONS
        self._since_ms: dict[TopicPartition, tuple[int, float]] = {}
        self._own: dict[TopicPartition, Estimate] = {}
        self._report: bytes | None = None
        self._remembered: dict[TopicPartition, tuple[int, Estimate]] = {}

    def assigned(self, partitions: Partitions) -> None:
        """Begin to measure new partitions, and continue to measure those that are kept."""
        now_ms, seen = self._host.now_ms(), self._host.seen(partitions)
        self._assigned = partitions
        self._own = {tp: e for tp, e in self._own.items() if tp in partitions}
        self._since_ms = {
            tp: self._since_ms.get(tp, (_time_of(entry, now_ms), entry.end_offset))
            for tp, entry in seen.items()
        }
        self._report = None

    def report(self) -> bytes:
        """Return the estimates of the partitions of the last assignment."""
        if self._report is None:
            self._take_measures()
            self._report = encode_report(Report(self._host.capacity(), self._own))
        return self._report

    def _take_measures(self) -> None:
        now_ms = self._host.now_ms()
        for tp, entry in self._host.seen(self._assigned).items():
            since = self._since_ms.get(tp, entry.first)
            if since is None:
                continue
            (since_ms, from_offset), at_ms = since, _time_of(entry, now_ms)
            seconds = (at_ms - since_ms) / 1_000
            if seconds > 0:
                before = self._own.get(tp, Estimate(0.0, 0.0, 0.0))
                rate = max(0.0, entry.end_offset - from_offset) / seconds
                self._own[tp] = before.with_measured(seconds, rate, entry.lag)
                self._since_ms[tp] = at_ms, entry.end_offset

    def inform(
        self, cluster: Cluster, group: GroupSubscription, reports: Mapping[str, bytes]
    ) -> tuple[Cluster, GroupSubscription]:
        """Add weights and capacities. Of two rates of a partition, the one measured for longer counts."""
        now_ms = self._host.now_ms()
        known = {tp: e.aged((now_ms - at_ms) / 1_000) for tp, (at_ms, e) in self._remembered.items()}
        capacities: dict[str, float] = {}
        for member in group:
            report = decode_report(reports[member]) if member in reports else None
            if report is None:
                continue
            if report.capacity is not None:
                capacities[member] = report.capacity
            for tp, estimate in report.estimates.items():
                before = known.get(tp, estimate)
                newer = estimate.seconds >= before.seconds
                known[tp] = estimate if newer else before._replace(lag=estimate.lag)
        self._remembered = {tp: (now_ms, estimate) for tp, estimate in known.items()}
        weights = {tp: self._measure(estimate) for tp, estimate in known.items()}
        return with_weights(cluster, weights), with_capacities(group, capacities)


def _time_of(entry: Seen, now_ms: int) -> int:
    return now_ms if entry.at_ms is None else entry.at_ms


class Known:
    """Weights from the loads that the host knows."""

    def __init__(self, host: Host, measure: Measure) -> None:
        self._host, self._measure = host, measure

    def assigned(self, partitions: Partitions) -> None:
        """Do nothing."""

    def report(self) -> bytes:
        """Return the capacity of the member alone."""
        return encode_report(Report(self._host.capacity(), {}))

    def inform(
        self, cluster: Cluster, group: GroupSubscription, reports: Mapping[str, bytes]
    ) -> tuple[Cluster, GroupSubscription]:
        """Add weights from the host and capacities from the members."""
        decoded = {m: decode_report(r) for m, r in reports.items()}
        capacities = {m: r.capacity for m, r in decoded.items() if r is not None and r.capacity is not None}
        weights = {tp: self._measure(load) for tp, load in self._host.loads().items()}
        return with_weights(cluster, weights), with_capacities(group, capacities)


@hookimpl
def providers() -> Iterable[ProviderSpec]:
    """Return the providers of this package."""
    return [
        ProviderSpec("reported-rates", lambda host: Reported(host, by_rate), "Records/s, as members report."),
        ProviderSpec("reported-lags", lambda host: Reported(host, by_lag), "Lags, as members report."),
        ProviderSpec(
            "reported-work",
            lambda host: Reported(host, by_work),
            "Lag and what comes in ten minutes, as members report.",
        ),
        ProviderSpec("scenario-rates", lambda host: Known(host, by_rate), "Records/s, as the host knows."),
        ProviderSpec("scenario-lags", lambda host: Known(host, by_lag), "Lags, as the host knows."),
    ]

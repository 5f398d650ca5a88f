"""The history of a run: owners, stopped time, settled assignments and load. Metrics are computed from it.

Costs are counted in a window of the run, so that those of the group's own start are not among them. It begins
at the given time, or when the group first rests with all consumers that run. Without either it is the whole
run. What happens before the first rest belongs to the start, changes from outside included.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.model import NO_OWNER, TopicIndex, TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.traces.family import family_of
from rebalance_lab.traces.ledger import Ledger, Resting, Settled, Span, last_owners, moves, numbered
from rebalance_lab.traces.rests import IntArray, Members, Rest, Traffic
from rebalance_lab.traces.stopped import StoppedTime
from rebalance_lab.traces.timeline import Change, Timeline
from rebalance_lab.traces.trace import Trace


class Mark(NamedTuple):
    """A moment with a label."""

    at_ms: int
    label: str


class Lag(NamedTuple):
    """A measure of the load, with its time."""

    at_ms: int
    measured: ev.LagMeasured


class History:
    """A run by subject. Times are virtual milliseconds.

    - ``trace``: the trace; ``started``, ``ended``: its first and its last event.
    - ``family``: the protocol family; ``registry``: the plugins with which the trace is read, if given.
    - ``topics``: each topic with its partitions at the end, or when it was deleted.
    - ``states``: each state of the group with the time since which it is in that state.
    - ``stable_ms``: the times at which the group came to rest.
    - ``change_ms``, ``marks``: the changes from outside.
    - ``rates``: the records/s of each topic with the time since which they hold.
    - ``racks``: the rack of each consumer that has one.
    - ``process_rates``: the records/s that each consumer can handle, polls included, if it has a limit.
    - ``now``: the group after the last event.
    - ``start_up_ms``: the time until the group first rested with all consumers, None if it never did.

    The following are those of the window:

    - ``from_ms``: the time at which it begins.
    - ``rounds``: the number of times at which the group came to rest.
    - ``counted``: the number of the events that only the family has, by kind.
    - ``stops``: the stopped time by cause, and what belongs to it.
    - ``lag_before``, ``lags``: the last lag before the window, and the measures of the load in it. If the
      window begins at the first rest, they begin when the lag does not fall any longer or is not above that
      of time 0, or at the first change: records that piled up while the group started do not count.
    """

    def __init__(
        self,
        trace: Trace,
        registry: Registry | None = None,
        *,
        timeline: Timeline | None = None,
        stops: bool = True,
    ) -> None:
        """Read a trace. Observers of ``timeline`` read it in the same pass; ``registry`` has its family.

        Without ``stops``, the stopped time is read in a pass of its own when it is first asked for.
        """
        self.started, self.ended = trace.started, trace.ended
        self.registry = registry
        self.family = family_of(trace.started, registry)
        self.stable_ms: list[int] = []
        self.change_ms: list[int] = []
        self.from_ms = self.rounds = 0
        self.counted: dict[type[Any], int] = {}
        self.start_up_ms: int | None = None
        self.lag_before = 0.0
        self.lags: list[Lag] = []
        self._first_lag: float | None = None
        self.marks: list[Mark] = []
        self.trace = trace
        self._begun = False
        self._taken_before = 0
        """The number of spans that had begun when the window began."""
        self._rests: list[Resting] = []
        self._resting: Resting | None = None
        self._awaited = ""
        """A consumer that had yet to take its part over, when the group was last found not to rest."""
        self._handlers: dict[type[Any], Callable[[Any], None]] = {
            ev.TopicDeleted: lambda _: self._unsettle(),
            ev.GroupStateChanged: self._state_changed,
            ev.Assigned: self._assigned,
            ev.Changed: self._changed,
            ev.MemberStopped: lambda _: self._rest(),
            ev.ConsumerFailed: lambda _: self._rest(),
            **dict.fromkeys(self.family.events, self._count),
        }
        self.now = now = timeline or Timeline(work=stops)
        now.before.append(self._pass_time)
        now.after.append(self._see)
        now.measured.append(self._lag_measured)
        self._stops = StoppedTime(now, self.family) if stops else None
        now.read(trace)
        if self._stops is not None:
            self._stops.finish()
        self.topics = {**now.topics, **now.deleted}
        self.states, self.rates = now.states, now.rates
        started = {client: process.started.rack for client, process in now.processes.items()}
        self.racks = {client: rack for client, rack in started.items() if rack}
        self.process_rates = {c: process.handles for c, process in now.processes.items() if process.handles}
        self._unsettle()
        if self.started.measure_from_ms is None and self.from_ms:
            self._leave_out_backlog()

    @property
    def stops(self) -> StoppedTime:
        """The stopped time of the window."""
        if self._stops is None:
            timeline = Timeline()
            self._stops = StoppedTime(timeline, self.family)
            self._stops.from_ms = self.from_ms
            timeline.read(self.trace)
            self._stops.finish()
        return self._stops

    @cached_property
    def ledger(self) -> Ledger:
        """Who owned what from when to when."""
        now, index = self.now, self.now.index
        rows = [
            (client, from_ms, now.at_ms if to_ms is None else to_ms)
            for _, client, from_ms, to_ms in now.spans
        ]
        spans = numbered(index, (span[0] for span in now.spans), rows, columns=3)
        return Ledger(
            index,
            tuple(now.clients),
            self.from_ms,
            now.at_ms,
            last_owners(spans[: self._taken_before], index),
            self.rounds,
            int(np.count_nonzero(moves(spans) >= self._taken_before)),
            tuple(self._settled(index, spans)),
            Traffic(index, self.rates),
            self.racks,
            self.started.racks or {},
            self.process_rates,
            self._new_assignor,
            lambda: spans,
        )

    def _new_assignor(self) -> Assignor:
        registry = self.registry or default_registry()
        return registry.build(registry.strategy(self.started.strategy))

    def _settled(self, index: TopicIndex, spans: IntArray) -> Iterator[Rest]:
        """Yield the assignments in which the group rested for some time, or rests at the end."""
        held, taken, end_ms = spans[:0], 0, self.now.at_ms
        for resting in self._rests:
            held = np.concatenate([held, spans[taken : resting.taken]])
            held = held[held[:, 3] > min(resting.from_ms, end_ms - 1)]
            taken = resting.taken
            if resting.from_ms < resting.until_ms or resting.until_ms == end_ms:
                owner = last_owners(held, index)
                others = [topic not in resting.topics for topic in index.topics]
                owner[np.array(others, dtype=bool)[index.topic_of_every]] = NO_OWNER
                yield Rest(index, resting.from_ms, resting.until_ms, owner, resting.members)

    @property
    def rests(self) -> Ledger:
        """The ledger, which has the settled assignments as arrays."""
        return self.ledger

    @property
    def moved(self) -> int:
        """The number of partitions of the window that were taken over from another consumer."""
        return self.ledger.moved

    @property
    def owners_before(self) -> dict[TopicPartition, str]:
        """The last owner of each partition when the window began."""
        return self.ledger.names(self.ledger.before)

    @cached_property
    def spans(self) -> dict[TopicPartition, list[Span]]:
        """The owners of each partition that had one, in the order in which they took it over."""
        return {partition: self.ledger.of(partition) for partition in self.now.owners}

    @cached_property
    def settled(self) -> list[Settled]:
        """The assignments in which the group rested."""
        return [self.ledger.named(rest) for rest in self.ledger.settled]

    @property
    def last_settled(self) -> Settled | None:
        """The assignment in force at the end, if the group rests in it."""
        return self.settled[-1] if self.ledger.last is not None else None

    # --- the window

    def _pass_time(self, at_ms: int, _event: ev.Event) -> None:
        """Begin the window if its time is given and has come."""
        from_ms = self.started.measure_from_ms
        if from_ms is not None and not self._begun and at_ms >= from_ms:
            self._begin(from_ms)

    def _rest(self) -> None:
        """Note that the group rests with all consumers, if it does. The window begins when it first does."""
        now = self.now
        if self._resting is None or any(c.taken_over != now.generation for c in now.consumers.values()):
            return
        if self.start_up_ms is None:
            self.start_up_ms = now.at_ms
        if self.started.measure_from_ms is None and not self._begun:
            self._begin(now.at_ms)

    def _begin(self, from_ms: int) -> None:
        self._begun, self.from_ms = True, from_ms
        if self._stops is not None:
            self._stops.from_ms = from_ms
        self.rounds, self.counted = 0, {}
        self._taken_before = len(self.now.spans)
        self.lag_before = self.lags[-1].measured.lag if self.lags else 0.0
        self.lags.clear()

    def _leave_out_backlog(self) -> None:
        """Leave out the measures in which the group works off the backlog of its start."""
        change_ms = next((at_ms for at_ms in self.change_ms if at_ms >= self.from_ms), None)
        before = self.lag_before
        for number, (at_ms, measured) in enumerate(self.lags):
            changed = change_ms is not None and change_ms < at_ms
            if changed or before <= (self._first_lag or 0.0) or measured.lag >= before:
                self.lag_before, self.lags = before, self.lags[number:]
                return
            before = measured.lag

    def _see(self, change: Change) -> None:
        if change.given_up:
            self._given_up(change.given_up)
        if change.taken:
            self._unsettle()
        handler = self._handlers.get(type(change.event))
        if handler is not None:
            handler(change.event)

    # --- assignments in which the group rests

    def _given_up(self, given_up: Mapping[TopicPartition, int]) -> None:
        """Note partitions that were given up. The group rests on if another consumer owns them by now."""
        owners = self.now.owners
        if self._resting is not None and any(
            partition.topic in self._resting.topics and span > max(owners[partition].values(), default=-1)
            for partition, span in given_up.items()
        ):
            self._unsettle()

    def _assigned(self, _event: ev.Assigned) -> None:
        if self._resting is None and self.now.state in self.family.at_rest:
            self._settle()

    def _settle(self) -> None:
        now, wanted = self.now, self.now.subscribed
        if self._has_yet_to_take_over(self._awaited):
            return
        self._awaited = next((n for n in reversed(now.consumers) if self._has_yet_to_take_over(n)), "")
        taken_over = sum(c.taken_over == now.generation and now.is_valid(n) for n, c in now.consumers.items())
        if taken_over < len(now.members):
            return
        is_left = [not owners for partition, owners in now.owners.items() if partition.topic in wanted]
        # members without a coordinator leave partitions, and rest
        if self.family.servers is not None or (is_left and not any(is_left)):
            members = {now.clients[c]: m.topics for c, m in now.consumers.items() if now.is_valid(c)}
            clients = np.array(sorted(members), dtype=np.int32)
            self._resting = Resting(
                now.at_ms,
                now.at_ms,
                len(now.spans),
                Members(clients, tuple(members[client] for client in clients.tolist())),
                frozenset(wanted),
            )
            self._rest()

    def _has_yet_to_take_over(self, client: str) -> bool:
        """Return whether a consumer is a member, and has not taken over its part: the group does not rest."""
        consumer, now = self.now.consumers.get(client), self.now
        return consumer is not None and consumer.taken_over != now.generation and now.is_valid(client)

    def _unsettle(self) -> None:
        if self._resting is not None:
            self._rests.append(self._resting._replace(until_ms=self.now.at_ms))
            self._resting = None

    # --- the group, the load, and changes from outside

    def _state_changed(self, event: ev.GroupStateChanged) -> None:
        if event.after in self.family.round_begins:
            self._unsettle()
        if event.after in self.family.at_rest:
            self.stable_ms.append(self.now.at_ms)
            self.rounds += 1
            self._settle()

    def _count(self, event: ev.FamilyEvent) -> None:
        self.counted[type(event)] = self.counted.get(type(event), 0) + event.counts

    def _lag_measured(self, at_ms: int, event: ev.LagMeasured) -> None:
        """Note a measure. Of one at the beginning of the window only the lag counts."""
        self._pass_time(at_ms, event)
        if self._first_lag is None:
            self._first_lag = event.lag
        if self._begun and at_ms <= self.from_ms:
            self.lag_before = event.lag
        else:
            self.lags.append(Lag(at_ms, event))

    def _changed(self, event: ev.Changed) -> None:
        self.change_ms.append(self.now.at_ms)
        self.marks.append(Mark(self.now.at_ms, f"{event.kind} {event.target}"))

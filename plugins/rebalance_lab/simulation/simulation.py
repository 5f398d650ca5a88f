"""What the simulations of a group share: the one with every message (`run`) and the one without (`plan`).

A `Simulation` has the time, the trace, the topics and the consumer processes by name. It is the stage on
which scenario events happen. Each of the two adds the verbs that it carries out in its own way.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.scenarios.roster import NewNames
from rebalance_lab.scenarios.scenario import Member, Scenario, ScenarioEvent, Topic
from rebalance_lab.scenarios.stage import Stage
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.traces.trace import Trace


class Consumer(Protocol):
    """A simulated consumer process."""

    @property
    def is_running(self) -> bool:
        """Whether the process has neither ended nor begun to close."""

    @property
    def is_stuck(self) -> bool:
        """Whether the application stands still and cannot close the consumer."""

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""

    def when_ended(self, action: Callable[[], None]) -> None:
        """Call ``action`` when the process ends."""

    def close(self) -> None:
        """Close properly. A process that is stuck closes when it continues."""

    def crash(self) -> None:
        """End without a LeaveGroup."""


C = TypeVar("C", bound=Consumer)


class Simulation(Stage, ABC, Generic[C]):
    """A simulated group. The events of its scenario happen on it.

    A scenario without a meaning under its protocol is refused (`family_for`). ``consumers`` has the last
    process of each name. ``observers`` are called with the time of each event and the event. ``events`` is
    the trace up to now. ``partitions`` and ``rates`` have the current values of each topic.
    """

    def __init__(self, scenario: Scenario, strategy: Strategy, registry: Registry, load: Load | None) -> None:
        self.scenario, self.registry = scenario, registry
        self.family = family_for(scenario, strategy, registry)
        self.strategy = self.family.timed(strategy)
        self.clock = VirtualClock()
        self.consumers: dict[str, C] = {}
        self.observers: list[Callable[[int, ev.Event], None]] = []
        self.partitions = {name: topic.partitions for name, topic in scenario.topics.items()}
        self.rates: dict[str, tuple[float, ...]] = {}
        self._load = load
        self._members: dict[str, Member] = {}
        self._topics = dict(scenario.topics)
        self._patterns: dict[str, str | None] = {}
        self._new_names = NewNames()
        self._stays_away: set[str] = set()
        self.events: list[ev.TraceEvent] = []

    # --- the trace

    def begin(self) -> None:
        """Write the first event of the trace."""
        spec = self.family.spec
        self.emit(
            ev.RunStarted(
                scenario=self.scenario.name,
                strategy=self.strategy.name,
                seed=self.scenario.seed,
                duration_ms=self.scenario.duration_ms,
                topics=dict(self.partitions),
                racks=self.scenario.racks,
                protocol="" if spec.name == DEFAULT_PROTOCOL else spec.name,
                measure_from_ms=self.scenario.measure_from_ms,
                own_epochs=spec.own_epochs,
            )
        )

    def emit(self, event: ev.Event) -> None:
        """Append an event to the trace, at the current time."""
        now_ms = self.clock.now_ms
        self.events.append(ev.TraceEvent(now_ms, event))
        for observe in self.observers:
            observe(now_ms, event)

    def changed(self, kind: str, target: str, cause: str = "") -> None:
        """Record a change from outside in the trace."""
        self.emit(ev.Changed(kind=kind, target=target, cause=cause))

    def end_trace(self, group_state: str, generation: int, messages: dict[str, int]) -> Trace:
        """Add the last event, and return the trace."""
        self.emit(ev.RunEnded(group_state=group_state, generation=generation, messages=messages))
        return Trace(tuple(self.events))

    # --- what the two simulations do differently

    def _phase_ms(self) -> int:
        """Return the time at which the members start that join from the beginning."""
        return 0

    @abstractmethod
    def _go_on(self, member: Member) -> None:
        """Start a process in the middle of its membership."""

    @abstractmethod
    def _process(self, member: Member) -> C:
        """Return a new process of a member."""

    @abstractmethod
    def _join(self, consumer: C, before: C | None) -> None:
        """Let a new process join the group. ``before`` is the last process of the same name."""

    @abstractmethod
    def _subscribe(self, consumer: C, topics: tuple[str, ...], pattern: str | None) -> None:
        """Change the subscription of a process that runs."""

    @abstractmethod
    def _topics_changed(self, deleted: str | None = None) -> None:
        """React to new partitions or a new topic, or to the end of a topic."""

    # --- scenario events

    def _schedule_all(self) -> None:
        """Let members start, those of a running group at time 0, and the events happen."""
        for member in self.scenario.running:
            self.clock.at_first(0, partial(self._go_on, member))
        for member in self.scenario.joining:
            self.clock.at_first(self._phase_ms(), partial(self.start, member))
        for event in self.scenario.events:
            self.schedule(event)

    def schedule(self, event: ScenarioEvent) -> None:
        """Carry out a scenario event at its time, before everything else at that time."""
        self.clock.at_first(event.at_ms, lambda: self.happen(event.kind, event.arguments))

    def happen(self, kind: str, arguments: object) -> None:
        """Carry out a scenario event now.

        Raises:
            PluginError: if the code of the event fails.
        """
        with self.registry.blaming("scenario_events", kind):
            self.registry.scenario_events()[kind].apply(self, arguments)

    # --- consumers

    def start(self, member: Member) -> None:
        """Start a consumer process, as soon as the last one of that name has ended."""
        before = self.consumers.get(member.id)
        if before is not None and not before.ended:
            before.when_ended(lambda: self.start(member))
            return
        self._join(self.launch(member), before)

    def launch(self, member: Member) -> C:
        """Return a new process of a member, which has yet to join."""
        self._members[member.id] = member
        self._patterns[member.id] = member.pattern
        self._stays_away.discard(member.id)
        self.emit(
            ev.MemberStarted(
                client=member.id,
                instance_id=self.instance_of(member),
                topics=list(self.topics_of(member.topics, member.pattern)),
                process_rate=member.process_rate,
                rack=member.rack,
            )
        )
        self.consumers[member.id] = consumer = self._process(member)
        return consumer

    def instance_of(self, member: Member) -> str | None:
        """Return the group.instance.id of a member, or None."""
        return member.instance_id or (member.id if self.strategy.static else None)

    def leave(self, name: str) -> None:
        """Close a consumer process properly."""
        self._stays_away.add(name)
        consumer = self._running(name)
        if consumer is not None:
            consumer.close()

    def crash(self, name: str) -> None:
        """End a consumer process without a LeaveGroup."""
        self._stays_away.add(name)
        if name in self.consumers and not self.consumers[name].ended:
            self.consumers[name].crash()

    def restart(self, name: str) -> None:
        """Start a process of that name again. A running process is closed first, a stuck one ended."""
        consumer = self.consumers.get(name)
        if consumer is not None and consumer.is_running:
            if consumer.is_stuck:
                consumer.crash()
            else:
                consumer.close()
        if consumer is not None:
            self.start(self._members[name])

    def _running(self, name: str) -> C | None:
        """Return the process of a name if it runs."""
        consumer = self.consumers.get(name)
        return consumer if consumer is not None and consumer.is_running else None

    def rolling_restart(
        self,
        every_ms: int,
        down_ms: int,
        *,
        kill: bool = False,
        batch: int = 1,
        surge: int = 0,
        assignors: tuple[str, ...] = (),
        protocol: str = "",
    ) -> None:
        """Stop and start every running consumer, as `scenarios.stage.Stage` states."""
        names = [name for name, consumer in self.consumers.items() if consumer.is_running]
        self.changed("rolling_restart", f"{len(names)} members")
        come_as = partial(self._start_in_turn, assignors=assignors, protocol=protocol)

        def turn(group: Sequence[str]) -> None:
            group = [name for name in group if self._running(name)]  # the others stay away
            if not surge:
                stop(group, {})
                return
            new = self._replacements(group)
            for name in group[:surge]:
                come_as("join", new[name])
            self.clock.after(down_ms, lambda: stop(group, new))

        def stop(group: Sequence[str], new: Mapping[str, Member]) -> None:
            stopped = {name: consumer for name in group if (consumer := self._running(name))}
            for name, consumer in stopped.items():
                self.changed("crash" if kill else "leave", name, "rolling_restart")
                if kill:
                    consumer.crash()
                else:
                    consumer.close()
            back = {name: consumer for name, consumer in stopped.items() if name not in group[:surge]}
            self.clock.after(down_ms, lambda: come_back(back, new))

        def come_back(stopped: Mapping[str, C], new: Mapping[str, Member]) -> None:
            for name, consumer in stopped.items():
                if self.consumers[name] is consumer and name not in self._stays_away:
                    member = new.get(name, self._members[name])
                    come_as("join" if name in new else "restart", member)

        for i, first in enumerate(range(0, len(names), batch)):
            self.clock.after(i * every_ms, lambda g=names[first : first + batch]: turn(g))  # type: ignore[misc]

    def _replacements(self, names: Sequence[str]) -> dict[str, Member]:
        """Return the members under new names that take the place of others."""
        new: dict[str, Member] = {}
        for name in names:
            member, new_name = self._members[name], self._new_names.after(name, self._members)
            number = new_name.rpartition("-")[2]
            instance = member.instance_id and f"{member.instance_id}-{number}"
            new[name] = replace(member, id=new_name, instance_id=instance, owned=None)
            self._members[new_name] = new[name]
        return new

    def _start_in_turn(self, kind: str, member: Member, *, assignors: tuple[str, ...], protocol: str) -> None:
        self.changed(kind, member.id, "rolling_restart")
        own = member.overrides
        if assignors or protocol:
            own = replace(own, assignors=assignors or own.assignors, protocol=protocol or own.protocol)
            member = replace(member, overrides=own)
        self.start(member)

    def subscribe(self, name: str, topics: tuple[str, ...], pattern: str | None) -> None:
        """Change the subscription of a running consumer, of a frozen one when it continues."""
        consumer = self._running(name)
        if consumer is not None:
            self._when_it_runs(consumer, lambda: self._resubscribe(consumer, name, topics, pattern))

    def _when_it_runs(self, consumer: C, action: Callable[[], None]) -> None:  # noqa: ARG002
        """Let a process do something now, or when it continues."""
        action()

    def _resubscribe(self, consumer: C, name: str, topics: tuple[str, ...], pattern: str | None) -> None:
        if not consumer.ended:
            self.emit(ev.SubscriptionChanged(client=name, topics=list(self.topics_of(topics, pattern))))
            self._patterns[name] = pattern
            self._subscribe(consumer, topics, pattern)

    # --- topics

    def topics_of(self, topics: tuple[str, ...], pattern: str | None) -> tuple[str, ...]:
        """Return the topics of a subscription: those listed, or all that match the pattern."""
        if pattern is None:
            return topics
        return tuple(topic for topic in self.partitions if re.fullmatch(pattern, topic))

    def add_partitions(self, topic: str, count: int) -> None:
        """Raise the number of partitions of a topic. Consumers see it when they refresh their metadata."""
        self.partitions[topic] = count
        self.emit(ev.PartitionsAdded(topic=topic, partitions=count))
        if topic in self.rates:  # not yet at time 0
            self.set_rates(topic, self.rates[topic])
        self._topics_changed()

    def create_topic(self, name: str, topic: Topic) -> None:
        """Create a topic that has never existed. Patterns match it from now on, also of closing members."""
        self._topics[name] = topic
        self.partitions[name] = topic.partitions
        self.emit(ev.PartitionsAdded(topic=name, partitions=topic.partitions))
        self.set_rates(name, topic.rates.steps[0][1])
        for client, pattern in self._patterns.items():
            has_ended = client not in self.consumers or self.consumers[client].ended
            if pattern is not None and re.fullmatch(pattern, name) and not has_ended:
                self.emit(ev.SubscriptionChanged(client=client, topics=list(self.topics_of((), pattern))))
        self._topics_changed()

    def delete_topic(self, name: str) -> None:
        """Delete a topic, with its partitions and records."""
        self.emit(ev.RatesChanged(topic=name, rates=[0.0] * self.partitions.pop(name)))
        if self._load is not None:
            self._load.remove_topic(name, now_ms=self.clock.now_ms)
        self.emit(ev.TopicDeleted(topic=name))
        self._topics_changed(deleted=name)

    def steps_of(self, topic: str) -> list[tuple[int, tuple[float, ...]]]:
        """Return the times at which the rates of a topic change, and its rates, at its present size."""
        rates, count = self._topics[topic].rates, self.partitions[topic]
        steps = rates.steps if topic in self.scenario.topics else rates.steps[:1]
        return [(at_ms, rates.resized(values, count)) for at_ms, values in steps]

    def set_rates(self, topic: str, rates: tuple[float, ...]) -> None:
        """Set the records/s of each partition of a topic. Partitions added later get their share."""
        if topic not in self.partitions:
            return  # it is deleted
        rates = self._topics[topic].rates.resized(rates, self.partitions[topic])
        self.rates[topic] = rates
        if self._load is not None:
            self._load.set_rates(topic, rates, now_ms=self.clock.now_ms)
        self.emit(ev.RatesChanged(topic=topic, rates=list(rates)))

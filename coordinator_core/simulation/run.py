"""A run: a scenario under a strategy, from the first join to the end of its duration.

A scenario may begin with a group that runs already: then it is Stable, its members own what the document
says, and nobody joins who is in it.

Equal times: the members of the document start first, those of such a group before the others; then the
scenario's events happen in its order; of the rest, what was put on the clock first happens first. All
randomness comes from the scenario's seed, one stream for each concern, so that what one draws does not shift
another.
"""

import re
from collections.abc import Callable
from random import Random

from coordinator_core.assigning.assignor import AnyAssignor
from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.documents.replicas import topic_infos
from coordinator_core.documents.scenario import Member, Scenario, ScenarioEvent
from coordinator_core.documents.settings import configured
from coordinator_core.families.running_group import RunningGroup, running_group
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, Strategy
from coordinator_core.registry.registry import Registry
from coordinator_core.simulation.brokers import Brokers
from coordinator_core.simulation.clock import VirtualClock
from coordinator_core.simulation.host import SimulatedHost
from coordinator_core.simulation.load import Load
from coordinator_core.simulation.network import Network
from coordinator_core.simulation.process import Process, World
from coordinator_core.traces.invariants import Invariants
from coordinator_core.traces.trace import Trace

MEASURES = 200
"""The lag is measured at least so often in a run, besides at every change."""

START_UP_MS = 3_000
"""A process takes up to so long to start. Without it everybody's heartbeats would be in step with the
scenario's round times, and a change would be noticed at once or after a whole interval by chance."""


def simulate(
    scenario: Scenario,
    strategy: Strategy | str,
    registry: Registry,
    *,
    progress: Callable[[int], None] | None = None,
    watch: Invariants | None = None,
) -> Trace:
    """Run a scenario under a strategy. ``progress`` is called with the virtual time now and then.

    ``watch`` sees every event and every committed offset, and notes what must not be.

    Equal arguments give equal traces, byte for byte, on every machine and under every hash seed.
    Raises InputError for an unknown strategy, PluginError or AssignmentError for what an assignor does.
    """
    run = Run(scenario, strategy, registry, watch=watch)
    step_ms = -(-scenario.duration_ms // MEASURES)
    for until_ms in range(step_ms, scenario.duration_ms + step_ms, step_ms):
        run.advance(min(until_ms, scenario.duration_ms))
        if progress is not None:
            progress(run.clock.now_ms)
    return run.finish()


class Run:
    """What scenario events work on. ``advance`` it through time, then ``finish`` it."""

    def __init__(
        self,
        scenario: Scenario,
        strategy: Strategy | str,
        registry: Registry,
        *,
        watch: Invariants | None = None,
    ) -> None:
        self.scenario, self.registry = scenario, registry
        self.strategy = registry.strategy(strategy) if isinstance(strategy, str) else strategy
        self.assignors: tuple[Strategy, ...] = (self.strategy,)
        """Whose assignors the processes have that start from now on, the preferred one first."""
        self.clock = VirtualClock()
        self.load = Load()
        self.processes: dict[str, Process] = {}
        self._members: dict[str, Member] = {}
        self._events: list[ev.TraceEvent] = []
        self._watch = watch
        self._messages: dict[str, int] = {}
        self._group_state, self._generation = "", -1
        self._unmeasured = False
        self._cut_until: dict[str, int] = {}
        self._starts = 0
        self._starting = self._stream("start-up")
        self._rates: dict[str, tuple[float, ...]] = {}
        self.emit(
            ev.RunStarted(
                scenario=scenario.name,
                strategy=self.strategy.name,
                seed=scenario.seed,
                duration_ms=scenario.duration_ms,
                topics=self._partitions_at_start(),
                racks=scenario.racks,
                protocol="" if self.strategy.protocol == DEFAULT_PROTOCOL else self.strategy.protocol,
            )
        )
        for name, topic in scenario.topics.items():
            self.load.add_topic(name, topic.backlog or (0,) * topic.partitions, now_ms=0)
        group = self._running_group()
        if group is not None:
            for member in scenario.running:
                self.clock.at_first(0, lambda m=member, g=group: self._go_on(m, g))  # type: ignore[misc]
        for member in scenario.joining:
            self.clock.at_first(0, lambda m=member: self.start(m))  # type: ignore[misc]
        for event in scenario.events:
            self.schedule(event)
        self.network = Network(self.clock, scenario.network, self._stream("network"))
        self.brokers = self._make_brokers(group)
        for name, topic in scenario.topics.items():
            self.clock.at(topic.rates.steps[0][0], lambda n=name: self._next_rates(n, 0))  # type: ignore[misc]
        self._measure_regularly()

    def _partitions_at_start(self) -> dict[str, int]:
        return {name: topic.partitions for name, topic in self.scenario.topics.items()}

    def _running_group(self) -> RunningGroup | None:
        """The group that is there before anything happens."""
        members = self.scenario.running
        if not members:
            return None
        return running_group(
            [(m, tuple(self._topics_of(m.topics, m.pattern)), self._config_of(m)) for m in members],
            protocol=self._assignor_of(members[0]).name,
            infos=topic_infos(self._partitions_at_start(), self.scenario.racks),
            random=self._stream("running group"),
        )

    def _make_brokers(self, group: RunningGroup | None) -> Brokers:
        scenario = self.scenario
        brokers = Brokers(
            group=scenario.name,
            count=scenario.brokers,
            config=configured(CoordinatorConfig, scenario.config),
            topics=self._partitions_at_start(),
            racks=scenario.racks,
            clock=self.clock,
            network=self.network,
            load=self.load,
            random=self._stream("brokers"),
            emit=self.emit,
            stored=() if group is None else tuple(group.records(self._assignor_of)),
        )
        brokers.disconnect.append(self._disconnect)
        if self._watch is not None:
            brokers.replicated.append(self._watch.logged)
        return brokers

    def _stream(self, concern: str) -> Random:
        """Randomness of its own for each concern; seeding from text does not depend on hash()."""
        return Random(f"{self.scenario.seed}:{concern}")

    # --- time

    def advance(self, until_ms: int) -> None:
        """Let everything up to a time happen, that time included."""
        clock = self.clock
        while (next_ms := clock.next_ms()) is not None and next_ms <= until_ms:
            if self._unmeasured and next_ms > clock.now_ms:
                self._measure()
            clock.step()
        if self._unmeasured and until_ms > clock.now_ms:
            self._measure()
        clock.now_ms = until_ms

    def finish(self) -> Trace:
        """The trace so far, closed with a last measure and a RunEnded."""
        self._measure()
        self.emit(
            ev.RunEnded(
                group_state=self._group_state,
                generation=self._generation,
                messages=dict(sorted(self._messages.items())),
            )
        )
        return Trace(tuple(self._events))

    def emit(self, event: ev.Event) -> None:
        """Put an event into the trace, with the time that it is."""
        now_ms = self.clock.now_ms
        if isinstance(event, ev.GroupStateChanged):
            self._group_state, self._generation = event.after, event.generation
        elif isinstance(event, ev.CoordinatorElected) and event.group_state:
            self._group_state, self._generation = event.group_state, event.generation
        elif isinstance(event, ev.GenerationStarted):
            self._generation = event.generation
        self._events.append(ev.TraceEvent(now_ms, event))
        if self._watch is not None:
            self._watch.observe(now_ms, event)

    def changed(self, kind: str, target: str, cause: str = "") -> None:
        """Something is done to the group from outside."""
        self.emit(ev.Changed(kind=kind, target=target, cause=cause))
        self._unmeasured = True

    def schedule(self, event: ScenarioEvent) -> None:
        """Let a scenario event happen at its time, before whatever else happens then."""
        self.clock.at_first(event.at_ms, lambda: self.happen(event.kind, event.arguments))

    def happen(self, kind: str, arguments: object) -> None:
        """Carry out a scenario event. Raises PluginError for what its code raises."""
        with self.registry.blaming("scenario_events", kind):
            self.registry.scenario_events()[kind].apply(self, arguments)

    def _measure_regularly(self) -> None:
        self._unmeasured = True
        self.clock.after(-(-self.scenario.duration_ms // MEASURES), self._measure_regularly)

    def _measure(self) -> None:
        self._unmeasured = False
        self.emit(self.load.measure(now_ms=self.clock.now_ms))

    def _ownership_changed(self) -> None:
        self._unmeasured = True

    # --- what scenario events do

    def start(self, member: Member) -> None:
        """Start a consumer process; once the last one of that name is gone."""
        before = self.processes.get(member.id)
        if before is not None and not before.ended:
            before.when_ended(lambda: self.start(member))
            return
        process = self._launched(member)
        self.clock.after(self._starting.randrange(START_UP_MS), process.started_up)

    def _go_on(self, member: Member, group: RunningGroup) -> None:
        """A process that has run for long: its heartbeats are somewhere in their interval."""
        process = self._launched(member)
        heard_ms = -self._starting.randrange(self._config_of(member).heartbeat_interval_ms)
        process.resume_membership(group, heard_ms=heard_ms)

    def _launched(self, member: Member) -> Process:
        self._members[member.id] = member
        self._starts += 1
        config = self._config_of(member)
        self.emit(
            ev.MemberStarted(
                client=member.id,
                instance_id=config.group_instance_id,
                topics=self._topics_of(member.topics, member.pattern),
                process_rate=member.process_rate,
                rack=member.rack,
            )
        )
        host = SimulatedHost(self.clock, self.load, member.process_rate)
        process = Process(
            World(
                self.clock,
                self.network,
                self.brokers,
                self.load,
                self.emit,
                self._ownership_changed,
                self._messages,
            ),
            member,
            config,
            [self.registry.build(each, host) for each in self.assignors],
            self._stream(f"client {self._starts}"),
            bootstrap=range(self.scenario.brokers),
        )
        self.processes[member.id] = process
        process.set_cut(member.id in self.network.cut_off)
        return process

    def _config_of(self, member: Member) -> ClientConfig:
        return configured(
            ClientConfig,
            self.scenario.config,
            group_id=self.scenario.name,
            client_id=member.id,
            group_instance_id=member.instance_id or (member.id if self.strategy.static else None),
            client_rack=member.rack,
        )

    def _assignor_of(self, member: Member) -> AnyAssignor:
        return self.registry.build(self.strategy, SimulatedHost(self.clock, self.load, member.process_rate))

    def leave(self, name: str) -> None:
        """Close a process properly; a paused one closes when it goes on."""
        self.processes[name].stays_away = True
        process = self._running(name)
        if process is not None:
            self._close(process)

    def crash(self, name: str) -> None:
        """A process vanishes."""
        self.processes[name].stays_away = True
        self.processes[name].crash()

    def restart(self, name: str) -> None:
        """Start a process of that name again; one that runs is closed, one that is stuck killed first."""
        process = self._running(name)
        if process is not None:
            if process.paused:
                process.crash()
            else:
                process.close()
        self.start(self._members[name])

    def pause(self, name: str, for_ms: int) -> None:
        """A process stands still for a while; pauses that overlap end with the last."""
        process = self._running(name)
        if process is None:
            return
        until_ms = self.clock.now_ms + for_ms
        process.paused_until_ms = max(process.paused_until_ms, until_ms)
        if not process.paused:
            self.emit(ev.MemberPaused(client=name))
            process.pause()
        self.clock.at(until_ms, lambda: self._resume(name, process))

    def _resume(self, name: str, process: Process) -> None:
        if process.ended or not process.paused or self.clock.now_ms < process.paused_until_ms:
            return
        self.changed("resume", name, "pause")
        self.emit(ev.MemberResumed(client=name))
        process.resume()
        if process.close_when_resumed:
            process.close()

    def cut(self, name: str, for_ms: int) -> None:
        """Cut a consumer from all brokers for a while; cuts that overlap end with the last."""
        until_ms = self.clock.now_ms + for_ms
        self._cut_until[name] = max(self._cut_until.get(name, 0), until_ms)
        if name not in self.network.cut_off:
            self.network.cut_off.add(name)
            self._set_cut(name, True)
        self.clock.at(until_ms, lambda: self._heal(name))

    def _heal(self, name: str) -> None:
        if name in self.network.cut_off and self.clock.now_ms >= self._cut_until[name]:
            self.changed("heal", name, "cut")
            self.network.cut_off.discard(name)
            self._set_cut(name, False)

    def calm(self) -> None:
        """From now on nothing is lost or delivered twice; whoever is paused or cut off goes on."""
        self.network.calm()
        for name, process in self.processes.items():
            process.paused_until_ms = self.clock.now_ms
            self._resume(name, process)
            self._cut_until[name] = self.clock.now_ms
            self._heal(name)

    def coordinator_failover(self, down_ms: int) -> None:
        """The group's coordinator fails; its broker is back after a while, another takes over at once."""
        self.changed("coordinator_failover", f"broker {self.brokers.coordinator_node()}")
        self.brokers.fail_over(down_ms)

    def _set_cut(self, name: str, cut: bool) -> None:
        process = self.processes.get(name)
        if process is not None and not process.ended:
            self.emit(ev.MemberCutOff(client=name) if cut else ev.MemberReconnected(client=name))
            process.set_cut(cut)

    def subscribe(self, name: str, topics: tuple[str, ...], pattern: str | None) -> None:
        """A process subscribes to something else."""
        process = self._running(name)
        if process is None:
            return
        self.emit(ev.SubscriptionChanged(client=name, topics=self._topics_of(topics, pattern)))
        process.subscribe(topics, pattern)

    def add_partitions(self, topic: str, count: int) -> None:
        """A topic grows. Consumers see it at their next refresh of metadata."""
        self.brokers.topics[topic] = count
        self.brokers.topics_changed()
        self.emit(ev.PartitionsAdded(topic=topic, partitions=count))
        self._set_rates(topic, self.scenario.topics[topic].rates.resized(self._rates[topic], count))

    def rolling_restart(self, every_ms: int, down_ms: int) -> None:
        """Close and start again every process that runs now, one after another, in the order they came."""
        names = [name for name in self.processes if self._running(name) is not None]
        self.changed("rolling_restart", f"{len(names)} members")
        for i, name in enumerate(names):
            self.clock.after(i * every_ms, lambda n=name: self._bounce(n, down_ms))  # type: ignore[misc]

    def _bounce(self, name: str, down_ms: int) -> None:
        process = self._running(name)
        if process is None:
            return  # it left or crashed meanwhile, and stays away
        self.changed("leave", name, "rolling_restart")
        self._close(process)
        self.clock.after(down_ms, lambda: self._bounced(name, process))

    def _bounced(self, name: str, process: Process) -> None:
        if self.processes[name] is process and not process.stays_away:
            self.changed("restart", name, "rolling_restart")
            self.start(self._members[name])

    def _close(self, process: Process) -> None:
        if process.paused:
            process.close_when_resumed = True
        else:
            process.close()

    def _running(self, name: str) -> Process | None:
        process = self.processes.get(name)
        return None if process is None or process.ended or process.closing else process

    # --- what happens around it

    def _topics_of(self, topics: tuple[str, ...], pattern: str | None) -> list[str]:
        if pattern is None:
            return list(topics)
        return [topic for topic in self.scenario.topics if re.fullmatch(pattern, topic)]

    def _next_rates(self, topic: str, step: int) -> None:
        rates = self.scenario.topics[topic].rates
        partitions = self.brokers.topics[topic]
        self._set_rates(topic, rates.resized(rates.steps[step][1], partitions))
        if step + 1 < len(rates.steps):
            self.clock.at(rates.steps[step + 1][0], lambda: self._next_rates(topic, step + 1))

    def _set_rates(self, topic: str, rates: tuple[float, ...]) -> None:
        self._rates[topic] = rates
        self.load.set_rates(topic, rates, now_ms=self.clock.now_ms)
        self.emit(ev.RatesChanged(topic=topic, rates=list(rates)))

    def _disconnect(self, node: int) -> None:
        for process in self.processes.values():
            process.disconnect(node)

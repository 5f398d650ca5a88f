"""A run: a scenario under a strategy with every message, from the first join to the end of its duration.

A scenario may begin with a group that runs already. That group is at rest, its members own the partitions
that the document gives them, and they do not join.

At equal times, the members of the document start first, those of a running group before the others. The
events of the scenario follow in the order of the document, and then all other actions in the order in which
they were put on the clock. All random numbers come from the scenario's seed. Each concern has a stream of
its own, so that the numbers of one concern do not depend on another.
"""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from math import inf
from random import Random
from typing import Any

from coordinator_core.client.config import ClientConfig
from coordinator_core.coordinator.records import Record
from coordinator_core.families.migration import NAME_OF, PROTOCOLS
from coordinator_core.families.running_group import RunningGroup, RunningMember
from coordinator_core.model import Cluster, Partitions, made_up_ids
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.replicas import topic_infos
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.scenarios.stage import Passage
from rebalance_lab.simulation.member_assignors import MemberAssignors
from rebalance_lab.simulation.process.application import drawn
from rebalance_lab.simulation.process.clients import CLIENTS
from rebalance_lab.simulation.process.connections import ranks
from rebalance_lab.simulation.process.lateness import Lateness
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.process.process import Process
from rebalance_lab.simulation.rises import Rises
from rebalance_lab.simulation.simulation import Simulation
from rebalance_lab.simulation.skipping.quiet import Quiet
from rebalance_lab.simulation.world.administrator import Administrator
from rebalance_lab.simulation.world.brokers import Brokers
from rebalance_lab.simulation.world.collector import collecting_rarely
from rebalance_lab.simulation.world.dice import Dice
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.simulation.world.host import SimulatedHost
from rebalance_lab.simulation.world.network import Network
from rebalance_lab.simulation.world.servers import Servers, Site
from rebalance_lab.simulation.world.troubles import Blocked
from rebalance_lab.simulation.world.world import World
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.trace import Trace

GOLDEN, SILVER = (5**0.5 - 1) / 2, 2**0.5 - 1
"""The multiples of each, without their whole parts, are spread evenly however many they are, and those of
both together in the square."""

MEASURES = 200
"""The lag is measured at least this often in a run, and at every change."""

_OBSERVED = frozenset((ev.GroupStateChanged, ev.CoordinatorElected, ev.GenerationStarted, ev.Changed))
"""The events that a run observes itself."""


@collecting_rarely()
def simulate(
    scenario: Scenario,
    strategy: Any,
    registry: Registry,
    *,
    progress: Callable[[int], None] | None = None,
    watch: Invariants | None = None,
    exchanged: Callable[[Exchange], None] | None = None,
    every_message: bool = False,
) -> Trace:
    """Run a scenario under a strategy, in any form that `Registry.strategy` accepts, and return its trace.

    ``progress`` is called with the virtual time in steps. ``watch`` observes every event and every committed
    offset, and lists the rules that were broken. ``exchanged`` is called with each request that a consumer
    sends; the exchange gets its response later. Equal arguments give equal traces, byte for byte, on every
    machine and under every hash seed.

    Raises:
        InputError: if the strategy is unknown, or does not go with the scenario.
        PluginError: if the code of a plugin fails.
        AssignmentError: if the assignor does not return an assignment.
    """
    run = Run(scenario, strategy, registry, watch=watch, exchanged=exchanged, every_message=every_message)
    end_ms = scenario.duration_ms
    step_ms = end_ms if progress is None else -(-end_ms // MEASURES)
    for until_ms in range(step_ms, end_ms + step_ms, step_ms):
        run.advance(min(until_ms, end_ms))
        if progress is not None:
            progress(run.clock.now_ms)
    return run.finish()


class Run(Simulation[Process]):
    """A simulation with every message. ``advance`` it through time, then ``finish`` it."""

    def __init__(
        self,
        scenario: Scenario,
        strategy: Any,
        registry: Registry,
        *,
        watch: Invariants | None = None,
        exchanged: Callable[[Exchange], None] | None = None,
        every_message: bool = False,
    ) -> None:
        strategy = registry.strategy(strategy)
        self.load: Load = (registry.protocol(strategy.protocol).load or Load)()
        super().__init__(scenario, strategy, registry, self.load)
        self._watch = watch
        self._messages: dict[str, int] = {}
        self._left_out: dict[str, int] = {}
        self._step_ms = -(-scenario.duration_ms // MEASURES)
        self._group_state, self._generation = "", -1
        self._cut_until: dict[str, int] = {}
        self._starts = 0
        self._nodes = range(0)
        steps = (steps for topic in scenario.topics.values() for steps in topic.rates.steps)
        self._rate_times = sorted({at_ms for at_ms, _ in steps})
        self._rises = Rises(self.steps_of, self.partitions)
        self._starting, self._committing = self._stream("start-up"), self._stream("commits")
        self._assignors = MemberAssignors(scenario, self.strategy, registry, self.family.spec, self._host_of)
        self._topic_ids = made_up_ids(scenario.topic_names)
        self.observers.append(self._observe)
        if watch is not None:
            self.observers.append(watch.observe)
        self.begin()
        for name, topic in scenario.topics.items():
            self.load.add_topic(name, topic.backlog or (0,) * topic.partitions, now_ms=0)
        self._group = self._running_group()
        self._schedule_all()
        self.network = Network(self.clock, scenario.network, f"{scenario.seed}:network")
        self.brokers = self._make_brokers()
        quiet = None
        if not every_message and exchanged is None and not self.family.spec.of_scenarios:
            quiet = Quiet(
                self.clock,
                self.network,
                self.brokers,
                self.consumers.values,
                self.family.spec.at_rest,
                lambda owned, capacity: self._rises.next_ms(owned, capacity, now_ms=self.clock.now_ms),
                scenario.duration_ms,
            )
        self._world = World(
            self.clock,
            self.network,
            self.brokers,
            self.load,
            self.emit,
            self._measure_soon,
            self._messages,
            self._left_out,
            quiet,
            exchanged,
        )
        self._administrator = Administrator(
            scenario.name,
            self.family.spec.remove_members,
            clock=self.clock,
            network=self.network,
            brokers=self.brokers,
            messages=self._messages,
        )
        for name in scenario.topics:
            self._change_rates(name, 0)
        if scenario.measure_from_ms is not None:
            self.clock.at(scenario.measure_from_ms, self._measure_soon)
        self._measure_regularly()

    def _running_group(self) -> RunningGroup | None:
        """Return the group that runs already at time 0, or None."""
        members, make = self.scenario.running, self.family.spec.running_group
        if not members or make is None:
            return None
        if self.family.spec.of_scenarios:
            make = partial(make, kind=NAME_OF[self.strategy.protocol])
        group: RunningGroup = make(
            [
                RunningMember(
                    member.id,
                    self.topics_of(member.topics, member.pattern),
                    member.pattern,
                    Partitions.of(member.owned or ()),
                    self._config_of(member),
                )
                for member in members
            ],
            protocol=self._assignors.common(members[0]).name,
            generation=members[0].generation,
            infos=topic_infos(self.partitions, self.scenario.racks),
            random=self._stream("running group"),
        )
        return group

    def _make_brokers(self) -> Brokers:
        scenario, make = self.scenario, self.family.spec.servers
        servers: Servers | None = None
        if make is not None:
            own, protocol = self.family.settings(), self.registry.build(self.strategy).name
            nodes = range(scenario.brokers)
            servers = make(Site(own, scenario.name, protocol, dict(self.partitions), nodes, self.emit))
            self._nodes = servers.nodes
            self.observers.append(servers.observe)
        brokers = Brokers(
            group=scenario.name,
            count=scenario.brokers,
            config=self.family.coordinator_config(),
            parts=self.family.coordinator(
                lambda: self.registry.build(self._assignors.of_coordinator()),
                self._cluster,
                self._assignors.by_name(),
            ),
            topics=self.partitions,
            racks=scenario.racks,
            clock=self.clock,
            network=self.network,
            load=self.load,
            random=self._stream("brokers"),
            emit=self.emit,
            stored=self._records_of_group(),
            servers=servers,
        )
        brokers.disconnect.append(self._disconnect)
        if self._watch is not None:
            brokers.replicated.append(self._watch.logged)
        return brokers

    def _records_of_group(self) -> tuple[Record, ...]:
        if self._group is None:
            return ()
        members = {member.id: member for member in self.scenario.running}
        return tuple(self._group.records(lambda name: self._assignors.common(members[name])))

    def _cluster(self) -> Cluster:
        return Cluster(topic_infos(self.partitions, self.scenario.racks), self._topic_ids)

    def _stream(self, concern: str) -> Random:
        """Return the random numbers of one concern. A seed of text does not depend on hash()."""
        return Random(f"{self.scenario.seed}:{concern}")

    # --- time

    @property
    def left_out(self) -> dict[str, int]:
        """The number of requests that were counted and not simulated, by kind."""
        return dict(self._left_out)

    def advance(self, until_ms: int) -> None:
        """Let time pass up to and including ``until_ms``."""
        self.clock.run(until_ms)

    def finish(self) -> Trace:
        """Return the trace so far, closed with a last measure and a RunEnded."""
        self._measure()
        return self.end_trace(self._group_state, self._generation, dict(sorted(self._messages.items())))

    def _observe(self, at_ms: int, event: ev.Event) -> None:  # noqa: ARG002 - the interface's
        if type(event) not in _OBSERVED:
            return
        if isinstance(event, ev.GroupStateChanged):
            self._group_state, self._generation = event.after, event.generation
        elif isinstance(event, ev.CoordinatorElected) and event.group_state:
            self._group_state, self._generation = event.group_state, event.generation
        elif isinstance(event, ev.GenerationStarted):
            self._generation = event.generation
        elif isinstance(event, ev.Changed):
            self._measure_soon()

    def _measure_regularly(self) -> None:
        self._measure_soon()
        self.clock.at(self.clock.now_ms + self._step_ms, self._measure_regularly, is_cause=False)

    def _measure(self) -> None:
        self.emit(self.load.measure(now_ms=self.clock.now_ms))

    def _measure_soon(self) -> None:
        """Measure the load before the clock goes on."""
        self.clock.before_next(self._measure)

    def _change_rates(self, topic: str, step: int) -> None:
        at_ms = self.scenario.topics[topic].rates.steps[step][0]
        self.clock.at(at_ms, lambda: self._next_rates(topic, step), is_cause=False)

    def _next_rates(self, topic: str, step: int) -> None:
        steps = self.scenario.topics[topic].rates.steps
        self.set_rates(topic, steps[step][1])
        place = bisect_right(self._rate_times, self.clock.now_ms)
        self.load.steady_until_ms = self._rate_times[place] if place < len(self._rate_times) else inf
        if step + 1 < len(steps):
            self._change_rates(topic, step + 1)

    # --- what scenario events do

    def _phase_ms(self) -> int:
        """Return a time that is the same under every strategy."""
        low, high = self.scenario.phase_ms
        return low + int(self._even("phase", GOLDEN) * (high - low))

    def _even(self, concern: str, step: float) -> float:
        """Return a number from 0 to below 1. Those of consecutive seeds are spread evenly.

        Thus a few seeds show early and late ones.
        """
        return (self.scenario.seed * step + Random(f"{self.scenario.name}:{concern}").random()) % 1

    def _process(self, member: Member) -> Process:
        """Return a new process. It subscribes when it has started."""
        self._starts += 1
        process = Process(
            self._world,
            member,
            self._config_of(member),
            self._assignors.of(member),
            self._stream(f"client {self._starts}"),
            part=self.family.member(self._nodes, self._assignors.protocol_of(member)),
            bootstrap=range(self.scenario.brokers),
            habits=partial(self._stream, f"application {self._starts}"),
            name=f"process {self._starts}",
            rank=self._starts * ranks(self.brokers.places),
            late=self._lateness_of(member, f"process {self._starts}"),
        )
        process.set_cut(member.id in self.network.cut_off)
        return process

    def _join(self, consumer: Process, before: Process | None) -> None:  # noqa: ARG002 - the interface's
        """Let a process subscribe after the time that it takes to start."""
        start_ms = drawn(consumer.member.application.start_up, self._starting)
        self.clock.after(start_ms, lambda: consumer.do(consumer.started_up))

    def _go_on(self, member: Member) -> None:
        """Start a process in the middle of its membership, and of its intervals of heartbeats and commits."""
        assert self._group is not None
        process, config = self.launch(member), self._config_of(member)
        last_response_ms = -self._starting.randrange(config.heartbeat_interval_ms)
        last_commit_ms = -self._committing.randrange(config.auto_commit_interval_ms)
        process.resume_membership(self._group, last_response_ms=last_response_ms)
        process.client.begin_auto_commit(now_ms=last_commit_ms)

    def _config_of(self, member: Member) -> ClientConfig:
        return self.family.client_config(
            member.overrides.config,
            group_id=self.scenario.name,
            client_id=member.id,
            group_instance_id=self.instance_of(member),
            client_rack=member.rack,
        )

    def _host_of(self, member: Member) -> SimulatedHost:
        return SimulatedHost(self.clock, self.load, member.process_rate)

    def _lateness_of(self, member: Member, name: str) -> Lateness:
        """Return the waits of a process."""
        return Lateness(
            CLIENTS[member.application.client],
            self._even("lateness", SILVER),
            Dice(f"{self.network.seed}:{name}:waits"),
            self.clock,
            backoff_ms=self._config_of(member).retry_backoff_ms,
            in_rounds=self._waits_in_rounds(member),
        )

    def _waits_in_rounds(self, member: Member) -> bool:
        """Return whether a coordinator has rounds for which a member waits."""
        spec = self.family.spec
        joins = PROTOCOLS[self._assignors.protocol_of(member)] if spec.of_scenarios else spec
        return spec.servers is None and not joins.own_epochs

    def pause(self, name: str, for_ms: int, *, in_batch: bool = False) -> None:
        """Let a process stand still, or handle a long batch. Of pauses that overlap, the last one counts."""
        consumer = self._running(name)
        if consumer is None:
            return
        until_ms = self.clock.now_ms + for_ms
        consumer.paused_until_ms = max(consumer.paused_until_ms, until_ms)
        if not consumer.paused:
            self.emit(ev.MemberPaused(client=consumer.member.id, in_batch=in_batch))
            consumer.pause(in_batch=in_batch)
        self.clock.at(until_ms, lambda: self._resume(consumer))

    def freeze(self, name: str, for_ms: int) -> None:
        """Let a process stand still with its client."""
        consumer = self._running(name)
        if consumer is not None:
            consumer.frozen_until_ms = max(consumer.frozen_until_ms, self.clock.now_ms + for_ms)
            self.pause(name, for_ms)
            if consumer.in_batch:  # which it does not handle either
                consumer.in_batch = False
                self.emit(ev.MemberPaused(client=name))
            consumer.freeze()

    def _resume(self, process: Process) -> None:
        """End the freeze and the pause of a process, if their time has come."""
        now_ms = self.clock.now_ms
        thaws = process.frozen and now_ms >= process.frozen_until_ms
        resumes = process.paused and now_ms >= process.paused_until_ms
        if process.ended:
            return
        if resumes:
            self.changed("resume", process.member.id, "freeze" if thaws else "pause")
            self.emit(ev.MemberResumed(client=process.member.id))
        if thaws:
            process.thaw()
        if resumes:
            process.resume()

    def cut(self, name: str, for_ms: int) -> None:
        """Cut a consumer from all brokers. Of cuts that overlap, the last one counts."""
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

    def _set_cut(self, name: str, cut: bool) -> None:
        process = self.consumers.get(name)
        if process is not None and not process.ended:
            self.emit(ev.MemberCutOff(client=name) if cut else ev.MemberReconnected(client=name))
            process.set_cut(cut)

    def block(self, name: str, for_ms: int, way: Passage, broker: int | None) -> None:
        """Lose messages of a consumer in one direction, or from and to one broker."""
        troubles, blocked = self.network.trouble(), Blocked(name, broker, way)
        troubles.block(blocked, self.clock.now_ms + for_ms)

        def heal() -> None:
            if troubles.heals(blocked, self.clock.now_ms):
                self.changed("heal", name, "cut")

        self.clock.after(for_ms, heal)

    def slow(self, node: str | int, by_ms: int, for_ms: int) -> None:
        """Let the messages of a consumer or a broker be late for a while."""
        self.network.trouble().slow(node, by_ms, self.clock.now_ms + for_ms)

    def log_fault(self, by_ms: int, for_ms: int) -> None:
        """Let appends to the log of the group be late by a time, or fail if it is 0, for a while."""
        if by_ms:
            self.brokers.slow_log(by_ms, for_ms)
        else:
            self.brokers.fail_log(for_ms)

    def calm(self) -> None:
        """End all faults of the network and of the log, pauses and cuts."""
        self.network.calm()
        self.brokers.calm()
        for name, process in self.consumers.items():
            process.paused_until_ms = process.frozen_until_ms = self.clock.now_ms
            self._resume(process)
            self._cut_until[name] = self.clock.now_ms
            self._heal(name)

    def coordinator_failover(self, down_ms: int, *, after_append: bool = False) -> None:
        """Stop the broker of the group's coordinator. Another broker takes over after ``down_ms``."""
        self.changed("coordinator_failover", f"broker {self.brokers.coordinator_node()}")
        if after_append:
            self.brokers.fail_after_append(down_ms)
        else:
            self.brokers.fail_over(down_ms)

    def _when_it_runs(self, consumer: Process, action: Callable[[], None]) -> None:
        """Let a process do something, a frozen one after the responses that came meanwhile."""
        consumer.do(action)

    def _subscribe(self, consumer: Process, topics: tuple[str, ...], pattern: str | None) -> None:
        """Let a process subscribe to something else."""
        consumer.subscribe(topics, pattern)

    def tell_servers(self, told: Callable[[Any], None]) -> None:
        """Let something be told to the servers of the family, if it has any."""
        self.brokers.tell_servers(told)

    def remove_member(self, name: str) -> None:
        """Remove the members of a consumer from the group, as an administrator."""
        self._administrator.remove(name)

    def _topics_changed(self, deleted: str | None = None) -> None:
        """Let the brokers describe their topics again, and answer the fetches of partitions that ended."""
        self.brokers.topics_changed()
        self._rises.forget()
        if deleted is not None:
            for process in self.consumers.values():
                process.partitions_deleted_soon(deleted)

    def _disconnect(self, node: int) -> None:
        for process in self.consumers.values():
            process.disconnect(node)

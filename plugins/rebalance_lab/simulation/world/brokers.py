"""The brokers: a coordinator each, the replicated log of the group, and failover.

Partition p of ``__consumer_offsets`` has as leader the broker p modulo the number of brokers. Only the
partition of the group is simulated. When its leader fails, the connections of that broker are reset, and the
partition has no leader until another broker takes it over and replays its log. The failed broker comes back
at that time, without memory and without the partition. Data partitions are not simulated: any live broker
leads them.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.coordinator.log import MemoryLog
from coordinator_core.coordinator.outcome import Append, Outcome
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.coordinator.records import CommittedOffsets, Record, Records
from coordinator_core.coordinator.shard import Group
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_lab.scenarios.replicas import Racks, racks_of
from rebalance_lab.simulation.process.load import Load
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.kinds import is_success
from rebalance_lab.simulation.world.network import Connection, Network, Reply, Way
from rebalance_lab.simulation.world.servers import Node, ServerNodes, Servers

LOAD_MS = 100
"""The time in which a new leader replays the logs of its partitions (COORDINATOR_LOAD_IN_PROGRESS)."""

EARLIEST = -2

RANK = 2**40
"""The ranks of brokers on the clock follow those of processes."""


class _Broker(Node):
    """A broker: its coordinator while it is up, and its connection to the replicas of its log."""

    coordinator: Coordinator | None
    to_replicas: Way
    commits_of: dict[str, Way]
    """Where the commits of each client go. They wait for the group's records, and not for each other: most
    commits are left out (`simulation.skipping`), and one that is sent must not depend on which are."""


class Brokers:
    """All brokers of the cluster. ``group`` is the group whose coordinator can fail over.

    ``stored`` are the records of a group that runs already. With them, the election of its coordinator is
    reported.
    """

    def __init__(
        self,
        *,
        group: str,
        count: int,
        config: CoordinatorConfig,
        parts: Sequence[CoordinatorPart],
        topics: dict[str, int],
        racks: Mapping[str, Racks],
        clock: VirtualClock,
        network: Network,
        load: Load,
        random: Random,
        emit: Callable[[ev.Event], None],
        stored: Sequence[Record] = (),
        servers: Servers | None = None,
    ) -> None:
        self.topics = topics
        self.down: set[int] = set()
        """The numbers of the brokers that accept no connections."""
        self._racks = racks
        self.log = MemoryLog()
        self.disconnect: list[Callable[[int], None]] = []
        """Called with the number of a broker when its connections are reset."""
        self.replicated: list[Callable[[int, Records], None]] = []
        """Called with a partition of the offsets topic and the records that were appended to its log."""
        self._config, self._parts, self._random = config, parts, random
        self._clock, self._network, self._load, self._emit = clock, network, load, emit
        self._group, self._home = group, home_partition(group, config.offsets_topic_partitions)
        self._leaders = {self._home: self._home % count}
        self._answers: dict[type[m.Request], Callable[[Any], m.Response]] = {
            m.MetadataRequest: self._describe,
            m.ListOffsetsRequest: self._offsets,
            m.FetchRequest: lambda _: m.FetchResponse(error=ErrorCode.NONE),
        }
        self._down_after_append_ms: int | None = None
        """How long the coordinator is down if it is to fail when it has appended its next records."""
        self._log_fails_until_ms = self._log_is_late_until_ms = self._log_late_ms = 0
        self._metadata: m.MetadataResponse | None = None
        self._described: dict[tuple[str, ...], m.MetadataResponse] = {}
        """The descriptions of some of the topics in `_metadata`."""
        self._servers = None if servers is None else ServerNodes(servers, clock, emit, RANK + 2 * count)
        self.places = count + (0 if servers is None else len(servers.nodes))
        """The number of nodes that consumers connect to: brokers and servers."""
        self._brokers = [self._started(node) for node in range(count)]
        self._announce_leaders()
        self.log.append(self._home, stored)
        node = self.coordinator_node()
        coordinator = self._up(node)
        self._carry_out(self._brokers[node], coordinator.on_elected(self._home))
        self._replay_log(self._brokers[node], coordinator)
        if stored:
            self._emit(_elected(node, coordinator, group))

    # --- calls of processes

    @property
    def has_servers(self) -> bool:
        """Whether there are servers, which learn that connections are closed."""
        return self._servers is not None

    def arrived(
        self, request: m.Request, node: int, client: str, reply: Reply, connection: Connection | None = None
    ) -> None:
        """Receive a request. The node replies at once, later or never.

        With a ``connection``, a coordinator receives it when those before it are answered, as Kafka's brokers
        do: not those of a protocol with servers of its own.
        """
        if self._servers is not None and isinstance(request, self._servers.machine.requests):
            if node not in self.down:
                self._servers.arrived(request, node, client, reply)
            return
        broker = self._brokers[node]
        if broker.coordinator is None:
            return
        answer = self._answers.get(type(request))
        if answer is not None:
            reply(answer(request))
        elif connection is not None and not self.has_servers:
            connection.take_in_turn(partial(self._receive, broker, request, client), reply)
        else:
            self._receive(broker, request, client, reply)

    def _receive(self, broker: _Broker, request: m.Request, client: str, reply: Reply) -> None:
        if broker.coordinator is None:
            return
        request_id, now_ms = broker.park(reply, client), self._clock.now_ms
        outcome = broker.coordinator.receive(
            request_id, request, client_id=client, client_host=f"/{client}", now_ms=now_ms
        )
        self._carry_out(broker, outcome, client)

    def closed(self, node: int, client: str) -> None:
        """Learn that a consumer has closed its connections to a node."""
        if self._servers is not None and node not in self.down:
            outcome = self._servers.machine.closed(node, client, now_ms=self._clock.now_ms)
            self._servers.carry_out(outcome)

    # --- changes from outside

    def tell_servers(self, told: Callable[[Servers], None]) -> None:
        """Let something be told to the servers, if there are any."""
        if self._servers is not None:
            self._servers.tell(told)

    def coordinator_node(self) -> int:
        """Return the broker that leads the group's partition, or -1 if none does."""
        return self._leaders.get(self._home, -1)

    def fail_over(self, down_ms: int) -> None:
        """Stop the broker of the group's coordinator. Another broker takes over after ``down_ms``.

        Nothing happens if the coordinator has failed already.
        """
        node = self.coordinator_node()
        if node < 0:
            return
        broker = self._brokers[node]
        broker.coordinator = None
        self.down.add(node)
        broker.parked.clear()
        broker.look_at(None)
        del self._leaders[self._home]
        self._metadata = None
        self._emit(ev.CoordinatorFailed(node=node))
        self._announce_leaders()
        for disconnect in list(self.disconnect):
            disconnect(node)
        self._clock.after(down_ms, lambda: self._take_over(node))

    def fail_after_append(self, down_ms: int) -> None:
        """Stop the broker of the coordinator when its next records are in the log, before it goes on."""
        self._down_after_append_ms = down_ms

    def fail_log(self, for_ms: int) -> None:
        """Refuse all appends for a while."""
        self._log_fails_until_ms = max(self._log_fails_until_ms, self._clock.now_ms + for_ms)

    def slow_log(self, by_ms: int, for_ms: int) -> None:
        """Let appends take longer for a while. Of times that overlap, the last one counts."""
        self._log_late_ms, self._log_is_late_until_ms = by_ms, self._clock.now_ms + for_ms

    def calm(self) -> None:
        """End the faults of the log, and one that is to come."""
        self._down_after_append_ms, self._log_fails_until_ms = None, 0
        self._log_is_late_until_ms = min(self._log_is_late_until_ms, self._clock.now_ms)

    @property
    def has_trouble(self) -> bool:
        """Whether the log has a fault, or the coordinator is about to fail."""
        arrived_ms = self._log_is_late_until_ms + 2 * self._log_late_ms
        log = max(self._log_fails_until_ms, arrived_ms) > self._clock.now_ms
        return log or self._down_after_append_ms is not None

    # --- for groups at rest

    def group(self) -> Group | None:
        """Return the group as its coordinator has it, or None. It is to be read only."""
        coordinator = self.coordinator()
        return None if coordinator is None else coordinator.group(self._group)

    def coordinator(self) -> Coordinator | None:
        """Return the coordinator of the group, or None if it has none. It is to be read only."""
        node = self.coordinator_node()
        return None if node < 0 else self._up(node)

    def recovered(self) -> Coordinator:
        """Return a new coordinator that has replayed the log of the group, as after a failover."""
        coordinator = Coordinator(-1, self._config, Random(0), self._parts)
        coordinator.on_cluster_change({self._home: -1}, 1)
        coordinator.on_elected(self._home)
        coordinator.on_loaded(self._home, self.log.read(self._home), now_ms=self._clock.now_ms)
        return coordinator

    def is_at_rest(self, states: Container[str]) -> bool:
        """Return whether the group, if it has a coordinator, is in one of some states, and stays as it is."""
        group = None if self.has_servers else self.group()
        stays = group is not None and group.state in states and not group.awaits_heartbeat
        return self.has_servers or stays

    def has_member(self, number: int, member_id: str) -> bool:
        """Return whether the coordinator has a member in the present generation, of this number."""
        group = self.group()
        return group is not None and group.generation == number and member_id in group.members

    def owes(self, client: str) -> bool:
        """Return whether a coordinator has yet to answer a request of a consumer, or a copy of one."""
        return any(name == client for broker in self._brokers for _, name in broker.parked.values())

    def answer(self, node: int, request: m.Request, client: str) -> m.Response | None:
        """Return the response of the servers to a periodic request as long as nothing happens, or None."""
        if self._servers is None or node in self.down:
            return None
        now_ms = self._clock.now_ms
        return self._servers.machine.answer(request, node=node, client=client, now_ms=now_ms)

    def next_deadline_ms(self, alive_ms: Mapping[str, int]) -> int | None:
        """Return the next deadline of coordinators and servers that no member moves in time, or None.

        A member moves its deadlines by a sign of life, at a time of ``alive_ms`` at the latest.
        """
        up = [broker.coordinator for broker in self._brokers if broker.coordinator]
        deadlines = [coordinator.next_deadline_of_others_ms(alive_ms) for coordinator in up]
        if self._servers is not None:
            deadlines.append(self._servers.machine.next_deadline_ms(alive_ms))
        return min((at_ms for at_ms in deadlines if at_ms is not None), default=None)

    def keep_alive(self, node: int, request: m.Request, *, client: str, at_ms: int) -> None:
        """Take note of a heartbeat that is left out: the session of the member lasts from ``at_ms`` on.

        It has no other effect: each process has named the time before which it causes none.
        """
        if self._servers is not None and isinstance(request, self._servers.machine.requests):
            self._servers.machine.receive(0, request, node=node, client=client, now_ms=at_ms)
            return
        coordinator = self._up(node)
        outcome = coordinator.receive(0, request, client_id=client, client_host=f"/{client}", now_ms=at_ms)
        changes = [
            *(reply for reply in outcome.replies if not is_success(reply.response)),
            *outcome.appends,
            *outcome.events,
            *outcome.superseded,
        ]
        assert not changes, f"a heartbeat of {client} at {at_ms}ms is left out, and has effects: {changes}"
        self._brokers[node].look_at(coordinator.not_before_ms())

    def leave_out_commits(self, node: int, client: str, count: int) -> None:
        """Count commits of a client that are left out."""
        self._way_of_commits(self._brokers[node], client).count(_kind_of_commits(client), count)

    def commit(self, node: int, request: m.OffsetCommitRequest, *, client: str, at_ms: int) -> None:
        """Take note of the last commit that is left out: it arrives at ``at_ms``, and is stored."""
        broker, coordinator = self._brokers[node], self._up(node)
        outcome = coordinator.receive(0, request, client_id=client, client_host=f"/{client}", now_ms=at_ms)
        for append in outcome.appends:
            self._append(coordinator, append, at_ms)
        broker.look_at(coordinator.not_before_ms())

    def topics_changed(self) -> None:
        """Describe the topics again, because their partitions have changed."""
        self._metadata = None
        for broker in self._brokers:
            self._check_topics(broker)
        if self._servers is not None:
            now_ms, topics = self._clock.now_ms, dict(self.topics)
            self._servers.carry_out(self._servers.machine.topics_changed(topics, now_ms=now_ms))

    def _take_over(self, failed: int) -> None:
        others = self._alive
        after = [node for node in others if node > failed] + others
        successor = after[0] if after else failed
        self._brokers[failed] = self._started(failed)
        self.down.discard(failed)
        self._metadata = None
        self._leaders[self._home] = successor
        self._announce_leaders()
        coordinator = self._up(successor)
        self._carry_out(self._brokers[successor], coordinator.on_elected(self._home))
        self._clock.after(LOAD_MS, lambda: self._replay(successor, coordinator))

    def _replay(self, node: int, coordinator: Coordinator) -> None:
        """Let the new leader apply the log, unless it has failed meanwhile."""
        if self._brokers[node].coordinator is not coordinator:
            return
        self._replay_log(self._brokers[node], coordinator)
        if not self.has_servers:
            self._emit(_elected(node, coordinator, self._group))
        self._check_topics(self._brokers[node])

    def _replay_log(self, broker: _Broker, coordinator: Coordinator) -> None:
        records, now_ms = self.log.read(self._home), self._clock.now_ms
        self._carry_out(broker, coordinator.on_loaded(self._home, records, now_ms=now_ms))

    def _check_topics(self, broker: _Broker) -> None:
        """Let the coordinator of a broker compare the topics with those of its assignments."""
        if broker.coordinator is not None:
            self._carry_out(broker, broker.coordinator.on_topics_changed(now_ms=self._clock.now_ms))

    def _started(self, node: int) -> _Broker:
        rank = RANK + 2 * node
        emit = self._emit_of_offsets if self.has_servers else self._emit
        broker = _Broker(self._clock, emit, partial(self._on_deadline, node), rank + 1)
        random = Random(self._random.getrandbits(64))
        broker.coordinator = Coordinator(node, self._config, random, self._parts)
        broker.to_replicas = Way(self._network, f"replicas of broker {node}", rank)
        broker.commits_of = {}
        return broker

    def _emit_of_offsets(self, event: ev.Event) -> None:
        """Report an event of a coordinator that has the offsets of a group only, and not its state."""
        if not isinstance(event, ev.GroupStateChanged):
            self._emit(event)

    @property
    def _alive(self) -> list[int]:
        """The brokers that accept connections."""
        return [node for node in range(len(self._brokers)) if node not in self.down]

    def _announce_leaders(self) -> None:
        alive = self._alive
        for node in alive:
            self._carry_out(self._brokers[node], self._up(node).on_cluster_change(self._leaders, len(alive)))
        if self._servers is not None:
            now_ms = self._clock.now_ms
            self._servers.carry_out(self._servers.machine.brokers_changed(alive, now_ms=now_ms))

    def _up(self, node: int) -> Coordinator:
        coordinator = self._brokers[node].coordinator
        assert coordinator is not None
        return coordinator

    def _on_deadline(self, node: int) -> None:
        coordinator = self._brokers[node].coordinator
        if coordinator is not None:
            self._carry_out(self._brokers[node], coordinator.on_deadline(now_ms=self._clock.now_ms))

    def _carry_out(self, broker: _Broker, outcome: Outcome, client: str = "") -> None:
        """Carry out the outcome of a call of the coordinator, maybe for a request of a client."""
        assert broker.coordinator is not None
        if outcome.events:
            broker.report(outcome)
        for append in outcome.appends:
            self._replicate(broker, append, client)
        broker.answer(outcome)
        look_ms = broker.coordinator.not_before_ms()
        if look_ms != broker.look_ms:
            broker.look_at(look_ms)

    def _replicate(self, broker: _Broker, append: Append, client: str) -> None:
        """Append the records when the replicas have them, after a round trip, in order."""
        way, kind = broker.to_replicas, ""
        if commits := isinstance(append.records, CommittedOffsets):
            way, kind = self._way_of_commits(broker, client), _kind_of_commits(client)
            way.last_ms = max(way.last_ms, broker.to_replicas.last_ms)
        way.late_ms = self._log_late_ms if self._clock.now_ms < self._log_is_late_until_ms else 0
        way.send(self._appended, (broker, append), kind, is_cause=not commits, is_safe=True)

    def _way_of_commits(self, broker: _Broker, client: str) -> Way:
        way = broker.commits_of.get(client)
        if way is None:
            way = broker.commits_of[client] = broker.to_replicas.beside()
        return way

    def _appended(self, broker: _Broker, append: Append) -> None:
        if broker.coordinator is None:
            return  # it failed before the replicas had them
        now_ms = self._clock.now_ms
        if now_ms < self._log_fails_until_ms:  # NOT_ENOUGH_REPLICAS of a log, as clients get it
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self._carry_out(broker, broker.coordinator.on_appended(append.append_id, error, now_ms=now_ms))
            return
        outcome = self._append(broker.coordinator, append, now_ms)
        if self._down_after_append_ms is not None and append.partition == self._home:
            down_ms, self._down_after_append_ms = self._down_after_append_ms, None
            self.fail_over(down_ms)
            return
        self._carry_out(broker, outcome)

    def _append(self, coordinator: Coordinator, append: Append, now_ms: int) -> Outcome:
        error = self.log.append(append.partition, append.records)
        for watch in self.replicated:
            watch(append.partition, append.records)
        return coordinator.on_appended(append.append_id, error, now_ms=now_ms)

    # --- requests that every broker answers

    def _describe(self, request: m.MetadataRequest) -> m.MetadataResponse:
        everything = self.metadata()
        if request.topics is None:
            return everything
        response = self._described.get(request.topics)
        if response is None:
            known = {topic.name: topic for topic in everything.topics}
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            response = self._described[request.topics] = m.MetadataResponse(
                topics=tuple(known.get(t) or m.TopicMetadata(t, (), unknown) for t in request.topics),
                nodes=everything.nodes,
            )
        return response

    def metadata(self) -> m.MetadataResponse:
        """Return the description of all topics."""
        if self._metadata is None:
            alive = tuple(self._alive)
            leader = alive[0] if alive else -1
            topics = tuple(
                m.TopicMetadata(name=name, partitions=self._partitions(name, count, leader))
                for name, count in self.topics.items()
            )
            self._metadata = m.MetadataResponse(topics=topics, nodes=alive)
            self._described.clear()
        return self._metadata

    def _partitions(self, topic: str, count: int, leader: int) -> tuple[m.PartitionMetadata, ...]:
        racks = self._racks.get(topic)
        if racks is None:
            return (m.PartitionMetadata(leader),) * count
        return tuple(m.PartitionMetadata(leader, racks=entry) for entry in racks_of(racks, count))

    def _offsets(self, request: m.ListOffsetsRequest) -> m.ListOffsetsResponse:
        return m.ListOffsetsResponse(
            offsets=tuple(self._offset(partition, request.timestamp) for partition in request.partitions)
        )

    def _offset(self, partition: TopicPartition, timestamp: int) -> m.ListedOffset:
        topic, number = partition
        end = self._load.end_offset(partition, now_ms=self._clock.now_ms)
        if end is None:
            return m.ListedOffset(topic, number, -1, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return m.ListedOffset(topic, number, 0 if timestamp == EARLIEST else end)


def _elected(node: int, coordinator: Coordinator, group_id: str) -> ev.CoordinatorElected:
    groups = len(coordinator.group_ids())
    group = coordinator.group(group_id)
    if group is None:
        return ev.CoordinatorElected(node=node, groups=groups)
    return ev.CoordinatorElected(
        node=node,
        groups=groups,
        group_state=str(group.state),
        generation=group.generation,
        members=list(group.members),
    )


def _kind_of_commits(client: str) -> str:
    """Return the kind of a client's commits in the log. Their latencies follow from it."""
    return f"commits of {client}"

"""The trace of a scenario without messages: every change of the group, and the assignment that follows.

A plan is much faster than a run, for batches. Its rounds, moves and balance are those of the protocol if
nothing is lost or late (`planned_run`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator_core.assigning.assignor import Assignor, is_cooperative
from coordinator_core.assigning.computing import compute_assignment, user_data_of
from coordinator_core.client.subscription import partition_map
from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    NO_PARTITIONS,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicPartition,
)
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.simulation.planning.planned_run import PlannedConsumer, PlannedRun, member_id
from rebalance_lab.simulation.world.host import SimulatedHost
from rebalance_lab.traces.trace import Trace

NO_BROKER = -1


def plan(scenario: Scenario, strategy: Any, registry: Registry) -> Trace:
    """Return the trace of a scenario under a strategy, without messages. Equal arguments give equal traces.

    Raises:
        InputError, PluginError, AssignmentError: as `simulation.run.simulate`.
    """
    run = PlannedRun(scenario, registry.strategy(strategy), registry, _TracedOwners)
    run.run()
    trace = run.end_trace(run.state, run.generation, {})
    run.forget()
    return trace


@dataclass(slots=True)
class _Holding:
    """What a consumer owns: ``listed``, sorted, and the same for the assignor as ``owned``."""

    assignor: Assignor
    owned: Partitions = NO_PARTITIONS
    listed: Sequence[TopicPartition] = ()


class _TracedOwners:
    """The owners of a planned run, which reports all changes in its trace (`planned_run.Owners`)."""

    def __init__(self, run: PlannedRun[Any]) -> None:
        self._run, self._stage = run, run
        self._assignment = GroupAssignment({})

    def elected(self, running: Sequence[Member], generation: int) -> None:
        """Report the group as its coordinator knows it."""
        self._stage.emit(
            ev.CoordinatorElected(
                node=NO_BROKER,
                groups=1,
                group_state=GroupState.STABLE.value,
                generation=generation,
                members=[member_id(member) for member in running],
            )
        )

    def launched(self, consumer: PlannedConsumer) -> None:
        """Make the assignor of a process."""
        run, rate = self._run, consumer.member.process_rate
        host = SimulatedHost(run.clock, run.load, rate, lags=False)
        consumer.holding = _Holding(run.registry.build(run.strategy, host))

    def stopped(self, consumer: PlannedConsumer, how: str) -> None:
        """Report the end of a process. Readers of the trace take its partitions from it."""
        self._stage.emit(ev.MemberStopped(client=consumer.member.id, how=how))

    def lost(self, consumer: PlannedConsumer) -> None:
        """Take all partitions from a consumer."""
        self._give_up(consumer, consumer.holding.listed, lost=True)

    def take_over(self, consumer: PlannedConsumer, before: PlannedConsumer | None, *, leads: bool) -> None:
        """Report that a consumer is in the current generation, and let it take over its partitions."""
        generation = self._run.generation
        self._stage.emit(
            ev.Joined(
                client=consumer.member.id,
                member_id=member_id(consumer.member),
                generation=generation,
                protocol=consumer.holding.assignor.name,
                leader=leads,
            )
        )
        if before is None:
            consumer.holding.listed = consumer.member.owned or ()
        given = consumer.holding.listed if before is None else before.holding.listed
        self._assign(consumer, given, generation)

    def owns(self, consumer: PlannedConsumer, topic: str) -> bool:
        """Return whether a consumer owns partitions of a topic."""
        return any(tp.topic == topic for tp in consumer.holding.listed)

    def state_changed(self, before: str, after: str, cause: str) -> None:
        """Report a state of the group."""
        self._stage.emit(
            ev.GroupStateChanged(
                group=self._run.scenario.name,
                before=before,
                after=after,
                generation=self._run.generation,
                cause=cause,
            )
        )

    def compute(self, members: Mapping[str, PlannedConsumer]) -> None:
        """Compute the assignment as the leader does."""
        leader = next(iter(members.values()))
        cooperative = is_cooperative(leader.holding.assignor)
        for consumer in members.values():
            kept = frozenset(consumer.topics) if cooperative else frozenset()
            self._give_up(consumer, [tp for tp in consumer.holding.listed if tp.topic not in kept])
        group = GroupSubscription(
            {
                member: Subscription(
                    topics=c.topics,
                    owned=c.holding.owned,
                    generation=c.generation,
                    rack=c.member.rack,
                    instance_id=c.instance,
                    user_data=user_data_of(c.holding.assignor, c.topics),
                )
                for member, c in members.items()
            }
        )
        try:
            self._assignment = compute_assignment(
                leader.holding.assignor, self._run.cluster_of(members.values()), group
            )
        except AssignmentError as error:
            where = f"group {self._run.scenario.name!r} ({len(members)} members)"
            raise error.of(where) from None

    def announce(self, members: Mapping[str, PlannedConsumer], generation: int) -> None:
        """Report a generation, its members, and its assignment."""
        leader = next(iter(members.values()))
        protocol = leader.holding.assignor.name
        self._stage.emit(
            ev.GenerationStarted(
                group=self._run.scenario.name,
                generation=generation,
                protocol=protocol,
                leader=member_id(leader.member),
                members=list(members),
            )
        )
        for member, c in members.items():
            self._stage.emit(
                ev.Joined(
                    client=c.member.id,
                    member_id=member,
                    generation=generation,
                    protocol=protocol,
                    leader=c is leader,
                )
            )
        self._stage.emit(
            ev.AssignmentComputed(
                client=leader.member.id,
                generation=generation,
                assignor=protocol,
                members={m: list(c.topics) for m, c in members.items()},
                payload_bytes=0,
                report=dict(self._assignment.report),
            )
        )

    def hand_out(self, members: Mapping[str, PlannedConsumer], generation: int) -> bool:
        """Let the members take over the assignment. Cooperative members join again after they revoke."""
        revoked = False
        for member, consumer in members.items():
            revoked |= self._assign(consumer, sorted(self._assignment[member]), generation)
        return revoked and is_cooperative(next(iter(members.values())).holding.assignor)

    def _assign(self, consumer: PlannedConsumer, given: Sequence[TopicPartition], generation: int) -> bool:
        """Let a consumer take over its sorted partitions. Return whether it revoked any."""
        holding, client = consumer.holding, consumer.member.id
        before, after = frozenset(holding.listed), frozenset(given)
        revoked = [tp for tp in holding.listed if tp not in after]
        if revoked:
            self._stage.emit(
                ev.Revoked(client=client, generation=generation, partitions=partition_map(revoked))
            )
        owned = partition_map(given)
        holding.listed, holding.owned, consumer.generation = given, Partitions(owned), generation
        holding.assignor.on_assignment(holding.owned, generation)
        added = partition_map([tp for tp in given if tp not in before]) if before else owned
        self._stage.emit(ev.Assigned(client=client, generation=generation, added=added, owned=owned))
        return bool(revoked)

    def _give_up(
        self, consumer: PlannedConsumer, given_up: Sequence[TopicPartition], *, lost: bool = False
    ) -> None:
        """Take partitions from a consumer, before it joins or because it was dropped."""
        holding = consumer.holding
        if given_up:
            kind = ev.Lost if lost else ev.Revoked
            partitions = partition_map(given_up)
            self._stage.emit(
                kind(client=consumer.member.id, generation=consumer.generation, partitions=partitions)
            )
            if len(given_up) == len(holding.listed):
                holding.listed, holding.owned = (), NO_PARTITIONS
                return
            removed = frozenset(given_up)
            holding.listed = [tp for tp in holding.listed if tp not in removed]
            holding.owned = Partitions(partition_map(holding.listed))

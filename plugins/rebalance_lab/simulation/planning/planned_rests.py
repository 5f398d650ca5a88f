"""The ledgers of planned groups, written without a trace.

Groups whose assignors only count partitions, under several strategies at once: those whose rounds are at the
same times share the run of the group, and differ in the owners. A further round of some of them, after
partitions were given up, is part of that run if nothing else happens during it.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coordinator_core.model import (
    NO_GENERATION,
    NO_OWNER,
    GroupSubscription,
    Int32Array,
    Partitions,
    Subscription,
    TopicIndex,
)
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.simulation.planning.counting import CountedGroup, Counting, Results
from rebalance_lab.simulation.planning.planned_run import PREPARING, STABLE, PlannedConsumer, PlannedRun
from rebalance_lab.traces.ledger import Ledger, spans_of
from rebalance_lab.traces.rests import Members, Rest, Traffic


def planned_ledgers(
    scenario: Scenario, strategies: Sequence[Counting], registry: Registry, results: Results
) -> list[Ledger]:
    """Return the ledger of a scenario under each strategy. `keeps_topics` must be true of it.

    They are those of the traces of `plan.plan`. ``results`` may be those of other scenarios, too.

    Raises:
        InputError: as `plan.plan`.
    """
    together: dict[Hashable, list[int]] = {}
    for number, strategy in enumerate(strategies):
        rounds = strategy.strategy.static, *sorted(strategy.strategy.settings.items())
        together.setdefault(rounds, []).append(number)
    shared = _Shared(_final_index(scenario), results)
    ledgers: dict[int, Ledger] = {}
    waiting = list(together.values())
    for numbers in waiting:
        found = _run(scenario, [strategies[number] for number in numbers], registry, shared)
        waiting += [[number] for number, ledger in zip(numbers, found, strict=True) if ledger is None]
        ledgers |= {n: ledger for n, ledger in zip(numbers, found, strict=True) if ledger is not None}
    return [ledgers[number] for number in range(len(strategies))]


def _run(
    scenario: Scenario, strategies: Sequence[Counting], registry: Registry, shared: "_Shared"
) -> list[Ledger | None]:
    """Return the ledger under each strategy, None if it needs a run of its own."""
    run = PlannedRun(
        scenario, strategies[0].strategy, registry, lambda run: _CountedOwners(run, shared, strategies)
    )
    run.run()
    ledgers = run.owners.finish()
    run.forget()
    return ledgers


def _final_index(scenario: Scenario) -> TopicIndex:
    """Return the numbering of all partitions that the topics of a scenario ever have."""
    counts = {name: topic.partitions for name, topic in scenario.topics.items()}
    for event in scenario.events:
        if event.kind == "add_partitions":
            counts |= event.arguments.counts
    return TopicIndex(counts)


class _Round(NamedTuple):
    """The group of a round without claims. ``places``: the numbers of its partitions, None if the same."""

    group: CountedGroup
    places: Int32Array | None


@dataclass
class _Shared:
    """What the runs of a scenario share. ``index`` numbers all partitions that there ever are."""

    index: TopicIndex
    results: Results
    rounds: dict[Hashable, _Round] = field(default_factory=dict)
    members: dict[Hashable, Members] = field(default_factory=dict)
    traffic: Traffic | None = None


@dataclass(slots=True, eq=False)
class _Lane:
    """The owners under one strategy. Arrays int32[P] have numbers of clients or -1, and are not changed.

    ``owner``: the present owners; ``owners``: all that there were, with the times since which they owned;
    ``last``: the last owners; ``given``: the assignment of each generation;
    ``target``: the one that was computed last. ``begun``: whether the measured window has begun.
    ``is_apart``: whether its next round is not one of the others, so that it needs a run of its own.
    """

    strategy: Counting
    owner: Int32Array
    last: Int32Array
    before: Int32Array
    target: Int32Array
    given: dict[int, Int32Array]
    settled: list[Rest] = field(default_factory=list)
    owners: list[tuple[int, Int32Array]] = field(default_factory=list)
    resting: Rest | None = None
    begun: bool = False
    is_apart: bool = False
    from_ms: int = 0
    rounds: int = 0
    moved: int = 0

    def begin(self, from_ms: int) -> None:
        """Begin the measured window."""
        self.begun, self.from_ms, self.before = True, from_ms, self.last
        self.rounds = self.moved = 0

    def unsettle(self, now_ms: int) -> None:
        """End the assignment in which the group rests."""
        if self.resting is not None:
            self.resting.until_ms = now_ms
            self.settled.append(self.resting)
            self.resting = None

    def give_up(self, owner: Int32Array, now_ms: int) -> None:
        """Set the owners after some have given up partitions, on which the group may have rested."""
        resting = self.resting
        if resting is not None and np.count_nonzero((owner != self.owner) & (resting.owner == self.owner)):
            self.unsettle(now_ms)
        self._own(owner, now_ms)

    def take(self, taken: Int32Array, now_ms: int) -> None:
        """Let clients take partitions over: their numbers, -1 for other partitions."""
        new = taken != NO_OWNER
        count = np.count_nonzero(new)
        if not count:
            return
        self.unsettle(now_ms)
        self.moved += int(np.count_nonzero(new & (self.last != taken) & (self.last != NO_OWNER)))
        if count == len(new):
            self.last = taken
            self._own(taken, now_ms)
        else:
            self.last = np.where(new, taken, self.last)
            self._own(np.where(new, taken, self.owner), now_ms)

    def _own(self, owner: Int32Array, now_ms: int) -> None:
        self.owner = owner
        self.owners.append((now_ms, owner))


class _CountedOwners:
    """The owners of a planned run under several strategies with the same rounds (`planned_run.Owners`).

    Consumers of the same name have the same number.
    """

    def __init__(self, run: PlannedRun[Any], shared: _Shared, strategies: Sequence[Counting]) -> None:
        self._run, self._shared, self._index = run, shared, shared.index
        self._registry = run.registry
        self._clients: dict[str, int] = {}
        self._racks: dict[str, str] = {}
        self._size = 0
        nobody = self._index.nobody
        self.lanes = [_Lane(strategy, nobody, nobody, nobody, nobody, {}) for strategy in strategies]
        self._active = list(self.lanes)

    def finish(self) -> list[Ledger | None]:
        """Return the ledgers up to now, None for a strategy that needs a run of its own."""
        self._pass_time()
        traffic = self._shared.traffic = self._shared.traffic or self._traffic()
        return [None if lane.is_apart else self._ledger(lane, traffic) for lane in self.lanes]

    def _traffic(self) -> Traffic:
        steps: dict[str, list[tuple[int, Sequence[float]]]] = {name: [] for name in self._index.topics}
        for line in self._run.events:
            if isinstance(line.event, ev.RatesChanged):
                steps[line.event.topic].append((line.at_ms, line.event.rates))
        return Traffic(self._index, steps)

    def _process_rates(self) -> dict[str, float]:
        """Return what the last process of each client can handle."""
        rates: dict[str, float | None] = {}
        for line in self._run.events:
            if isinstance(line.event, ev.MemberStarted):
                rates[line.event.client] = line.event.process_rate
            elif isinstance(line.event, ev.ApplicationStarted):
                rates[line.event.client] = line.event.records_per_second or rates.get(line.event.client)
        return {client: rate for client, rate in rates.items() if rate}

    def _ledger(self, lane: _Lane, traffic: Traffic) -> Ledger:
        now_ms = self._run.clock.now_ms
        lane.unsettle(now_ms)
        return Ledger(
            self._index,
            tuple(self._clients),
            lane.from_ms,
            now_ms,
            lane.before,
            lane.rounds,
            lane.moved,
            tuple(rest for rest in lane.settled if rest.from_ms < rest.until_ms or rest.until_ms == now_ms),
            traffic,
            self._racks,
            self._run.scenario.racks,
            self._process_rates(),
            lambda: self._registry.build(lane.strategy.strategy),
            lambda: spans_of([(0, self._index.nobody), *lane.owners, (now_ms, self._index.nobody)]),
        )

    # --- what the run needs (`planned_run.Owners`)

    def elected(self, running: Sequence[Member], generation: int) -> None:
        """Note what the members of a running group own."""
        self._size = len(running)
        given = self._index.nobody.copy()
        for number, member in enumerate(running):
            self._clients[member.id] = number
            given[Partitions.of(member.owned or ()).dense_in(self._index)] = number
        for lane in self._active:
            lane.given[generation] = given

    def launched(self, consumer: PlannedConsumer) -> None:
        """Give a process its number."""
        name = consumer.member.id
        consumer.holding = self._clients.setdefault(name, len(self._clients))
        if consumer.member.rack:
            self._racks[name] = consumer.member.rack

    def stopped(self, consumer: PlannedConsumer, how: str) -> None:  # noqa: ARG002 - the interface's
        """Take all partitions from a process that has ended."""
        self.lost(consumer)
        self._rest(*self._active)

    def lost(self, consumer: PlannedConsumer) -> None:
        """Take all partitions from a consumer."""
        self._pass_time()
        for lane in self._active:
            rest = np.where(lane.owner == consumer.holding, NO_OWNER, lane.owner)
            lane.give_up(rest, self._run.clock.now_ms)

    def take_over(
        self,
        consumer: PlannedConsumer,
        before: PlannedConsumer | None,  # noqa: ARG002 - the interface's
        *,
        leads: bool,  # noqa: ARG002 - the interface's
    ) -> None:
        """Let a consumer take over what it got in the present generation."""
        self._pass_time()
        consumer.generation = self._run.generation
        for lane in self._active:
            given = lane.given[consumer.generation]
            lane.take(np.where(given == consumer.holding, given, NO_OWNER), self._run.clock.now_ms)
        self._settle(self._active)

    def owns(self, consumer: PlannedConsumer, topic: str) -> bool:
        """Fail: scenarios that delete topics are planned with a trace."""
        raise AssertionError(f"{consumer.member.id} is asked about {topic}, which no event deletes")

    def state_changed(self, before: str, after: str, cause: str) -> None:  # noqa: ARG002 - the interface's
        """End the rest when a round begins, and count it when it ends."""
        self._pass_time()
        for lane in self._active:
            if after == PREPARING:
                lane.unsettle(self._run.clock.now_ms)
            lane.rounds += after == STABLE

    def compute(self, members: Mapping[str, PlannedConsumer]) -> None:
        """Compute the assignment of every strategy."""
        self._compute(self._active, members)

    def _compute(self, lanes: Sequence[_Lane], members: Mapping[str, PlannedConsumer]) -> None:
        self._pass_time()
        group, places = self._round(members)
        consumers = [members[m] for m in group.members]
        clients = np.array([*(c.holding for c in consumers), NO_OWNER], dtype=np.int32)
        claimants = self._claimants(consumers)
        for lane in lanes:
            self._revoke(lane, consumers)
            claims = self._claims(lane, claimants, places) if lane.strategy.sticky else None
            owner = clients.take(self._shared.results.owners(lane.strategy, group, claims))
            if places is not None:
                lane.target = self._index.nobody.copy()
                lane.target[places] = owner
            else:
                lane.target = owner

    def announce(self, members: Mapping[str, PlannedConsumer], generation: int) -> None:
        """Keep the assignments of a generation."""
        self._size = len(members)
        for lane in self._active:
            lane.given[generation] = lane.target

    def hand_out(self, members: Mapping[str, PlannedConsumer], generation: int) -> bool:
        """Let the members take over the assignment. Of several strategies, some may have a round more."""
        for consumer in members.values():
            consumer.generation = generation
        again = [lane for lane in self._active if self._move(lane)]
        self._settle(self._active)
        if len(self.lanes) == 1:
            return bool(again)
        if again:
            self._go_on(again, members)
        return False

    def _go_on(self, lanes: Sequence[_Lane], members: Mapping[str, PlannedConsumer]) -> None:
        """Let another round follow under some strategies, of which the others need not know."""
        at_ms = self._run.next_round_ms()
        if at_ms is None:
            self._part(lanes)
            return
        for lane in lanes:
            lane.unsettle(self._run.clock.now_ms)
        self._run.clock.at(at_ms, self._follow, lanes, members)

    def _follow(self, lanes: Sequence[_Lane], members: Mapping[str, PlannedConsumer]) -> None:
        """End this round, unless the group has changed when it began."""
        if not self._run.has_only(members):
            self._part(lanes)
            return
        self._compute(lanes, members)
        for lane in lanes:
            lane.given[self._run.generation] = lane.target
            lane.rounds += 1
        again = [lane for lane in lanes if self._move(lane)]
        self._settle(lanes)
        if again:
            self._go_on(again, members)

    def _part(self, lanes: Sequence[_Lane]) -> None:
        for lane in lanes:
            lane.is_apart = True
            self._active.remove(lane)

    def _move(self, lane: _Lane) -> bool:
        """Let members revoke and take over what changes. Return whether any was revoked."""
        before, now_ms = lane.owner, self._run.clock.now_ms
        if not lane.strategy.cooperative:
            lane.take(lane.target, now_ms)
            return False
        kept = np.where(before == lane.target, before, NO_OWNER)
        revoked = bool(np.count_nonzero(kept != before))
        if revoked:
            lane.give_up(kept, now_ms)
        lane.take(np.where(lane.target != kept, lane.target, NO_OWNER), now_ms)
        return revoked

    # --- problems

    def _round(self, members: Mapping[str, PlannedConsumer]) -> _Round:
        described = tuple((m, c.topics, c.member.rack, c.instance) for m, c in members.items())
        key = described, *self._run.partitions.values()
        found = self._shared.rounds.get(key)
        if found is None:
            subscribed = {m: Subscription(t, rack=r, instance_id=i) for m, t, r, i in described}
            group = CountedGroup(self._run.cluster_of(members.values()), GroupSubscription(subscribed))
            same = group.index.same_numbering(self._index)
            places = None if same else self._index.table_from(group.index)
            found = self._shared.rounds[key] = _Round(group, places)
        return found

    def _claimants(self, members: Sequence[PlannedConsumer]) -> dict[int, Int32Array]:
        """Return the number in the group, or -1, of each client, by the generation of the members."""
        numbers: dict[int, list[int]] = {}
        for at, consumer in enumerate(members):
            if consumer.generation != NO_GENERATION:
                nobody = [NO_OWNER] * (len(self._clients) + 1)
                numbers.setdefault(consumer.generation, nobody)[consumer.holding] = at
        return {generation: np.array(listed, dtype=np.int32) for generation, listed in numbers.items()}

    def _claims(
        self, lane: _Lane, claimants: Mapping[int, Int32Array], places: Int32Array | None
    ) -> dict[int, Int32Array]:
        """Return what members of each generation claim: what they own, or what they got last."""
        claims = {}
        for generation, numbers in claimants.items():
            owner = lane.owner if lane.strategy.cooperative else lane.given[generation]
            claims[generation] = numbers.take(owner if places is None else owner.take(places))
        return claims

    def _revoke(self, lane: _Lane, members: Iterable[PlannedConsumer]) -> None:
        """Let members give up what they revoke before they join: all, or topics they do not subscribe to."""
        owner = self._index.nobody
        if lane.strategy.cooperative:
            owner = lane.owner.copy()
            for consumer in members:
                unsubscribed = [topic not in consumer.topics for topic in self._index.topics]
                if any(unsubscribed):
                    of_topics = np.array(unsubscribed)[self._index.topic_of_every]
                    owner[(owner == consumer.holding) & of_topics] = NO_OWNER
        lane.give_up(owner, self._run.clock.now_ms)

    # --- assignments in which the group rests

    def _pass_time(self) -> None:
        """Begin the window if its time is given and has come."""
        from_ms = self._run.scenario.measure_from_ms
        if from_ms is not None and self._run.clock.now_ms >= from_ms:
            for lane in self._active:
                if not lane.begun:
                    lane.begin(from_ms)

    def _settle(self, lanes: Sequence[_Lane]) -> None:
        """Note that the group rests, if all members have taken over and no partition is without one."""
        run = self._run
        running = [c for c in run.consumers.values() if c.is_running]
        present = sorted(
            (c for c in running if c.generation == run.generation), key=lambda consumer: int(consumer.holding)
        )
        if run.state != STABLE or len(present) < self._size:
            return
        wanted = frozenset().union(*dict.fromkeys(c.topics for c in running))
        unwanted = [topic not in wanted for topic in self._index.topics]
        left_out = np.array(unwanted)[self._index.topic_of_every] if any(unwanted) else None
        key = tuple(c.holding for c in present), tuple(c.topics for c in present)
        members = self._shared.members.get(key)
        if members is None:
            clients = np.array(key[0], dtype=np.int32)
            members = self._shared.members[key] = Members(clients, key[1])
        for lane in lanes:
            if lane.resting is None:
                self._settle_lane(lane, members, left_out)

    def _settle_lane(self, lane: _Lane, members: Members, left_out: NDArray[np.bool_] | None) -> None:
        owner, last = lane.owner, lane.last
        if left_out is not None:
            owner, last = (np.where(left_out, NO_OWNER, values) for values in (owner, last))
        rest = Rest(self._index, self._run.clock.now_ms, self._run.clock.now_ms, owner, members)
        free = owner == NO_OWNER
        lost = not rest.is_whole and np.count_nonzero(free & (last != NO_OWNER))
        if not lost and np.count_nonzero(free) < len(owner):
            lane.resting = rest
            self._rest(lane)

    def _rest(self, *lanes: _Lane) -> None:
        """Begin the window at the first rest with all consumers that run, if it has no time of its own."""
        run = self._run
        if run.scenario.measure_from_ms is not None or any(
            c.is_running and c.generation != run.generation for c in run.consumers.values()
        ):
            return
        for lane in lanes:
            if lane.resting is not None and not lane.begun:
                lane.begin(run.clock.now_ms)

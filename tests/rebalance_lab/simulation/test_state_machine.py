"""The whole simulation as a Hypothesis state machine: whatever is done to a group, the protocol's rules hold.

Each rule is a scenario event, so a run that fails is a scenario: it is written to a file, and one command
runs it again, message by message.
"""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator_core.coordinator.reconcile.settings import SESSION
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import ScenarioEvent, parse_scenario
from rebalance_lab.simulation.run import Run
from rebalance_lab.traces.invariants import Invariants
from tests.examples import rest_slow, scaled

STEPS = 50
EXAMPLES = 100
TOPICS = {"a": 5, "b": 3, "c": 2}
MOST_MEMBERS = 6
MOST_PARTITIONS = 12

SESSION_MS = 10_000
REBALANCE_MS = 20_000
CONFIG = {
    "session.timeout.ms": SESSION_MS,
    "heartbeat.interval.ms": 3_000,
    "max.poll.interval.ms": REBALANCE_MS,
    "metadata.max.age.ms": 15_000,
    "request.timeout.ms": 8_000,
    "auto.commit.interval.ms": 4_000,
    "group.notice.static.subscription": True,
}
"""The last one because Kafka leaves topics unread when a static member comes back with others."""

SETTLE_MS = 3_000 + 6 * REBALANCE_MS + 3 * SESSION_MS + 30_000
LEARNING_MS = 20_000
QUIET_MS = 30_000
DELAY_MS = 20_000
"""The delay of lost partitions, of strategies that have one. It begins anew with each new leader."""
STANDING_MS = [500, 5_000, 12_000, 30_000]

some_time = st.sampled_from([1, 10, 200, 1_000, 3_000, 3_000, 7_000, 15_000])
some_topics = st.lists(st.sampled_from(sorted(TOPICS)), min_size=1, max_size=3, unique=True)


class Group(RuleBasedStateMachine):
    """One group under one strategy; time passes between the events."""

    strategy = ""

    @initialize(
        seed=st.integers(0, 2**32),
        loss=st.sampled_from([0.0, 0.0, 0.02, 0.2]),
        duplicate=st.sampled_from([0.0, 0.0, 0.05, 0.3]),
        latency=st.sampled_from([[1, 5], [1, 300], [0, 0]]),
        members=st.integers(1, 3),
    )
    def begin(self, seed, loss, duplicate, latency, members):
        self.document = {
            "name": "machine",
            "duration": 3_600_000,
            "seed": seed,
            "topics": {t: {"partitions": n, "rate": 10} for t, n in TOPICS.items()},
            "members": [
                {"id": f"m{i}", **({"topics_pattern": ".*"} if i == 1 else {"topics": sorted(TOPICS)})}
                for i in range(members)
            ],
            "events": [],
            "config": CONFIG | ({SESSION: SESSION_MS} if "reconcile" in self.strategy else {}),
            "network": {"latency": latency, "loss": loss, "duplicate": duplicate},
        }
        self.watch = Invariants()
        self.registry = default_registry()
        scenario = parse_scenario(self.document, where="machine", registry=self.registry)
        self.run = Run(scenario, self.strategy, self.registry, watch=self.watch, every_message=True)
        self.joined, self.created, self.events = members, [], []
        self.partitions = dict(TOPICS)
        self.at_ms = self.rolling_until_ms = 0

    def happen(self, after_ms, kind, value, **extra):
        """Let time pass, then an event of the scenario contract."""
        self.at_ms += after_ms
        self.document["events"].append({"at": self.at_ms, kind: value, **extra})
        self.run.advance(self.at_ms - 1)
        spec = self.registry.scenario_events()[kind]
        arguments = spec.parse(value, extra, f"events[{len(self.document['events']) - 1}]")
        self.events.append(ScenarioEvent(self.at_ms, kind, arguments))
        self.run.schedule(self.events[-1])
        self.run.advance(self.at_ms)

    def some(self, pick, present):
        consumers = self.run.consumers
        listed = [name for name, consumer in consumers.items() if consumer.is_running is present]
        return listed[pick % len(listed)] if listed else None

    @rule(after=some_time)
    def let_time_pass(self, after):
        self.at_ms += after
        self.run.advance(self.at_ms)

    @precondition(lambda self: self.joined < MOST_MEMBERS)
    @rule(after=some_time, topics=some_topics)
    def join(self, after, topics):
        name = f"m{self.joined}"
        self.joined += 1
        self.happen(after, "join", {"id": name, "topics": topics})

    @rule(after=some_time, pick=st.integers(0, 9), kind=st.sampled_from(["leave", "crash"]))
    def go_away(self, after, pick, kind):
        name = self.some(pick, present=True)
        if name is not None:
            self.happen(after, kind, name)

    @precondition(lambda self: self.some(0, present=True) is not None)
    @rule(
        after=some_time,
        kill=st.booleans(),
        batch=st.integers(1, 3),
        surge=st.integers(0, 2),
        others=st.sampled_from([None, [], ["roundrobin"]]),
        first=st.booleans(),
    )
    def roll(self, after, kill, batch, surge, others, first):
        """Members may come back with another list of assignors, in which the group's is always one."""
        paces = {"every": 2_000, "down": 1_500, "kill": kill, "batch": max(batch, surge), "surge": surge}
        spec = self.run.family.spec
        if others is not None and not spec.own_epochs and "assignors" not in spec.meaningless:
            own = [self.strategy.partition("+")[0]]
            paces["assignors"] = own + others if first else others + own
        self.happen(after, "rolling_restart", paces)
        last_ms = self.at_ms + 2_000 * len(self.run.consumers) + 3_000
        self.rolling_until_ms = max(self.rolling_until_ms, last_ms)

    @rule(after=some_time, pick=st.integers(0, 9), present=st.booleans())
    def restart(self, after, pick, present):
        name = self.some(pick, present)
        if name is not None:
            self.happen(after, "restart", name)

    @rule(
        after=some_time,
        pick=st.integers(0, 9),
        kind=st.sampled_from(["pause", "freeze", "cut"]),
        lasting=st.sampled_from(STANDING_MS),
    )
    def stand_still(self, after, pick, kind, lasting):
        name = self.some(pick, present=True)
        if name is not None:
            self.happen(after, kind, name, **{"for": lasting})

    @precondition(lambda self: self.run.family.spec.remove_members is not None)
    @rule(after=some_time, pick=st.integers(0, 9), present=st.booleans())
    def remove_member(self, after, pick, present):
        name = self.some(pick, present)
        if name is not None:
            self.happen(after, "remove_member", name)

    @rule(after=some_time, pick=st.integers(0, 9), topics=some_topics)
    def subscribe(self, after, pick, topics):
        name = self.some(pick, present=True)
        if name is not None:
            self.happen(after, "subscribe", name, topics=topics)

    @rule(after=some_time, topic=st.sampled_from(sorted(TOPICS)))
    def add_partitions(self, after, topic):
        if self.partitions[topic] < MOST_PARTITIONS:
            self.partitions[topic] += 2
            self.happen(after, "add_partitions", {topic: self.partitions[topic]})

    @precondition(lambda self: len(self.created) < 3)
    @rule(after=some_time, partitions=st.integers(1, 4))
    def create_topic(self, after, partitions):
        self.created.append(f"new-{len(self.created)}")
        self.happen(after, "create_topic", {self.created[-1]: {"partitions": partitions, "rate": 10}})

    @rule(after=some_time, pick=st.integers(0, 9))
    def delete_topic(self, after, pick):
        listed = [name for name in self.created if name in self.run.partitions]
        if listed:
            self.happen(after, "delete_topic", listed[pick % len(listed)])

    @rule(after=some_time, down=st.sampled_from([100, 3_000, 12_000]))
    def fail_over(self, after, down):
        self.happen(after, "coordinator_failover", {"down": down})

    @invariant()
    def every_rule_of_the_protocol_holds(self):
        if hasattr(self, "watch"):
            assert not self.watch.violations, self.told(self.watch.violations[0])

    def teardown(self):
        if not hasattr(self, "run") or self.watch.violations:
            return
        self.happen(max(1, self.rolling_until_ms - self.at_ms), "calm", True)
        self.let_time_pass(max(STANDING_MS))  # a member that stands still for long leaves and comes back
        if "static" in self.strategy:
            # a leader that comes back and skips the assignment takes the cluster as it finds it (KIP-814):
            # what was added while it was away shows only when something else is added
            self.happen(LEARNING_MS, "add_partitions", {"a": self.partitions["a"] + 1})
        settle_ms = SETTLE_MS + 3 * DELAY_MS * ("delay" in self.strategy)
        problems, latest_ms = ["not settled"], self.at_ms + settle_ms
        while problems and self.at_ms < latest_ms:
            self.let_time_pass(5_000)
            problems = self.watch.violations or self.watch.settled()
        assert not problems, self.told(problems[0])
        self.let_time_pass(LEARNING_MS)
        generation = self.watch.generation
        self.let_time_pass(QUIET_MS)
        assert self.watch.generation == generation, self.told("a round without a cause")
        self.compare_with_the_run_without_periodic_messages()

    def compare_with_the_run_without_periodic_messages(self):
        """Run the whole scenario again. Now its events are known beforehand."""
        scenario = replace(self.run.scenario, events=tuple(self.events))
        run = Run(scenario, self.strategy, self.registry)
        run.advance(self.at_ms)
        for one, other in zip(self.run.events, run.events, strict=False):
            assert one == other, self.told(f"{one} with every message, {other} without")
        assert len(self.run.events) == len(run.events), self.told("another number of events")

    def told(self, problem):
        """The problem, and the command that runs the scenario again."""
        document = {**self.document, "duration": max(self.at_ms, 1)}
        path = Path(tempfile.gettempdir()) / f"failed-{self.strategy}-{self.document['seed']}.json"
        path.write_text(json.dumps(document))
        return f"{problem}\nrun it again: rebalance-lab simulate {path} -s {self.strategy}"


STRATEGIES = rest_slow(
    [
        "range",
        "cooperative-sticky",
        "sticky+reconcile",
        "range+server-side",
        f"cooperative-sticky+delay={DELAY_MS}ms",
        "sticky",
        "cooperative-sticky+static",
        "sticky+server-side",
        "uniform-848+reconcile+static",
        f"cooperative-sticky+static+delay={DELAY_MS}ms",
    ],
)


@pytest.mark.hypothesis
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_rules_hold_whatever_happens_to_a_group(strategy):
    """Given any joins, leaves, crashes, pauses, cuts, loss, duplication and failovers: no two valid owners,
    offsets never go back, generations only grow, every round has a cause; and once all is calm, everything
    has one owner and no further round begins. C-80, C-81, C-82, C-83; the "Always" of the protocol."""
    machine = type("Group", (Group,), {"strategy": strategy})
    machine.TestCase.settings = settings(
        max_examples=scaled(EXAMPLES),
        stateful_step_count=STEPS,
        derandomize=False,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    machine.TestCase("runTest").runTest()

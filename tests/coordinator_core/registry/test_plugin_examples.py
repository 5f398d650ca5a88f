"""One working plugin for each hook beside assignors and modifiers: copy the one you need.

Each class below is a whole plugin. In a package of your own its functions stand in a module, without the
class and `self`, and the package names that module under the entry-point group ``rebalance_lab``:

    [project.entry-points.rebalance_lab]
    my-plugin = "my_module"

Under each plugin is what it is good for, in use.
"""

from importlib.metadata import entry_points
from random import Random

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.reading import checks as document
from coordinator_core.reading.durations import parse_duration
from coordinator_core.registry.hookspecs import (
    MetricSpec,
    ProviderSpec,
    ScenarioEventSpec,
    WorkloadSpec,
    hookimpl,
)
from coordinator_core.registry.providers.builtin import with_weights
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.measuring import measure


def installed(plugin):
    """The registry of somebody who has installed it beside what is built in."""
    registry = Registry()
    registry.load(entry_points(group="rebalance_lab"))
    registry.register(plugin, name="example")
    return registry


def scenario_of(registry, *events, **fields):
    """Three members on six partitions for three minutes."""
    plain = {
        "name": "example",
        "duration": "3m",
        "topics": {"orders": {"partitions": 6, "rate": 60}},
        "members": [{"id": "c", "count": 3, "topics": ["orders"]}],
        "events": list(events),
    }
    return parse_scenario({**plain, **fields}, where="example.yaml", registry=registry)


# --- a metric: one figure of a run, computed from its history


class LongestRound:
    """How long the group's longest way to Stable was."""

    @hookimpl
    def metrics(self):
        return [MetricSpec("longest_round_seconds", "s", self.longest, doc="The longest single round.")]

    def longest(self, history):
        longest = began_ms = 0
        for at_ms, state in history.states:
            if state == "PreparingRebalance":
                began_ms = at_ms
            elif state == "Stable":
                longest = max(longest, at_ms - began_ms)
        return longest / 1_000


def test_a_metric_stands_beside_the_built_in_ones():
    """The first round waits for the initial delay of three seconds, and once more for the latecomers."""
    registry = installed(LongestRound())
    figures = measure(simulate(scenario_of(registry), "range", registry), registry)
    assert 3 <= figures["longest_round_seconds"] <= 9
    assert list(figures)[-1] == "longest_round_seconds"


def test_a_metric_that_raises_names_its_plugin():
    class Broken(LongestRound):
        def longest(self, history):
            return history.no_such_thing

    registry = installed(Broken())
    trace = simulate(scenario_of(registry), "range", registry)
    with pytest.raises(
        PluginError, match=r"plugin 'example', metric 'longest_round_seconds': AttributeError"
    ):
        measure(trace, registry)


# --- a scenario event: something that happens to a group, in words of its own


class Flapping:
    """A network that goes and comes: ``flap: {member: c-1, times: 3, every: 20s, down: 2s}``."""

    @hookimpl
    def scenario_events(self):
        return [
            ScenarioEventSpec(
                "flap", self.parse, self.apply, "flap: {member: c-1, times: 3, every: 20s, down: 2s}"
            )
        ]

    def parse(self, value, extra, where):
        fields = document.mapping(value, f"{where}.flap", ("member", "times", "every", "down"))
        member = document.text(fields.get("member"), f"{where}.flap.member", "a member's id")
        times = document.whole(fields.get("times"), f"{where}.flap.times", low=1, high=1_000)
        every_ms = parse_duration(fields.get("every"), f"{where}.flap.every", at_least_ms=1)
        down_ms = parse_duration(fields.get("down"), f"{where}.flap.down", at_least_ms=1)
        return member, times, every_ms, down_ms

    def apply(self, run, arguments):
        member, times, every_ms, down_ms = arguments
        run.changed("flap", member)
        for i in range(times):
            run.clock.after(i * every_ms, lambda: run.cut(member, down_ms))


FLAP = {"at": "30s", "flap": {"member": "c-1", "times": 3, "every": "20s", "down": "2s"}}


def test_a_scenario_event_is_read_and_happens():
    registry = installed(Flapping())
    trace = simulate(scenario_of(registry, FLAP), "range", registry)
    cut = [
        (line.at_ms, line.event.client) for line in trace.events if isinstance(line.event, ev.MemberCutOff)
    ]
    back = [line.at_ms for line in trace.events if isinstance(line.event, ev.MemberReconnected)]
    assert cut == [(30_000, "c-1"), (50_000, "c-1"), (70_000, "c-1")]
    assert back == [32_000, 52_000, 72_000]
    assert next(e.event.target for e in trace.events if isinstance(e.event, ev.Changed)) == "c-1"


@pytest.mark.parametrize(
    ("read", "place"),
    [
        (lambda value, extra: extra["strength"], r"events\[0\]\.strength"),
        (lambda value, extra: value["strength"], r"events\[0\]\.flap\.strength"),
    ],
)
def test_a_key_that_a_parser_of_events_does_not_find_is_named_with_its_place(read, place):
    class ReadsAKey(Flapping):
        def parse(self, value, extra, where):
            return read(value, extra)

    with pytest.raises(InputError, match=rf"^example\.yaml: {place}: found nothing, expected a value$"):
        scenario_of(installed(ReadsAKey()), FLAP)


def test_a_scenario_event_that_raises_names_its_plugin():
    class BrokenWhenRead(Flapping):
        def parse(self, value, extra, where):
            return {}["no such field"]

    class BrokenWhenItHappens(Flapping):
        def apply(self, run, arguments):
            run.no_such_thing()

    with pytest.raises(PluginError, match=r"plugin 'example', scenario_event 'flap': KeyError"):
        scenario_of(installed(BrokenWhenRead()), FLAP)
    registry = installed(BrokenWhenItHappens())
    with pytest.raises(PluginError, match=r"plugin 'example', scenario_event 'flap': AttributeError"):
        simulate(scenario_of(registry, FLAP), "range", registry)


# --- a workload: scenarios without end, one for each seed and row


class Deploys:
    """Groups of some size, one member of which is restarted now and then."""

    @hookimpl
    def workloads(self):
        return [WorkloadSpec("deploys", self.generate, "A group of 2 to 6, redeployed member by member.")]

    def generate(self, seed, row):
        random = Random(f"{seed}:{row}")  # equal arguments give equal scenarios
        members = random.randint(2, 6)
        restarted = random.sample(range(members), k=min(2, members))
        return {
            "name": f"deploys-{seed}-{row}",
            "duration": "3m",
            "seed": seed,
            "topics": {"orders": {"partitions": random.randint(1, 20), "rate": 100}},
            "members": [{"id": "c", "count": members, "topics": ["orders"]}],
            "events": [{"at": f"{60 + 30 * i}s", "restart": f"c-{n}"} for i, n in enumerate(restarted)],
        }


def test_a_workload_gives_scenarios_that_can_be_run():
    registry = installed(Deploys())
    generate = registry.workloads()["deploys"].generate
    for row in range(5):
        scenario = parse_scenario(generate(7, row), where=f"deploys row {row}", registry=registry)
        trace = simulate(scenario, "cooperative-sticky", registry)
        assert trace.ended.group_state == "Stable"
        assert measure(trace, registry)["rounds"] > 1


# --- a provider: who tells an assignor what a partition weighs


PRICES = {"payments": 50.0, "orders": 5.0, "logs": 1.0}


class PriceList:
    """Weights that are known beforehand: what an hour of lag in a partition costs."""

    @hookimpl
    def providers(self):
        return [ProviderSpec("price-list", Prices, "What a partition of each topic is worth.")]


class Prices:
    """One for each consumer. Members need not report anything; whoever leads looks the weights up."""

    def __init__(self, host):
        """The host knows the time, and what its consumer sees; it is not needed here."""

    def report(self):
        return None

    def assigned(self, partitions):
        pass

    def inform(self, cluster, group, reports):
        weights = {
            TopicPartition(topic, number): PRICES.get(topic, 1.0)
            for topic, info in cluster.topics.items()
            for number in range(info.partitions)
        }
        return with_weights(cluster, weights), group


TOPICS = ["payments", "orders", "logs"]


def worth(settled):
    """What each member answers for, the most first."""
    found = dict.fromkeys(settled.members, 0.0)
    for tp, member in settled.owners.items():
        found[member] += PRICES[tp.topic]
    return sorted(found.values(), reverse=True)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        # 50 | 4 x 5 and 2 x 1: nobody can do better than to give one of two the payments alone
        ("optimal+weights=price-list", [50.0, 22.0]),
        ("lag-aware+weights=price-list", [50.0, 22.0]),
        ("optimal+cooperative+weights=price-list", [50.0, 22.0]),
    ],
)
def test_a_provider_is_used_by_its_name(strategy, expected):
    registry = installed(PriceList())
    counts = {"payments": 1, "orders": 4, "logs": 2}
    scenario = scenario_of(
        registry,
        topics={topic: {"partitions": n, "rate": 10} for topic, n in counts.items()},
        members=[{"id": "c", "count": 2, "topics": TOPICS}],
    )
    trace = simulate(scenario, strategy, registry)
    assert worth(History(trace).last_settled) == expected
    reports = [e.event.report for e in trace.events if isinstance(e.event, ev.AssignmentComputed)]
    assert {report["weights"] for report in reports} == {"price-list"}


def test_all_four_are_listed_with_what_they_contribute():
    for plugin, kind in (
        (LongestRound(), "metrics"),
        (Flapping(), "scenario_events"),
        (Deploys(), "workloads"),
        (PriceList(), "providers"),
    ):
        registry = installed(plugin)
        assert list(registry.plugins[-1].contributes) == [kind]
        assert all(getattr(registry, kind)()[name].doc for name in registry.plugins[-1].contributes[kind])

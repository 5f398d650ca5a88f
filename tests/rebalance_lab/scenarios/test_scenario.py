"""Every field of a scenario is read, and has the default of the contract when it is left out."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.registry.hookspecs import ScenarioEventSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.application import Application
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.member_events import Crash, Join, Leave
from rebalance_lab.scenarios.rates import Rates
from rebalance_lab.scenarios.scenario import Member, Network, Scenario, Topic, parse_scenario
from tests.places import SCENARIOS


def parse(**fields):
    document = {"name": "n", "duration": "10m", "topics": {"t": {"partitions": 4}}, "members": []}
    return parse_scenario(document | fields, where="x.yaml")


def members_of(*entries):
    return parse(members=list(entries)).members


def test_the_least_scenario_has_the_defaults_of_the_contract():
    assert parse() == Scenario(
        name="n",
        duration_ms=600_000,
        topics={"t": Topic(4, Rates.evenly(0.0, 4))},
        members=(),
        events=(),
        config={},
        network=Network(latency_ms_min=1, latency_ms_max=5, loss=0.0, duplicate=0.0),
        seed=0,
        brokers=3,
        description="",
        phase_ms=(0, 5_000),
    )


@pytest.mark.parametrize("field", ["events", "config", "network", "description"])
def test_an_optional_field_without_a_value_is_as_if_left_out(field):
    assert parse(**{field: None}) == parse()


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "deploy"), ("description", "why"), ("seed", 7), ("seed", 2**63 - 1), ("brokers", 1)],
)
def test_a_plain_field_is_read(field, value):
    assert getattr(parse(**{field: value}), field) == value


@pytest.mark.parametrize(("written", "ms"), [("10m", 600_000), (1, 1), ("250ms", 250)])
def test_the_duration_is_read_in_milliseconds(written, ms):
    assert parse(duration=written).duration_ms == ms


def test_topics_keep_the_order_of_the_document():
    topics = {name: {"partitions": 1} for name in ("z", "a", "m")}
    assert list(parse(topics=topics).topics) == ["z", "a", "m"]


def test_a_rate_is_split_evenly():
    topic = parse(topics={"orders": {"partitions": 12, "rate": 6_000}}).topics["orders"]
    assert topic == Topic(12, Rates(((0, (500.0,) * 12),), even=6_000.0))


def test_rates_are_those_of_each_partition():
    topic = parse(topics={"payments": {"partitions": 3, "rates": [900, 50, 0]}}).topics["payments"]
    assert topic == Topic(3, Rates(((0, (900.0, 50.0, 0.0)),), even=None))


@pytest.mark.parametrize(
    ("written", "waiting"),
    [(12, (4, 4, 4)), (14, (5, 5, 4)), (0, (0, 0, 0)), ([7, 0, 1], (7, 0, 1))],
)
def test_a_backlog_is_that_of_the_topic_or_of_each_partition(written, waiting):
    topic = parse(topics={"orders": {"partitions": 3, "backlog": written}}).topics["orders"]
    assert topic == Topic(3, Rates.evenly(0.0, 3), waiting)


def test_rates_from_a_file_are_relative_to_the_scenario(tmp_path):
    (tmp_path / "day.csv").write_text("600,0\n0,300\n")
    document = {
        "name": "n",
        "duration": "15m",
        "topics": {"t": {"partitions": 2, "rates_csv": "day.csv", "interval": "5m"}},
        "members": [],
    }
    topic = parse_scenario(document, where="x.yaml", base_dir=tmp_path).topics["t"]
    steps = ((0, (2.0, 0.0)), (300_000, (0.0, 1.0)), (600_000, (0.0, 0.0)))
    assert topic == Topic(2, Rates(steps))


@given(
    rows=st.lists(st.lists(st.integers(0, 10**6), min_size=2, max_size=2), min_size=1, max_size=6),
    interval=st.integers(1, 400_000),
)
def test_rates_in_rows_are_those_of_a_file_with_these_rows(tmp_path_factory, rows, interval):
    folder = tmp_path_factory.getbasetemp()
    (folder / "rows.csv").write_text("".join(f"{left},{right}\n" for left, right in rows))

    def rates_of(**fields):
        topics = {"t": {"partitions": 2, "interval": interval, **fields}}
        document = {"name": "n", "duration": "10m", "topics": topics, "members": []}
        return parse_scenario(document, where="x.yaml", base_dir=folder).topics["t"].rates

    assert rates_of(rates_rows=rows) == rates_of(rates_csv="rows.csv")


def test_rates_in_rows_are_records_in_an_interval_and_nothing_comes_after_them():
    topics = {"t": {"partitions": 2, "rates_rows": [[600, 0], [0, 300]], "interval": "4m"}}
    steps = ((0, (2.5, 0.0)), (240_000, (0.0, 1.25)), (480_000, (0.0, 0.0)))
    assert parse(topics=topics).topics["t"] == Topic(2, Rates(steps))


def test_a_member_has_no_limits_and_no_identity_by_default():
    entry = {"id": "c", "topics": ["t"]}
    assert members_of(entry) == (Member("c", ("t",), None, None, None, None),)


def test_every_field_of_a_member_is_read():
    entry = {"id": "c", "topics": ["t"], "process_rate": 3_000, "instance_id": "i", "rack": "a"}
    assert members_of(entry) == (
        Member("c", ("t",), None, 3_000.0, "i", "a", application=Application(batch_overhead=(5, 5))),
    )


@pytest.mark.parametrize("field", ["process_rate", "instance_id", "rack", *Application.__struct_fields__])
def test_a_field_of_a_member_without_a_value_is_as_if_left_out(field):
    entry = {"id": "c", "topics": ["t"]}
    assert members_of(entry | {field: None}) == members_of(entry)


def test_a_count_stands_for_members_numbered_from_zero():
    entry = {"id": "c", "count": 3, "topics": ["t"], "rack": "a"}
    assert members_of(entry) == tuple(Member(f"c-{n}", ("t",), None, None, None, "a") for n in range(3))


def test_a_count_of_one_is_numbered_too():
    assert [m.id for m in members_of({"id": "c", "count": 1, "topics": ["t"]})] == ["c-0"]


def test_an_instance_id_is_numbered_with_its_member():
    numbered = members_of({"id": "c", "count": 2, "topics": ["t"], "instance_id": "pod"})
    assert [(m.id, m.instance_id) for m in numbered] == [("c-0", "pod-0"), ("c-1", "pod-1")]


def test_members_keep_the_order_of_the_document():
    entries = [{"id": "z", "count": 2, "topics": ["t"]}, {"id": "a", "topics": ["t"]}]
    assert [m.id for m in members_of(*entries)] == ["z-0", "z-1", "a"]


def test_a_pattern_is_kept_as_written():
    assert members_of({"id": "c", "topics_pattern": "orders.*"}) == (Member("c", (), "orders.*"),)


def test_a_pattern_may_match_no_topic():
    assert members_of({"id": "c", "topics_pattern": "nothing"})[0].pattern == "nothing"


def test_a_topic_that_is_named_twice_counts_once():
    topics = {"b": {"partitions": 1}, "a": {"partitions": 1}}
    member = parse(topics=topics, members=[{"id": "c", "topics": ["b", "a", "b"]}]).members[0]
    assert member.topics == ("b", "a")


def test_members_without_an_instance_id_do_not_get_in_each_others_way():
    entries = [{"id": "a", "topics": ["t"]}, {"id": "b", "topics": ["t"]}]
    entries.append({"id": "c", "topics": ["t"], "instance_id": "i"})
    assert [m.instance_id for m in members_of(*entries)] == [None, None, "i"]


def test_events_are_in_the_order_of_time_and_then_of_the_document():
    members = [{"id": "c", "count": 4, "topics": ["t"]}]
    events = [
        {"at": "30s", "leave": "c-3"},
        {"at": 10, "leave": "c-2"},
        {"at": "30s", "crash": "c-0"},
        {"at": 0, "crash": "c-1"},
    ]
    parsed = parse(members=members, events=events).events
    assert [(e.at_ms, e.kind, e.arguments) for e in parsed] == [
        (0, "crash", Crash(("c-1",))),
        (10, "leave", Leave(("c-2",))),
        (30_000, "leave", Leave(("c-3",))),
        (30_000, "crash", Crash(("c-0",))),
    ]


def test_an_event_may_happen_at_the_very_end():
    events = [{"at": "10m", "leave": "c"}]
    assert parse(members=[{"id": "c", "topics": ["t"]}], events=events).events[0].at_ms == 600_000


def test_who_is_there_is_judged_in_the_order_of_time():
    """The document may tell the end before the beginning."""
    events = [
        {"at": "40s", "leave": "late"},
        {"at": "30s", "restart": "late"},
        {"at": "20s", "crash": "late"},
        {"at": "10s", "join": {"id": "late", "topics": ["t"]}},
    ]
    assert [e.kind for e in parse(events=events).events] == ["join", "crash", "restart", "leave"]


def test_a_kind_of_event_of_a_plugin_is_read():
    class Plugin:
        @hookimpl
        def scenario_events(self):
            def parsed(value, extra, where):
                return (value, dict(extra), where)

            return [ScenarioEventSpec("earthquake", parsed, lambda run, arguments: None)]

    registry = Registry()
    registry.register(Plugin())
    document = {"name": "n", "duration": 9, "topics": {"t": {"partitions": 1}}, "members": []}
    document["events"] = [{"at": 3, "earthquake": 8.5, "depth": "10km"}]
    event = parse_scenario(document, where="x.yaml", registry=registry).events[0]
    assert event.kind == "earthquake"
    assert event.arguments == (8.5, {"depth": "10km"}, "x.yaml: events[0]")


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [(["1ms", "5ms"], 1, 5), ("20ms", 20, 20), (0, 0, 0), ([3, "1s"], 3, 1_000), (["2ms", "2ms"], 2, 2)],
)
def test_latency_is_one_duration_or_two(written, low, high):
    assert parse(network={"latency": written}).network == Network(low, high)


def test_the_faults_of_the_network_are_read():
    network = parse(network={"loss": 0.25, "duplicate": 0.5}).network
    assert network == Network(1, 5, loss=0.25, duplicate=0.5)


def test_settings_in_milliseconds_may_be_written_as_durations():
    config = {
        "session.timeout.ms": "45s",
        "heartbeat.interval.ms": 3_000,
        "max.poll.interval.ms": "5m",
        "group.initial.rebalance.delay.ms": "0s",
        "auto.commit.interval.ms": "5s",
    }
    assert parse(config=config).config == {
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 3_000,
        "max.poll.interval.ms": 300_000,
        "group.initial.rebalance.delay.ms": 0,
        "auto.commit.interval.ms": 5_000,
    }


def test_settings_that_are_no_durations_keep_their_kind():
    config = {"enable.auto.commit": False, "group.max.size": 40, "auto.offset.reset": "latest"}
    assert parse(config=config).config == config


def test_a_topic_with_very_many_partitions_is_fine():
    assert parse(topics={"t": {"partitions": 200_000}}).topics["t"].partitions == 200_000


def test_the_example_of_the_contract_is_read(tmp_path):
    (tmp_path / "mentions.csv").write_text("1,2,3,4,5,6,7,8,9,10\n")
    (tmp_path / "deploy.yaml").write_text(CONTRACT)
    scenario = load_scenario(tmp_path / "deploy.yaml")
    assert (scenario.name, scenario.duration_ms, scenario.seed) == ("deploy-during-peak", 600_000, 7)
    assert {name: t.partitions for name, t in scenario.topics.items()} == {
        "orders": 12,
        "payments": 3,
        "mentions": 10,
    }
    assert [m.id for m in scenario.members] == ["c-0", "c-1", "c-2", "c-3", "s1"]
    assert [(e.at_ms, e.kind) for e in scenario.events] == [
        (30_000, "join"),
        (60_000, "leave"),
        (90_000, "crash"),
        (95_000, "restart"),
        (120_000, "pause"),
        (180_000, "subscribe"),
        (240_000, "add_partitions"),
        (300_000, "rolling_restart"),
        (480_000, "coordinator_failover"),
    ]
    assert scenario.events[0].arguments == Join((Member("extra", ("orders",)),))
    assert len(scenario.config) == 5
    assert scenario.network == Network(1, 5, 0.0, 0.0)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_example_scenarios_are_read_whole(path):
    document = yaml.safe_load(path.read_text())
    scenario = load_scenario(path)
    assert scenario.name == path.stem
    assert list(scenario.topics) == list(document["topics"])
    assert len(scenario.members) == sum(entry.get("count", 1) for entry in document["members"])
    assert len(scenario.events) == len(document.get("events", ()))
    assert set(scenario.config) == set(document.get("config", {}))


def test_there_are_example_scenarios():
    assert len(list(SCENARIOS.glob("*.yaml"))) >= 6


WORDS = """name duration seed topics members events config network id count at join leave for partitions rate
rates interval process_rate topics_pattern instance_id latency loss t c"""
keys = st.sampled_from(WORDS.split())
leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["1s", "t", "c", ""])
documents = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=12)


def parsed_or_refused(document):
    try:
        return parse_scenario(document, where="x.yaml")
    except InputError as problem:
        return problem


@given(st.sampled_from(["topics", "members", "events", "config", "network", "seed", "duration"]), documents)
def test_whatever_a_field_holds_the_scenario_is_read_or_the_field_is_named(field, value):
    document = {
        "name": "n",
        "duration": "1m",
        "topics": {"t": {"partitions": 2}},
        "members": [{"id": "c", "topics": ["t"]}],
    }
    result = parsed_or_refused(document | {field: value})
    if isinstance(result, InputError):
        # Without its topics, what names a topic is wrong in turn; without its members, nothing else is.
        assert result.where.startswith((f"x.yaml: {field}", "x.yaml: members[0].topics"))
    else:
        assert isinstance(result, Scenario)


CONTRACT = """
name: deploy-during-peak
duration: 10m
seed: 7
topics:
  orders:   {partitions: 12, rate: 6000}
  payments: {partitions: 3, rates: [900, 50, 50]}
  mentions: {partitions: 10, rates_csv: mentions.csv, interval: 5m}
members:
  - {id: c, count: 4, topics: [orders, payments], process_rate: 3000}
  - {id: s1, topics_pattern: "orders.*", instance_id: s1, rack: a}
events:
  - {at: 30s, join: {id: extra, topics: [orders]}}
  - {at: 60s, leave: c-1}
  - {at: 90s, crash: c-2}
  - {at: 95s, restart: c-2}
  - {at: 2m,  pause: c-0, for: 70s}
  - {at: 3m,  subscribe: s1, topics: [orders, payments]}
  - {at: 4m,  add_partitions: {orders: 24}}
  - {at: 5m,  rolling_restart: {every: 20s, down: 5s}}
  - {at: 8m,  coordinator_failover: {down: 3s}}
config: {session.timeout.ms: 45000, heartbeat.interval.ms: 3000, max.poll.interval.ms: 300000,
         group.initial.rebalance.delay.ms: 3000, auto.commit.interval.ms: 5000}
network: {latency: [1ms, 5ms], loss: 0.0, duplicate: 0.0}
"""


def test_an_event_may_happen_at_the_end():
    assert parse(events=[{"at": "10m", "calm": True}]).events[0].at_ms == 600_000
    with pytest.raises(InputError):
        parse(events=[{"at": 600_001, "calm": True}])

"""Each kind of event is read from the document, and changes who is there."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.scenarios import events
from rebalance_lab.scenarios import member_events as kinds
from rebalance_lab.scenarios.rates import Rates
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.scenario import Member, Topic

AT = "x.yaml: events[0]"


@pytest.fixture(scope="module")
def specs():
    registry = Registry()
    registry.register(events)
    return registry.scenario_events()


@pytest.fixture
def roster():
    roster = Roster({"orders": 12, "payments": 3}, 60_000)
    roster.started("c-0", AT)
    return roster


@pytest.mark.parametrize(
    ("kind", "value", "extra", "parsed"),
    [
        ("join", {"id": "x", "topics": ["orders"]}, {}, kinds.Join((Member("x", ("orders",)),))),
        (
            "join",
            {"id": "x", "count": 2, "topics_pattern": "o.*", "rack": "r", "instance_id": "i"},
            {},
            kinds.Join(
                (Member("x-0", (), "o.*", None, "i-0", "r"), Member("x-1", (), "o.*", None, "i-1", "r"))
            ),
        ),
        ("leave", "c-1", {}, kinds.Leave(("c-1",))),
        ("crash", "c-1", {}, kinds.Crash(("c-1",))),
        ("leave", ["c-1", "c-0"], {}, kinds.Leave(("c-1", "c-0"))),
        ("remove_member", "c-1", {}, kinds.RemoveMember(("c-1",))),
        ("restart", "c-1", {}, kinds.Restart(("c-1",))),
        ("pause", "c-0", {"for": "70s"}, kinds.Pause(("c-0",), 70_000)),
        ("freeze", "c-0", {"for": "70s"}, kinds.Freeze(("c-0",), 70_000)),
        ("cut", "c-0", {"for": 1}, kinds.Cut(("c-0",), 1, "both", None)),
        (
            "cut",
            "c-0",
            {"for": 1, "way": "responses", "broker": 2},
            kinds.Cut(("c-0",), 1, "responses", 2),
        ),
        ("slow", {"member": "c-0", "by": "1s", "for": "5s"}, {}, kinds.Slow(5_000, 1_000, "c-0")),
        ("slow", {"broker": 2, "by": "1s", "for": "5s"}, {}, kinds.Slow(5_000, 1_000, None, 2)),
        ("log_fault", {"for": "5s"}, {}, events.LogFault(5_000)),
        ("log_fault", {"for": "5s", "by": "2s"}, {}, events.LogFault(5_000, 2_000)),
        (
            "subscribe",
            "s1",
            {"topics": ["payments", "orders"]},
            kinds.Subscribe(("s1",), ("payments", "orders"), None),
        ),
        ("subscribe", "s1", {"topics_pattern": "o.*"}, kinds.Subscribe(("s1",), (), "o.*")),
        (
            "add_partitions",
            {"payments": 6, "orders": 24},
            {},
            events.AddPartitions((("payments", 6), ("orders", 24))),
        ),
        (
            "create_topic",
            {"refunds": {"partitions": 2, "rate": 10}, "audits": {"partitions": 1}},
            {},
            events.CreateTopic(
                (("refunds", Topic(2, Rates.evenly(10, 2))), ("audits", Topic(1, Rates.evenly(0, 1))))
            ),
        ),
        ("delete_topic", "orders", {}, events.DeleteTopic(("orders",))),
        ("delete_topic", ["orders", "payments"], {}, events.DeleteTopic(("orders", "payments"))),
        ("rolling_restart", {"every": "20s", "down": "5s"}, {}, kinds.RollingRestart(20_000, 5_000)),
        ("rolling_restart", {"every": 1, "down": 0}, {}, kinds.RollingRestart(1, 0)),
        (
            "rolling_restart",
            {"every": 1, "down": 0, "kill": True, "batch": 10, "surge": 2},
            {},
            kinds.RollingRestart(1, 0, kill=True, batch=10, surge=2),
        ),
        ("rolling_restart", {"every": 1, "down": 0, "surge": 2}, {}, kinds.RollingRestart(1, 0, False, 2, 2)),
        ("coordinator_failover", {"down": "250ms"}, {}, events.CoordinatorFailover(250)),
        ("coordinator_failover", {}, {}, events.CoordinatorFailover(3_000)),
        ("coordinator_failover", None, {}, events.CoordinatorFailover(3_000)),
        ("coordinator_failover", {"after": "append"}, {}, events.CoordinatorFailover(3_000, "append")),
    ],
)
def test_a_kind_is_read_from_the_document(specs, kind, value, extra, parsed):
    assert specs[kind].parse(value, extra, AT) == parsed


def test_the_kinds_are_those_of_the_contract_and_the_faults_and_calm(specs):
    assert list(specs) == [
        "join",
        "leave",
        "crash",
        "restart",
        "pause",
        "freeze",
        "cut",
        "slow",
        "subscribe",
        "remove_member",
        "add_partitions",
        "create_topic",
        "delete_topic",
        "rolling_restart",
        "coordinator_failover",
        "log_fault",
        "calm",
    ]


def test_the_kinds_come_in_by_the_entry_point(specs):
    installed = default_registry().scenario_events()
    assert {name: installed[name].doc for name in specs} == {name: spec.doc for name, spec in specs.items()}
    assert installed["join"].parse is specs["join"].parse


def test_each_kind_is_explained_by_an_example(specs):
    assert [name for name, spec in specs.items() if f"{name}:" not in spec.doc] == []


VALUES = {
    "join": {"id": "x", "topics": ["orders"]},
    "leave": "c-0",
    "crash": "c-0",
    "restart": "c-0",
    "pause": "c-0",
    "freeze": "c-0",
    "cut": "c-0",
    "slow": {"member": "c-0", "by": "1s", "for": "5s"},
    "subscribe": "c-0",
    "remove_member": "c-0",
    "add_partitions": {"orders": 24},
    "create_topic": {"refunds": {"partitions": 2}},
    "delete_topic": "orders",
    "rolling_restart": {"every": "20s", "down": "5s"},
    "coordinator_failover": {"down": "3s"},
    "log_fault": {"for": "3s"},
    "calm": True,
}
BESIDE = {
    "pause": {"for": "1s"},
    "freeze": {"for": "1s"},
    "cut": {"for": "1s"},
    "subscribe": {"topics": ["orders"]},
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_field_that_the_kind_does_not_have_is_refused(specs, kind):
    with pytest.raises(InputError) as caught:
        specs[kind].parse(VALUES[kind], BESIDE.get(kind, {}) | {"forr": "5s"}, AT)
    assert caught.value.where == f"{AT}.forr"
    assert caught.value.found == "the unknown field 'forr'"


@pytest.mark.parametrize(("kind", "known"), [("pause", "for and in_batch"), ("freeze", "for")])
def test_a_field_that_is_close_to_the_one_meant_is_asked_for(specs, kind, known):
    with pytest.raises(InputError) as caught:
        specs[kind].parse("c-0", {"fro": "5s"}, AT)
    assert caught.value.expected == f"only {known} beside it (did you mean 'for'?)"


def check(roster, event):
    event.check(roster, AT, 5_000)


def error_of(roster, event):
    with pytest.raises(InputError) as caught:
        check(roster, event)
    return caught.value.where, caught.value.found


@pytest.mark.parametrize(
    ("event", "where", "found"),
    [
        (kinds.Cut(("c-0",), 1, "both", 1), f"{AT}.broker", "1"),
        (kinds.Slow(1, 1, None, 1), f"{AT}.slow.broker", "1"),
        (kinds.Slow(1, 1, "c-0", 0), f"{AT}.slow", "a member and a broker"),
        (kinds.Slow(1, 1), f"{AT}.slow", "neither a member nor a broker"),
        (kinds.Slow(1, 1, "x"), f"{AT}.slow.member", "'x', which never joined"),
    ],
)
def test_a_fault_of_what_is_not_there_is_refused(roster, event, where, found):
    assert error_of(roster, event) == (where, found)


def test_who_joined_is_there(roster):
    check(roster, kinds.Join((Member("x", ("orders",)), Member("y", (), "o.*"))))
    assert roster.running == {"c-0": True, "x": True, "y": True}


def test_who_joins_must_not_be_there(roster):
    assert error_of(roster, kinds.Join((Member("c-0", ("orders",)),))) == (f"{AT}.join.id", "'c-0'")


def test_who_joins_subscribes_to_topics_that_there_are(roster):
    where, found = error_of(roster, kinds.Join((Member("x", ("orders", "ordres")),)))
    assert (where, found) == (f"{AT}.join.topics[1]", "the unknown topic 'ordres'")
    assert "x" not in roster.running


@pytest.mark.parametrize(
    ("event", "why"),
    [(kinds.Leave(("c-0",)), "left at 5000ms"), (kinds.Crash(("c-0",)), "crashed at 5000ms")],
)
def test_who_left_or_crashed_is_gone(roster, event, why):
    check(roster, event)
    assert roster.running == {"c-0": False}
    assert roster.why_stopped == {"c-0": why}


def test_who_restarts_is_there_again(roster):
    check(roster, kinds.Crash(("c-0",)))
    check(roster, kinds.Restart(("c-0",)))
    assert roster.running == {"c-0": True}


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("leave", kinds.Leave(("c-0",))),
        ("crash", kinds.Crash(("c-0",))),
        ("pause", kinds.Pause(("c-0",), 1)),
        ("freeze", kinds.Freeze(("c-0",), 1)),
        ("cut", kinds.Cut(("c-0",), 1)),
        ("subscribe", kinds.Subscribe(("c-0",), ("orders",), None)),
    ],
)
def test_nothing_happens_to_a_member_that_is_gone(roster, kind, event):
    check(roster, kinds.Leave(("c-0",)))
    assert error_of(roster, event) == (f"{AT}.{kind}", "'c-0', which is not running (left at 5000ms)")


@pytest.mark.parametrize(
    "event",
    [
        kinds.Pause(("c-0",), 1),
        kinds.Freeze(("c-0",), 1),
        kinds.Cut(("c-0",), 1),
        kinds.Subscribe(("c-0",), ("payments",), None),
        kinds.Subscribe(("c-0",), (), "nothing"),
        kinds.RollingRestart(1, 1),
    ],
)
def test_a_member_is_still_there_after_what_it_survives(roster, event):
    check(roster, event)
    assert roster.running == {"c-0": True}


def test_a_subscription_is_to_topics_that_there_are(roster):
    event = kinds.Subscribe(("c-0",), ("orders", "refunds"), None)
    assert error_of(roster, event) == (f"{AT}.topics[1]", "the unknown topic 'refunds'")


def test_topics_that_grew_have_their_new_number_of_partitions(roster):
    check(roster, events.AddPartitions((("orders", 24), ("payments", 4))))
    assert roster.topics == {"orders": 24, "payments": 4}


@pytest.mark.parametrize("count", [11, 12])
def test_a_topic_does_not_shrink_or_stay_as_it_is(roster, count):
    assert error_of(roster, events.AddPartitions((("orders", count),))) == (
        f"{AT}.add_partitions.orders",
        str(count),
    )


def test_a_topic_that_grew_grows_from_there(roster):
    check(roster, events.AddPartitions((("orders", 24),)))
    assert error_of(roster, events.AddPartitions((("orders", 20),)))[1] == "20"


def test_an_empty_group_has_nobody_to_restart_in_turn(roster):
    check(roster, kinds.Leave(("c-0",)))
    assert error_of(roster, kinds.RollingRestart(1, 1)) == (
        f"{AT}.rolling_restart",
        "no members at this time",
    )


class Recorder:
    """A run that writes down what it is told."""

    def __init__(self):
        self.told = []

    def __getattr__(self, name):
        return lambda *arguments, **options: self.told.append(
            (name, *arguments, *([options] if options else []))
        )


BACK = {"assignors": ("range",), "protocol": ""}


@pytest.mark.parametrize(
    ("kind", "event", "told"),
    [
        (
            "join",
            kinds.Join((Member("x"), Member("y"))),
            [
                ("changed", "join", "x"),
                ("start", Member("x")),
                ("changed", "join", "y"),
                ("start", Member("y")),
            ],
        ),
        ("leave", kinds.Leave(("c",)), [("changed", "leave", "c"), ("leave", "c")]),
        ("crash", kinds.Crash(("c",)), [("changed", "crash", "c"), ("crash", "c")]),
        ("restart", kinds.Restart(("c",)), [("changed", "restart", "c"), ("restart", "c")]),
        (
            "pause",
            kinds.Pause(("c",), 5),
            [("changed", "pause", "c"), ("pause", "c", 5, {"in_batch": False})],
        ),
        ("freeze", kinds.Freeze(("c",), 5), [("changed", "freeze", "c"), ("freeze", "c", 5)]),
        (
            "remove_member",
            kinds.RemoveMember(("c", "d")),
            [
                ("changed", "remove_member", "c"),
                ("remove_member", "c"),
                ("changed", "remove_member", "d"),
                ("remove_member", "d"),
            ],
        ),
        ("cut", kinds.Cut(("c",), 5), [("changed", "cut", "c"), ("cut", "c", 5)]),
        (
            "subscribe",
            kinds.Subscribe(("c",), (), "o.*"),
            [("changed", "subscribe", "c"), ("subscribe", "c", (), "o.*")],
        ),
        (
            "add_partitions",
            events.AddPartitions((("t", 9),)),
            [("changed", "add_partitions", "t"), ("add_partitions", "t", 9)],
        ),
        (
            "create_topic",
            events.CreateTopic((("n", Topic(1, Rates.evenly(0, 1))),)),
            [("changed", "create_topic", "n"), ("create_topic", "n", Topic(1, Rates.evenly(0, 1)))],
        ),
        (
            "delete_topic",
            events.DeleteTopic(("t",)),
            [("changed", "delete_topic", "t"), ("delete_topic", "t")],
        ),
        (
            "rolling_restart",
            kinds.RollingRestart(20, 5, True, 4, 3, ("range",)),
            [("rolling_restart", 20, 5, {"kill": True, "batch": 4, "surge": 3, **BACK})],
        ),
        (
            "coordinator_failover",
            events.CoordinatorFailover(3),
            [("coordinator_failover", 3, {"after_append": False})],
        ),
        (
            "coordinator_failover",
            events.CoordinatorFailover(3, "append"),
            [("coordinator_failover", 3, {"after_append": True})],
        ),
        ("log_fault", events.LogFault(9, 3), [("changed", "log_fault", "late"), ("log_fault", 3, 9)]),
        ("log_fault", events.LogFault(9), [("changed", "log_fault", "fails"), ("log_fault", 0, 9)]),
        ("slow", kinds.Slow(9, 3, "c-0"), [("changed", "slow", "c-0"), ("slow", "c-0", 3, 9)]),
        ("slow", kinds.Slow(9, 3, None, 1), [("changed", "slow", "broker 1"), ("slow", 1, 3, 9)]),
        ("cut", kinds.Cut(("c-0",), 9), [("changed", "cut", "c-0"), ("cut", "c-0", 9)]),
        (
            "cut",
            kinds.Cut(("c-0",), 9, "requests", 1),
            [("changed", "cut", "c-0"), ("block", "c-0", 9, "requests", 1)],
        ),
    ],
)
def test_a_kind_carries_out_on_a_run_what_it_says(specs, kind, event, told):
    run = Recorder()
    specs[kind].apply(run, event)
    assert run.told == told

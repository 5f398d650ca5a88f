"""Each kind of event is read from the document, and changes who is there."""

from dataclasses import fields, is_dataclass

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_lab.scenarios import events
from rebalance_lab.scenarios import member_events as kinds
from rebalance_lab.scenarios.roster import Roster
from rebalance_lab.scenarios.scenario import Member
from tests.approved import approved

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


DOCUMENTS = [
    {"join": {"id": "x", "topics": ["orders"]}},
    {"join": [{"id": "x", "topics": ["orders"]}, {"id": "y", "topics": ["payments"]}]},
    {"join": {"id": "x", "count": 2, "topics_pattern": "o.*", "rack": "r", "instance_id": "i"}},
    {"leave": "c-1"},
    {"leave": ["c-1", "c-0"]},
    {"crash": "c-1"},
    {"restart": "c-1"},
    {"remove_member": ["c-1", "c-0"]},
    {"pause": "c-0", "for": "70s"},
    {"freeze": "c-0", "for": "70s"},
    {"cut": "c-0", "for": 1},
    {"cut": "c-0", "for": 1, "way": "responses", "broker": 2},
    {"slow": {"member": "c-0", "by": "1s", "for": "5s"}},
    {"slow": {"broker": 2, "by": "1s", "for": "5s"}},
    {"log_fault": {"for": "5s"}},
    {"log_fault": {"for": "5s", "by": "2s"}},
    {"subscribe": "s1", "topics": ["payments", "orders"]},
    {"subscribe": "s1", "topics_pattern": "o.*"},
    {"add_partitions": {"payments": 6, "orders": 24}},
    {"create_topic": {"refunds": {"partitions": 2, "rate": 10}, "audits": {"partitions": 1}}},
    {"delete_topic": "orders"},
    {"delete_topic": ["orders", "payments"]},
    {"rolling_restart": {"every": "20s", "down": "5s"}},
    {"rolling_restart": {"every": 1, "down": 0, "kill": True, "batch": 10, "surge": 2}},
    {"rolling_restart": {"every": 1, "down": 0, "surge": 2, "assignors": ["range"]}},
    {"coordinator_failover": {"down": "250ms"}},
    {"coordinator_failover": {}},
    {"coordinator_failover": None},
    {"coordinator_failover": {"after": "append"}},
    {"calm": True},
]


class Recorder:
    """A run that writes down its calls: of values with fields, those that are not the default ones."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*values, **options):
            named = [f"{option}={value!r}" for option, value in options.items()]
            self.calls.append(f"{name}({', '.join([*map(self.written, values), *named])})")

        return call

    def written(self, value):
        if not is_dataclass(value):
            return repr(value)
        shown = [f for f in fields(value) if getattr(value, f.name) != f.default]
        return f"{type(value).__name__}({', '.join(f'{f.name}={getattr(value, f.name)!r}' for f in shown)})"


def test_a_kind_is_read_from_the_document_and_carried_out_on_a_run(specs):
    texts = {}
    for document in DOCUMENTS:
        (kind, value), *others = document.items()
        run = Recorder()
        specs[kind].apply(run, specs[kind].parse(value, dict(others), AT))
        texts[str(document)] = "\n".join(run.calls)
    approved("scenario_events", texts)


def test_each_kind_is_among_these_documents(specs):
    assert {next(iter(document)) for document in DOCUMENTS} == specs.keys()


def test_the_kinds_come_in_by_the_entry_point(specs):
    installed = default_registry().scenario_events()
    assert {name: installed[name].doc for name in specs} == {name: spec.doc for name, spec in specs.items()}
    assert installed["join"].parse is specs["join"].parse


def test_each_kind_is_explained_by_an_example(specs):
    assert [name for name, spec in specs.items() if f"{name}:" not in spec.doc] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: next(iter(document)))
def test_a_field_that_the_kind_does_not_have_is_refused(specs, document):
    (kind, value), *others = document.items()
    with pytest.raises(InputError) as caught:
        specs[kind].parse(value, {**dict(others), "forr": "5s"}, AT)
    assert (caught.value.where, caught.value.found) == (f"{AT}.forr", "the unknown field 'forr'")


@pytest.mark.parametrize(("kind", "known"), [("pause", "for and in_batch"), ("freeze", "for")])
def test_a_field_that_is_close_to_the_one_meant_is_asked_for(specs, kind, known):
    with pytest.raises(InputError) as caught:
        specs[kind].parse("c-0", {"fro": "5s"}, AT)
    assert caught.value.expected == f"only {known} beside it (did you mean 'for'?)"


# --- what the checks of a document know of the members and topics at the time of an event


def join(*members):
    return kinds.Join(tuple(Member(*member) for member in members))


def grown(**counts):
    return events.AddPartitions(tuple(counts.items()))


LEAVES, C0, AWAY = kinds.Leave(("c-0",)), ("c-0",), "'c-0', which is not running (left at 5000ms)"
REFUSED = {
    "a cut from a broker that does not exist": ([kinds.Cut(C0, 1, "both", 1)], ".broker", "1"),
    "a slow broker that does not exist": ([kinds.Slow(1, 1, None, 1)], ".slow.broker", "1"),
    "a member and a broker are slow": ([kinds.Slow(1, 1, "c-0", 0)], ".slow", "a member and a broker"),
    "nothing is slow": ([kinds.Slow(1, 1)], ".slow", "neither a member nor a broker"),
    "a slow member that never joined": ([kinds.Slow(1, 1, "x")], ".slow.member", "'x', which never joined"),
    "a member that runs joins": ([join(("c-0", ("orders",)))], ".join.id", "'c-0'"),
    "a member of an unknown topic joins": (
        [join(("x", ("orders", "ordres")))],
        ".join.topics[1]",
        "the unknown topic 'ordres'",
    ),
    "a subscription to an unknown topic": (
        [kinds.Subscribe(C0, ("orders", "refunds"), None)],
        ".topics[1]",
        "the unknown topic 'refunds'",
    ),
    "a topic shrinks": ([grown(orders=11)], ".add_partitions.orders", "11"),
    "a topic stays as it is": ([grown(orders=12)], ".add_partitions.orders", "12"),
    "a topic that grew shrinks": ([grown(orders=24), grown(orders=20)], ".add_partitions.orders", "20"),
    "nobody is restarted in turn": (
        [LEAVES, kinds.RollingRestart(1, 1)],
        ".rolling_restart",
        "no members at this time",
    ),
    "leave after a leave": ([LEAVES, LEAVES], ".leave", AWAY),
    "crash after a leave": ([LEAVES, kinds.Crash(C0)], ".crash", AWAY),
    "pause after a leave": ([LEAVES, kinds.Pause(C0, 1)], ".pause", AWAY),
    "freeze after a leave": ([LEAVES, kinds.Freeze(C0, 1)], ".freeze", AWAY),
    "cut after a leave": ([LEAVES, kinds.Cut(C0, 1)], ".cut", AWAY),
    "subscribe after a leave": ([LEAVES, kinds.Subscribe(C0, ("orders",), None)], ".subscribe", AWAY),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_event_that_does_not_fit_those_before_it_is_refused(roster, case):
    (*before, event), where, found = REFUSED[case]
    for earlier in before:
        earlier.check(roster, AT, 5_000)
    with pytest.raises(InputError) as caught:
        event.check(roster, AT, 5_000)
    assert (caught.value.where, caught.value.found) == (f"{AT}{where}", found)
    assert "x" not in roster.running


@pytest.mark.parametrize(
    ("taken", "running", "why_stopped"),
    [
        ([join(("x", ("orders",)), ("y", (), "o.*"))], {"c-0": True, "x": True, "y": True}, {}),
        ([LEAVES], {"c-0": False}, {"c-0": "left at 5000ms"}),
        ([kinds.Crash(C0)], {"c-0": False}, {"c-0": "crashed at 5000ms"}),
        ([kinds.Crash(C0), kinds.Restart(C0)], {"c-0": True}, {"c-0": "crashed at 5000ms"}),
        ([kinds.Pause(C0, 1), kinds.Freeze(C0, 1), kinds.Cut(C0, 1)], {"c-0": True}, {}),
        ([kinds.Subscribe(C0, ("payments",), None)], {"c-0": True}, {}),
        ([kinds.Subscribe(C0, (), "nothing"), kinds.RollingRestart(1, 1)], {"c-0": True}, {}),
    ],
)
def test_members_run_until_they_leave_or_crash(roster, taken, running, why_stopped):
    for event in taken:
        event.check(roster, AT, 5_000)
    assert (roster.running, roster.why_stopped) == (running, why_stopped)


def test_topics_that_grew_have_their_new_number_of_partitions(roster):
    grown(orders=24, payments=4).check(roster, AT, 5_000)
    assert roster.topics == {"orders": 24, "payments": 4}

"""A group as a document: what each field becomes, and each error with its place."""

import json

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from coordinator_core.model import GroupAssignment, Partitions
from rebalance_lab.scenarios import groups as group_document
from rebalance_lab.scenarios.groups import assignment_document, parse_group, scenario_document
from rebalance_lab.scenarios.scenario import parse_scenario
from tests.approved import approved
from tests.places import DATA


def group(members=(), **topics):
    return {"topics": topics, "members": list(members)}


def member(**fields):
    return {"id": "C0", "topics": ["t"], **fields}


def error_of(document):
    with pytest.raises(InputError) as caught:
        parse_group(document, "line 3")
    return caught.value


# --- fields


def test_a_group_has_a_cluster_members_in_their_order_and_an_assignor():
    document = group(
        [{"id": "C2", "topics": ["t"]}, {"id": "C0", "topics": []}, {"id": "C1", "topics": ["u", "t"]}],
        u={"partitions": 1},
        t={"partitions": 3},
    )
    parsed = parse_group(document | {"assignor": "range"}, "line 3")
    assert list(parsed.group) == ["C2", "C0", "C1"]
    assert parsed.group["C1"].topics == ("u", "t")
    assert {name: topic.partitions for name, topic in parsed.cluster.topics.items()} == {"t": 3, "u": 1}
    assert parsed.assignor == "range"


def test_what_is_optional_may_be_absent_or_null():
    absent = parse_group(group([member()], t={"partitions": 2}), "line 3")
    fields = dict.fromkeys(("instance_id", "rack", "owned", "generation", "capacity"))
    nothing = group([member(**fields)], t={"partitions": 2, "racks": None, "weights": None})
    null = parse_group(nothing | {"assignor": None}, "line 3")
    for parsed in (absent, null):
        subscription, topic = parsed.group["C0"], parsed.cluster.topics["t"]
        assert (subscription.instance_id, subscription.rack, subscription.capacity) == (None, None, None)
        assert list(subscription.owned) == []
        assert subscription.generation == -1
        assert (topic.racks, topic.weights) == (None, None)
        assert parsed.assignor is None


def test_fields_of_the_line_that_are_not_the_contracts_are_left_alone():
    document = group() | {"name": 7, "expected": {}, "chain": 1, "step": [None]}
    before = json.dumps(document)
    parse_group(document, "line 3")
    assert json.dumps(document) == before


# --- errors


def test_each_wrong_group_has_an_error_that_names_the_place_what_was_found_and_what_was_expected():
    wrong = yaml.safe_load((DATA / "wrong_groups.yaml").read_text(encoding="utf-8"))
    assert len(wrong) > 50
    approved("group_errors", {json.dumps(document): str(error_of(document)) for document in wrong})


def test_more_partitions_than_an_assignment_can_hold_are_an_error(monkeypatch):
    """Over all topics: one line must not take the memory of those that follow."""
    monkeypatch.setattr(group_document, "MOST_PARTITIONS_IN_ALL", 10)
    assert parse_group(group(t={"partitions": 6}, u={"partitions": 4}), "line 3")
    error = error_of(group(t={"partitions": 6}, u={"partitions": 5}))
    assert str(error) == "line 3: topics: found 11 partitions in all, expected at most 10"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.sampled_from(["", "t", "C0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["topics", "members", "id", "t", "partitions", "racks", "weights", "owned"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(VALUES | st.fixed_dictionaries({"topics": VALUES, "members": st.lists(VALUES, max_size=2)}))
def test_whatever_a_document_is_it_is_a_group_or_one_clear_error(document):
    error = None
    try:
        parse_group(document, "line 3")
    except InputError as wrong:
        error = wrong
    assert error is None or (error.where.startswith("line 3") and error.found and error.expected)


NAMES = st.sampled_from([*["t", "u", "C0", "C1"] * 10, "", " ", "\x1f", "x" * 249, "x" * 250])
WRONG = [-2, -1, 2.0, 0.5, True, float("inf"), 2**31 - 1, 2**31, 10**400, "1"]
NUMBERS = st.sampled_from([*[0, 1, 2] * 20, *WRONG])
TOPICS = st.fixed_dictionaries(
    {"partitions": NUMBERS},
    optional={
        "racks": st.none() | st.lists(st.none() | st.lists(NAMES, max_size=1), max_size=2),
        "weights": st.none() | st.lists(NUMBERS, max_size=2),
    },
)
MEMBERS = st.fixed_dictionaries(
    {"id": NAMES, "topics": st.lists(NAMES, max_size=3)},
    optional={
        "owned": st.none() | st.lists(st.tuples(NAMES, NUMBERS).map(list), max_size=3),
        "generation": st.none() | NUMBERS,
        "rack": st.none() | NAMES,
        "instance_id": st.none() | NAMES,
        "capacity": st.none() | NUMBERS,
    },
)
GROUPS = st.fixed_dictionaries(
    {"topics": st.dictionaries(NAMES, TOPICS, max_size=2), "members": st.lists(MEMBERS, max_size=2)},
    optional={"assignor": st.none() | NAMES, "name": st.none()},
)


def content(parsed):
    """What a parsed group has, as plain values. Owned partitions are in the order of their topics."""
    topics = {name: (t.partitions, t.racks, t.weights) for name, t in parsed.cluster.topics.items()}
    members = {
        name: (
            m.topics,
            sorted({(tp.topic, tp.partition) for tp in m.owned}),
            m.generation,
            m.rack,
            m.instance_id,
            m.capacity,
        )
        for name, m in parsed.group.items()
    }
    return topics, members, parsed.assignor


def written(document):
    """The same of the document, as it is written."""
    topics = {
        name: (
            t["partitions"],
            None if t.get("racks") is None else tuple(tuple(names or ()) for names in t["racks"]),
            None if t.get("weights") is None else tuple(t["weights"]),
        )
        for name, t in document["topics"].items()
    }
    members = {
        m["id"]: (
            tuple(dict.fromkeys(m["topics"])),
            sorted({(topic, number) for topic, number in m.get("owned") or ()}),
            -1 if m.get("generation") is None else m["generation"],
            m.get("rack"),
            m.get("instance_id"),
            m.get("capacity"),
        )
        for m in document["members"]
    }
    return topics, members, document.get("assignor")


def is_text(value):
    return isinstance(value, str) and 0 < len(value) < 250 and value.strip() != ""


def is_whole(value, low):
    return isinstance(value, int) and not isinstance(value, bool) and low <= value < 2**31


def is_amount(value, low):
    return not isinstance(value, (bool, str)) and low <= value < 1e100 and value >= 0


def is_right(document):
    """Whether a document of `GROUPS` is a group, by the words of the contract."""
    topics, members = document["topics"], document["members"]
    texts = [
        *topics,
        *(t for m in members for t in m["topics"]),
        *(n for t in topics.values() for names in t.get("racks") or () for n in names or ()),
    ]
    texts += [m[key] for m in members for key in ("rack", "instance_id") if m.get(key) is not None]
    texts += [document["assignor"]] if document.get("assignor") is not None else []
    numbers = [t["partitions"] for t in topics.values()] + [
        n for m in members for _, n in m.get("owned") or ()
    ]
    return (
        all(map(is_text, texts))
        and all(is_whole(number, 0) for number in numbers)
        and all(is_whole(m["generation"], -1) for m in members if m.get("generation") is not None)
        and all(is_amount(w, 0) for t in topics.values() for w in t.get("weights") or ())
        and all(is_amount(m["capacity"], 1e-300) for m in members if m.get("capacity") is not None)
        and all(
            len(t[key]) == t["partitions"]
            for t in topics.values()
            for key in ("racks", "weights")
            if t.get(key) is not None
        )
        and sum(t["partitions"] for t in topics.values()) <= group_document.MOST_PARTITIONS_IN_ALL
        and all(m["id"] for m in members)
        and len({m["id"] for m in members}) == len(members)
    )


@given(GROUPS)
@example({"topics": {"t": {"partitions": 2}}, "members": [member(owned=[["t", 1], ["u", 0], ["t", 0]])]})
@example({"topics": {"t": {"partitions": 2}}, "members": [member(owned=[["t", 1], ["t", 1]])]})
@example({"topics": {"t": {"partitions": 2}}, "members": [member(owned=[["t", 1], ["t", 0]])]})
@example({"topics": {"t": {"partitions": 0, "racks": [], "weights": []}}, "members": []})
@example(
    {"topics": {"t": {"partitions": 3, "racks": [["r1"], [], None], "weights": [0, 1, 2]}}, "members": []}
)
@example({"topics": {}, "members": [member(topics=["t", "u", "t"], generation=2**31 - 1, capacity=2)]})
@example({"topics": {}, "members": [member(instance_id="u", rack="t", generation=-1)]})
def test_a_document_is_read_as_it_is_written_or_refused_at_a_place_inside_it(document):
    if is_right(document):
        assert content(parse_group(document, "line 3")) == written(document)
    else:
        assert error_of(document).where.startswith("line 3: ")


# --- assignments


def test_an_assignment_is_written_in_the_order_of_members_and_of_each_ones_partitions():
    assignment = GroupAssignment({"a": Partitions.of([("t", 1), ("t", 0), ("u", 0)]), "b": Partitions.of([])})
    document = assignment_document(assignment, ["b", "a"])
    assert list(document) == ["b", "a"]
    assert document == {"b": [], "a": [[t, n] for t, n in assignment["a"]]}
    assert sorted(document["a"]) == [["t", 0], ["t", 1], ["u", 0]]


# --- as a scenario


def scenario_of(document):
    """The scenario of a group; it is one."""
    made = scenario_document(parse_group(document, "line 3"), "live")
    parse_scenario(made, where="live")
    return made


def owned_in(*members, **topics):
    """What each member of the scenario owns, and in which generation; None for who joins."""
    made = scenario_of(group(members, **(topics or {"t": {"partitions": 4}})))
    return {m["id"]: (m["owned"], m.get("generation")) if "owned" in m else None for m in made["members"]}


def claims(name, *numbers, **fields):
    return {"id": name, "topics": ["t"], "owned": [["t", n] for n in numbers], **fields}


def test_over_many_groups_each_member_leaves_as_often():
    listed = [{"id": name, "topics": ["t"]} for name in "abc"]
    parsed = parse_group(group(listed, t={"partitions": 3}), "here")
    leaving = [scenario_document(parsed, f"group-{n}")["events"][0]["leave"] for n in range(300)]
    assert all(80 < leaving.count(name) < 120 for name in "abc")
    assert leaving == [scenario_document(parsed, f"group-{n}")["events"][0]["leave"] for n in range(300)]


def test_a_group_is_a_scenario_in_which_a_member_leaves():
    everything = {"capacity": 5, "rack": "r", "instance_id": "i"}
    made = scenario_of(
        group(
            [{"id": "a", "topics": ["t", "nowhere"], **everything}, {"id": "b", "topics": ["u"]}],
            t={"partitions": 2, "weights": [3, 4]},
            u={"partitions": 1},
        )
    )
    assert made == {
        "name": "live",
        "duration": "10m",
        "topics": {"t": {"partitions": 2, "rates": [3, 4]}, "u": {"partitions": 1}},
        "members": [
            {"id": "a", "topics": ["t"], "process_rate": 5, "rack": "r", "instance_id": "i"},
            {"id": "b", "topics": ["u"]},
        ],
        "events": [{"at": "5m", "leave": "b"}],
    }


def test_who_has_no_topic_of_the_group_is_left_out_and_who_is_alone_stays():
    made = scenario_of(group([member(), {"id": "C1", "topics": ["nowhere"]}], t={"partitions": 1}))
    assert [m["id"] for m in made["members"]] == ["C0"]
    assert made["events"] == []


def test_who_owns_something_runs_and_the_others_join():
    assert owned_in(claims("a", 2, 0), member(id="b")) == {"a": ({"t": [0, 2]}, None), "b": None}


def test_the_newest_generation_runs_whoever_owns_nothing_in_it_too():
    assert owned_in(
        claims("a", 0, generation=6), claims("b", 1, generation=5), claims("c", generation=6), claims("d", 3)
    ) == {"a": ({"t": [0]}, 6), "b": None, "c": ({}, 6), "d": None}


def test_a_generation_of_nought_is_none_that_a_scenario_says():
    assert owned_in(claims("a", 0, generation=0)) == {"a": ({"t": [0]}, None)}


def test_claims_that_cannot_be_do_not_count():
    """Of a partition there is not, of a topic nobody described or subscribes to, of two members."""
    stale = claims("a", 0, 1, 9)
    stale["owned"] += [["u", 0], ["nowhere", 0]]
    topics = {"t": {"partitions": 4}, "u": {"partitions": 1}}
    assert owned_in(stale, claims("b", 1, 2), **topics) == {"a": ({"t": [0]}, None), "b": ({"t": [2]}, None)}


@pytest.mark.parametrize(
    "members",
    [
        [member(id="a"), member(id="b")],
        [claims("a", generation=3), claims("b", generation=3)],
        [claims("a", 9, generation=3), claims("b", 1)],
    ],
    ids=["nobody said", "nothing", "nothing that can be"],
)
def test_where_nobody_owns_anything_everybody_joins(members):
    assert owned_in(*members) == {"a": None, "b": None}

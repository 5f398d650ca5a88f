"""Types of documents: of a wrong value the search finds the error, and its texts are those of the type."""

import copy
from typing import Annotated

import msgspec
import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.documents import Amount, Bounds, Document, Duration, Text, Time, about, read
from rebalance_lab.scenarios.scenario import parse_scenario

RIGHT = {
    "name": "deploy",
    "duration": "10m",
    "seed": 1,
    "description": "why",
    "topics": {
        "orders": {"partitions": 2, "rates": [1, 2.5], "backlog": [3, 0], "racks": [["a"], None]},
        "refunds": {"partitions": 1, "rates_rows": [[1], [2]], "interval": "5m"},
    },
    "members": [
        {"id": "a", "topics": ["orders"], "process_rate": 5, "restore": ["1s", "2s"], "client": "java"},
        {"id": "b", "topics_pattern": ".*", "owned": {"orders": [0]}, "generation": 3, "config": {}},
    ],
    "events": [
        {"at": "1s", "freeze": ["a"], "for": "3s"},
        {"at": "2s", "join": [{"id": "c", "count": 2, "topics": ["orders"], "assignors": ["range"]}]},
        {"at": "3s", "rolling_restart": {"every": "20s", "down": 0, "kill": True, "batch": 2}},
        {"at": "4s", "add_partitions": {"orders": 4}},
        {"at": "5s", "create_topic": {"payments": {"partitions": 6, "rate": 100}}},
        {"at": "6s", "lag_view": {"member": "a", "by": "10s"}},
        {"at": "7s", "subscribe": "a", "topics": ["orders"]},
        {"at": "8s", "coordinator_failover": None},
    ],
    "network": {"latency": ["1ms", "5ms"], "loss": 0.5},
    "measure": {"from": "0s"},
}
WRONG = [None, True, -1, 0.5, 10**400, float("nan"), "", " ", "x" * 250, [], {}, [None], {"": 1}, {1: 2}]


def places(value, place=()):
    """Yield the path of each value in a document."""
    yield place
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*place, key))


def replaced(place, wrong):
    if not place:
        return wrong
    document = copy.deepcopy(RIGHT)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = wrong
    return document


def error_of(document):
    try:
        parse_scenario(document, where="x.yaml")
    except InputError as error:
        return error
    return None


def test_whatever_is_wrong_in_a_scenario_is_an_error_in_words_of_documents():
    """Not in those of msgspec, which the search falls back to where it finds nothing."""
    assert error_of(RIGHT) is None
    errors = [error_of(replaced(place, wrong)) for place in places(RIGHT) for wrong in WRONG]
    found = [error for error in errors if error is not None]
    assert len(found) > 800
    assert [str(e) for e in found if not e.where.startswith("x.yaml") or "`" in e.expected] == []


class Room(Document, frozen=True, kw_only=True):
    name: Annotated[Text, about(missing="the name of the room")]
    area: Annotated[Amount | None, about("In square metres.")] = None
    doors: Annotated[
        Annotated[list[Text], msgspec.Meta(min_length=1)], about(of="doors", least="a door at least")
    ]
    opens: Annotated[Duration, about()] = msgspec.field(name="opens at")
    closes: Time
    heights: Bounds = Bounds((1, 2))


ROOM = {"name": "hall", "doors": ["north"], "opens at": "1s", "closes": 5}


@pytest.mark.parametrize(
    ("changes", "where", "found", "expected"),
    [
        ({"name": None}, "house.name", "nothing", "the name of the room"),
        ({"name": 5}, "house.name", "5", "text"),
        ({"area": -1}, "house.area", "-1", "a number not negative"),
        ({"doors": "north"}, "house.doors", "'north'", "a list of doors"),
        ({"doors": []}, "house.doors", "an empty list", "a door at least"),
        ({"doors": ["north", ""]}, "house.doors[1]", "''", "text"),
        ({"opens at": "-1s"}, "house.opens at", "'-1s'", "a duration such as"),
        ({"closes": 0}, "house.closes", "0", "a duration of at least 1ms"),
        ({"heights": ["3s", "2s"]}, "house.heights", "[3s, 2s]", "the shortest duration first"),
        ({"door": 1}, "house.door", "the unknown field 'door'", "one of name, area, doors, opens at"),
    ],
)
def test_an_error_has_the_texts_of_the_type(changes, where, found, expected):
    with pytest.raises(InputError) as caught:
        read(Room, ROOM | changes, "house")
    assert (caught.value.where, caught.value.found) == (where, found)
    assert caught.value.expected.startswith(expected)


def test_a_right_value_is_one_of_the_type():
    assert read(Room, ROOM | {"area": None, "heights": "7s"}, "house") == Room(
        name="hall", doors=["north"], opens=Duration(1_000), closes=Time(5), heights=Bounds((7_000, 7_000))
    )

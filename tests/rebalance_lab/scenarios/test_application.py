"""The fields of a member's application: defaults, spans, and errors."""

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.application import CLIENTS, Application
from rebalance_lab.scenarios.scenario import parse_scenario


def application(**fields):
    document = {
        "name": "s",
        "duration": "1m",
        "topics": {"t": {"partitions": 1}},
        "members": [{"id": "m", "topics": ["t"], **fields}],
    }
    return parse_scenario(document, where="s.yaml").members[0].application


def test_a_member_that_handles_records_in_no_time_has_no_overhead():
    assert application() == Application()
    assert application().batch_overhead == (0, 0)
    assert application(batch_overhead="5ms").batch_overhead == (5, 5)


def test_a_poll_of_a_member_with_a_process_rate_takes_five_milliseconds():
    assert application(process_rate=10).batch_overhead == (5, 5)
    assert application(process_rate=10, batch_overhead=0).batch_overhead == (0, 0)


@pytest.mark.parametrize(
    "field", ["batch_overhead", "on_revoked", "on_assigned", "restore", "start_up", "shut_down"]
)
def test_a_time_is_a_duration_or_the_shortest_and_the_longest(field):
    assert getattr(application(**{field: "2s"}), field) == (2_000, 2_000)
    assert getattr(application(**{field: ["300ms", "2s"]}), field) == (300, 2_000)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_one_of_those_that_are_known(client):
    assert application(client=client).client == client


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"client": "sarama"}, "members[0].client: found 'sarama'"),
        ({"record_cv": -1}, "members[0].record_cv: found -1"),
        ({"on_revoked": ["2s", "1s"]}, "members[0].on_revoked: found [2s, 1s]"),
        ({"restore": ["2s"]}, "members[0].restore: found a list of 1"),
        ({"start_up": ["1s", "soon"]}, "members[0].start_up[1]: found 'soon'"),
        ({"restored": "2s"}, "members[0].restored: found the unknown field 'restored'"),
    ],
)
def test_a_wrong_field_is_one_error_with_its_place(fields, message):
    with pytest.raises(InputError) as caught:
        application(**fields)
    assert message in str(caught.value)

"""Rates and backlog of partitions from what monitoring has of them."""

import json
from datetime import UTC

import pytest

from coordinator_core.errors import InputError
from coordinator_core.model import TopicPartition
from rebalance_logs.causes import Stop
from rebalance_logs.incident import scenario_of
from rebalance_logs.lags import read_load
from tests.places import DATA
from tests.rebalance_logs.test_round_trip import diagnosis

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def load(tmp_path, text, *stops, name="lag.csv"):
    path = tmp_path / name
    path.write_text(text)
    return read_load(path, "pay", list(stops), UTC)


def csv_of(head, *rows):
    return "\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n"


def test_end_offsets_give_the_rates(tmp_path):
    rows = [(10 * n, "t", p, 100 * n * (p + 1)) for n in range(4) for p in (0, 1)]
    found = load(tmp_path, csv_of("time,topic,partition,log_end_offset", *rows))
    assert found.rates == {T0: 10.0, T1: 20.0}
    assert found.source == "end offsets of 2 partitions in lag.csv"


@pytest.mark.parametrize(
    ("offsets", "rate"),
    [
        ([900, 100], {}),
        ([900, 100, 0], {}),
        ([0, 100, 20, 120], {T0: 10.0}),
        ([0, 100, 100, 0], {T0: 5.0}),
    ],
    ids=["once", "always", "between two steps", "at last"],
)
def test_an_offset_that_goes_back_has_no_rate_then(offsets, rate, tmp_path):
    rows = [(10 * n, "t", 0, offset) for n, offset in enumerate(offsets)]
    assert load(tmp_path, csv_of("time,topic,partition,end_offset", *rows)).rates == rate


@pytest.mark.parametrize(
    ("metric", "offsets"),
    [
        ("kafka_consumergroup_current_offset", "committed offsets"),
        ("kafka_committed_offsets", "committed offsets"),
        ("kafka_topic_partition_current_offset", "end offsets"),
    ],
)
def test_the_name_of_a_metric_says_which_offsets_it_has(metric, offsets, tmp_path):
    labels = {"__name__": metric, "topic": "t", "partition": "0"}
    answer = {"data": {"result": [{"metric": labels, "values": [[0, "0"], [10, "100"]]}]}}
    found = load(tmp_path, json.dumps(answer), name="lag.json")
    assert (found.rates, found.source) == ({T0: 10.0}, f"{offsets} of 1 partition in lag.json")


def test_times_may_be_in_milliseconds(tmp_path):
    rows = [(1_795_000_000_000 + 1_000 * n, "t", 0, 10 * n) for n in range(4)]
    assert load(tmp_path, csv_of("ts,topic,partition,end_offset", *rows)).rates == {T0: 10.0}


def test_committed_offsets_and_lag_are_end_offsets(tmp_path):
    rows = [
        ("pay", f"2026-11-23T08:00:{n:02}Z", "t", 0, 50 * (n // 20), 10 * n - 50 * (n // 20) + 7)
        for n in range(0, 40, 10)
    ]
    rows += [("others", "2026-11-23T08:00:00Z", "t", 1, 5, 5)]
    found = load(tmp_path, csv_of("GROUP,TIMESTAMP,TOPIC,PARTITION,CURRENT-OFFSET,LAG", *rows))
    assert found.rates == {T0: pytest.approx(10.0)}
    assert found.backlog == {T0: 7}


def test_lag_alone_grows_at_the_rate_while_a_partition_stands_still(tmp_path):
    answer = {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {
                    "metric": {
                        "__name__": "kafka_consumergroup_lag",
                        "consumergroup": "pay",
                        "topic": "t",
                        "partition": "0",
                    },
                    "values": [[0, "5"], [10, "4"], [20, "304"], [30, "604"], [40, "3"]],
                },
                {"metric": {"topic": "t", "partition": "1"}, "values": [[0, "5"], [10, "6"]]},
                {"metric": {"group": "ship", "topic": "t", "partition": "2"}, "values": [[0, "5"]]},
            ],
        },
    }
    stop = Stop(T0, "c-1", 9_000, 31_000)
    found = load(tmp_path, json.dumps(answer), stop, name="lag.json")
    assert found.rates == {T0: 30.0}
    assert found.backlog == {T0: 5, T1: 5}
    assert found.source == "the lag of 1 partition in lag.json that stood still at times"


def test_an_incident_has_the_rates_and_the_backlog(tmp_path):
    group = diagnosis(DATA / "logs" / "java-leave-join")
    rows = [(n, "orders", p, 30 * n, 9) for n in (0, 10) for p in range(11)]
    path = tmp_path / "lag.csv"
    path.write_text(csv_of("ts,topic,partition,end_offset,lag", *rows))
    document, guesses = scenario_of(group, read_load(path, "payments", group.stops, UTC))
    assert document["topics"] == {
        "orders": {"partitions": 12, "rates": [30.0] * 12, "backlog": [9] * 11 + [0]}
    }
    shown = "rates of records: from end offsets of 11 partitions in lag.csv; 30 records/s where they are not"
    assert f"{shown} known" in guesses


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "with the columns none"),
        ("a,b\n1,2\n", "with the columns a, b"),
        ("time,topic,partition,lag\n", "without figures of pay"),
        ("time,topic,partition,lag\n1,t,x,3\n", "with the partition 'x'"),
        ("time,topic,partition,lag\n1,t,0,many\n", "with 'many'"),
        ("time,topic,partition,lag\nnoon,t,0,3\n", "with the time 'noon'"),
        ("time,topic,partition,lag,group\n1,t,0,3,ship\n", "without figures of pay"),
        ('{"data": 3}', "Expected `object`"),
        ("{", "Input data was truncated"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text, problem, tmp_path):
    with pytest.raises(InputError, match=f"--lag: found .*{problem}"):
        load(tmp_path, text)


def test_lag_is_for_a_scenario(lab):
    answer = lab("diagnose", DATA / "logs" / "java-killed", "--lag", "lag.csv")
    assert (answer.status, answer.err) == (
        2,
        "error: --lag: found no -o, expected -o FILE, the scenario that gets the rates\n",
    )

"""Every wording is found in its example, and by no other before it."""

import pytest

from rebalance_logs.partitions import assignments_of, partitions_of
from rebalance_logs.reading import FORMATS, read_logs

WORDINGS = [(of, wording) for of in FORMATS for wording in of.wordings]


@pytest.mark.parametrize(
    ("of", "wording"), WORDINGS, ids=[f"{of.name}: {wording.words}" for of, wording in WORDINGS]
)
def test_an_example_is_read_as_what_it_says(of, wording, tmp_path):
    prefix = "[Consumer clientId=c-1, groupId=pay] " if of.library == "java" else ""
    (tmp_path / "x.log").write_text(f"[2026-01-31 12:34:56,789] INFO {prefix}{wording.example}\n")
    (fact,) = read_logs([str(tmp_path)]).facts
    assert fact.kind is wording.kind
    assert fact.library == of.library
    assert wording.words in wording.example


@pytest.mark.parametrize(
    "text",
    [
        "orders-0, orders-1, big-topic-3",
        "[orders-0, orders-1, big-topic-3]",
        '{"orders":[0,1],"big-topic":[3]}',
        "orders[0 1] big-topic[3]",
        "{TopicPartition(topic='orders', partition=0), TopicPartition(topic='orders', partition=1),"
        " TopicPartition(topic='big-topic', partition=3)}",
    ],
)
def test_partitions_are_read_in_the_form_of_every_client(text):
    assert partitions_of(text) == {"orders": [0, 1], "big-topic": [3]}


def test_an_assignment_of_the_leader_is_read_although_it_is_cut_off():
    text = "{c-2-x=Assignment(partitions=[orders-2, orders-5]), c-0-y=Assignment(partitions=[orders-0, ord"
    assert assignments_of(text) == {"c-2-x": {"orders": [2, 5]}, "c-0-y": {"orders": [0]}}

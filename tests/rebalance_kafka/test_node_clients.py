"""Administration and records by clients of Node, each in a separate process."""

import pytest

from tests.rebalance_kafka.peers import missing, wait_until
from tests.rebalance_kafka.peers.stage import GROUP, Stage

pytestmark = [pytest.mark.peer, pytest.mark.slow]

TOPIC = "orders"
STRATEGIES = {"kafkajs": "range", "platformatic": "range", "kafka-ts": "RoundRobinAssigner"}
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(bool(missing(kind)), reason=missing(kind) or ""))
    for kind in STRATEGIES
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_is_made_filled_and_deleted(tmp_path, kind):
    with Stage(tmp_path, {"others": 1}) as stage:
        tool = stage.tool(kind)
        tool.ask("create", topic=TOPIC, count=2, configs={"retention.ms": "1000"})
        assert tool.ask("topics")["topics"] == [TOPIC, "others"]
        assert tool.ask("configs", topic=TOPIC)["configs"] == {"retention.ms": "1000"}
        tool.ask("alter", topic=TOPIC, configs={"retention.ms": "2000"})
        assert tool.ask("configs", topic=TOPIC)["configs"] == {"retention.ms": "2000"}
        tool.ask("grow", topic=TOPIC, count=3)
        assert stage.broker.topics == {"others": 1, TOPIC: 3}
        for values in (["a", "b"], ["c"]):
            tool.ask("produce", topic=TOPIC, partition=1, values=values)
        tool.ask("delete_records", topic=TOPIC, partition=1, before=1)
        assert tool.ask("offsets", topic=TOPIC)["offsets"] == [[0, 0, 0], [1, 1, 3], [2, 0, 0]]
        tool.ask("delete_topic", topic=TOPIC)
        assert stage.broker.topics == {"others": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_a_group_is_listed_described_and_deleted(tmp_path, kind):
    with Stage(tmp_path, {TOPIC: 4}) as stage:
        tool = stage.tool(kind)
        members = [stage.member(kind, STRATEGIES[kind]) for _ in range(3)]

        def described():
            return tool.ask("describe", group=GROUP)

        whole = {"state": "STABLE", "protocol": STRATEGIES[kind], "clients": sorted(m.name for m in members)}
        wait_until(lambda: whole.items() <= described().items(), what=f"that {whole} is described")
        assert tool.ask("groups")["groups"] == [GROUP]
        for member in members:
            member.close()
        wait_until(lambda: described()["state"] == "EMPTY", what="that the group is empty")
        tool.ask("delete_group", group=GROUP)
        assert tool.ask("groups")["groups"] == []

"""The real broker of the tests: it is the version that was chosen, and keeps its groups over a restart."""

import asyncio

import pytest

from tests.real_kafka.broker import Kafka
from tests.real_kafka.jars import GIVEN, jars
from tests.real_kafka.settings import SHORT
from tests.real_kafka.versions import chosen
from tests.real_kafka.wire import Key, ask


def groups_of(kafka):
    listed = asyncio.run(ask(kafka.address, Key.LIST_GROUPS, 5, {"states_filter": [], "types_filter": []}))
    return {group["group_id"] for group in listed["groups"]}


def commit(kafka, group):
    offset = {"partition_index": 0, "committed_offset": 7, "committed_leader_epoch": -1}
    topics = [{"name": "t", "partitions": [{**offset, "committed_metadata": ""}]}]
    identity = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    made = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    create = {"topics": [made], "timeout": 10_000, "validate_only": False}
    asyncio.run(ask(kafka.address, Key.CREATE_TOPICS, 7, create))
    done = asyncio.run(ask(kafka.address, Key.OFFSET_COMMIT, 8, {**identity, "topics": topics}))
    return done["topics"][0]["partitions"][0]["error_code"]


def test_the_jars_are_of_the_chosen_version(kafka):
    with_version = jars() / f"kafka-clients-{chosen()}.jar"
    assert with_version.exists(), f"{GIVEN} has another version"


def test_a_group_is_there_after_a_restart(kafka, tmp_path):
    with Kafka(tmp_path, SHORT) as own:
        assert commit(own, "kept") == "none"
        own.stop()
        own.start()
        assert "kept" in groups_of(own)
    assert not (tmp_path / "data").exists()


def test_a_broker_that_cannot_start_fails_with_its_log(kafka, tmp_path):
    with pytest.raises(RuntimeError, match="soon"):
        Kafka(tmp_path, {"group.min.session.timeout.ms": "soon"}).__enter__()

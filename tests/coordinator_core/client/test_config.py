"""The settings: Kafka's names and defaults, and combinations that cannot work."""

import msgspec
import pytest

from coordinator_core.client.config import ClientConfig
from coordinator_core.errors import InputError


def test_the_defaults_are_kafkas():
    """PROTOCOL 9.9, 9.10, 9.11, 9.12."""
    assert msgspec.to_builtins(ClientConfig(group_id="g")) == {
        "group.id": "g",
        "client.id": "consumer",
        "group.instance.id": None,
        "client.rack": None,
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 3_000,
        "max.poll.interval.ms": 300_000,
        "enable.auto.commit": True,
        "auto.commit.interval.ms": 5_000,
        "auto.offset.reset": "latest",
        "isolation.level": "read_uncommitted",
        "request.timeout.ms": 30_000,
        "default.api.timeout.ms": 60_000,
        "retry.backoff.ms": 100,
        "metadata.max.age.ms": 300_000,
        "max.poll.records": 500,
        "fetch.max.wait.ms": 500,
        "max.partition.fetch.bytes": 1_048_576,
    }


def test_settings_are_read_under_kafkas_names():
    config = msgspec.convert({"group.id": "g", "max.poll.records": 7}, ClientConfig)
    assert config.max_poll_records == 7
    with pytest.raises(msgspec.ValidationError, match="max_poll_records"):
        msgspec.convert({"group.id": "g", "max_poll_records": 7}, ClientConfig)


@pytest.mark.parametrize(
    "name",
    [
        "session_timeout_ms",
        "heartbeat_interval_ms",
        "max_poll_interval_ms",
        "auto_commit_interval_ms",
        "request_timeout_ms",
        "default_api_timeout_ms",
        "retry_backoff_ms",
        "metadata_max_age_ms",
        "max_poll_records",
    ],
)
def test_times_and_counts_are_one_or_more(name):
    where = name.replace("_", ".")
    with pytest.raises(InputError, match=f"^{where}: found 0, expected 1 or more"):
        ClientConfig(group_id="g", **{name: 0})


def test_the_heartbeat_interval_is_less_than_the_session_timeout():
    """PROTOCOL 9.9."""
    with pytest.raises(InputError, match=r"heartbeat\.interval\.ms: found 10, expected less than"):
        ClientConfig(group_id="g", heartbeat_interval_ms=10, session_timeout_ms=10)
    ClientConfig(group_id="g", heartbeat_interval_ms=9, session_timeout_ms=10)


def test_the_reset_policy_is_one_of_three():
    """PROTOCOL 9.11."""
    for known in ("earliest", "latest", "none"):
        ClientConfig(group_id="g", auto_offset_reset=known)
    with pytest.raises(InputError, match=r"auto\.offset\.reset: found 'first'"):
        ClientConfig(group_id="g", auto_offset_reset="first")


@pytest.mark.parametrize(("name", "number"), [("read_uncommitted", 0), ("read_committed", 1)])
def test_the_isolation_level_is_one_of_two(name, number):
    assert ClientConfig(group_id="g", isolation=name).isolation_level == number
    with pytest.raises(InputError, match=r"isolation\.level: found 'serializable', expected one of read_unc"):
        ClientConfig(group_id="g", isolation="serializable")

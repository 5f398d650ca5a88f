"""The metadata of a consumer, and when it requests them."""

import pytest

from coordinator_core.client.requests import Failure
from coordinator_core.model import TopicInfo
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.client.bench import T0, T1, U0, Bench


def held(**config):
    """A consumer whose metadata requests wait for the test."""
    bench = Bench(enable_auto_commit=False, **config)
    del bench.responders[m.MetadataRequest]
    return bench


def metadata(bench):
    return bench.client._metadata


def respond(bench):
    bench.respond(m.MetadataRequest, bench.metadata(bench.sent(m.MetadataRequest).request))


def test_a_consumer_requests_the_topics_it_subscribes_to(bench):
    """PROTOCOL 9.10."""
    bench.subscribe("u", "t", "u")
    bench.poll()
    assert [request.topics for request in bench.requests(m.MetadataRequest)] == [("t", "u")]


def test_a_consumer_without_a_subscription_requests_nothing(bench):
    bench.poll()
    assert bench.log == []
    assert bench.client.next_deadline_ms() is None


def test_metadata_is_requested_once_at_a_time_and_again_when_old():
    """Given a response, then the next request follows after metadata.max.age.ms. PROTOCOL 9.10."""
    bench = held(metadata_max_age_ms=10_000)
    bench.subscribe("t")
    for _ in range(3):
        bench.poll()
    assert len(bench.pending(m.MetadataRequest)) == 1
    respond(bench)
    bench.sleep(9_999, polling=True)
    assert bench.pending(m.MetadataRequest) == []
    bench.sleep(1)
    assert len(bench.pending(m.MetadataRequest)) == 1


def test_a_request_that_fails_is_sent_again_after_the_backoff():
    """PROTOCOL 9.10."""
    bench = held(retry_backoff_ms=100)
    bench.call("assign", [T0])
    bench.poll()
    bench.disconnect(0)
    assert bench.pending(m.MetadataRequest) == []
    bench.sleep(99)
    assert bench.pending(m.MetadataRequest) == []
    bench.sleep(1)
    assert len(bench.pending(m.MetadataRequest)) == 1


def test_a_topic_in_error_or_a_partition_without_a_leader_is_not_known():
    """PROTOCOL 9.12."""
    bench = held()
    bench.leaderless.add(T1)
    bench.call("assign", [T0, T1, U0])
    bench.poll()
    listed = bench.metadata(bench.sent(m.MetadataRequest).request).topics
    lost = m.TopicMetadata("u", (), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    bench.respond(m.MetadataRequest, m.MetadataResponse(topics=(listed[0], lost)))
    known = metadata(bench)
    assert [known.leader(tp) for tp in (T0, T1, U0, ("t", 9))[:3]] == [2, None, None]
    assert [known.leader_epoch(tp) for tp in (T0, U0)] == [-1, -1]
    assert list(known.cluster(("t", "u")).topics) == ["t"]


@pytest.mark.parametrize(("own", "racks"), [("r1", (("r1", "r2"),) * 2), (None, None)])
def test_racks_cause_a_round_only_for_a_leader_with_a_rack(own, racks):
    """PROTOCOL 9.4, C-54."""
    bench = Bench(client_rack=own)
    bench.racks = ("r2", "r1", "r2")
    bench.subscribe("u")
    bench.poll()
    assert metadata(bench).snapshot(("u", "v")) == (("u", TopicInfo(2, racks)),)
    assert metadata(bench).cluster(("u",)).topics["u"].racks == (("r2", "r1", "r2"),) * 2


def missing(bench, error):
    listed = m.TopicMetadata("v", (), error)
    bench.respond(m.MetadataRequest, m.MetadataResponse(topics=(listed,)))


def test_a_missing_topic_is_requested_again_soon():
    bench = held()
    bench.subscribe("v")
    bench.poll()
    missing(bench, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    bench.sleep(999)
    assert bench.pending(m.MetadataRequest) == []
    bench.sleep(1)
    assert len(bench.pending(m.MetadataRequest)) == 1


def test_an_unauthorized_topic_is_reported_once_per_response():
    bench = held()
    bench.subscribe("v")
    bench.poll()
    missing(bench, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    for _ in range(3):
        bench.poll()
    assert [str(e) for e in bench.errors] == ["Metadata: TOPIC_AUTHORIZATION_FAILED: v"]


def test_a_pattern_excludes_internal_topics():
    bench = held()
    bench.call("subscribe_pattern", ".*")
    bench.poll()
    led = (m.PartitionMetadata(2),)
    topics = (m.TopicMetadata("__consumer_offsets", led, internal=True), m.TopicMetadata("v", led))
    bench.respond(m.MetadataRequest, m.MetadataResponse(topics=topics))
    assert bench.client._subscriptions.topics == ("v",)


def test_the_response_contains_the_brokers(bench):
    """Given a bootstrap broker, when metadata arrive, then requests may go to any broker. PROTOCOL 9.10."""
    bench.subscribe("t")
    assert metadata(bench).any_node() == 0
    bench.poll()
    assert {metadata(bench).any_node() for _ in range(100)} == {0, 1, 2, 3}


def test_metadata_is_known_once_a_response_covers_the_topics_and_no_newer_is_wanted():
    """PROTOCOL 9.6."""
    bench = held()
    bench.subscribe("t")
    known = metadata(bench)
    assert not known.knows(("t",))
    bench.poll()
    respond(bench)
    assert known.knows(("t",))
    assert not known.knows(("t", "u"))
    known.request_update()
    assert not known.knows(("t",))


def test_a_lost_connection_requests_metadata():
    """PROTOCOL 9.10, 9.12."""
    bench = held()
    bench.call("assign", [T0])
    bench.poll()
    respond(bench)
    bench.disconnect(3)
    bench.sleep(0)
    assert len(bench.pending(m.MetadataRequest)) == 1


def test_a_timed_out_request_counts_as_failed():
    """PROTOCOL 9.10."""
    assert {failure.value for failure in Failure} == {"timed out", "disconnected"}
    bench = held(request_timeout_ms=1_000)
    bench.call("assign", [T0])
    bench.poll()
    first = bench.sent(m.MetadataRequest)
    bench.sleep(1_100)
    assert bench.sent(m.MetadataRequest) is not first
    bench.respond(first, bench.metadata(first.request))
    assert metadata(bench).version == 0

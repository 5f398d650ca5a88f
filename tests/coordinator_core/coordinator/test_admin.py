"""Describing, listing and deleting groups, and deleting offsets."""

import pytest

from coordinator_core.model import Subscription, TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.consumer_protocol import encode_subscription
from coordinator_core.protocol.error_codes import ErrorCode

READS_T = encode_subscription(Subscription(("t",)))


def described(bench, group="g"):
    return bench.ask(m.DescribeGroupsRequest(group_ids=(group,))).groups[0]


def listed(bench, *states):
    answer = bench.ask(m.ListGroupsRequest(states=states))
    return [(group.group_id, group.protocol_type, group.state) for group in answer.groups]


def deleted(bench, *groups):
    return [group.error for group in bench.ask(m.DeleteGroupsRequest(group_ids=groups)).groups]


def offset_delete(bench, *topics):
    partitions = tuple(TopicPartition(topic, 0) for topic in topics)
    return bench.ask(m.OffsetDeleteRequest(group_id="g", partitions=partitions))


def test_a_stable_group_is_described_whole(bench):
    """PROTOCOL 7.3."""
    leader, follower = bench.stable_group(instances=("i1",))
    found = described(bench)
    assert (found.error, found.state, found.protocol_type, found.protocol_name) == (
        ErrorCode.NONE,
        "Stable",
        "consumer",
        "range",
    )
    assert found.members == (
        m.DescribedMember(leader, "i1", "c0", "host", b"t", bench.share(leader)),
        m.DescribedMember(follower, None, "c1", "host", b"t", bench.share(follower)),
    )


@pytest.mark.parametrize("arrange", ["preparing_group", "completing_group"])
def test_a_group_in_a_round_shows_the_assignments_before(bench, arrange):
    """Given a round, when the group is described, then neither assignor nor subscriptions are shown, but the
    assignments of the last generation. PROTOCOL 7.3."""
    members = getattr(bench, arrange)()
    found = described(bench)
    assert (found.state, found.protocol_name) == (bench.state().value, "")
    assert [(x.member_id, x.metadata, x.assignment) for x in found.members] == [
        (x, b"", bench.share(x)) for x in members
    ]


def test_a_round_that_begins_before_the_last_is_over_shows_no_assignment(bench):
    """C-30."""
    leader, _ = bench.completing_group()
    bench.join(leader, metadata=b"new")
    assert [x.assignment for x in described(bench).members] == [b"", b""]


def test_groups_are_listed_by_state(bench):
    bench.stable_group(1, group="b")
    bench.stable_group(1, group="a", kind="connect")
    bench.commit(group="z")
    stable = [("a", "connect", "Stable"), ("b", "consumer", "Stable")]
    empty = [("z", "", "Empty")]
    assert listed(bench) == stable + empty
    assert listed(bench, "stable") == listed(bench, " Stable ") == stable
    assert listed(bench, "Empty", "Dead") == empty


def test_an_empty_group_is_deleted_with_its_offsets(bench):
    """Given an Empty group with offsets and a pending id, when it is deleted, then it is unknown, and so are
    its offsets; every group has its own code. PROTOCOL 7.3."""
    bench.commit()
    pending = bench.joined().member_id
    assert deleted(bench, "g", "x") == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert bench.coordinator.group_ids() == []
    assert bench.committed() == -1
    assert bench.table() == ({}, {})
    assert bench.joined(pending).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert deleted(bench, "g") == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_group_stays_if_its_tombstones_cannot_be_written(bench):
    """PROTOCOL 7.3, 8.1."""
    bench.commit()
    bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    deleted(bench, "g")
    assert bench.state() == "Empty"
    assert bench.committed() == 5


def test_a_group_that_comes_to_life_while_it_is_deleted_lives(bench):
    """Given the tombstones are being written, when a member joins, then the group is not Dead. PROTOCOL
    7.3."""
    bench.commit()
    bench.holding = True
    deleted(bench, "g")
    parked = bench.enter()
    bench.release()
    assert bench.sleep(3_000)[parked].error is ErrorCode.NONE


def test_a_commit_on_its_way_during_a_deletion_keeps_a_group(bench):
    """Given the tombstones are being written, when a simple consumer commits, then its offset, written after
    them, belongs to a group that lives and expires. PROTOCOL 2.1, 7.3."""
    bench.commit()
    bench.holding = True
    deleted(bench, "g")
    bench.commit(offset=9)
    bench.release()
    assert bench.committed() == 9
    assert described(bench).state == "Empty"
    bench.sleep(8 * 86_400_000)
    assert bench.table() == ({}, {})
    assert bench.coordinator.group_ids() == []


def test_a_deletion_takes_the_commits_before_it_along(bench):
    """Given a commit is being written, when the group is deleted, then no offset is left. PROTOCOL 7.3."""
    bench.holding = True
    bench.commit()
    deleted(bench, "g")
    bench.release()
    assert bench.table() == ({}, {})
    assert bench.coordinator.group_ids() == []


def test_a_group_is_not_forgotten_while_a_commit_is_being_written(bench):
    """Given a commit that takes long, when the group is looked at, then it stays. PROTOCOL 2.1."""
    bench.holding = True
    bench.commit()
    bench.sleep(700_000)
    bench.release()
    assert bench.state() == "Empty"
    assert bench.committed() == 5


def test_offsets_of_a_subscribed_topic_are_not_deleted(bench):
    """Given a Stable group that reads t, when offsets of t, u and v are deleted, then t is refused and u and
    v are gone. PROTOCOL 7.3."""
    (member,) = bench.stable_group(1, metadata=READS_T)
    for topic in ("t", "u"):
        bench.commit(member, 1, topic=topic)
    answer = offset_delete(bench, "t", "u", "v")
    assert answer.error is ErrorCode.NONE
    assert [(x.topic, x.error) for x in answer.partitions] == [
        ("t", ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC),
        ("u", ErrorCode.NONE),
        ("v", ErrorCode.NONE),
    ]
    assert (bench.committed(topic="t"), bench.committed(topic="u")) == (5, -1)


def test_offsets_of_an_empty_group_are_deleted(bench):
    """PROTOCOL 7.3."""
    (member,) = bench.stable_group(1, metadata=READS_T)
    bench.commit(member, 1)
    bench.leave(member)
    assert offset_delete(bench, "t").partitions[0].error is ErrorCode.NONE
    assert bench.committed() == -1


def test_an_unreadable_subscription_protects_every_topic(bench):
    (member,) = bench.stable_group(1, metadata=b"?")
    bench.commit(member, 1)
    assert offset_delete(bench, "t").partitions[0].error is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_only_topics_of_the_last_generation_are_subscribed(bench):
    """Given a round in which a member wants u in place of t, when offsets are deleted, then t is refused and
    u is not, until the round ends. PROTOCOL 7.3."""
    errors = []
    leader, follower = bench.stable_group(metadata=READS_T)
    joined = bench.join(leader, metadata=encode_subscription(Subscription(("u",))))
    errors += [answer.error for answer in offset_delete(bench, "t", "u").partitions]
    bench.join(follower, metadata=encode_subscription(Subscription(("u",))))
    assert bench.replies[joined].error is ErrorCode.NONE
    errors += [answer.error for answer in offset_delete(bench, "t", "u").partitions]
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert errors == [subscribed, ErrorCode.NONE, ErrorCode.NONE, subscribed]


def test_every_topic_is_subscribed_before_the_first_generation(bench):
    """Given consumers in their first round, when offsets are deleted, then all are refused. PROTOCOL 7.3."""
    bench.enter(metadata=READS_T)
    assert offset_delete(bench, "u").partitions[0].error is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_offsets_of_a_living_group_of_another_kind_are_not_deleted(bench):
    """Given a group of connectors with members, then NON_EMPTY_GROUP, as in Kafka. PROTOCOL 7.3."""
    bench.stable_group(1, kind="connect")
    assert offset_delete(bench, "t").error is ErrorCode.NON_EMPTY_GROUP


def test_an_offset_delete_that_cannot_be_written_says_so(bench):
    bench.commit()
    bench.append_error = ErrorCode.NOT_COORDINATOR
    answer = offset_delete(bench, "t")
    assert (answer.error, answer.partitions) == (ErrorCode.NOT_COORDINATOR, ())
    assert bench.committed() == 5


def test_an_answer_to_an_offset_delete_waits_for_the_log(bench):
    """PROTOCOL 8.1."""
    bench.commit()
    bench.holding = True
    assert offset_delete(bench, "t") is None
    assert bench.committed() == 5
    bench.release()
    assert bench.replies[bench.requests - 1].error is ErrorCode.NONE


@pytest.mark.parametrize(
    "request_", [m.MetadataRequest(), m.FetchRequest(), m.ListOffsetsRequest(partitions=(), timestamp=-1)]
)
def test_a_request_that_is_not_a_coordinators_is_a_programming_error(bench, request_):
    with pytest.raises(TypeError, match=type(request_).__name__):
        bench.send(request_)

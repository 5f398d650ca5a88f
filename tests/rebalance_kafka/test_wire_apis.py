"""Requests and responses in every version: one side reads what the other writes, and so does kafka-python."""

from types import NoneType
from typing import get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire
from msgspec.structs import replace

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol import reconcile as r
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import ROWS, VERSIONS, Api, api_of
from rebalance_kafka.wire.frames import (
    Request,
    decode_received,
    decode_request,
    encode_request,
    encode_response,
    head_of,
    heartbeat_frame,
    is_served,
)
from rebalance_kafka.wire.messages import Received, of_several, request_body, response_body
from rebalance_kafka.wire.values import KnownTopics
from tests.examples import scaled
from tests.rebalance_kafka.frames import EVERY_VERSION, read_by_them, their_class, their_request

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
TOPICS = KnownTopics()
TOPICS.learn({"t": UUID(int=1), "u": UUID(int=2), "\u00e9": UUID(int=3)})
NAMES = st.text(st.characters(codec="utf-8"), max_size=12)
VALUES = {
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
    int: st.integers(-1, 2**15 - 1),
    str: NAMES,
    ErrorCode: st.sampled_from(ErrorCode),
}
OF_FIELDS = {"member_type": st.sampled_from([r.SPEAKS_CLASSIC, r.SPEAKS_CONSUMER])}
"""Fields whose values are fewer than those of their type."""

OF_OTHERS = ("principal", "version")
"""Fields that are not on the wire."""


def of_kind(kind):
    """Values of an annotation. Rows are in the order of their topics, each partition once."""
    if NoneType in get_args(kind):
        return st.none() | of_kind(get_args(kind)[0])
    if get_origin(kind) is not tuple:
        return VALUES[kind] if kind in VALUES else messages(kind)
    row = get_args(kind)[0]
    if "topic" not in getattr(row, "__annotations__", ()):
        return st.lists(of_kind(row), max_size=3).map(tuple)
    places = st.tuples(st.sampled_from(sorted(TOPICS.ids)), st.integers(0, 9))
    listed = st.lists(places, max_size=5, unique=True).map(sorted)
    return listed.flatmap(
        lambda found: st.tuples(*(messages(row, topic=st.just(t), partition=st.just(n)) for t, n in found))
    )


def messages(message, **other):
    """Messages of a class, by its annotations."""
    names = message.__annotations__.keys() - OF_OTHERS
    hints = {name: hint for name, hint in get_type_hints(message).items() if name in names - other.keys()}
    values = {name: OF_FIELDS[name] if name in OF_FIELDS else of_kind(hint) for name, hint in hints.items()}
    return st.builds(message, **values, **other)


# --- requests of the core in each version

ONE_OR_MORE = st.lists(messages(m.MemberIdentity), min_size=1, max_size=3).map(tuple)
UNIQUE_NAMES = st.lists(NAMES, max_size=3, unique=True).map(tuple)
LISTED = of_kind(tuple[TopicPartition, ...])
REQUESTS = {
    Api.JOIN_GROUP: messages(m.JoinGroupRequest),
    Api.SYNC_GROUP: messages(m.SyncGroupRequest),
    Api.HEARTBEAT: messages(m.HeartbeatRequest),
    Api.LEAVE_GROUP: messages(m.LeaveGroupRequest, members=ONE_OR_MORE),
    Api.OFFSET_COMMIT: messages(m.OffsetCommitRequest),
    Api.TXN_OFFSET_COMMIT: messages(m.TxnOffsetCommitRequest),
    Api.OFFSET_FETCH: messages(
        m.OffsetFetchRequest, partitions=LISTED, member_id=st.none(), member_epoch=st.just(-1)
    ),
    Api.DESCRIBE_GROUPS: messages(m.DescribeGroupsRequest, group_ids=UNIQUE_NAMES),
    Api.LIST_GROUPS: messages(m.ListGroupsRequest),
    Api.CONSUMER_GROUP_HEARTBEAT: messages(
        r.ConsumerGroupHeartbeatRequest, subscribed_topic_names=st.none() | UNIQUE_NAMES
    ),
    Api.CONSUMER_GROUP_DESCRIBE: messages(r.ConsumerGroupDescribeRequest),
}
BY_ID = (Api.CONSUMER_GROUP_HEARTBEAT, Api.CONSUMER_GROUP_DESCRIBE)
"""Requests that kafka-python does not have."""

BOTH_SIDES = [
    (api, version) for api, version in EVERY_VERSION if api in REQUESTS and version <= ROWS[api].most_sent
]


SINCE = {
    Api.JOIN_GROUP: {"reason": (8, ""), "group_instance_id": (5, None)},
    Api.SYNC_GROUP: {
        "protocol_type": (5, None),
        "protocol_name": (5, None),
        "group_instance_id": (3, None),
    },
    Api.HEARTBEAT: {"group_instance_id": (3, None)},
    Api.LEAVE_GROUP: {"reason": (5, "")},
    Api.OFFSET_COMMIT: {"leader_epoch": (6, -1), "group_instance_id": (7, None)},
    Api.TXN_OFFSET_COMMIT: {
        "leader_epoch": (2, -1),
        "group_instance_id": (3, None),
        "generation_id": (3, -1),
        "member_id": (3, ""),
    },
    Api.OFFSET_FETCH: {"require_stable": (7, False)},
    Api.LIST_GROUPS: {"states": (4, ()), "types": (5, ())},
    Api.CONSUMER_GROUP_HEARTBEAT: {"subscribed_topic_regex": (1, None)},
}
"""API -> field of its request, or of a row in it -> the version that has it first, and its value before."""


def before(message, since, version):
    """Return the message without the fields that the version lacks."""
    changed = {}
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name in since and version < since[name][0]:
            changed[name] = since[name][1]
        elif isinstance(value, tuple) and hasattr(next(iter(value), None), "__struct_fields__"):
            changed[name] = tuple(before(each, since, version) for each in value)
    return replace(message, **changed)


def request_as_of(api, request, version):
    """Return what the broker makes of a request in a version."""
    if api is Api.DESCRIBE_GROUPS and version < 3:  # KIP-430
        request = replace(request, include_authorized_operations=False)
    if api is Api.CONSUMER_GROUP_DESCRIBE:
        return [request]
    if api is Api.LEAVE_GROUP and version < 3:
        return replace(request, members=(m.MemberIdentity(request.members[0].member_id),))
    if api is Api.JOIN_GROUP and version < 1:
        request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
    if api is Api.OFFSET_COMMIT and version > 4:
        request = replace(request, retention_time_ms=m.DEFAULT_RETENTION)
    if hasattr(request, "version"):
        request = replace(request, version=version)
    return before(request, SINCE.get(api, {}), version)


def frame_of(request, version):
    return encode_request(api_of(request), version, 7, "us", request_body(request, version), TOPICS)


def taken_in(frame):
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    head = head_of(frame[4:])
    assert is_served(head)
    return decode_request(frame[4:], head, topics=TOPICS)


@pytest.mark.parametrize(("api", "version"), BOTH_SIDES)
@settings(max_examples=scaled(12))  # of each version
@given(data=st.data())
def test_a_request_of_the_core_means_the_same_to_the_broker(api, version, data):
    request = data.draw(REQUESTS[api])
    frame = frame_of(request, version)
    if api not in BY_ID:
        read_by_them(api, version, "Request", frame)
    received = taken_in(frame)
    assert received[:4] == (api, version, 7, "us")
    assert received.body == request_as_of(api, request, version)


EXAMPLES = [
    m.FindCoordinatorRequest(key="g"),
    m.MetadataRequest(topics=("t", "u")),
    m.MetadataRequest(topics=()),
    m.MetadataRequest(),
    m.ListOffsetsRequest(partitions=(T0, T1, U0), timestamp=-2),
    m.OffsetForLeaderEpochRequest(partitions=(m.EpochToCheck("t", 0, 0), m.EpochToCheck("u", 0, 3))),
    m.FetchRequest(
        session_id=4,
        session_epoch=2,
        partitions=(m.FetchPartition("t", 0, 5), m.FetchPartition("u", 0, 9, 1)),
        forgotten=(T1,),
        max_wait_ms=250,
    ),
]
"""Requests that the broker reads as values."""


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        pytest.param(each, version, id=f"{type(each).__name__}-{version}")
        for each in EXAMPLES
        for version in range(VERSIONS[api_of(each)][0], VERSIONS[api_of(each)][1] + 1)
        if version <= ROWS[api_of(each)].most_sent
    ],
)
def test_kafka_python_sends_the_same_bytes(request_, version):
    theirs = read_by_them(api_of(request_), version, "Request", frame_of(request_, version))
    assert (theirs.header.correlation_id, theirs.header.client_id) == (7, "us")


def test_offsets_of_all_partitions_are_requested_by_null():
    request = m.OffsetFetchRequest(group_id="g")
    for version in range(2, 8):
        frame = frame_of(request, version)
        assert read_by_them(Api.OFFSET_FETCH, version, "Request", frame).topics is None
        assert taken_in(frame).body == request


@pytest.mark.parametrize(("version", "every_topic"), [(0, []), *((v, None) for v in range(1, 10))])
def test_all_topics_are_requested_in_the_form_of_the_version(version, every_topic):
    frame = frame_of(m.MetadataRequest(), version)
    assert read_by_them(Api.METADATA, version, "Request", frame).topics == every_topic


def test_versions_without_fetch_sessions_request_everything():
    request = m.FetchRequest(session_id=4, session_epoch=2, partitions=(m.FetchPartition("t", 0, 5),))
    for version in range(4, 13):
        theirs = read_by_them(Api.FETCH, version, "Request", frame_of(request, version))
        session = (4, 2) if version >= 7 else (0, -1)
        assert (theirs.session_id, theirs.session_epoch) == session
        ((topic,),) = [theirs.topics]
        assert [(each.partition, each.fetch_offset) for each in topic.partitions] == [(0, 5)]


@pytest.mark.parametrize("most_bytes", [0, 1_000, 1_048_576])
def test_a_fetch_requests_at_most_so_many_bytes_of_a_partition(most_bytes):
    request = m.FetchRequest(partitions=(m.FetchPartition("t", 0, 5, partition_max_bytes=most_bytes),))
    theirs = read_by_them(Api.FETCH, 11, "Request", frame_of(request, 11))
    assert theirs.topics[0].partitions[0].partition_max_bytes == most_bytes


def test_a_join_in_version_0_byte_for_byte():
    request = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocols=(m.JoinGroupProtocol("range", b"\7"),),
    )
    head = b"\0\x0b" + b"\0\0" + b"\0\0\0\7" + b"\0\2us"
    body = b"\0\1g" + (10_000).to_bytes(4, "big") + b"\0\0" + b"\0\x08consumer"
    protocols = b"\0\0\0\1" + b"\0\5range" + b"\0\0\0\1\7"
    frame = head + body + protocols
    assert frame_of(request, 0) == len(frame).to_bytes(4, "big") + frame


# --- requests that only other clients send


@pytest.mark.parametrize("version", [0, 1, 2])
def test_groups_to_delete_are_read(version):
    received = their_request(Api.DELETE_GROUPS, version, groups_names=["g", "h"])
    assert (received.client_id, received.correlation_id) == ("them", 7)
    assert received.body == m.DeleteGroupsRequest(group_ids=("g", "h"))


def test_offsets_to_delete_are_read():
    cls = their_class(Api.OFFSET_DELETE, "Request")
    topic = cls.OffsetDeleteRequestTopic
    wanted = [
        topic(name="t", partitions=[topic.OffsetDeleteRequestPartition(partition_index=n) for n in (0, 1)]),
        topic(name="u", partitions=[topic.OffsetDeleteRequestPartition(partition_index=0)]),
    ]
    received = their_request(Api.OFFSET_DELETE, 0, group_id="g", topics=wanted)
    assert received.body == m.OffsetDeleteRequest(group_id="g", partitions=(T0, T1, U0))


# --- responses

ANSWERS = {api: messages(ROWS[api].response) for api in REQUESTS}
ANSWERS[Api.OFFSET_FETCH] = messages(m.OffsetFetchResponse, error=st.just(ErrorCode.NONE))


ANSWERED_SINCE = {
    Api.JOIN_GROUP: {
        "protocol_type": (7, None),
        "skip_assignment": (9, False),
        "group_instance_id": (5, None),
    },
    Api.SYNC_GROUP: {"protocol_type": (5, None), "protocol_name": (5, None)},
    Api.OFFSET_FETCH: {"leader_epoch": (5, -1)},
    Api.DESCRIBE_GROUPS: {
        "authorized_operations": (3, m.OPERATIONS_NOT_INCLUDED),
        "group_instance_id": (4, None),
        "message": (6, None),
    },
    Api.LIST_GROUPS: {"group_type": (5, ""), "state": (4, "")},
    Api.CONSUMER_GROUP_DESCRIBE: {"member_type": (1, r.SPEAKS_CONSUMER)},
}
"""The same for responses."""


def answer_as_of(api, answer, version):
    """Return what the client makes of a response in a version."""
    if api is Api.LEAVE_GROUP and version < 3:
        of_the_one = [each.error for each in answer.members if answer.error is ErrorCode.NONE]
        return m.LeaveGroupResponse(error=(of_the_one or [answer.error])[0])
    if api is Api.JOIN_GROUP:
        answer = replace(answer, protocol_name=answer.protocol_name or ("" if version < 7 else None))
    if api is Api.DESCRIBE_GROUPS:  # the error of an unknown one exists from version 6 on (KIP-1043)
        errors = (each.error for each in answer.groups)
        known = (ErrorCode.NONE if error is ErrorCode.GROUP_ID_NOT_FOUND else error for error in errors)
        groups = zip(answer.groups, known, strict=True)
        answer = replace(answer, groups=tuple(replace(group, error=error) for group, error in groups))
    return before(answer, ANSWERED_SINCE.get(api, {}), version)


def answer_frame(received, answer):
    """The frame of a response of the broker."""
    request = received.body[0] if isinstance(received.body, list) else received.body
    body = response_body(request, received.version, answer)
    if received.api is Api.CONSUMER_GROUP_DESCRIBE:
        body = of_several([(answer.group_id, body)])
    return encode_response(received.api, received.version, received.correlation_id, body, TOPICS)


@pytest.mark.parametrize(("api", "version"), BOTH_SIDES)
@settings(max_examples=scaled(12))  # of each version
@given(data=st.data())
def test_a_response_of_the_core_means_the_same_to_the_client(api, version, data):
    question = data.draw(REQUESTS[api])
    received = taken_in(frame_of(question, version))
    answer = data.draw(ANSWERS[api])
    frame = answer_frame(received, answer)
    assert int.from_bytes(frame[4:8], "big") == 7
    if api not in BY_ID:
        read_by_them(api, version, "Response", frame)
    expected = Received(answer_as_of(api, answer, version))
    assert decode_received(question, version, frame[4:], TOPICS) == expected


@pytest.mark.parametrize("version", range(1, 8))
def test_an_error_of_the_response_is_an_error_of_every_offset_before_version_2(version):
    question = m.OffsetFetchRequest(group_id="g", partitions=(T0, U0))
    received = taken_in(frame_of(question, version))
    refused = m.OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR)
    answer = decode_received(question, version, answer_frame(received, refused)[4:])
    errors = [("t", ErrorCode.NOT_COORDINATOR), ("u", ErrorCode.NOT_COORDINATOR)]
    found = [(each.topic, each.error) for each in answer.response.offsets]
    assert found == (errors if version < 2 else [])
    assert answer.response.error is (ErrorCode.NOT_COORDINATOR if version >= 2 else ErrorCode.NONE)


def test_responses_about_deletions():
    received = their_request(Api.DELETE_GROUPS, 2, groups_names=["g"])
    answer = m.DeleteGroupsResponse(groups=(m.DeletedGroup("g", ErrorCode.NON_EMPTY_GROUP),))
    theirs = read_by_them(Api.DELETE_GROUPS, 2, "Response", answer_frame(received, answer))
    assert [(each.group_id, each.error_code) for each in theirs.results] == [("g", 68)]
    received = their_request(Api.OFFSET_DELETE, 0, group_id="g", topics=[])
    refused = m.PartitionError("t", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    answer = m.OffsetDeleteResponse(error=ErrorCode.NONE, partitions=(refused,))
    theirs = read_by_them(Api.OFFSET_DELETE, 0, "Response", answer_frame(received, answer))
    found = [(t.name, p.partition_index, p.error_code) for t in theirs.topics for p in t.partitions]
    assert found == [("t", 0, 86)]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS])
def test_the_template_of_a_heartbeat_is_its_response(version, error):
    for correlation in (0, 7, -1, 2**31 - 1):
        question = Request(Api.HEARTBEAT, version, correlation, "", None)
        answer = m.HeartbeatResponse(error=error)
        assert heartbeat_frame(question, answer) == answer_frame(question, answer)


def test_an_unknown_error_is_unknown_server_error():
    values = {"error_code": Wire.cluster_authorization_failed}
    frame = encode_response(Api.HEARTBEAT, 4, 7, values)
    question = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="a")
    answer = decode_received(question, 4, frame[4:])
    assert answer.response == m.HeartbeatResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR)

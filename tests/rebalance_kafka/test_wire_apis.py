"""Requests and responses in every version: one side reads what the other writes, and so does kafka-python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire
from msgspec.structs import replace

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.wire.apis import ROWS, VERSIONS, Api, api_of
from rebalance_kafka.wire.frames import (
    Request,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    head_of,
    is_served,
)
from rebalance_kafka.wire.requests import request_entity, request_message
from rebalance_kafka.wire.responses import Received, heartbeat_frame, response_entity, response_message
from tests.examples import scaled
from tests.rebalance_kafka.frames import EVERY_VERSION, read_by_them, their_class, their_request

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, 2**31 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=12)
SOME = st.one_of(st.none(), NAMES)
BYTES = st.binary(max_size=40)
ERRORS = st.sampled_from(ErrorCode)


def some(values, **options):
    return st.lists(values, max_size=3, **options).map(tuple)


def of_topics(make):
    """Rows in the order of their topics, each partition once."""
    places = st.lists(st.tuples(NAMES, st.integers(0, 9)), max_size=5, unique=True).map(sorted)
    return places.flatmap(lambda listed: st.tuples(*(make(*place) for place in listed)))


# --- requests of the core in each version

OFFSETS = of_topics(
    lambda topic, number: st.builds(
        m.OffsetToCommit,
        topic=st.just(topic),
        partition=st.just(number),
        offset=INT64,
        leader_epoch=INT32,
        metadata=NAMES,
    )
)
REQUESTS = {
    Api.JOIN_GROUP: st.builds(
        m.JoinGroupRequest,
        group_id=NAMES,
        session_timeout_ms=TIMES,
        rebalance_timeout_ms=TIMES,
        member_id=NAMES,
        group_instance_id=SOME,
        protocol_type=NAMES,
        protocols=some(st.builds(m.JoinGroupProtocol, name=NAMES, metadata=BYTES)),
        reason=NAMES,
    ),
    Api.SYNC_GROUP: st.builds(
        m.SyncGroupRequest,
        group_id=NAMES,
        generation_id=INT32,
        member_id=NAMES,
        group_instance_id=SOME,
        protocol_type=SOME,
        protocol_name=SOME,
        assignments=some(st.builds(m.SyncGroupAssignment, member_id=NAMES, assignment=BYTES)),
    ),
    Api.HEARTBEAT: st.builds(
        m.HeartbeatRequest, group_id=NAMES, generation_id=INT32, member_id=NAMES, group_instance_id=SOME
    ),
    Api.LEAVE_GROUP: st.builds(
        m.LeaveGroupRequest,
        group_id=NAMES,
        members=some(
            st.builds(m.MemberIdentity, member_id=NAMES, group_instance_id=SOME, reason=NAMES), min_size=1
        ),
    ),
    Api.OFFSET_COMMIT: st.builds(
        m.OffsetCommitRequest,
        group_id=NAMES,
        generation_id=INT32,
        member_id=NAMES,
        group_instance_id=SOME,
        offsets=OFFSETS,
    ),
    Api.TXN_OFFSET_COMMIT: st.builds(
        m.TxnOffsetCommitRequest,
        transactional_id=NAMES,
        group_id=NAMES,
        producer_id=INT64,
        producer_epoch=st.integers(-1, 2**15 - 1),
        generation_id=INT32,
        member_id=NAMES,
        group_instance_id=SOME,
        offsets=OFFSETS,
    ),
    Api.OFFSET_FETCH: st.builds(
        m.OffsetFetchRequest,
        group_id=NAMES,
        require_stable=st.booleans(),
        partitions=of_topics(lambda topic, number: st.just(TopicPartition(topic, number))),
    ),
    Api.DESCRIBE_GROUPS: st.builds(m.DescribeGroupsRequest, group_ids=some(NAMES, unique=True)),
    Api.LIST_GROUPS: st.builds(m.ListGroupsRequest, states=some(NAMES)),
}
BOTH_SIDES = [
    (api, version) for api, version in EVERY_VERSION if api in REQUESTS and version <= ROWS[api].most_sent
]


def request_as_of(request, version):
    """Return the request without the fields that the version lacks."""
    match request:
        case m.JoinGroupRequest():
            request = replace(request, version=version)
            if version < 1:
                request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
            if version < 8:
                request = replace(request, reason="")
            return request if version >= 5 else replace(request, group_instance_id=None)
        case m.SyncGroupRequest():
            if version < 5:
                request = replace(request, protocol_type=None, protocol_name=None)
            return request if version >= 3 else replace(request, group_instance_id=None)
        case m.HeartbeatRequest():
            return request if version >= 3 else replace(request, group_instance_id=None)
        case m.LeaveGroupRequest():
            if version < 3:
                return replace(request, members=(m.MemberIdentity(request.members[0].member_id),))
            silent = tuple(replace(each, reason="") for each in request.members)
            return request if version >= 5 else replace(request, members=silent)
        case m.OffsetCommitRequest() | m.TxnOffsetCommitRequest():
            return commit_as_of(request, version)
        case m.OffsetFetchRequest():
            return request if version >= 7 else replace(request, require_stable=False)
        case m.ListGroupsRequest():
            return request if version >= 4 else m.ListGroupsRequest()
    return request


def commit_as_of(request, version):
    is_plain = isinstance(request, m.OffsetCommitRequest)
    if version < (6 if is_plain else 2):
        untold = tuple(replace(each, leader_epoch=-1) for each in request.offsets)
        request = replace(request, offsets=untold)
    if version < (7 if is_plain else 3):
        request = replace(request, group_instance_id=None)
    if is_plain:
        return replace(request, version=version)
    return request if version >= 3 else replace(request, generation_id=-1, member_id="")


def frame_of(request, version):
    api, values = api_of(request), request_entity(request, version)
    return encode_request(api, version, 7, "us", values)


def taken_in(frame):
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    head = head_of(frame[4:])
    assert is_served(head)
    return decode_request(frame[4:], head)


@pytest.mark.parametrize(("api", "version"), BOTH_SIDES)
@settings(max_examples=scaled(12))  # of each version
@given(data=st.data())
def test_a_request_of_the_core_means_the_same_to_the_broker(api, version, data):
    request = data.draw(REQUESTS[api])
    received = taken_in(frame_of(request, version))
    assert received[:4] == (api, version, 7, "us")
    assert request_message(received) == request_as_of(request, version)


EXAMPLES = [
    m.FindCoordinatorRequest(key="g"),
    m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="a-1",
        group_instance_id="a",
        protocols=(m.JoinGroupProtocol("range", b"\0\1"), m.JoinGroupProtocol("sticky", b"")),
        reason="subscribed anew",
    ),
    m.SyncGroupRequest(
        group_id="g",
        generation_id=3,
        member_id="a-1",
        group_instance_id="a",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(m.SyncGroupAssignment("a-1", b"\0\2"),),
    ),
    m.HeartbeatRequest(group_id="g", generation_id=3, member_id="a-1", group_instance_id="a"),
    m.LeaveGroupRequest(group_id="g", members=(m.MemberIdentity("a-1", "a", "closed"),)),
    m.OffsetCommitRequest(
        group_id="g",
        generation_id=3,
        member_id="a-1",
        offsets=(m.OffsetToCommit("t", 0, 5, 0, "x"), m.OffsetToCommit("u", 0, 9)),
    ),
    m.TxnOffsetCommitRequest(
        transactional_id="tx",
        group_id="g",
        producer_id=4,
        producer_epoch=1,
        generation_id=3,
        member_id="a-1",
        offsets=(m.OffsetToCommit("t", 0, 5, 0, "x"), m.OffsetToCommit("u", 0, 9)),
    ),
    m.OffsetFetchRequest(group_id="g", partitions=(T0, T1, U0)),
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
    m.DescribeGroupsRequest(group_ids=("g", "h")),
    m.ListGroupsRequest(states=("Stable",), types=("classic",)),
]


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
        assert request_message(taken_in(frame)) == request


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
    assert request_message(received) == m.DeleteGroupsRequest(group_ids=("g", "h"))


def test_offsets_to_delete_are_read():
    cls = their_class(Api.OFFSET_DELETE, "Request")
    topic = cls.OffsetDeleteRequestTopic
    wanted = [
        topic(name="t", partitions=[topic.OffsetDeleteRequestPartition(partition_index=n) for n in (0, 1)]),
        topic(name="u", partitions=[topic.OffsetDeleteRequestPartition(partition_index=0)]),
    ]
    received = their_request(Api.OFFSET_DELETE, 0, group_id="g", topics=wanted)
    assert request_message(received) == m.OffsetDeleteRequest(group_id="g", partitions=(T0, T1, U0))


# --- responses

PARTITION_ERRORS = of_topics(
    lambda t, n: st.builds(m.PartitionError, topic=st.just(t), partition=st.just(n), error=ERRORS)
)
ANSWERS = {
    Api.JOIN_GROUP: st.builds(
        m.JoinGroupResponse,
        error=ERRORS,
        generation_id=INT32,
        protocol_type=SOME,
        protocol_name=SOME,
        leader=NAMES,
        skip_assignment=st.booleans(),
        member_id=NAMES,
        members=some(st.builds(m.JoinGroupMember, member_id=NAMES, group_instance_id=SOME, metadata=BYTES)),
    ),
    Api.SYNC_GROUP: st.builds(
        m.SyncGroupResponse, error=ERRORS, protocol_type=SOME, protocol_name=SOME, assignment=BYTES
    ),
    Api.HEARTBEAT: st.builds(m.HeartbeatResponse, error=ERRORS),
    Api.LEAVE_GROUP: st.builds(
        m.LeaveGroupResponse,
        error=ERRORS,
        members=some(
            st.builds(m.LeaveGroupMemberResponse, member_id=NAMES, group_instance_id=SOME, error=ERRORS)
        ),
    ),
    Api.OFFSET_COMMIT: st.builds(m.OffsetCommitResponse, partitions=PARTITION_ERRORS),
    Api.TXN_OFFSET_COMMIT: st.builds(m.TxnOffsetCommitResponse, partitions=PARTITION_ERRORS),
    Api.OFFSET_FETCH: st.builds(
        m.OffsetFetchResponse,
        error=st.just(ErrorCode.NONE),
        offsets=of_topics(
            lambda t, n: st.builds(
                m.FetchedOffset,
                topic=st.just(t),
                partition=st.just(n),
                offset=INT64,
                leader_epoch=INT32,
                metadata=NAMES,
                error=ERRORS,
            )
        ),
    ),
    Api.DESCRIBE_GROUPS: st.builds(
        m.DescribeGroupsResponse,
        groups=some(
            st.builds(
                m.DescribedGroup,
                error=ERRORS,
                group_id=NAMES,
                state=NAMES,
                protocol_type=NAMES,
                protocol_name=NAMES,
                members=some(
                    st.builds(
                        m.DescribedMember,
                        member_id=NAMES,
                        group_instance_id=SOME,
                        client_id=NAMES,
                        client_host=NAMES,
                        metadata=BYTES,
                        assignment=BYTES,
                    )
                ),
            )
        ),
    ),
    Api.LIST_GROUPS: st.builds(
        m.ListGroupsResponse,
        error=ERRORS,
        groups=some(st.builds(m.ListedGroup, group_id=NAMES, protocol_type=NAMES, state=NAMES)),
    ),
}


def anonymous(members):
    return tuple(replace(each, group_instance_id=None) for each in members)


def described_as_of(group, version):
    """Return the group without the error of an unknown one, which exists from version 6 on (KIP-1043)."""
    if group.error is ErrorCode.GROUP_ID_NOT_FOUND:
        group = replace(group, error=ErrorCode.NONE)
    return group if version >= 4 else replace(group, members=anonymous(group.members))


def answer_as_of(answer, version):
    match answer:
        case m.JoinGroupResponse():
            if version < 7:
                answer = replace(answer, protocol_type=None, protocol_name=answer.protocol_name or "")
            if version < 9:
                answer = replace(answer, skip_assignment=False)
            return answer if version >= 5 else replace(answer, members=anonymous(answer.members))
        case m.SyncGroupResponse():
            return answer if version >= 5 else replace(answer, protocol_type=None, protocol_name=None)
        case m.LeaveGroupResponse() if version < 3:
            of_the_one = [each.error for each in answer.members if answer.error is ErrorCode.NONE]
            return m.LeaveGroupResponse(error=(of_the_one or [answer.error])[0])
        case m.OffsetFetchResponse() if version < 5:
            return replace(answer, offsets=tuple(replace(each, leader_epoch=-1) for each in answer.offsets))
        case m.DescribeGroupsResponse():
            groups = tuple(described_as_of(each, version) for each in answer.groups)
            return replace(answer, groups=groups)
        case m.ListGroupsResponse() if version < 4:
            return replace(answer, groups=tuple(replace(each, state="") for each in answer.groups))
    return answer


@pytest.mark.parametrize(("api", "version"), BOTH_SIDES)
@settings(max_examples=scaled(12))  # of each version
@given(data=st.data())
def test_a_response_of_the_core_means_the_same_to_the_client(api, version, data):
    question = next(each for each in EXAMPLES if api_of(each) is api)
    received = taken_in(frame_of(question, version))
    answer = data.draw(ANSWERS[api])
    frame = encode_response(api, version, 7, response_entity(received, answer))
    read_by_them(api, version, "Response", frame)
    correlation, body = decode_response(api, version, frame[4:])
    assert correlation == 7
    assert response_message(question, body, version) == Received(answer_as_of(answer, version))


@pytest.mark.parametrize("version", range(1, 8))
def test_an_error_of_the_response_is_an_error_of_every_offset(version):
    question = m.OffsetFetchRequest(group_id="g", partitions=(T0, U0))
    received = taken_in(frame_of(question, version))
    refused = m.OffsetFetchResponse(error=ErrorCode.NOT_COORDINATOR)
    frame = encode_response(Api.OFFSET_FETCH, version, 7, response_entity(received, refused))
    answer = response_message(question, decode_response(Api.OFFSET_FETCH, version, frame[4:])[1], version)
    assert [(each.topic, each.error) for each in answer.response.offsets] == [
        ("t", ErrorCode.NOT_COORDINATOR),
        ("u", ErrorCode.NOT_COORDINATOR),
    ]
    assert answer.response.error is (ErrorCode.NOT_COORDINATOR if version >= 2 else ErrorCode.NONE)


def test_responses_about_deletions():
    received = their_request(Api.DELETE_GROUPS, 2, groups_names=["g"])
    answer = m.DeleteGroupsResponse(groups=(m.DeletedGroup("g", ErrorCode.NON_EMPTY_GROUP),))
    theirs = read_by_them(
        Api.DELETE_GROUPS,
        2,
        "Response",
        encode_response(received.api, 2, 7, response_entity(received, answer)),
    )
    assert [(each.group_id, each.error_code) for each in theirs.results] == [("g", 68)]
    received = their_request(Api.OFFSET_DELETE, 0, group_id="g", topics=[])
    refused = m.PartitionError("t", 0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
    answer = m.OffsetDeleteResponse(error=ErrorCode.NONE, partitions=(refused,))
    theirs = read_by_them(
        Api.OFFSET_DELETE,
        0,
        "Response",
        encode_response(received.api, 0, 7, response_entity(received, answer)),
    )
    assert [(t.name, p.partition_index, p.error_code) for t in theirs.topics for p in t.partitions] == [
        ("t", 0, 86)
    ]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS])
def test_the_template_of_a_heartbeat_is_its_response(version, error):
    for correlation in (0, 7, -1, 2**31 - 1):
        question = Request(Api.HEARTBEAT, version, correlation, "", None)
        answer = m.HeartbeatResponse(error=error)
        encoded = encode_response(Api.HEARTBEAT, version, correlation, response_entity(question, answer))
        assert heartbeat_frame(question, answer) == encoded


def test_an_unknown_error_is_unknown_server_error():
    values = {"error_code": Wire.cluster_authorization_failed}
    frame = encode_response(Api.HEARTBEAT, 4, 7, values)
    question = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="a")
    _, body = decode_response(Api.HEARTBEAT, 4, frame[4:])
    answer = response_message(question, body, 4)
    assert answer.response == m.HeartbeatResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR)

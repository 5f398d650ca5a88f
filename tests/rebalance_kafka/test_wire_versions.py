"""Heads of frames, versions that both sides speak, and ApiVersions."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import ProtocolError
from rebalance_kafka.broker.data_requests import api_versions, versions_of
from rebalance_kafka.wire.apis import ROWS, VERSIONS, Api, common_version
from rebalance_kafka.wire.frames import (
    Head,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    head_of,
    is_served,
)
from rebalance_kafka.wire.schemas import request_schema, response_schema
from tests.rebalance_kafka.damage import REQUESTS
from tests.rebalance_kafka.frames import EVERY_VERSION, read_by_them, their_frame
from tests.rebalance_kafka.live import broker, exchange, run
from tests.rebalance_kafka.served_table import README, tables

INT32 = st.integers(-(2**31), 2**31 - 1)

# --- ApiVersions (KIP-511)


@pytest.mark.parametrize("version", range(5))
def test_api_versions_are_listed_with_a_header_of_version_0(version):
    assert response_schema(Api.API_VERSIONS, version).__header_schema__.__version__ == 0
    frame = encode_response(Api.API_VERSIONS, version, 7, api_versions())
    assert frame[4:10] == b"\0\0\0\7\0\0"
    theirs = read_by_them(Api.API_VERSIONS, version, "Response", frame)
    reported = {each.api_key: (each.min_version, each.max_version) for each in theirs.api_keys}
    assert reported.pop(Api.PRODUCE) == (0, 13), "as Kafka does for librdkafka, although it serves 3-13"
    assert reported == {int(api): versions for api, versions in VERSIONS.items() if api is not Api.PRODUCE}


@pytest.mark.parametrize(
    ("version", "supported"), [(3, {}), (4, {"group.version": 1, "transaction.version": 2})]
)
def test_features_are_listed(version, supported):
    """Before version 4, a feature with the lowest version 0 is not listed (KAFKA-17011)."""
    frame = encode_response(Api.API_VERSIONS, version, 7, api_versions(version=version))
    theirs = read_by_them(Api.API_VERSIONS, version, "Response", frame)
    assert {each.name: each.max_version for each in theirs.supported_features} == supported
    finalized = {each.name: each.max_version_level for each in theirs.finalized_features}
    assert finalized == {"group.version": 1, "transaction.version": 2}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, Wire.none),
        ({"client_software_name": ""}, Wire.invalid_request),
        ({"client_software_version": "1 2"}, Wire.invalid_request),
        ({"cluster_id": "c"}, Wire.invalid_request),
        ({"node_id": 1}, Wire.invalid_request),
        ({"cluster_id": "c", "node_id": 1}, Wire.none),
        ({"cluster_id": "d", "node_id": 1}, Wire.rebootstrap_required),
        ({"cluster_id": "c", "node_id": 2}, Wire.rebootstrap_required),
    ],
)
def test_a_client_of_another_broker_is_sent_away(fields, error):
    """KIP-511, KIP-1242."""
    values = {"client_software_name": "a", "client_software_version": "1.0", **fields}
    frame = encode_request(Api.API_VERSIONS, 5, 7, "us", values)[4:]
    answer = versions_of(decode_request(frame, head_of(frame)), "c", 1)
    assert (answer["error_code"], bool(answer["api_keys"])) == (error, error is Wire.none)


@pytest.mark.parametrize("version", [6, 99, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(version):
    """KIP-511: the client does not know the versions yet, so the response has the oldest one."""
    packed = Api.API_VERSIONS.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True)
    frame = packed + b"\0\0\0\7" + b"\0\4them" + b"whatever that version has"

    async def work():
        async with broker() as kafka:
            host, port = kafka.address.split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            reported = await exchange(reader, writer, Api.API_VERSIONS, 0, frame)
            assert (reported.header.correlation_id, Wire(reported.error_code)) == (
                7,
                Wire.unsupported_version,
            )
            assert {each.api_key for each in reported.api_keys} == set(VERSIONS)
            requested = their_frame(
                Api.API_VERSIONS, 3, client_software_name="x", client_software_version="1"
            )
            assert (await exchange(reader, writer, Api.API_VERSIONS, 3, requested)).error_code == 0
            writer.close()

    run(work())


# --- heads


@given(key=st.integers(-(2**15), 2**15 - 1), version=st.integers(-(2**15), 2**15 - 1), number=INT32)
def test_the_first_eight_bytes_are_always_the_head(key, version, number):
    packed = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True)
    head = head_of(packed + number.to_bytes(4, "big", signed=True) + b"whatever follows")
    assert head == Head(key, version, number)
    lowest, highest = VERSIONS.get(key, (0, -1))
    assert is_served(head) == (lowest <= version <= highest)


def test_a_request_that_is_too_short_for_a_head_is_refused():
    with pytest.raises(ProtocolError, match="7 bytes, expected 8 or more"):
        head_of(b"\0" * 7)


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_an_incomplete_request_is_refused(api, version):
    frame = encode_request(api, version, 7, "us", REQUESTS[api])[4:]
    with pytest.raises(ProtocolError, match=f"{api.name} v{version}"):
        decode_request(frame[:-1], head_of(frame))


def test_an_incomplete_response_is_refused():
    frame = encode_response(Api.HEARTBEAT, 4, 7, {"error_code": Wire.none})[4:]
    with pytest.raises(ProtocolError, match="answer to HEARTBEAT v4"):
        decode_response(Api.HEARTBEAT, 4, frame[:-1])


def test_heartbeats_that_are_repeated_keep_their_correlation_ids_and_members():
    """The bytes after the correlation id are decoded once."""
    frames = [
        encode_request(Api.HEARTBEAT, 4, number, "us", REQUESTS[Api.HEARTBEAT] | {"member_id": member})[4:]
        for number, member in ((7, "ada"), (8, "ada"), (9, "ben"))
    ]
    decoded = [decode_request(frame, head_of(frame)) for frame in frames]
    assert [(each.correlation_id, each.body.member_id) for each in decoded] == [
        (7, "ada"),
        (8, "ada"),
        (9, "ben"),
    ]


def test_a_client_without_an_id_has_an_empty_one():
    frame = encode_request(Api.LIST_GROUPS, 4, 7, None, {"states_filter": ()})
    assert decode_request(frame[4:], head_of(frame[4:])).client_id == ""


def test_values_without_a_required_field_are_refused():
    with pytest.raises(TypeError, match="HeartbeatRequest v0 without group_id"):
        encode_request(Api.HEARTBEAT, 0, 7, "us", {"generation_id": 1, "member_id": "a"})


# --- versions that both sides speak


@given(least=st.integers(0, 15), more=st.integers(0, 15), api=st.sampled_from(Api))
def test_the_common_version_is_the_newest_that_both_speak(least, more, api):
    ours = set(range(VERSIONS[api][0], min(VERSIONS[api][1], ROWS[api].most_sent) + 1))
    theirs = set(range(least, least + more + 1))
    offered = {int(api): (least, least + more)}
    if ours & theirs:
        assert common_version(api, offered) == max(ours & theirs)
    else:
        with pytest.raises(ProtocolError, match=f"offers {api.name} in versions {least} to"):
            common_version(api, offered)


def test_an_api_that_is_not_offered_has_no_common_version():
    with pytest.raises(ProtocolError, match="does not offer FETCH"):
        common_version(Api.FETCH, {0: (0, 9)})


# --- unknown tagged fields (KIP-482)

TAGS = b"\x02" + b"\x63\x03abc" + b"\xe7\x07\x00"
"""Two tagged fields: 99 with three bytes, 999 with none."""


def tagged(frame: bytes, header_bytes: int) -> bytes:
    """Return a flexible frame with tagged fields at the end of its header and of its body."""
    assert frame[header_bytes - 1 : header_bytes] == frame[-1:] == b"\0"
    return frame[: header_bytes - 1] + TAGS + frame[header_bytes:-1] + TAGS


@pytest.mark.parametrize("api", sorted({api for api, _ in EVERY_VERSION}), ids=lambda api: api.name)
def test_unknown_tags_of_a_request_are_skipped(api):
    for version in (v for a, v in EVERY_VERSION if a is api and request_schema(api, v).__flexible__):
        frame = encode_request(api, version, 7, "us", REQUESTS[api])[4:]
        more = tagged(frame, header_bytes=13)
        assert decode_request(more, head_of(more)) == decode_request(frame, head_of(frame)), version


def test_unknown_tags_of_elements_are_skipped():
    plain = encode_request(Api.METADATA, 9, 7, "us", REQUESTS[Api.METADATA] | {"topics": ({"name": "t"},)})[
        4:
    ]
    assert plain[13:17] == b"\x02\x02t\0"
    more = plain[:16] + TAGS + plain[17:]
    assert decode_request(more, head_of(more)).body == decode_request(plain, head_of(plain)).body


def test_unknown_tags_of_a_response_are_skipped():
    frame = encode_response(Api.HEARTBEAT, 4, 7, {"error_code": Wire.rebalance_in_progress})[4:]
    more = tagged(frame, header_bytes=5)
    assert decode_response(Api.HEARTBEAT, 4, more) == decode_response(Api.HEARTBEAT, 4, frame)


@pytest.mark.parametrize(
    "tags", [b"\x01\x63\x04abc", b"\x01\x63", b"\xff\xff\xff\xff\x0f\x63\0", b"\xff\xff\xff\xff\xff\x0f"]
)
def test_unknown_tags_that_do_not_end_are_an_error(tags):
    frame = encode_request(Api.HEARTBEAT, 4, 7, "us", REQUESTS[Api.HEARTBEAT])[4:-1] + tags
    with pytest.raises(ProtocolError, match="HEARTBEAT v4"):
        decode_request(frame, head_of(frame))


# --- the tables in the documentation


def test_the_readme_lists_the_requests_that_are_served_and_what_refused_ones_get():
    text = README.read_text(encoding="utf-8")
    for head, rows in asyncio.run(tables()).items():
        assert text.partition(head)[2].partition("\n\n")[0].splitlines() == rows

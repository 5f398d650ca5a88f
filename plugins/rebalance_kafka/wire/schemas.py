"""The schemas of every version: those of kio, and of the versions of Kafka 4.4 that kio does not have yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v4 import request as api_versions_request
from kio.schema.api_versions.v4 import response as api_versions_response
from kio.schema.delete_groups.v2 import request as delete_groups_request
from kio.schema.delete_groups.v2 import response as delete_groups_response
from kio.schema.txn_offset_commit.v5 import request as txn_offset_commit_request
from kio.schema.txn_offset_commit.v5 import response as txn_offset_commit_response

from rebalance_kafka.wire.apis import Api

_TEXT, _INT32, _UUID = ({"kafka_type": kind} for kind in ("string", "int32", "uuid"))


@dataclass(frozen=True, kw_only=True)
class ApiVersionsRequest(api_versions_request.ApiVersionsRequest):
    """Version 5: the cluster and the node that the client means to connect to (KIP-1242)."""

    __version__: ClassVar[Any] = 5
    cluster_id: str | None = field(metadata=_TEXT, default=None)
    node_id: int = field(metadata=_INT32, default=-1)


class ApiVersionsResponse(api_versions_response.ApiVersionsResponse):
    """Version 5 is that of version 4."""

    __version__: ClassVar[Any] = 5


class DeleteGroupsRequest(delete_groups_request.DeleteGroupsRequest):
    """Version 3 is that of version 2."""

    __version__: ClassVar[Any] = 3


@dataclass(frozen=True, kw_only=True)
class DeletableGroupResult(delete_groups_response.DeletableGroupResult):
    """Version 3: an error has a message."""

    __version__: ClassVar[Any] = 3
    error_message: str | None = field(metadata=_TEXT, default=None)


@dataclass(frozen=True, kw_only=True)
class DeleteGroupsResponse(delete_groups_response.DeleteGroupsResponse):
    """Version 3: errors have messages."""

    __version__: ClassVar[Any] = 3
    results: tuple[DeletableGroupResult, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitRequestTopic:
    """Version 6: a topic by its id (KIP-1319)."""

    __type__: ClassVar[Any] = txn_offset_commit_request.TxnOffsetCommitRequestTopic.__type__
    __version__: ClassVar[Any] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[Any] = 28
    topic_id: UUID | None = field(metadata=_UUID)
    partitions: tuple[txn_offset_commit_request.TxnOffsetCommitRequestPartition, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitRequest(txn_offset_commit_request.TxnOffsetCommitRequest):
    """Version 6: topics by their ids (KIP-1319)."""

    __version__: ClassVar[Any] = 6
    topics: tuple[TxnOffsetCommitRequestTopic, ...]  # type: ignore[assignment]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitResponseTopic:
    """Version 6: a topic by its id (KIP-1319)."""

    __type__: ClassVar[Any] = txn_offset_commit_response.TxnOffsetCommitResponseTopic.__type__
    __version__: ClassVar[Any] = 6
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[Any] = 28
    topic_id: UUID | None = field(metadata=_UUID)
    partitions: tuple[txn_offset_commit_response.TxnOffsetCommitResponsePartition, ...]


@dataclass(frozen=True, kw_only=True)
class TxnOffsetCommitResponse(txn_offset_commit_response.TxnOffsetCommitResponse):
    """Version 6: topics by their ids (KIP-1319)."""

    __version__: ClassVar[Any] = 6
    topics: tuple[TxnOffsetCommitResponseTopic, ...]  # type: ignore[assignment]


_REQUESTS: Mapping[tuple[int, int], Any] = {
    (Api.API_VERSIONS, 5): ApiVersionsRequest,
    (Api.DELETE_GROUPS, 3): DeleteGroupsRequest,
    (Api.TXN_OFFSET_COMMIT, 6): TxnOffsetCommitRequest,
}
_RESPONSES: Mapping[tuple[int, int], Any] = {
    (Api.API_VERSIONS, 5): ApiVersionsResponse,
    (Api.DELETE_GROUPS, 3): DeleteGroupsResponse,
    (Api.TXN_OFFSET_COMMIT, 6): TxnOffsetCommitResponse,
}


def request_schema(api: int, version: int) -> Any:
    """Return the schema of a request, by the key of its API."""
    return _REQUESTS.get((api, version)) or load_request_schema(api, version)


def response_schema(api: int, version: int) -> Any:
    """Return the schema of a response, by the key of its API."""
    return _RESPONSES.get((api, version)) or load_response_schema(api, version)

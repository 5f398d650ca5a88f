"""Authorized operations of responses (KIP-430). There is no access control: each is allowed."""

from typing import Any

from msgspec.structs import replace

from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE = 8, 16, 32, 64, 128, 256
_CLUSTER_ACTION, _DESCRIBE_CONFIGS, _ALTER_CONFIGS, _IDEMPOTENT_WRITE = 512, 1_024, 2_048, 4_096
_CONFIGS = _DESCRIBE_CONFIGS | _ALTER_CONFIGS

ON_TOPIC = _READ | _WRITE | _CREATE | _DELETE | _ALTER | _DESCRIBE | _CONFIGS
ON_GROUP = _READ | _DELETE | _DESCRIBE | _CONFIGS
ON_CLUSTER = _CREATE | _ALTER | _DESCRIBE | _CLUSTER_ACTION | _CONFIGS | _IDEMPOTENT_WRITE


def with_operations(response: Any) -> Any:
    """Return a description of groups with the operations on them."""

    def described(group: Any) -> Any:
        if group.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
            return group
        return replace(group, authorized_operations=ON_GROUP)

    if isinstance(response, m.DescribeGroupsResponse):
        return replace(response, groups=tuple(map(described, response.groups)))
    return response if response.error is not ErrorCode.NONE else described(response)

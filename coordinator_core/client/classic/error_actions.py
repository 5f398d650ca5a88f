"""The actions of a consumer after errors, as one table for each request (PITFALLS C-46)."""

from enum import Enum, auto

from coordinator_core.protocol.error_codes import ErrorCode as E


class Action(Enum):
    """What a consumer does after an error."""

    BACK_OFF = auto()
    """Send the request again after retry.backoff.ms."""
    ADOPT_ID = auto()
    """Adopt the member id of the response and join again at once."""
    REJOIN = auto()
    """Join again and keep generation and partitions."""
    RESET_GENERATION = auto()
    """Forget the generation, keep the member id, join again."""
    RESET_MEMBER = auto()
    """Forget generation and member id, join again."""
    REDISCOVER = auto()
    """Find the coordinator, then send the request again."""
    FATAL = auto()
    """End the consumer with this error."""


_ANY_GROUP_REQUEST = {
    E.COORDINATOR_NOT_AVAILABLE: Action.REDISCOVER,
    E.NOT_COORDINATOR: Action.REDISCOVER,
    E.REQUEST_TIMED_OUT: Action.REDISCOVER,
    E.COORDINATOR_LOAD_IN_PROGRESS: Action.BACK_OFF,
    E.UNKNOWN_SERVER_ERROR: Action.BACK_OFF,
    E.UNKNOWN_MEMBER_ID: Action.RESET_MEMBER,
    E.ILLEGAL_GENERATION: Action.RESET_GENERATION,
    E.REBALANCE_IN_PROGRESS: Action.REJOIN,
    E.FENCED_INSTANCE_ID: Action.FATAL,
    E.GROUP_AUTHORIZATION_FAILED: Action.FATAL,
    E.INVALID_GROUP_ID: Action.FATAL,
}

JOIN = _ANY_GROUP_REQUEST | {
    E.MEMBER_ID_REQUIRED: Action.ADOPT_ID,
    E.REBALANCE_IN_PROGRESS: Action.BACK_OFF,
    E.INCONSISTENT_GROUP_PROTOCOL: Action.FATAL,
    E.INVALID_SESSION_TIMEOUT: Action.FATAL,
    E.GROUP_MAX_SIZE_REACHED: Action.FATAL,
}
SYNC = _ANY_GROUP_REQUEST | {E.INCONSISTENT_GROUP_PROTOCOL: Action.FATAL}
HEARTBEAT = _ANY_GROUP_REQUEST
COMMIT = _ANY_GROUP_REQUEST | {
    E.GROUP_ID_NOT_FOUND: Action.RESET_GENERATION,
    E.UNKNOWN_TOPIC_OR_PARTITION: Action.BACK_OFF,
    E.OFFSET_METADATA_TOO_LARGE: Action.FATAL,
}


def action(table: dict[E, Action], error: E) -> Action:
    """Return the action for an error. An error that the table does not contain is fatal."""
    return table.get(error, Action.FATAL)

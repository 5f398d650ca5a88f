"""The actions of a consumer after errors. Each family has a table for each request (PITFALLS C-46)."""

from collections.abc import Mapping
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


LATER = {
    E.COORDINATOR_NOT_AVAILABLE: Action.REDISCOVER,
    E.NOT_COORDINATOR: Action.REDISCOVER,
    E.REQUEST_TIMED_OUT: Action.REDISCOVER,
    E.COORDINATOR_LOAD_IN_PROGRESS: Action.BACK_OFF,
    E.UNKNOWN_SERVER_ERROR: Action.BACK_OFF,
}
"""The errors of any request of a member that say nothing about the member."""


def action(table: Mapping[E, Action], error: E) -> Action:
    """Return the action for an error. An error that the table does not contain is fatal."""
    return table.get(error, Action.FATAL)

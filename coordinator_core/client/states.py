"""The states of a partition of a consumer, with the table of legal moves."""

from enum import Enum
from typing import TypeVar


class FetchState(Enum):
    """Whether a partition has a position to fetch from, and how it will get one."""

    INITIALIZING = "initializing"
    """No position yet: the committed offset is asked for."""

    FETCHING = "fetching"
    """Has a position."""

    AWAIT_RESET = "await-reset"
    """Will start at the beginning or the end: the offset is asked for."""

    AWAIT_VALIDATION = "await-validation"
    """Has a position of a leader epoch that must be held against the log."""


_F = FetchState

FETCH_MOVES: dict[FetchState, frozenset[FetchState]] = {
    _F.INITIALIZING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.FETCHING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_RESET: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_VALIDATION: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
}

_State = TypeVar("_State", bound=Enum)


def check_move(moves: dict[_State, frozenset[_State]], before: _State, after: _State) -> None:
    """Check a move against a table of legal moves.

    Raises:
        AssertionError: if the table does not contain the move, which is a bug of the client.
    """
    if after not in moves[before]:
        raise AssertionError(f"illegal move from {before.value} to {after.value}")

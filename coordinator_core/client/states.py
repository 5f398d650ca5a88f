"""The states of a partition of a consumer, with the table of legal moves."""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import TypeVar


class FetchState(StrEnum):
    """The state of the position of a partition."""

    INITIALIZING = "initializing"
    """The position is unknown; the committed offset is requested."""

    FETCHING = "fetching"
    """The position is known."""

    AWAIT_RESET = "await-reset"
    """The position will be the beginning or the end; its offset is requested."""

    AWAIT_VALIDATION = "await-validation"
    """The position was read in an earlier leader epoch; it is being validated."""


_F = FetchState

FETCH_MOVES: dict[FetchState, frozenset[FetchState]] = {
    _F.INITIALIZING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.FETCHING: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_RESET: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
    _F.AWAIT_VALIDATION: frozenset({_F.FETCHING, _F.AWAIT_RESET, _F.AWAIT_VALIDATION}),
}

_State = TypeVar("_State", bound=Enum)


def check_move(moves: Mapping[_State, frozenset[_State]], before: _State, after: _State) -> None:
    """Check a move against a table of legal moves.

    Raises:
        AssertionError: if the table does not contain the move, which is a bug of the client.
    """
    if after not in moves[before]:
        raise AssertionError(f"illegal move from {before.value} to {after.value}")

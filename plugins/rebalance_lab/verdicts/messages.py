"""Requests and responses in words, for every protocol family: what a message says is read from its fields."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.consumer_protocol import decode_assignment
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.messages import (
    FamilyResponse,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from rebalance_lab.simulation.world.exchange import Exchange
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import counted

_NOTABLE = (JoinGroupRequest, SyncGroupRequest, LeaveGroupRequest)
"""The requests that are described even if they succeed and others of their kind are only counted.

Those of families say so themselves (`FamilyRequest.is_notable`).
"""

_NO_RESPONSE, _WAITS = "no response", "no change yet"


class Message(NamedTuple):
    """A request with its response.

    ``error`` has the names of error codes, ``NONE``, what servers refused, ``no response``, or
    ``no change yet`` for a request that waits for a change.
    """

    client: str
    node: int
    request: str
    said: str
    sent_ms: int
    answered_ms: int | None
    error: str
    answer: str

    def __str__(self) -> str:
        said = f" ({self.said})" if self.said else ""
        after = "" if self.answered_ms is None else f" after {_duration(self.answered_ms - self.sent_ms)}"
        answer = f", {self.answer}" if self.answer else ""
        return f"{self.client} {self.request}{said}: {self.error}{after}{answer}"


def message(exchange: Exchange) -> Message:
    """Describe a request and its response."""
    response = exchange.response
    return Message(
        exchange.client,
        exchange.node,
        _api(exchange),
        ", ".join(_said(exchange.request)),
        exchange.sent_ms,
        exchange.answered_ms,
        _unanswered(exchange) if response is None else _errors(response),
        "" if response is None else ", ".join(_said(response)),
    )


def is_quiet(exchange: Exchange) -> bool:
    """Return whether an exchange is one of many without news: a heartbeat, a commit, a look-up, a wait."""
    if exchange.response is None:
        return _unanswered(exchange) == _WAITS
    is_notable = isinstance(exchange.request, _NOTABLE) or getattr(exchange.request, "is_notable", False)
    return not is_notable and _errors(exchange.response) == ErrorCode.NONE.name


def kind_of(exchange: Exchange) -> tuple[str, ...]:
    """Return what exchanges have in common that are described together."""
    if is_quiet(exchange):
        return ("", "", ErrorCode.NONE.name, "")
    described = message(exchange)
    return described.request, described.said, described.error, described.answer


def together(exchanges: Sequence[Exchange]) -> str:
    """Describe exchanges of one kind together.

    For example ``12 Heartbeat, 3 OffsetCommit: NONE``, or ``9 SyncGroup (generation 4) of 9 members: NONE``.
    """
    if len(exchanges) == 1:
        return str(message(exchanges[0]))
    request, said, error, answer = kind_of(exchanges[0])
    if is_quiet(exchanges[0]):
        counts = Counter(_api(e) if e.response is not None else f"waiting {_api(e)}" for e in exchanges)
        return f"{', '.join(f'{n:,} {api}' for api, n in sorted(counts.items()))}: {error}"
    members = counted(len({exchange.client for exchange in exchanges}), "member")
    about = f" ({said})" if said else ""
    return f"{len(exchanges):,} {request}{about} of {members}: {error}" + (f", {answer}" if answer else "")


def _api(exchange: Exchange) -> str:
    return type(exchange.request).__name__.removesuffix("Request")


def _unanswered(exchange: Exchange) -> str:
    return _WAITS if getattr(exchange.request, "waits", False) else _NO_RESPONSE


def _errors(response: Any) -> str:
    """Return the error code of a response, or its refusal, or the codes of its entries with their numbers."""
    error = getattr(response, "error", ErrorCode.NONE)
    if error is not ErrorCode.NONE:
        return error.name
    if isinstance(response, FamilyResponse) and response.refusal:
        return response.refusal
    found = Counter(entry.error.name for entry in _entries(response) if entry.error is not ErrorCode.NONE)
    return ", ".join(f"{name} ({n:,})" for name, n in sorted(found.items())) or ErrorCode.NONE.name


def _entries(response: Any) -> Iterable[Any]:
    """Yield the entries with an error code in the lists of a response."""
    for name in getattr(response, "__struct_fields__", ()):
        value = getattr(response, name)
        if isinstance(value, tuple):
            yield from (entry for entry in value if isinstance(getattr(entry, "error", None), ErrorCode))


def _said(message: Any) -> Iterable[str]:
    """Yield what the fields of a message say, as far as they have a meaning in every protocol."""
    generation = getattr(message, "generation_id", -1)
    if generation >= 0:
        yield f"generation {generation}"
    members = getattr(message, "members", ())
    reasons = [getattr(entry, "reason", "") for entry in (message, *members)]
    yield from dict.fromkeys(filter(None, reasons))
    if members and hasattr(message, "leader"):
        yield f"leads {counted(len(members), 'member')}"
    if members and isinstance(message, FamilyResponse):
        yield counted(len(members), "member")
    if parent := getattr(message, "parent", ""):
        yield parent
    if nodes := getattr(message, "nodes", ()):
        yield counted(len(nodes), "node")
    if assignments := getattr(message, "assignments", ()):
        yield f"assignments of {counted(len(assignments), 'member')}"
    if offsets := getattr(message, "offsets", ()):
        yield counted(len(offsets), "partition")
    if assignment := getattr(message, "assignment", b""):
        yield _assigned(assignment)


def _assigned(data: bytes) -> str:
    try:
        return counted(len(decode_assignment(data)[0]), "partition")
    except ProtocolError:
        return "an unreadable assignment"


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1_000 else f"{as_text(ms / 1_000)} s"

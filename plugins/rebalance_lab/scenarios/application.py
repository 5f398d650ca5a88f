"""The application around a consumer: how long it works on records, callbacks, start and end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from coordinator_core.errors import InputError
from coordinator_core.reading import checks as doc
from coordinator_core.reading.checks import inside, unexpected
from coordinator_core.reading.durations import format_duration, parse_duration
from coordinator_core.reading.schemas import SPAN, described, number
from coordinator_core.reading.suggestions import one_of

Span: TypeAlias = tuple[int, int]
"""The shortest and the longest duration in milliseconds. A run draws from it, the longest excluded."""

NONE: Span = (0, 0)
MOST_VARIED = 100.0

CLIENTS = ("java", "librdkafka", "kafka-python", "aiokafka", "rebalance-lab")
"""The client libraries whose polls, heartbeats and rounds `simulation.clients` describes."""

APPLICATION_FIELDS = {
    "record_cv": described(
        "The coefficient of variation of the time that a record takes: 0 if all take the same time.",
        number(below=MOST_VARIED),
        default=1,
    ),
    "batch_overhead": described("The time of a poll besides its records.", SPAN, default="5ms"),
    "on_revoked": described("The time of a call of on_partitions_revoked.", SPAN, default=0),
    "on_assigned": described("The time of a call of on_partitions_assigned.", SPAN, default=0),
    "restore": described(
        "The time to restore the state of a partition that is new to the member.", SPAN, default=0
    ),
    "start_up": described(
        "The time from the start of the process to its subscription.", SPAN, default=["0s", "3s"]
    ),
    "shut_down": described("The time from the last record to the close.", SPAN, default=0),
    "client": described("The client library.", {"enum": list(CLIENTS)}, default=CLIENTS[0]),
}
_SPANS = ("batch_overhead", "on_revoked", "on_assigned", "restore", "start_up", "shut_down")


@dataclass(frozen=True, slots=True)
class Application:
    """The application of a member. Each span is drawn anew every time.

    - ``record_cv``: the coefficient of variation of the time that a record takes.
    - ``batch_overhead``: the time of a poll besides its records.
    - ``on_revoked``, ``on_assigned``: the time of a call of the listener.
    - ``restore``: the time to restore the state of a partition that is new to the member.
    - ``start_up``: the time from the start of the process to its subscription.
    - ``shut_down``: the time from the last record to the close of the consumer.
    - ``client``: the client library.
    """

    record_cv: float = 1.0
    batch_overhead: Span = NONE
    on_revoked: Span = NONE
    on_assigned: Span = NONE
    restore: Span = NONE
    start_up: Span = (0, 3_000)
    shut_down: Span = NONE
    client: str = CLIENTS[0]


IDEAL = Application()
"""The application of a member whose document gives neither a process_rate nor anything of an application."""


def parse_application(fields: Mapping[str, Any], where: str, *, limited: bool) -> Application:
    """Return the application of a member. ``limited``: whether the member has a process_rate.

    A member without a process_rate handles records in no time: its ``batch_overhead`` is 0 by default.

    Raises:
        InputError: if a value is wrong.
    """
    given: dict[str, Any] = {"batch_overhead": (5, 5)} if limited else {}
    for name in _SPANS:
        if fields.get(name) is not None:
            given[name] = _span(fields[name], inside(where, name))
    if fields.get("record_cv") is not None:
        given["record_cv"] = doc.number(fields["record_cv"], inside(where, "record_cv"), below=MOST_VARIED)
    if fields.get("client") is not None:
        at = inside(where, "client")
        given["client"] = doc.text(fields["client"], at, "the name of a client library")
        if given["client"] not in CLIENTS:
            raise InputError(at, repr(given["client"]), one_of(given["client"], CLIENTS))
    return Application(**given)


def _span(value: Any, where: str) -> Span:
    if not isinstance(value, list):
        duration_ms = parse_duration(value, where)
        return duration_ms, duration_ms
    if len(value) != 2:
        raise unexpected(where, value, "a duration, or a list of the shortest and the longest")
    low, high = (parse_duration(item, inside(where, i)) for i, item in enumerate(value))
    if high < low:
        found = f"[{format_duration(low)}, {format_duration(high)}]"
        raise InputError(where, found, "the shortest duration first")
    return low, high

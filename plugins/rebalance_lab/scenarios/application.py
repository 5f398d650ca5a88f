"""The application around a consumer: how long it works on records, callbacks, start and end."""

from typing import Annotated, Literal, TypeAlias, get_args

from msgspec import Meta

from rebalance_lab.scenarios.documents import Bounds, Document, about

Span: TypeAlias = tuple[int, int]
"""The shortest and the longest duration in milliseconds. A run draws from it, the longest excluded."""

NONE = Bounds((0, 0))

ClientName: TypeAlias = Literal["java", "librdkafka", "kafka-python", "aiokafka", "franz-go", "rebalance-lab"]
CLIENTS: tuple[ClientName, ...] = get_args(ClientName)
"""The client libraries whose polls, heartbeats and rounds `simulation.clients` describes."""


class Application(Document, frozen=True):
    """The application of a member. Each time is drawn anew every time.

    A member without a process_rate handles records in no time: its ``batch_overhead`` is 0 by default.
    """

    record_cv: Annotated[
        Annotated[float, Meta(ge=0, lt=100)],
        about("The coefficient of variation of the time that a record takes: 0 if all take the same time."),
    ] = 1.0
    batch_overhead: Annotated[
        Bounds, about("The time of a poll besides its records.", schema={"default": "5ms"})
    ] = NONE
    on_revoked: Annotated[Bounds, about("The time of a call of on_partitions_revoked.")] = NONE
    on_assigned: Annotated[Bounds, about("The time of a call of on_partitions_assigned.")] = NONE
    restore: Annotated[
        Bounds, about("The time to restore the state of a partition that is new to the member.")
    ] = NONE
    start_up: Annotated[Bounds, about("The time from the start of the process to its subscription.")] = (
        Bounds((0, 3_000))
    )
    shut_down: Annotated[Bounds, about("The time from the last record to the close.")] = NONE
    client: Annotated[ClientName, about("The client library.", expected="the name of a client library")] = (
        "java"
    )


IDEAL = Application()
"""The application of a member whose document gives neither a process_rate nor anything of an application."""

LIMITED = Application(batch_overhead=Bounds((5, 5)))
"""That of a member with a process_rate whose document gives nothing else of it."""

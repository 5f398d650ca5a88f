"""``rebalance-lab consume``: a member of a consumer group, with any strategy."""

import asyncio
import signal
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator_core.model import TopicPartition
from rebalance_kafka.addresses import places_of
from rebalance_kafka.commands.options import BOOTSTRAP_HELP, CONFIG_HELP, security_settings, settings_of
from rebalance_lab.cli.main import INTERRUPTED
from rebalance_lab.cli.options import strategies_beginning
from rebalance_lab.cli.output import stderr

if TYPE_CHECKING:
    from coordinator_core.client.outcome import ConsumedRecord
    from rebalance_kafka.consumer.consumer import Consumer

POLL_SECONDS = 0.5


def consume(
    bootstrap_server: Annotated[str, typer.Option(metavar="HOST:PORT", help=BOOTSTRAP_HELP)],
    group: Annotated[str, typer.Option(metavar="GROUP", help="The group to join.")],
    topic: Annotated[list[str], typer.Option(metavar="TOPIC", help="A topic to read. Can be repeated.")],
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            "-s",
            metavar="STRATEGY",
            autocompletion=strategies_beginning,
            help="The assignor. Can be repeated: the first is preferred.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="classic|consumer",
            help="The group protocol. With consumer (KIP-848) the coordinator runs the assignor.",
        ),
    ] = "classic",
    instance_id: Annotated[
        str | None, typer.Option(metavar="NAME", help="The name of a static member.")
    ] = None,
    client_id: Annotated[str, typer.Option(metavar="NAME", help="The client id.")] = "rebalance-lab",
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the first record if nothing is committed.")
    ] = False,
    most: Annotated[
        int, typer.Option("--max-records", min=0, help="Stop after this many records. 0: never.")
    ] = 0,
    command_config: Annotated[Path | None, typer.Option(metavar="FILE", help=CONFIG_HELP)] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the consumer, by Kafka's name."),
    ] = None,
) -> None:
    """Read records as a member of a group, until Ctrl-C: topic, partition, offset and value, with tabs.

    Report on stderr the partitions that the member gets and loses.
    """
    from rebalance_kafka.consumer.consumer import Consumer

    places_of(bootstrap_server, "--bootstrap-server")
    settings: dict[str, Any] = {"client.id": client_id, **security_settings(command_config)}
    settings |= settings_of(setting or (), "--set", "session.timeout.ms=10000")
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    if from_beginning:
        settings["auto.offset.reset"] = "earliest"
    consumer = Consumer(
        *topic,
        bootstrap_servers=bootstrap_server,
        group_id=group,
        strategy=strategy,
        protocol=protocol,
        settings=settings,
        listener=Reports(),
    )
    try:
        asyncio.run(_read(consumer, most))
    except asyncio.CancelledError:
        raise typer.Exit(INTERRUPTED) from None


async def _read(consumer: "Consumer", most: int) -> None:
    stop = _stopped_by_signals()
    read, reported = 0, ""
    async with consumer:
        while not stop.is_set() and not (most and read >= most):
            records = deque(await consumer.poll(POLL_SECONDS))
            try:
                while records and not (most and read >= most):
                    _print(records[0])
                    records.popleft()
                    read += 1
            finally:
                _leave(consumer, records)
            obstacle = _obstacle(consumer)
            if obstacle != reported and obstacle:
                stderr().print(obstacle, markup=False)
            reported = obstacle


def _stopped_by_signals() -> asyncio.Event:
    """Return an event that SIGTERM and Ctrl-C set. The second signal does not wait for the LeaveGroup."""
    stop, loop, task = asyncio.Event(), asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None

    def stop_now() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_now)
    return stop


def _obstacle(consumer: "Consumer") -> str:
    """Return what keeps the consumer from reading, or an empty text."""
    if consumer.refused_topics:
        listed = ", ".join(f"{name} ({error})" for name, error in consumer.refused_topics.items())
        return f"waiting for topics: {listed}"
    return f"connection lost: {consumer.last_disconnect}" if consumer.last_disconnect else ""


def _print(record: "ConsumedRecord") -> None:
    value = (record.value or b"").decode(errors="replace")
    typer.echo(f"{record.topic}\t{record.partition}\t{record.offset}\t{value}")


def _leave(consumer: "Consumer", records: Iterable["ConsumedRecord"]) -> None:
    """Go back before records that were not printed, so that they are not committed."""
    for record in reversed(list(records)):
        if (record.topic, record.partition) in consumer.assignment:
            consumer.seek(record.topic, record.partition, record.offset)


class Reports:
    """A listener that prints on stderr."""

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Print partitions that the member gives up."""
        _report("revoked", partitions)

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Print new partitions."""
        _report("assigned", partitions)

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Print partitions that the member has lost."""
        _report("lost", partitions)


def _report(change: str, partitions: tuple[TopicPartition, ...]) -> None:
    listed = ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions)) or "nothing"
    stderr().print(f"{change}: {listed}", markup=False)

"""``rebalance-lab serve``: an embedded broker for real clients."""

import asyncio
import logging
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote
from zlib import crc32

import typer

from coordinator_core.errors import InputError
from rebalance_kafka.addresses import place_of
from rebalance_kafka.commands.options import passwords_of, settings_of, topics_of
from rebalance_kafka.scram import MECHANISMS
from rebalance_lab.cli.files import check_path, is_written_through, write_whole
from rebalance_lab.cli.output import complain, stderr, stdout

if TYPE_CHECKING:
    from rebalance_kafka.broker.embedded import EmbeddedBroker
    from rebalance_lab.traces.trace import Trace

LONGEST_NAME = 100
WARNING = "[bold yellow]warning:[/]"


def serve(
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Port 0 picks one.")] = "127.0.0.1:9092",
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="The address that clients connect to, if it is another than --listen."
        ),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PARTITIONS", help="A topic to create. Can be repeated.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep groups, offsets and records in this folder.")
    ] = None,
    assignor_trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the history of the group to this file at the end, as the trace of a simulated run,"
            " if there was a group."
            " With several groups, write one file FILE.GROUP for each. A FIFO gets them one after another.",
        ),
    ] = None,
    auto_create: Annotated[
        int, typer.Option(min=0, help="Partitions of topics that a client's request creates. 0: an error.")
    ] = 0,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the coordinator by Kafka's name; milliseconds also as 10s. Can be repeated.",
        ),
    ] = None,
    max_frame: Annotated[int, typer.Option(min=1_024, help="Bytes of a request.")] = 100 * 1024 * 1024,
    max_connections: Annotated[int, typer.Option(min=1, help="Clients at once.")] = 2_000,
    max_records: Annotated[int, typer.Option(min=0, help="Bytes of records to keep.")] = 1024 * 1024 * 1024,
    tls_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve TLS with this certificate, a PEM file.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key, if it is not in the same file.")
    ] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Require a certificate of one of these authorities from clients."),
    ] = None,
    user: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PASSWORD", help="Require SASL from clients. Can be repeated."),
    ] = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="Of SASL: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512. Can be repeated. All by default."),
    ] = None,
) -> None:
    """Serve consumer groups, offsets and records to real Kafka clients until SIGTERM or Ctrl-C.

    Print the address as the only line on stdout when the broker is ready.
    """
    from rebalance_kafka.broker.embedded import EmbeddedBroker

    host, port = place_of(listen, "--listen")
    if advertise is not None:
        place_of(advertise, "--advertise")
    check_path(assignor_trace)
    if tls_certificate is None and tls_key is not None:
        raise InputError("--tls-key", "no certificate", "--tls-certificate with it")
    if mechanism and not user:
        raise InputError("--mechanism", "no user", "--user with it")
    broker = EmbeddedBroker(
        topics_of(topic or (), "--topic"),
        host=host,
        port=port,
        advertise=advertise,
        settings=settings_of(setting or (), "--set", "group.initial.rebalance.delay.ms=0"),
        data_dir=data_dir,
        auto_create=auto_create,
        most_frame_bytes=max_frame,
        most_connections=max_connections,
        most_record_bytes=max_records,
        tls=tls_certificate is not None and (tls_certificate, tls_key or tls_certificate),
        tls_client_ca=tls_client_ca,
        users=passwords_of(user or (), "--user"),
        mechanisms=mechanism or MECHANISMS,
    )
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    traces = asyncio.run(_serve(broker))
    if assignor_trace is not None:
        _write_traces(traces, assignor_trace)


async def _serve(broker: "EmbeddedBroker") -> Mapping[str, "Trace"]:
    """Serve until a signal, and return the history of each group."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with broker:
        stdout().print(broker.address)
        await stop.wait()
        stderr().print("stopping ...")
        return broker.traces()


def _write_traces(traces: Mapping[str, "Trace"], file: Path) -> None:
    if not traces:
        complain(f"{file} is not written: no member has joined a group", label=WARNING)
    elif len(traces) == 1 or is_written_through(file):
        write_whole(file, b"".join(trace.encode() for trace in traces.values()))
    else:
        for group, trace in traces.items():
            write_whole(file.with_name(f"{file.name}.{_in_a_name(group)}"), trace.encode())


def _in_a_name(group: str) -> str:
    """Return a group's id as part of a file name, which is different for every group."""
    name = quote(group, safe=" ")
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}-{crc32(name.encode()):08x}"

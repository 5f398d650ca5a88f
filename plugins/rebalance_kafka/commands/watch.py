"""``rebalance-lab watch``: live groups over time."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_core.errors import InputError, ProtocolError
from coordinator_core.reading.durations import parse_duration
from rebalance_kafka.addresses import Place, places_of
from rebalance_kafka.commands.options import BOOTSTRAP_HELP, CONFIG_HELP, security_settings
from rebalance_lab.cli.files import check_path, write_whole
from rebalance_lab.cli.output import stdout, warn

if TYPE_CHECKING:
    from coordinator_core.model import TopicPartition
    from rebalance_kafka.consumer.admin_client import AdminClient
    from rebalance_kafka.watching import Watch

MOST_REQUESTS = 20
"""Requests a second for all groups together."""


def watch(
    bootstrap_server: Annotated[str, typer.Option(metavar="HOST:PORT", help=BOOTSTRAP_HELP)],
    group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="The group. Can be repeated.")
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all-groups", help="Every group with members.")] = False,
    every: Annotated[str, typer.Option(metavar="DURATION", help="The time between two looks.")] = "1s",
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="How long to watch; until Ctrl-C without it."),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what was seen of the group as a trace.")
    ] = None,
    command_config: Annotated[Path | None, typer.Option(metavar="FILE", help=CONFIG_HELP)] = None,
) -> None:
    """Print the rounds of live groups as they happen: who is there, who owns what, how long it took.

    Needs no more than the right to describe groups and offsets, and goes on when brokers restart. All groups
    together cost at most twenty requests a second.
    """
    if bool(group) == all_groups:
        found = "both" if all_groups else "neither"
        raise InputError("--group, --all-groups", found, "one of them")
    if trace is not None and (all_groups or len(group or ()) > 1):
        raise InputError("--trace", "several groups", "one --group")
    check_path(trace)
    every_ms = parse_duration(every, "--every", at_least_ms=100)
    until_ms = None if for_ is None else parse_duration(for_, "--for", at_least_ms=every_ms)
    places = places_of(bootstrap_server, "--bootstrap-server")
    settings = security_settings(command_config)
    watched: dict[str, Watch] = {}
    try:
        asyncio.run(_watch(places, settings, group, watched, every_ms / 1_000, until_ms))
    except KeyboardInterrupt:
        pass
    finally:
        if trace is not None and watched:
            (only,) = watched.values()
            write_whole(trace, only.trace().encode())


async def _watch(
    places: Sequence[Place],
    settings: Mapping[str, str],
    groups: Sequence[str] | None,
    watched: "dict[str, Watch]",
    every_seconds: float,
    duration_ms: int | None,
) -> None:
    from rebalance_kafka.consumer.admin_client import AdminClient
    from rebalance_kafka.consumer.security import security_of

    loop = asyncio.get_running_loop()
    end = None if duration_ms is None else loop.time() + duration_ms / 1_000
    is_lost = False
    async with AdminClient(places, security=security_of(settings, "--command-config")) as admin:
        while end is None or loop.time() < end:
            began = loop.time()
            try:
                names = await _names(admin) if groups is None else groups
                for name in names:
                    before = admin.sent
                    await _look(admin, name, watched, several=len(names) > 1)
                    if len(names) > 1:
                        await asyncio.sleep((admin.sent - before) / MOST_REQUESTS)
                is_lost = False
            except ProtocolError as error:
                if not is_lost:
                    warn(f"{error}; trying again")
                is_lost = True
            await asyncio.sleep(max(0.0, began + every_seconds - loop.time()))


async def _names(admin: "AdminClient") -> list[str]:
    from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE
    from rebalance_kafka.snapshot import WITHOUT_MEMBERS

    listed = await admin.groups()
    return [
        group.group_id
        for group in listed
        if group.state not in WITHOUT_MEMBERS and group.protocol_type == PROTOCOL_TYPE
    ]


async def _look(admin: "AdminClient", name: str, watched: "dict[str, Watch]", *, several: bool) -> None:
    from rebalance_kafka.snapshot import describe
    from rebalance_kafka.watching import Watch, stamped

    described = await describe(admin, name)
    topics = sorted({topic for member in described.members for topic in member.subscription.topics})
    lag = await _lag(admin, name, topics) if topics else {}
    now_ms = round(time() * 1_000)
    watch = watched.setdefault(name, Watch(name))
    for line in watch.see(described, lag, now_ms=now_ms):
        behind = f"; lag {sum(lag.values()):,}" if lag else ""
        prefix = f"{name}: " if several else ""
        stdout().print(stamped(f"{prefix}{line}{behind}", now_ms), markup=False)


async def _lag(admin: "AdminClient", name: str, topics: Sequence[str]) -> "dict[TopicPartition, int]":
    """Return the records that are not committed, of partitions with a committed offset."""
    from rebalance_kafka.consumer.admin_client import LATEST

    committed = await admin.committed(name)
    described = await admin.metadata(
        [topic for topic in topics if any(tp.topic == topic for tp in committed)]
    )
    ends = await admin.offsets(described.topics, LATEST)
    return {tp: max(0, ends[tp] - offset) for tp, offset in committed.items() if tp in ends}

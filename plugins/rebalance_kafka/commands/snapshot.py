"""``rebalance-lab snapshot``: live groups as scenarios."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import unknown_name
from rebalance_kafka.addresses import Place, places_of
from rebalance_kafka.commands.options import BOOTSTRAP_HELP, CONFIG_HELP, security_settings
from rebalance_lab.cli.files import check_path, write_whole
from rebalance_lab.cli.output import ExitStatus, complain, stderr, stdout

if TYPE_CHECKING:
    from rebalance_kafka.snapshot import Snapshot


def snapshot(
    bootstrap_server: Annotated[str, typer.Option(metavar="HOST:PORT", help=BOOTSTRAP_HELP)],
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="The group.")] = None,
    all_groups: Annotated[
        bool, typer.Option("--all-groups", help="Every group with members, one row each.")
    ] = False,
    rates: Annotated[
        str, typer.Option(metavar="DURATION", help="Measure rates for this long. 0s: no rates.")
    ] = "0s",
    ask: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="What happens in the scenario, one after the other: leave, crash, join, rolling_restart.",
        ),
    ] = "",
    command_config: Annotated[Path | None, typer.Option(metavar="FILE", help=CONFIG_HELP)] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file, not to stdout.")
    ] = None,
) -> None:
    """Write a live group as a scenario in YAML: members, owned partitions, topics, rates, lag.

    The first lines name what brokers do not tell: edit it if you know it. Nothing happens in the scenario
    unless you `--ask leave,join`. With --all-groups, write JSON Lines for `rebalance-lab score`.
    """
    if (group is None) == (not all_groups):
        found = "both" if all_groups else "neither"
        raise InputError("--group, --all-groups", found, "one of them")
    check_path(output)
    places = places_of(bootstrap_server, "--bootstrap-server")
    seconds = parse_duration(rates, "--rates") / 1_000
    if 0 < seconds < 1:
        raise InputError("--rates", repr(rates), "0s, or at least 1s, such as 30s")
    asked = _asked(ask)
    settings = security_settings(command_config)
    with stderr().status("looking at the groups ..."):
        wanted = None if group is None else [group]
        taken, failed = asyncio.run(_taken(places, settings, wanted, seconds, asked))
    if not taken and not failed:
        raise InputError("--all-groups", "none with members", "a consumer group")
    lines = (
        [json.dumps(_row(group)) + "\n" for group in taken]
        if all_groups
        else [_yaml(group) for group in taken]
    )
    if output is None:
        typer.echo("".join(lines), nl=False)
    elif taken:
        write_whole(output, "".join(lines).encode())
        stdout().print(f"{len(taken)} groups in {output}" if all_groups else str(output))
    if failed:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _asked(text: str) -> list[str]:
    """Return the events that are asked about.

    Raises:
        InputError: if there are no such events.
    """
    from rebalance_kafka.snapshot import EVENTS

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in EVENTS:
            raise unknown_name("--ask", name, EVENTS)
    return names


async def _taken(
    places: Sequence[Place],
    settings: Mapping[str, str],
    groups: Sequence[str] | None,
    seconds: float,
    ask: Sequence[str],
) -> tuple[list["Snapshot"], int]:
    """Return the snapshots, and how many could not be taken. Report the errors of those on stderr."""
    from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE
    from rebalance_kafka.consumer.admin_client import AdminClient
    from rebalance_kafka.consumer.security import security_of
    from rebalance_kafka.snapshot import WITHOUT_MEMBERS
    from rebalance_kafka.snapshot import snapshot as take

    async with AdminClient(places, security=security_of(settings, "--command-config")) as admin:
        if groups is None:
            listed = await admin.groups()
            groups = [
                group.group_id
                for group in listed
                if group.state not in WITHOUT_MEMBERS and group.protocol_type == PROTOCOL_TYPE
            ]
        results = await asyncio.gather(
            *(take(admin, group, window_seconds=seconds, ask=ask) for group in groups), return_exceptions=True
        )
    snapshots = []
    for result in results:
        if isinstance(result, RebalanceLabError):
            complain(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            snapshots.append(result)
            for message in result.left_out:
                complain(f"group {result.group_id}: {message}", label="[bold yellow]warning:[/]")
    return snapshots, len(results) - len(snapshots)


def _yaml(taken: "Snapshot") -> str:
    import yaml

    group, strategy = map(_printable, (taken.group_id, taken.strategy))
    head = f"# Group {group}, which runs {strategy or 'no assignor'}.\n"
    if taken.unseen:
        head += "# Brokers do not tell these, so that the defaults hold:\n"
        head += "".join(f"# - {_printable(line)}\n" for line in taken.unseen)
    return head + yaml.safe_dump(dict(taken.scenario), sort_keys=False, default_flow_style=None, width=100)


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)


def _row(taken: "Snapshot") -> dict[str, object]:
    return {"scenario_id": taken.group_id, "strategy": taken.strategy, "scenario": json.dumps(taken.scenario)}

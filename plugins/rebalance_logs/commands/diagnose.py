"""``rebalance-lab diagnose``: what happened to a group, from logs."""

from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import parse_duration
from rebalance_lab.cli.files import check_path, write_whole
from rebalance_lab.cli.output import (
    ExitStatus,
    complain,
    hanging,
    print_document,
    print_hanging,
    stderr,
    stdout,
    text_width,
    warn,
)

if TYPE_CHECKING:
    from rebalance_logs.causes import Diagnosis
    from rebalance_logs.groups import GroupLog
    from rebalance_logs.reading import Logs


def diagnose(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Logs of brokers and clients: files, folders, .gz; - is stdin."
        ),
    ],
    group: Annotated[
        list[str] | None, typer.Option(metavar="GROUP", help="Only this group. Can be repeated.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Nothing before: 2026-11-23T21:00 or 21:00.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Nothing after.")] = None,
    zone: Annotated[
        str,
        typer.Option(
            "--timezone", metavar="ZONE", help="Of times without a zone: UTC, Europe/Berlin, +02:00."
        ),
    ] = "UTC",
    shift: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE=DURATION", help="By how much the clock of a file is ahead (-2s: behind)."),
    ] = None,
    output: Annotated[
        Literal["text", "json", "html"], typer.Option("--format", help="Sentences, a page, or JSON.")
    ] = "text",
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the group as a trace, for views and metrics.")
    ] = None,
    incident: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the group as a scenario, for `compare`."),
    ] = None,
    lag: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With -o: lag or offsets over time, for the rates of the scenario: CSV, or the JSON of a"
            " range query of Prometheus.",
        ),
    ] = None,
) -> None:
    """Say why a group rebalanced, from the logs of its brokers and members: causes with evidence first.

    Reads any mix of logs of Kafka's brokers, the Java client, librdkafka, kafka-python, aiokafka, KafkaJS,
    franz-go and kafka-go, wrapped as people have them. Clocks of hosts that differ are put right.
    """
    from rebalance_logs.causes import diagnosed
    from rebalance_logs.clocks import shifts_of
    from rebalance_logs.groups import groups_of

    check_path(trace)
    check_path(incident)
    if trace is not None and incident is not None and trace.absolute() == incident.absolute():
        raise InputError("--trace, -o", f"{trace} for both", "two files")
    if lag is not None and incident is None:
        raise InputError("--lag", "no -o", "-o FILE, the scenario that gets the rates")
    clock = zone_of(zone, "--timezone")
    logs = _read(paths, clock)
    for file in logs.files:
        if file.problem:
            warn(f"{file.path}: {file.problem}")
    shifts = shifts_of(logs, _given(shift or [], logs))
    window = begin_ms, end_ms = _time(from_, "--from", logs, clock), _time(to, "--to", logs, clock)
    if begin_ms is not None and end_ms is not None and begin_ms >= end_ms:
        raise InputError("--from, --to", f"{from_} and {to}", "a time before another")
    groups = groups_of(logs, shifts, group or ())
    missing = [name for name in group or () if name not in {found.group for found in groups}]
    if missing:
        known = ", ".join(found.group for found in groups_of(logs, shifts)) or "none"
        raise InputError("--group", repr(missing[0]), f"a group of these logs: {known}")
    _check_window(window, groups, f"{from_ or ''} to {to or ''}".strip(), clock)
    diagnoses = [diagnosed(found, *window) for found in groups]
    _write(diagnoses, trace, incident, lag, clock)
    if output == "json":
        from rebalance_lab.verdicts.tables import json_text
        from rebalance_logs.document import as_document

        print_document(json_text(as_document(logs, shifts, diagnoses, clock)))
    elif output == "html":
        from rebalance_logs.page import as_html

        print_document(as_html(logs, shifts, diagnoses, clock))
    else:
        _print(logs, shifts, diagnoses, clock)
    if not diagnoses:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def zone_of(text: str, where: str) -> tzinfo:
    """Return a time zone by its name, or by its distance from UTC.

    Raises:
        InputError: if there is no such zone.
    """
    import re
    from zoneinfo import ZoneInfo

    from rebalance_logs.lines import offset

    if text.upper() in ("UTC", "Z"):
        return UTC
    try:
        if re.fullmatch(r"[+-]\d\d:?\d\d", text):
            return offset(text)
        return ZoneInfo(text)
    except (ValueError, OSError, KeyError):
        raise InputError(where, repr(text), "UTC, a name such as Europe/Berlin, or +02:00") from None


def _read(paths: Sequence[str], zone: tzinfo) -> "Logs":
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    from rebalance_logs.reading import files_of, read_logs

    sizes = [Path(path).stat().st_size for path in files_of(paths) if path != "-"]
    columns = (TextColumn("reading logs"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=stderr(), transient=True, disable=not stderr().is_terminal) as bar:
        task = bar.add_task("", total=sum(sizes) or None)
        return read_logs(paths, zone=zone, progress=lambda size: bar.advance(task, size))


def _given(texts: Sequence[str], logs: "Logs") -> dict[int, int]:
    """Return the shifts that the user gave, by the number of the file."""
    found = {}
    for text in texts:
        path, equals, value = text.rpartition("=")
        numbers = [n for n, file in enumerate(logs.files) if path in (file.path, Path(file.path).name)]
        if not equals or len(numbers) != 1:
            known = ", ".join(Path(file.path).name for file in logs.files)
            raise InputError(
                "--shift", repr(text), f"FILE=DURATION, such as c-1.log=-2s, with one of {known}"
            )
        negative = value.startswith("-")
        shift_ms = parse_duration(value.lstrip("+-"), "--shift")
        found[numbers[0]] = -shift_ms if negative else shift_ms
    return found


def _time(text: str | None, where: str, logs: "Logs", zone: tzinfo) -> int | None:
    """Return a time in milliseconds since 1970; one without a day is of the last day of the logs."""
    if text is None:
        return None
    last = max((file.last_ms for file in logs.files if file.last_ms is not None), default=0)
    day = f"{datetime.fromtimestamp(last / 1_000, zone):%Y-%m-%d}"
    try:
        at = datetime.fromisoformat(text if "-" in text else f"{day}T{text}")
    except ValueError:
        raise InputError(where, repr(text), "a time such as 2026-11-23T21:00 or 21:00") from None
    return round((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp() * 1_000)


def _check_window(
    window: tuple[int | None, int | None], groups: Sequence["GroupLog"], text: str, zone: tzinfo
) -> None:
    """Check that there are lines of groups within the time that is asked for.

    Raises:
        InputError: if there are none.
    """
    if not groups or window == (None, None):
        return
    first, last = min(g.from_ms for g in groups), max(g.until_ms for g in groups)
    if (window[0] or first) > last or (window[1] or last) < first:
        ends = [f"{datetime.fromtimestamp(at_ms / 1_000, zone):%Y-%m-%dT%H:%M:%S}" for at_ms in (first, last)]
        raise InputError("--from, --to", text, f"a part of the time of these logs: {' to '.join(ends)}")


def _write(
    diagnoses: Sequence["Diagnosis"],
    trace: Path | None,
    incident: Path | None,
    lag: Path | None,
    zone: tzinfo,
) -> None:
    if trace is None and incident is None:
        return
    if len(diagnoses) != 1:
        names = ", ".join(found.group.group for found in diagnoses) or "none"
        raise InputError(
            "--trace, -o", f"{len(diagnoses)} groups ({names})", "one group: name it with --group"
        )
    (only,) = diagnoses
    if trace is not None:
        write_whole(trace, only.trace.encode())
        complain(f"the trace of {only.group.group} is in {trace}", label="[bold]written:[/]")
    if incident is not None:
        from rebalance_logs.incident import as_yaml
        from rebalance_logs.lags import read_load

        load = None if lag is None else read_load(lag, only.group.group, only.stops, zone)
        write_whole(incident, as_yaml(only, load).encode())
        complain(f"the scenario of {only.group.group} is in {incident}", label="[bold]written:[/]")


def _print(logs: "Logs", shifts: Sequence[int], diagnoses: Sequence["Diagnosis"], zone: tzinfo) -> None:
    from rich.text import Text

    from rebalance_logs.report import file_lines, round_lines, sentences, title

    console, places = stdout(), logs.names
    if not diagnoses:
        console.print("No line of these logs is about a group that rebalances.", markup=False)
    for number, diagnosis in enumerate(diagnoses):
        if number:
            console.print()
        name, *parts = title(diagnosis, zone)
        text = hanging(" · ".join([name, *parts]), text_width(console))
        console.print(Text.assemble((name, "bold"), text[len(name) :]))
        console.print()
        for line in sentences(diagnosis, places):
            indent = len(line) - len(line.lstrip())
            print_hanging(line, console, " " * (indent + 3))
        if diagnosis.group.rounds:
            console.print()
        for line in round_lines(diagnosis, zone):
            print_hanging(line, console, "    ")
    console.print()
    for line in file_lines(logs.files, shifts):
        print_hanging(line, console)

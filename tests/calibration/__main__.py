"""``python -m tests.calibration``: the same scenarios on real clients and in the simulator."""

import json
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from csv import writer
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from time import sleep
from typing import Annotated, TypeAlias

import typer

from coordinator_core import default_registry
from coordinator_core.registry.registry import Registry
from tests.calibration.brokers import kafka, serve
from tests.calibration.cells import CLIENTS, ORDER, STRATEGIES, Cell, cells
from tests.calibration.figures import Figures, figures
from tests.calibration.lines import Observed, observed_in
from tests.calibration.member import KINDS
from tests.calibration.observed import trace_of
from tests.calibration.predicted import SEEDS, predicted
from tests.calibration.real import run
from tests.calibration.table import apart, markdown, rows, text, worth
from tests.real_kafka.jars import GIVEN, UnavailableError, jars
from tests.real_kafka.versions import FRANZ_GO
from tests.rebalance_kafka.peers.jvm import client_version

FOLDER = Path(__file__).parent
"""It has the real figures of each broker in a file with its name."""

NAMES = {"kip848": "uniform-848+reconcile"}
"""Strategies that files of others call by another name."""

STAGGER_SECONDS = 0.8
"""The groups that run at the same time do not start and change at the same time."""


class On(StrEnum):
    """The broker of the real clients."""

    KAFKA = "kafka"
    SERVE = "serve"


PACKAGES = ("kafka-python", "aiokafka", "confluent-kafka")


def main(
    scenario: Annotated[list[str] | None, typer.Option("--scenario", "-s", help="Can be repeated.")] = None,
    client: Annotated[list[str] | None, typer.Option("--client", "-c", help="Can be repeated.")] = None,
    strategy: Annotated[list[str] | None, typer.Option("--strategy", help="Can be repeated.")] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Run the clients where repetitions are missing, and add the figures."),
    ] = False,
    repetitions: Annotated[int, typer.Option("--repetitions", "-n", min=1)] = 5,
    broker: Annotated[On, typer.Option(help="The broker of the real clients.")] = On.KAFKA,
    at_once: Annotated[int, typer.Option(min=1, help="Groups of real clients at the same time.")] = 5,
    seeds: Annotated[int, typer.Option(min=1)] = SEEDS,
    data: Annotated[
        Path | None, typer.Option(help="The real figures.", show_default="those of the broker")
    ] = None,
    add: Annotated[
        list[Path] | None, typer.Option("--add", help="Figures of members that others ran. Can be repeated.")
    ] = None,
    keep: Annotated[Path | None, typer.Option(help="A folder for the logs of the clients.")] = None,
    logs: Annotated[Path | None, typer.Option(help="Compute the real figures from logs of --keep.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the table as CSV.")] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a line for each cell.")] = False,
    of_worth: Annotated[
        Path | None, typer.Option("--worth", help="Write what predictions are worth, for comparisons.")
    ] = None,
    of_brokers: Annotated[
        bool, typer.Option("--apart", help="Print the figures that are apart between the brokers.")
    ] = False,
    as_json: Annotated[Path | None, typer.Option("--json", help="Write the table as JSON.")] = None,
) -> None:
    """Print real medians beside predicted medians and ranges."""
    if of_brokers:
        typer.echo("\n".join(apart({name: read(FOLDER / f"{name}.json") for name in On})))
        return
    clients = tuple(client or (KINDS if measure else CLIENTS))
    if measure and (unknown := [name for name in clients if name not in KINDS]):
        raise typer.BadParameter(
            f"found {', '.join(unknown)}, expected {', '.join(KINDS)}", param_hint="--client"
        )
    chosen = list(cells(tuple(scenario or ORDER), clients, tuple(strategy or STRATEGIES)))
    data = data or FOLDER / f"{broker}.json"
    if measure and broker is On.KAFKA:
        try:
            os.environ.setdefault(GIVEN, str(jars()))  # for members in Java, too
        except UnavailableError as reason:
            raise typer.BadParameter(str(reason), param_hint="--broker") from None
    real = read(data)
    if measure or logs is not None:
        fresh: dict[Cell, list[Figures]] = {}
        found = (
            kept(logs, chosen)
            if logs is not None
            else measured(missing(chosen, real, repetitions), at_once, keep, broker)
        )
        for cell, one in found:
            fresh.setdefault(cell, list(real.get(cell, ())) if measure else []).append(one)
            write(data, real | fresh)
        real |= fresh
    for file in add or ():
        real |= read(file)
    real = {cell: real[cell] for cell in chosen if cell in real}
    expected = {cell: predicted(cell, seeds) for cell in real}
    table = rows(real, expected)
    if of_worth is not None:
        of_worth.write_bytes(worth(real, expected))
    typer.echo(markdown(table) if as_markdown else text(table))
    listed = [{**row.cell._asdict(), **row._asdict(), "hit": row.hit, "near": row.near} for row in table]
    for row in listed:
        del row["cell"]
    if as_json is not None:
        as_json.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    if csv is not None:
        with csv.open("w", encoding="utf-8", newline="") as file:
            table_file = writer(file)
            table_file.writerow(listed[0] if listed else ())
            table_file.writerows(row.values() for row in listed)


Found: TypeAlias = Iterator[tuple[Cell, Figures]]


def kept(logs: Path, chosen: list[Cell]) -> Found:
    """Yield a cell and its figures for each run in a folder of logs."""
    registry = default_registry()
    for cell in chosen:
        for folder in sorted(logs.glob(f"{_name(cell)}-[0-9]*")):
            yield cell, _figures(cell, observed_in(folder, cell.document), registry)


def _figures(cell: Cell, observed: Observed, registry: Registry) -> Figures:
    return figures(trace_of(observed, cell.scenario, cell.strategy), registry)


def _name(cell: Cell) -> str:
    return "-".join(cell)


Jobs: TypeAlias = list[tuple[Cell, int]]
"""Cells, and the numbers of their runs."""


def missing(chosen: list[Cell], real: dict[Cell, list[Figures]], repetitions: int) -> Jobs:
    """Return the runs that cells are short of."""
    mixed = sorted(chosen, key=lambda cell: cell.strategy)  # members in Java take long to start
    return [(cell, seed) for seed in range(repetitions) for cell in mixed if seed >= len(real.get(cell, ()))]


def measured(jobs: Jobs, at_once: int, keep: Path | None, broker: On) -> Found:
    """Yield a cell and its figures for each run of real clients."""
    registry = default_registry()
    stack = ExitStack()
    place = kafka(stack) if broker is On.KAFKA else serve

    def one(number: int) -> tuple[Cell, Figures]:
        cell, seed = jobs[number]
        sleep(number % at_once * STAGGER_SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder)
            if keep is not None:
                logs = keep / f"{_name(cell)}-{seed}"
                logs.mkdir(parents=True)
            observed = run(cell.document, cell.client, cell.strategy, logs, place, seed=seed)
        found = _figures(cell, observed, registry)
        typer.echo(f"{cell} {seed}: {found}", err=True)
        return cell, found

    with stack, ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(one, range(len(jobs)))


def read(path: Path) -> dict[Cell, list[Figures]]:
    """Read the real figures of earlier runs."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {
        Cell(entry["scenario"], entry["client"], NAMES.get(entry["strategy"], entry["strategy"])): [
            Figures(*run) for run in entry["runs"]
        ]
        for entry in kept["cells"]
    }


def write(path: Path, real: dict[Cell, list[Figures]]) -> None:
    """Write the real figures, a cell a line."""
    place = {name: i for i, name in enumerate(ORDER)}
    ordered = sorted(real, key=lambda cell: (place[cell.scenario], *cell))
    lines = ",\n  ".join(json.dumps({**cell._asdict(), "runs": real[cell]}) for cell in ordered)
    head = {
        "made_by": "python -m tests.calibration --measure",
        "versions": {package: version(package) for package in PACKAGES}
        | {"java": client_version(), "franz-go": FRANZ_GO},
        "figures": Figures._fields,
    }
    path.write_text(f'{json.dumps(head)[:-1]}, "cells": [\n  {lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)

"""The workload of a report: columns of it, and views of single scenarios beside the page."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import yaml

from coordinator_core.client.subscription import partition_map
from coordinator_core.errors import InputError
from coordinator_core.model import Partitions
from rebalance_lab.cli.files import write_whole
from rebalance_lab.cli.output import warn
from rebalance_lab.scenarios.files import read_document
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.picture import comparison_svg
from rebalance_lab.verdicts.words import listed_names
from rebalance_spark.choices import DEFAULT_TIMEOUT
from rebalance_spark.commands.options import session_of_a_command
from rebalance_spark.documents import is_group, of_group
from rebalance_spark.findings import Findings
from rebalance_spark.identity import scenario_hash_column
from rebalance_spark.limits import run_within
from rebalance_spark.rows import Job, Scorer, scenario_hash
from rebalance_spark.scoring import units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST_VIEWS = 12
_HASH = "scenario_hash"
_TEXTS = ("scenario_id", "scenario", _HASH)
_LANES = 60
"""The most partitions of a picture."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of scores: its path, how Spark reads it, and the hashes of the scored scenarios."""

    path: str
    master: str | None
    conf: Mapping[str, str]
    hashes: Mapping[str, str]

    def column(self, name: str) -> tuple[dict[str, Any], list[str]]:
        """Return a column by scenario, and the names of all columns.

        The column is empty if the workload does not have it.

        Raises:
            InputError: as `sources.read_workloads`, or if the workload has other texts of these scenarios.
        """
        table, names = self.read(["scenario_id", name])
        if name not in names:
            return {}, names
        ids, values, found = (table.column(each).to_pylist() for each in ("scenario_id", name, _HASH))
        others = [one for one, text in zip(ids, found, strict=True) if self.hashes.get(one, text) != text]
        if others:
            listed = f"{len(others):,} scenarios with other texts than those that were scored"
            what = f"{self.path}, with {listed} ({listed_names(others, 3)})"
            raise InputError("--workload", what, "the workload that was scored")
        return dict(zip(ids, values, strict=True)), names

    def read(self, wanted: Sequence[str], ids: Sequence[str] | None = None) -> tuple[pa.Table, list[str]]:
        """Return columns with the hashes of the scenarios, of all of them or of some, and all names.

        Spark reads what is not Parquet here.
        """
        with suppress(pa.ArrowException, OSError):
            dataset = ds.dataset(self.path, format="parquet", partitioning="hive")
            names = dataset.schema.names
            if {"scenario_id", "scenario"} <= set(names):
                chosen = None if ids is None else pc.field("scenario_id").isin(list(ids))
                columns = [n for n in wanted if n in names]
                batches = dataset.to_batches(columns=list({*columns, "scenario"}), filter=chosen)
                parts = [_hashed(batch).select([*columns, _HASH]) for batch in batches]
                return pa.Table.from_batches(parts) if parts else _nothing(columns), names
        from rebalance_spark.sources import read_workloads

        rows = read_workloads(session_of_a_command(self.master, self.conf), self.path)
        hashed = rows.withColumn(_HASH, scenario_hash_column())
        found = hashed.select(*(name for name in wanted if name in rows.columns), _HASH)
        if ids is not None:
            found = found.where(rows["scenario_id"].isin(list(ids)))
        return found.toArrow(), list(rows.columns)


def _hashed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with the hash of each scenario."""
    hashes = [scenario_hash(text or "") for text in batch.column("scenario").to_pylist()]
    return batch.append_column(_HASH, pa.array(hashes, pa.string()))


def _nothing(columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array([], pa.string()) for name in (*columns, _HASH)})


def worst_scenarios(findings: Findings) -> list[str]:
    """Return the worst scenarios of the headlines, each once, at most `MOST_VIEWS`."""
    worst = [
        figures.worst_scenario
        for metric in findings.headlines
        for strategy in findings.strategies
        if (figures := findings.figures.get((metric, strategy))) is not None
    ]
    return list(dict.fromkeys(worst))[:MOST_VIEWS]


def write_views(findings: Findings, html: Path, workload: Workload, start: str = "") -> dict[str, str]:
    """Write a view of each of the worst scenarios, and return their addresses relative to the page.

    `start`: the assignor whose assignment running groups have at the start, empty for that of their owners.
    A scenario that is not in the workload, or has another text there, or whose simulation fails, has no view.
    """
    ids = worst_scenarios(findings)
    table, _ = workload.read(["scenario_id", "scenario"], ids)
    texts = {}
    for name, text, found in zip(*(table.column(n).to_pylist() for n in _TEXTS), strict=True):
        if workload.hashes.get(name, found) == found:
            texts[name] = text
        else:
            warn(f"no view of {name}: the text in {workload.path} is another one than that which was scored")
    folder = html.with_name(f"{html.stem}-scenarios")
    links = {}
    for number, name in enumerate(name for name in ids if name in texts):
        traces, errors = _traces(name, texts[name], findings.strategies, start)
        if not traces:
            warn(f"no view of {name}: {'; '.join(errors)}")
            continue
        folder.mkdir(exist_ok=True)
        path = folder / f"{number}.html"
        write_whole(path, view(name, traces, errors).encode())
        links[name] = f"{folder.name}/{path.name}"
    return links


def _traces(name: str, text: str, strategies: Sequence[str], start: str) -> tuple[list[Trace], list[str]]:
    traces: list[Trace] = []
    errors: list[str] = []
    scorer = Scorer(Job(tuple(strategies), start=start))
    for strategy in strategies:
        try:
            trace = run_within(DEFAULT_TIMEOUT, lambda s=strategy: scorer.trace(name, text, s))  # type: ignore[misc]
            traces.append(trace)
        except (Exception, SystemExit) as error:
            errors.append(f"{strategy}: {error}")
    return traces, errors


def view(name: str, traces: Sequence[Trace], errors: Sequence[str]) -> str:
    """Return the page of a scenario: the view of notebooks, or a picture if they are not installed."""
    if find_spec("anywidget") is not None and find_spec("rebalance_jupyter") is not None:
        page: str = import_module("rebalance_jupyter.views").compare_view(traces, errors=errors).to_html()
        return page
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(name)}</title></head>'
        f"<body>{comparison_svg(traces, most_lanes=_LANES, errors=errors)}</body></html>\n"
    )


def shown(workload: "DataFrame", scenario_id: str, job: Job) -> str:
    """Return the scenario of an id as it is scored, as YAML: with its seed, and the owners at its start.

    Raises:
        InputError: if there is no such scenario, or it is malformed.
    """
    from pyspark.sql import functions as sf

    rows = units(workload)
    row = rows.where(sf.col("scenario_id") == scenario_id).select("scenario").first()
    if row is None:
        first = rows.select("scenario_id").first()
        such = f", such as {first[0]}" if first is not None else ""
        raise InputError("--show", repr(scenario_id), f"an id of the workload{such}")
    scenario = Scorer(job).scenario(scenario_id, row[0])
    document = read_document(row[0], scenario_id)
    if is_group(document):
        document = of_group(document, scenario_id)
    owned = {member.id: member.owned for member in scenario.members if member.owned is not None}
    for member in document["members"]:
        if member.get("id") in owned:
            member["owned"] = partition_map(Partitions.of(owned[member["id"]]))
    whole = {**document, "seed": scenario.seed}
    return yaml.safe_dump(whole, sort_keys=False, default_flow_style=None, width=100)

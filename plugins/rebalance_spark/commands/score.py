"""The command ``rebalance-lab score``, which runs strategies on every scenario of a workload."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.options import strategy_option
from rebalance_lab.cli.output import ExitStatus, complain, print_document, stderr, stdout, warn
from rebalance_lab.verdicts.tables import text_table
from rebalance_spark.choices import DEFAULT_TIMEOUT, Fidelity, Status
from rebalance_spark.commands.options import (
    Conf,
    Master,
    Plugins,
    check_one_of,
    is_local_master,
    names_in,
    pairs,
    session_of_a_command,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from rebalance_spark.chunks import Kept, Todo
    from rebalance_spark.places import Place
    from rebalance_spark.rows import Job

_T = TypeVar("_T")

DEFAULT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
_SHOWN_ERRORS = 5
COLUMNS = ("group", "member", "topic", "partition", "rate", "lag")
_FILES = "workloads and scores in files that are whole"


def score(
    workload: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="Parquet or JSON Lines with scenario_id and scenario, groups in the format of `assign`, or a"
            " folder of scenarios in YAML; in any file system that Spark supports, also with wildcards."
            " Or --table.",
        ),
    ] = "",
    table: Annotated[
        str, typer.Option(metavar="NAME", help="The input is this table of the catalog, in place of INPUT.")
    ] = "",
    keys: Annotated[
        str,
        typer.Option(
            metavar="COLUMN,...", help="Columns, also of partitions, that tell rows with the same id apart."
        ),
    ] = "",
    columns: Annotated[
        str,
        typer.Option(
            metavar="NAME=COLUMN,...",
            help="The columns of a table with a row per partition that have other names than"
            f" {', '.join(COLUMNS)}: group=consumer_group,rate=msgs_in_per_sec.",
        ),
    ] = "",
    draws: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Make N scenarios of each group of a table with a row per partition. In each of them another"
            " member leaves.",
        ),
    ] = None,
    members: Annotated[
        str,
        typer.Option(
            metavar="INPUT",
            help="The members of groups: Parquet or CSV with group, member, topic, partition. The input has"
            " the rates then: topic, partition and rate, and lag if it is known.",
        ),
    ] = "",
    interval: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="With --members: the rates are records in so long, such as 1h."
        ),
    ] = "1s",
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="A field of all members of such a table, as in a scenario; repeatable: process_rate=1000,"
            " client=librdkafka. batch_overhead=@COLUMN is a column of the table, and"
            " batch_overhead={5ms,700ms} makes a scenario of each group with each of the values.",
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What happens to each group of such a table, in place of a member that leaves: the list of"
            " the events of a scenario, in YAML or JSON.",
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            metavar="ASSIGNOR",
            help="Let running groups start with the assignment that this assignor gives to them, in place of"
            " their owners.",
        ),
    ] = "",
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="The folder for the scores; a second run adds the missing ones."),
    ] = "",
    out_table: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The scores go to this table of the catalog, in place of --out. It is created if necessary.",
        ),
    ] = "",
    strategy: Annotated[
        list[str] | None,
        strategy_option(
            "A strategy; repeatable. Alternatives in braces are several strategies"
            f" (optimal+tolerance={{1%,2%}}). The default is {', '.join(DEFAULT_STRATEGIES)}."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=V1,V2",
            help="Values of a setting in place of the scenarios'; repeatable. Every strategy is scored with"
            " every combination of the values.",
        ),
    ] = None,
    metrics: Annotated[
        str, typer.Option(metavar="METRIC,...", help="Compute only these metrics; the default is all.")
    ] = "",
    fidelity: Annotated[
        str,
        typer.Option(
            metavar="FIDELITY", help="protocol simulates every message, plan computes the assignments only."
        ),
    ] = Fidelity.PROTOCOL,
    timeout: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="For one scenario under one strategy; 0: no limit."),
    ] = DEFAULT_TIMEOUT,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Replaces the seeds of the scenarios, each by another one.")
    ] = None,
    retry: Annotated[
        str,
        typer.Option(metavar="STATUS,...", help="Compute rows with these statuses again: error, timeout."),
    ] = "",
    plugin: Plugins = None,
    py_files: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="A .py, .zip or .whl for the workers; repeatable."),
    ] = None,
    ship: Annotated[
        bool,
        typer.Option("--ship", help="Send this package, and all that it requires, to the workers."),
    ] = False,
    show: Annotated[
        str,
        typer.Option(
            metavar="ID",
            help="Print the scenario of this id, as it would be scored, for `compare`. No scores.",
        ),
    ] = "",
    progress: Annotated[
        bool,
        typer.Option(
            "--progress",
            help="Without a terminal, print the estimated time, a line when a tenth is done, and one every"
            " half minute.",
        ),
    ] = False,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Score strategies on every scenario of a workload: a row per scenario and strategy, as Parquet.

    A scenario that fails, hangs or is malformed becomes a row with its status, and the exit status is 1.
    After an interruption, the same command computes only the missing scores. A scenario whose text has
    changed, or a strategy whose file has changed, is other work.
    """
    from rebalance_spark.applications import check_application, read_application, read_events
    from rebalance_spark.archives import importable_here, send_to_workers
    from rebalance_spark.chunks import Kept, last_scores, todo
    from rebalance_spark.places import Folder, Table
    from rebalance_spark.scoring import checked_job, scored_schema, units
    from rebalance_spark.sessions import files_named
    from rebalance_spark.sources import check_local, read_workload_table, read_workloads
    from rebalance_spark.storage import described
    from rebalance_spark.workers import check_workers

    check_one_of("score", workload, "INPUT, the path of a workload,", table, "--table")
    if not show:
        check_one_of("score", out, "--out", out_table, "--out-table")
    if members and table:
        raise InputError("--members", "--table", "INPUT, a path of the table with rates")
    again = _statuses(retry)
    settings = pairs(conf, "--conf")
    importable_here(py_files or ())
    _warn_of_plugins(plugin or ())
    job = checked_job(
        strategy or DEFAULT_STRATEGIES,
        fidelity,
        timeout,
        seed,
        plugin or (),
        setting or (),
        names_in(metrics),
        start,
    )
    named, own = _named(columns), names_in(keys)
    fields = read_application(pairs(member, "--member"), "--member")
    check_application(fields, "--member")
    happens = None if events is None else read_events(events)
    of_partitions: dict[str, Any] = {"keys": own, "columns": named, "draws": draws}
    of_partitions |= {"events": happens, "application": fields}
    if workload and not members and is_local_master(master, settings):
        check_local(workload, own, named)
    kept = Kept()
    spark = session_of_a_command(
        master, _shipped(settings, master) if ship else settings, lambda: f"error: {kept.after('stopped')}"
    )
    with files_named(_FILES), described(spark, "look at the workload"):
        if table:
            workloads = read_workload_table(spark, table, **of_partitions)
        else:
            length_ms = parse_duration(interval, "--interval")
            workloads = read_workloads(
                spark, workload, members=members, interval_ms=length_ms, **of_partitions
            )
        if show:
            from rebalance_spark.scenarios import shown

            print_document(shown(workloads, show, job))
            return
        schema = scored_schema(units(workloads), job)
    send_to_workers(spark, py_files or ())
    place = Folder(out) if out else Table(out_table)
    _without_damaged(lambda: place.read(spark), place, spark)  # one with something else is left alone
    check_workers(spark, plugin or ())
    stopped = ""
    with place.leased(spark, job.run_id, schema):
        with described(spark, "look for missing scores"):
            missing = _without_damaged(lambda: todo(workloads, job, place, again), place, spark)
        stopped = _written(missing, job, place, kept, as_lines=progress)
    with files_named(_FILES), described(spark, "count errors"):
        scores = place.read(spark)
        failed = scores is not None and _print_outcome(last_scores(scores))
    if stopped:
        complain(stopped)
    if failed or stopped:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _without_damaged(look: Callable[[], _T], place: "Place", spark: "SparkSession") -> _T:
    """Return what is found in a place. Files of scores that cannot be read are set aside, with a warning."""
    from rebalance_spark.places import Folder
    from rebalance_spark.sessions import files_named

    while True:
        try:
            with files_named(_FILES):
                return look()
        except InputError as error:
            name = place.set_aside(spark, error.where) if isinstance(place, Folder) else ""
            if not name:
                raise
            warn(f"{error.where} cannot be read: it is called {name} now, and its rows are computed again")


def _shipped(settings: dict[str, str], master: str | None) -> dict[str, str]:
    """Pack the archive for the workers, and return the settings with it."""
    from rebalance_spark.archives import kept_folder
    from rebalance_spark.sessions import is_remote
    from rebalance_spark.shipping import shipped

    if is_remote(master):
        raise InputError("--ship", "a server of Spark Connect", "a server whose workers have the package")
    with stderr().status("packing ..."):
        return shipped(kept_folder() / "rebalance-lab.tar.gz", settings)


def _named(text: str) -> dict[str, str]:
    """Return the columns of a table by the names of those that it would have."""
    named = pairs(names_in(text), "--columns")
    for name in named:
        if name not in COLUMNS:
            raise InputError("--columns", repr(name), one_of(name, COLUMNS))
    return named


def _statuses(text: str) -> list[Status]:
    names = names_in(text)
    known = [status.value for status in Status if status is not Status.OK]
    for name in names:
        if name not in known:
            raise InputError("--retry", repr(name), f"some of {', '.join(known)}, with commas")
    return [Status(name) for name in names]


def _warn_of_plugins(modules: Sequence[str]) -> None:
    """Print a warning for failed plugins of --py-files. Every command warns of installed ones."""
    from rebalance_spark.rows import registry_with

    known = default_registry().failures
    for failed in registry_with(modules).failures:
        if failed not in known:
            warn(f"plugin {failed.name!r} of {failed.distribution} is not available: {failed.reason}")


def _written(missing: "Todo", job: "Job", place: "Place", kept: "Kept", *, as_lines: bool) -> str:
    """Compute and write the missing scores. Return what stopped the run, or an empty text."""
    from rebalance_spark.chunks import write_scores
    from rebalance_spark.commands.progress import estimate, progress
    from rebalance_spark.sessions import cores, in_short, spark_errors

    if not missing.rows:
        stderr().print(f"nothing to score: all {missing.done_before:,} rows are done")
        return ""
    if sys.stderr.isatty() or as_lines:
        stderr().print(estimate(missing, len(job.strategies), cores(missing.units.sparkSession)))
    try:
        with progress(missing.rows, as_lines=as_lines) as report:
            write_scores(missing, job, place, report, kept)
    except KeyboardInterrupt:
        return kept.after("stopped")
    except spark_errors() as error:
        return kept.after(f"Spark gave up ({in_short(error)})")
    return ""


def _print_outcome(scores: "DataFrame") -> bool:
    """Print a line per strategy and the most frequent errors. Return whether a row failed."""
    from rebalance_spark.report_tables import status_table
    from rebalance_spark.summaries import statuses

    rows: list[Any] = statuses(scores).orderBy("strategy").collect()
    table = status_table({row["strategy"]: row.asDict() for row in rows})
    stdout().print(text_table(table.head, table.rows))
    _print_errors(scores)
    _print_repairs(scores)
    _print_differing(scores)
    return any(row[status.value] for row in rows for status in Status if status is not Status.OK)


def _print_errors(scores: "DataFrame") -> None:
    """Print the most frequent kinds of errors, each with an example."""
    from pyspark.sql import functions as sf

    errors = scores.where(sf.col("error").isNotNull()).groupBy("status", _kind_of_error().alias("kind"))
    counted = errors.agg(
        sf.count("*").alias("times"), sf.min(sf.struct("scenario_id", "error")).alias("first")
    )
    common: list[Any] = counted.orderBy(sf.desc("times"), "kind").limit(_SHOWN_ERRORS).collect()
    for row in common:
        times = f"{row.times:,} times, first in" if row.times > 1 else "in"
        what = "a metric failed" if row.status == Status.OK else row.status
        complain(f"{what} {times} {row.first.scenario_id}: {row.first.error}", label="[yellow]warning:[/]")


def _print_repairs(scores: "DataFrame") -> None:
    """Print the number of repaired rows of the input, if the workload was made of rows of partitions."""
    from pyspark.sql import functions as sf

    from rebalance_spark.groups import DRAW, KINDS, REPAIRED, REPAIRED_KINDS, REPAIRED_ROWS, REPAIRS

    types = dict(scores.dtypes)
    if types.get(REPAIRS) != "int":
        return
    kinds = sf.max(REPAIRED_KINDS) if types.get(REPAIRED_KINDS) == "string" else sf.lit("")
    if types.get(DRAW) == "int":
        scores = scores.where(f"{DRAW} is null or {DRAW} = 0")
    rows = scores.where(f"{REPAIRS} > 0").groupBy("scenario_id", "scenario_hash")
    repaired = rows.agg(
        sf.max(REPAIRS).alias("n"), sf.str_to_map(kinds, sf.lit(", "), sf.lit("=")).alias("k")
    )
    row: Any = repaired.agg(
        sf.sum("n"),
        sf.count("*"),
        sf.min("scenario_id"),
        *(sf.sum(sf.col("k")[kind].cast("int")) for kind in KINDS),
    ).first()
    if row[1]:
        found = zip(KINDS.values(), row[3:], strict=True)
        split = ", ".join(f"{count:,} {what}" for what, count in found if count)
        text = f"{REPAIRED_ROWS}: {split}" if split else REPAIRED
        warn(text.format(rows=row[0], scenarios=row[1], examples=row[2]))


def _print_differing(scores: "DataFrame") -> None:
    """Print which columns of the input have no value where they differ within a group."""
    from pyspark.sql import functions as sf

    from rebalance_spark.groups import DIFFERING

    if dict(scores.dtypes).get(DIFFERING) != "string":
        return
    names = sf.explode(sf.split(DIFFERING, ", ")).alias("name")
    rows = scores.select("scenario_id", names).distinct().groupBy("name")
    counted: list[Any] = rows.agg(sf.count("*"), sf.min("scenario_id")).orderBy("name").collect()
    for name, count, first in counted:
        where = f"in {count:,} scenarios ({first}{', ...' if count > 1 else ''})"
        warn(f"the column {name} is null {where}, because it differs within the group")


def _kind_of_error() -> "Column":
    """Return an error without what differs from row to row: the id, texts in quotes, and numbers."""
    from pyspark.sql import functions as sf

    nameless = sf.replace(sf.col("error"), sf.col("scenario_id"), sf.lit("*"))
    plain = sf.regexp_replace(nameless, "'[^']*'|\"[^\"]*\"", "*")
    return sf.regexp_replace(plain, r"\d+([.,]\d+)*", "*")

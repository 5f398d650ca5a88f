"""The command ``rebalance-lab score``, which runs strategies on every scenario of a workload."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.options import strategy_option
from rebalance_lab.cli.output import ExitStatus, complain, print_document, stderr, stdout, warn
from rebalance_lab.scoring.outcomes import DEFAULT_TIMEOUT, Fidelity, Status
from rebalance_lab.verdicts.tables import Cell, text_table
from rebalance_spark.commands.options import (
    Conf,
    Master,
    Plugins,
    check_one_of,
    names_in,
    pairs,
    session_of_a_command,
)

if TYPE_CHECKING:
    from rebalance_spark.storage import Progress

DEFAULT_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
COLUMNS = ("group", "member", "topic", "partition", "rate", "lag")
_SHOWN_ERRORS = 5
_VARYING = re.compile(r"'[^']*'|\"[^\"]*\"|\d+([.,]\d+)*")
_INPUT = """Parquet or JSON Lines with scenario_id and scenario, groups in the format of `assign`, a table
with a row per partition, or a folder of scenarios in YAML; in any file system that Spark supports, also
with wildcards. Or --table."""
_MEMBERS = """The members of groups: Parquet or CSV with group, member, topic, partition. The input has the
rates then: topic, partition and rate, and lag if it is known."""
_MEMBER = """A field of all members of such a table, as in a scenario; repeatable: process_rate=1000,
client=librdkafka. batch_overhead=@COLUMN is a column of the table, and batch_overhead={5ms,700ms} makes a
scenario of each group with each of the values."""
_EVENTS = """What happens to each group of such a table, in place of a member that leaves: the list of the
events of a scenario, in YAML or JSON."""
_ON_BAD = """What becomes of rows of such a table that are wrong: repair counts and repairs them, row gives
their group an error in place of scores, raise ends the command."""
_STRATEGY = f"""A strategy; repeatable. Alternatives in braces are several strategies
(optimal+tolerance={{1%,2%}}). The default is {", ".join(DEFAULT_STRATEGIES)}."""
_COLUMNS = f"""The columns of a table with a row per partition that have other names than
{", ".join(COLUMNS)}: group=consumer_group,rate=msgs_in_per_sec."""
_FIDELITY = "protocol simulates every message, plan computes the assignments only."
_TIMEOUT = "For one scenario under one strategy; 0: no limit."
_SET = """Values of a setting in place of the scenarios'; repeatable. Every strategy is scored with every
combination of the values."""


def _help(text: str, metavar: str | None = None, *names: str, low: float | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, min=low, help=" ".join(text.split()))


def score(
    workload: Annotated[str, typer.Argument(metavar="INPUT", help=" ".join(_INPUT.split()))] = "",
    table: Annotated[str, _help("The input is this table of the catalog, in place of INPUT.", "NAME")] = "",
    keys: Annotated[str, _help("Columns that tell rows with the same id apart.", "COLUMN,...")] = "",
    columns: Annotated[str, _help(_COLUMNS, "NAME=COLUMN,...")] = "",
    draws: Annotated[
        int | None, _help("Scenarios of each group: another member leaves in each.", "N", low=1)
    ] = None,
    members: Annotated[str, _help(_MEMBERS, "INPUT")] = "",
    interval: Annotated[str, _help("The rates are records in so long, such as 1h.", "DURATION")] = "1s",
    member: Annotated[list[str] | None, _help(_MEMBER, "FIELD=VALUE")] = None,
    events: Annotated[Path | None, _help(_EVENTS, "FILE")] = None,
    on_bad: Annotated[str, _help(_ON_BAD, "repair|row|raise")] = "repair",
    start: Annotated[str, _help("Running groups start with its assignment.", "ASSIGNOR")] = "",
    out: Annotated[str, _help("The folder for the scores; a second run adds the missing ones.", "DIR")] = "",
    out_table: Annotated[str, _help("The scores go to this table of the catalog.", "NAME")] = "",
    strategy: Annotated[list[str] | None, strategy_option(" ".join(_STRATEGY.split()))] = None,
    setting: Annotated[list[str] | None, _help(_SET, "NAME=V1,V2", "--set")] = None,
    metrics: Annotated[str, _help("Compute only these metrics; the default is all.", "METRIC,...")] = "",
    fidelity: Annotated[str, _help(_FIDELITY, "FIDELITY")] = Fidelity.PROTOCOL,
    timeout: Annotated[float, _help(_TIMEOUT, "SECONDS", low=0)] = DEFAULT_TIMEOUT,
    seed: Annotated[int | None, _help("Replaces the seeds, each by another one.", low=0)] = None,
    retry: Annotated[str, _help("Compute these again: error, timeout.", "STATUS,...")] = "",
    plugin: Plugins = None,
    py_files: Annotated[list[str] | None, _help("A .py, .zip or .whl for the workers.", "FILE")] = None,
    ship: Annotated[bool, _help("Send this package to the workers.", None, "--ship")] = False,
    show: Annotated[str, _help("Print this scenario as it would be scored. No scores.", "ID")] = "",
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Score strategies on every scenario of a workload: a row per scenario and strategy, as Parquet.

    A scenario that fails, hangs or is malformed becomes a row with its status, and the exit status is 1.
    After an interruption, the same command computes only the missing scores. A scenario whose text has
    changed, or a strategy whose file has changed, is other work.
    """
    from rebalance_spark.sessions import check_pyspark, described, files_named, in_short, spark_errors

    check_pyspark()
    from rebalance_spark.applications import check_application, read_application, read_events
    from rebalance_spark.scenarios import shown
    from rebalance_spark.scoring import ScoreOptions, checked_job
    from rebalance_spark.shipping import check_workers, importable_here, send_to_workers
    from rebalance_spark.shipping import ship as ship_to
    from rebalance_spark.sources import read_workload
    from rebalance_spark.storage import WHOLE, Progress, outcomes, write_scores
    from rebalance_spark.workloads import said

    check_one_of("score", workload, "INPUT, the path of a workload,", table, "--table")
    if not show:
        check_one_of("score", out, "--out", out_table, "--out-table")
    again, settings = names_in(retry), pairs(conf, "--conf")
    _known("--retry", again, [status for status in Status if status is not Status.OK])
    named = pairs(names_in(columns), "--columns")
    _known("--columns", named, COLUMNS)
    importable_here(py_files or ())
    _warn_of_plugins(plugin or ())
    of_job = (fidelity, timeout, seed, plugin or (), setting or (), names_in(metrics), start)
    job = checked_job(ScoreOptions(strategy or DEFAULT_STRATEGIES, *of_job))
    fields = read_application(pairs(member, "--member"), "--member")
    check_application(fields, "--member")
    options: dict[str, Any] = {**named, "keys": names_in(keys), "draws": draws, "on_bad": on_bad}
    options |= {"application": fields, "interval": interval, "members": members, "table": table}
    options["events"] = None if events is None else read_events(events)
    progress, stopped = Progress(), ""
    spark = session_of_a_command(master, settings, lambda: f"error: {progress.after('stopped')}")
    send_to_workers(spark, py_files or ())
    (ship_to if ship else check_workers)(spark, plugin or ())
    with files_named("workloads in files that are whole"), described(spark, "look at the workload"):
        read = read_workload(spark, workload, **options)
        if show:
            print_document(shown(read.scenarios, show, job))
            return
        for line in said(read.problems.collect(), on_bad):
            warn(line)
    to = {"out": out, "table": out_table}
    try:
        with _reporting(len(job.strategies)) as report, files_named(WHOLE):
            write_scores(read.scenarios, job, **to, retry=again, progress=progress, report=report)
    except KeyboardInterrupt:
        stopped = progress.after("stopped")
    except spark_errors() as error:
        stopped = progress.after(f"Spark gave up ({in_short(error)})")
    with described(spark, "count errors"):
        failed = (progress.written or not stopped) and _print_outcome(outcomes(spark, **to))
    if stopped:
        complain(stopped)
    if failed or stopped:
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


def _known(option: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Check the names in an option.

    Raises:
        InputError: if one of them is not known.
    """
    for name in names:
        if name not in known:
            raise InputError(option, repr(name), one_of(name, known))


def _warn_of_plugins(modules: Sequence[str]) -> None:
    """Print a warning for failed plugins of --py-files. Every command warns of installed ones."""
    from rebalance_lab.scoring.rows import registry_with

    known = default_registry().failures
    for failed in registry_with(modules).failures:
        if failed not in known:
            warn(f"plugin {failed.name!r} of {failed.distribution} is not available: {failed.reason}")


@contextmanager
def _reporting(strategies: int) -> Iterator[Callable[["Progress"], None]]:
    """Print the number of rows to score. On a terminal a bar shows the parts that are written."""
    from rich.progress import Progress as Bars

    with Bars(console=stderr(), transient=True, disable=not sys.stderr.isatty()) as bars:
        bar = bars.add_task("", total=None)

        def report(progress: "Progress") -> None:
            if not progress.parts and progress.rows:
                done = f", {progress.before:,} are done" if progress.before else ""
                size = f"{progress.scenarios:,} scenarios x {strategies} strategies"
                stderr().print(f"{size}: {progress.rows:,} rows to score{done}")
            elif not progress.rows:
                stderr().print(f"nothing to score: all {progress.before:,} rows are done")
            text = f"{progress.written:,} of {progress.rows:,} rows"
            bars.update(bar, total=progress.parts or None, completed=progress.done, description=text)

        yield report


def _print_outcome(outcomes: Sequence[dict[str, Any]]) -> bool:
    """Print a line per strategy and the most frequent kinds of errors. Return whether a row failed."""
    counts: dict[str, dict[str, int]] = {}
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in sorted(outcomes, key=lambda each: (each["strategy"], each["scenario_id_min"])):
        found = counts.setdefault(each["strategy"], dict.fromkeys([*Status], 0))
        found[each["status"]] += each["scenario_id_count"]
        if each["error"] is not None:
            kind = _VARYING.sub("*", each["error"].replace(each["scenario_id_min"] or "\0", "*"))
            kinds.setdefault((each["status"], kind), []).append(each)
    rows = [[Cell(name), *(Cell(f"{count:,}") for count in found.values())] for name, found in counts.items()]
    stdout().print(text_table(["strategy", *Status], rows))
    common = sorted(kinds.values(), key=lambda each: -sum(one["scenario_id_count"] for one in each))
    for alike in common[:_SHOWN_ERRORS]:
        first, times = alike[0], sum(each["scenario_id_count"] for each in alike)
        where = f"{times:,} times, first in" if times > 1 else "in"
        what = "a metric failed" if first["status"] == Status.OK else first["status"]
        warn(f"{what} {where} {first['scenario_id_min']}: {first['error']}")
    return any(count for found in counts.values() for status, count in found.items() if status != Status.OK)

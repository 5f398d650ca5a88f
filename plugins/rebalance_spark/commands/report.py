"""``rebalance-lab report``: which groups should switch to which strategy, from scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli.files import check_path, write_whole
from rebalance_lab.cli.options import strategy_option
from rebalance_lab.cli.output import stdout
from rebalance_spark.commands.options import Conf, Master, check_one_of, names_in, pairs, session_of_a_command

if TYPE_CHECKING:
    import pyarrow as pa

    from rebalance_lab.verdicts.tables import Table
    from rebalance_spark.report import Decided


def report(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="What `rebalance-lab score` wrote. Or --table.")
    ] = "",
    table: Annotated[
        str, typer.Option(metavar="NAME", help="The scores are in this table of the catalog.")
    ] = "",
    today: Annotated[
        str,
        typer.Option(
            "--today",
            metavar="STRATEGY",
            help="The strategy that runs: decide for each group whether to switch. Without it, the figures of"
            " the strategies are printed.",
        ),
    ] = "",
    strategy: Annotated[
        list[str] | None, strategy_option("Compare only these; repeatable. All by default.")
    ] = None,
    per: Annotated[
        str,
        typer.Option(metavar="COLUMN,...", help="The columns that name a group. The default is group."),
    ] = "",
    decide: Annotated[
        str,
        typer.Option(
            metavar="METRIC,...",
            help="The metrics that decide, the most important one first. The default is"
            " stopped_partition_seconds (moved_partitions at plan fidelity) and weighted_imbalance.",
        ),
    ] = "",
    group: Annotated[str, typer.Option(metavar="NAME", help="The figures of this group alone.")] = "",
    undecided: Annotated[
        bool, typer.Option("--undecided", help="List the groups with too few scenarios to know.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="List all groups.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the decisions, as .parquet or .csv."),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page with two plots.")] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Decide for each group whether to switch: a summary, the groups that gain most, and a file with all.

    Scores in a folder of this machine are read without Spark.
    """
    check_one_of("report", folder, "DIR", table, "--table")
    if out is not None and out.suffix not in (".parquet", ".csv"):
        raise InputError("--out", str(out), "a file that ends in .parquet or .csv")
    if not today and (out or html or group or undecided or everything or decide):
        raise InputError("report", "no strategy that runs today", "--today STRATEGY")
    check_path(out)
    check_path(html)
    found = _scores(folder, table, master, pairs(conf, "--conf"))

    from rebalance_lab.verdicts.switching import steps_of_a_switch
    from rebalance_spark.decisions import Question, decisions, last_rows
    from rebalance_spark.report import Decided, as_page, figures_of, strategy_table

    scores = last_rows(found)
    if not today:
        _print([strategy_table(figures_of(scores))])
        return
    question = Question(today, strategy or (), per=names_in(per), metrics=names_in(decide))
    chosen = decisions(scores, question)
    decided = Decided(chosen, figures_of(scores), scores["fidelity"][0].as_py())
    if group:
        if group not in decided.groups:
            raise InputError("--group", repr(group), one_of(group, decided.groups))
        row = decided.groups.index(group)
        own = figures_of(_of_group(scores, chosen, row))
        decided = decided._replace(decisions=chosen.slice(row, 1), strategies=own)
    _print_decisions(decided, is_whole=everything or bool(group), undecided=undecided)
    if group:
        _print([strategy_table(decided.strategies)])
        advised = decided.decisions["advised"][0].as_py()
        if advised != today:
            foreign = f"Kafka's own clients do not have {advised} or {today}: see `rebalance-lab plugins`"
            for step in steps_of_a_switch(today, advised, default_registry()) or [foreign]:
                stdout().print(step)
    if out is not None:
        _write(chosen, out)
    if html is not None:
        write_whole(html, as_page(decided).encode())


def _print_decisions(decided: "Decided", *, is_whole: bool, undecided: bool) -> None:
    """Print a summary and a table: of the groups that gain most, of all, or of those not decided about."""
    from rebalance_spark.report import ROWS, decision_table, summary, title

    stdout().print(title(decided), style="bold")
    for line in ["", *summary(decided)]:
        stdout().print(line)
    table = decision_table(decided, None if is_whole else ROWS, undecided=undecided)
    if table.rows:
        stdout().print()
        _print([table])


def _print(tables: "Sequence[Table]") -> None:
    from rebalance_lab.verdicts.tables import text_table

    for table in tables:
        stdout().print(text_table(table.head, table.rows, table.headings))


def _of_group(scores: "pa.Table", chosen: "pa.Table", row: int) -> "pa.Table":
    import pyarrow.compute as pc

    for name in chosen.column_names[: chosen.column_names.index("today")]:
        scores = scores.filter(pc.equal(pc.cast(scores[name], "string"), chosen[name][row]))
    return scores


def _write(chosen: "pa.Table", out: Path) -> None:
    import io

    import pyarrow.csv
    import pyarrow.parquet

    content = io.BytesIO()
    if out.suffix == ".csv":
        pyarrow.csv.write_csv(chosen, content)
    else:
        pyarrow.parquet.write_table(chosen, content)
    write_whole(out, content.getvalue())


def _scores(folder: str, table: str, master: str | None, conf: dict[str, str]) -> "pa.Table":
    """Return the scores, which Spark reads if they are not in a folder of this machine."""
    from rebalance_spark.storage import local_scores, read_scores

    if folder and Path(folder).is_dir() and (found := local_scores(Path(folder))) is not None:
        return found
    if folder and "://" not in folder:
        raise InputError(folder, "no scores", "a folder that `rebalance-lab score` wrote")
    spark = session_of_a_command(master, conf)
    return read_scores(spark, folder, table=table).toArrow()

"""``rebalance-lab report``: a summary of scores."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.cli.files import check_path, is_written_through, write_whole
from rebalance_lab.cli.options import strategy_option
from rebalance_lab.cli.output import print_document, stdout
from rebalance_spark.choices import CHANCE, MARGIN, Statistic
from rebalance_spark.commands.options import Conf, Master, check_one_of, names_in, pairs, session_of_a_command

if TYPE_CHECKING:
    from rebalance_spark.findings import Findings
    from rebalance_spark.scenarios import Workload
    from rebalance_spark.stored import Scored


_SHOWN = (Statistic.mean, Statistic.p95)


def report(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="What `rebalance-lab score` wrote. Or --table.")
    ] = "",
    table: Annotated[
        str, typer.Option(metavar="NAME", help="The scores are in this table of the catalog.")
    ] = "",
    strategy: Annotated[
        list[str] | None, strategy_option("Compare only these; repeatable. All by default.")
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(metavar="STRATEGY", help="The strategy that runs today: what changes, group by group."),
    ] = "",
    per: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="With --baseline: decide for each value of this column of the scores, over its scenarios;"
            " also several (cluster,group). The default is group: the ids without their keys. scenario_id"
            " decides for each scenario.",
        ),
    ] = "",
    decide: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="With --baseline: metrics that decide whether a group switches, the most important one"
            " first (rounds,max_lag; also repeatable). The default is stopped_partition_seconds, or"
            " moved_partitions where it is not measured, and the metric of --balance.",
        ),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--chance",
            metavar="PERCENT",
            min=0.001,
            max=50.0,
            help="With --baseline: the greatest expected share of the switches that are due to chance.",
        ),
    ] = CHANCE,
    margin: Annotated[
        float,
        typer.Option(
            metavar="PERCENT",
            min=1.0,
            max=100.0,
            help="With --baseline: by how much a strategy may be worse in the rest of what decides.",
        ),
    ] = MARGIN,
    across: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="With --baseline: under which values of this column, such as batch_overhead, the decision of"
            " each group is the same.",
        ),
    ] = "",
    per_day: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|COLUMN",
            help="With --baseline: how often a day what happens in a scenario happens to its group, for gains"
            " of a day: a number, or a column of the scores.",
        ),
    ] = "",
    group: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="With --baseline: all that is known of this group, or of this value of --per, and how to"
            " switch it.",
        ),
    ] = "",
    advice: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="With --baseline: write the strategy of each group, as .csv or .parquet."
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(metavar="COLUMN", help="Also by a column of the scores or the workload: members, team."),
    ] = "",
    workload: Annotated[
        str,
        typer.Option(
            metavar="INPUT",
            help="The workload that was scored: for columns of --by, and for views of the worst scenarios"
            " beside the page.",
        ),
    ] = "",
    output: Annotated[
        Literal["table", "csv", "html"], typer.Option("--format", help="How to print it.")
    ] = "table",
    statistic: Annotated[
        list[Statistic] | None,
        typer.Option(
            "--stat",
            metavar="STATISTIC",
            help=f"For the table: {', '.join(Statistic)}; repeatable. The default is mean and p95.",
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="For the table: all metrics.")] = False,
    balance: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC",
            help="The metric of the front beside the moves. The default is weighted_imbalance if the scores"
            " have it, that is if the groups have rates, else imbalance.",
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the page with plots here.")
    ] = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Summarize scores by strategy: a verdict, a table, CSV with every figure, or a static page with plots.

    Figures are over the scenarios that all compared strategies completed. The front has the strategies that
    no other strategy beats in both moves and balance. Scores on this machine are read without Spark.
    """
    from rebalance_spark.findings import Question, found_in
    from rebalance_spark.printing import print_findings, print_sheet
    from rebalance_spark.report_tables import advice_table, as_csv, as_file, check_ending
    from rebalance_spark.sheet import sheets_of

    for path in (html, advice):
        check_path(path)
    if advice is not None:
        check_ending(advice)
        if not baseline:
            raise InputError("--advice", "no --baseline", "--baseline STRATEGY, which runs today")
    if group and not baseline:
        raise InputError("--group", "no --baseline", "--baseline STRATEGY, which runs today")
    if group and output != "table":
        raise InputError("--group", f"--format {output}", "the table")
    settings = pairs(conf, "--conf")
    scored = _scores(folder, table, master, settings)
    today = [baseline] if baseline else []
    compared = list(dict.fromkeys([*(strategy or ()), *today]))
    scored = scored.of(compared) if strategy else scored.without_partly_scored(keep=today)
    source = _workload(scored, workload, master, settings) if workload else None
    parts = (by, _column(scored, by, source)) if by else None
    deciding = [name for text in decide or () for name in names_in(text)]
    question = Question(balance, baseline, deciding, per, parts, rate / 100, margin / 100, across, per_day)
    is_page = html is not None or output == "html"
    findings = found_in(scored, question, everything=is_page or everything or output == "csv", pairs=is_page)
    if advice is not None and findings.advice is not None:
        write_whole(advice, as_file(advice_table(scored, findings.advice), advice.suffix))
    page = _page(scored, findings, html, source) if is_page else ""
    if html is not None:
        write_whole(html, page.encode())
    if output == "html":
        print_document(page)
    elif output == "csv":
        print_document(as_csv(findings))
    elif group:
        print_sheet(sheets_of(scored, findings, [group])[group], stdout())
    else:
        print_findings(findings, statistic or list(_SHOWN), stdout(), everything=everything)


def _scores(folder: str, table: str, master: str | None, conf: dict[str, str]) -> "Scored":
    """Read scores with Arrow if they are on this machine, else with Spark."""
    from rebalance_spark.stored import collected_scores, stored_scores

    check_one_of("report", folder, "DIR", table, "--table")
    kind = "table" if table else "folder"
    nothing = InputError(folder or table, "no scores", f"a {kind} that `rebalance-lab score` wrote")
    if folder and "://" not in folder:
        path = Path(folder)
        scored = stored_scores(path) if path.is_dir() else None
        if scored is None:
            raise nothing
        return scored
    from rebalance_spark.places import Folder, Table

    whole = {"spark.driver.maxResultSize": "0", **conf}  # scores come here, however many they are
    found = (Table(table) if table else Folder(folder)).read(session_of_a_command(master, whole))
    if found is None:
        raise nothing
    return collected_scores(found)


def _workload(scored: "Scored", path: str, master: str | None, conf: dict[str, str]) -> "Workload":
    from rebalance_spark.scenarios import Workload

    name = "scenario_hash"
    hashes = dict(zip(scored.scenarios, scored.values(name), strict=True)) if name in scored.names else {}
    return Workload(path, master, conf, hashes)


def _column(scored: "Scored", name: str, workload: "Workload | None") -> Sequence[Any]:
    """Return a column of the scores, or of the workload, or the group of each scenario.

    Raises:
        InputError: if neither has the column.
    """
    from rebalance_spark.parts import GROUP, subjects_of

    if name in scored.others:
        return scored.values(name)
    if name == GROUP:
        subjects = subjects_of(scored, GROUP)
        return [subjects.names[number] for number in subjects.numbers.tolist()]
    found, names = ({}, []) if workload is None else workload.column(name)
    if name not in names:
        known = list(dict.fromkeys([*scored.others, *names]))
        more = "" if workload else ", or --workload INPUT with it"
        raise InputError("--by", repr(name), one_of(name, known) + more if known else more[5:])
    if workload is not None and not found.keys() & {*scored.scenarios}:
        expected = "the workload that was scored (--by has the columns of one with --keys from the scores)"
        raise InputError("--workload", f"{workload.path}, with none of the scenarios", expected)
    return [found.get(scenario) for scenario in scored.scenarios]


def _page(scored: "Scored", findings: "Findings", html: Path | None, workload: "Workload | None") -> str:
    """Return the page. Views of the worst scenarios are written into a folder beside a regular file."""
    from rebalance_spark.page import as_page
    from rebalance_spark.scenarios import write_views
    from rebalance_spark.sentences import MOST_ACTIONS
    from rebalance_spark.sheet import sheets_of
    from rebalance_spark.starts import start_of

    names = findings.advice.subjects.names if findings.advice else []
    busy = [names[each.number] for each in findings.actions[:MOST_ACTIONS]]
    sheets = [*sheets_of(scored, findings, busy).values()] if busy else []
    if workload is None or html is None or is_written_through(html):
        return as_page(findings, {}, sheets)
    return as_page(findings, write_views(findings, html, workload, start_of(scored)), sheets)

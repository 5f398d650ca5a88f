"""``rebalance-lab check``: run the conformance suite on an assignor."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Annotated, Any, Literal

import msgspec
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator_core.errors import InputError
from rebalance_conformance.report import Report
from rebalance_conformance.requirements import require_hypothesis
from rebalance_conformance.results import (
    DEFAULT_EXAMPLES,
    GROUP_FOLLOWS,
    SCENARIO_FOLLOWS,
    SIGNS,
    SUITE_VERSION,
    Outcome,
    Result,
)
from rebalance_lab.cli.options import strategies_beginning
from rebalance_lab.cli.output import ExitStatus, complain, print_document, print_traceback, stdout
from rebalance_lab.verdicts.tables import json_text

DEFAULT_SECONDS = 30.0


def check(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            autocompletion=strategies_beginning,
            help="An installed assignor, file.py:Name, module:Name, or a strategy such as range+cooperative.",
        ),
    ],
    examples: Annotated[
        int, typer.Option("--examples", "-n", min=1, help="Groups to try for each check.")
    ] = DEFAULT_EXAMPLES,
    output: Annotated[Literal["text", "json"], typer.Option("--format", help="How to print it.")] = "text",
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="A check that takes longer has failed.")
    ] = DEFAULT_SECONDS,
    expect: Annotated[
        list[str] | None,
        typer.Option(metavar="CHECK=REASON", help="A check that is expected to fail. Give it several times."),
    ] = None,
) -> None:
    """Run the conformance suite on an assignor: many kinds of groups, and conditions that results must meet.

    For each failed check, the smallest failing group is printed as a line for `rebalance-lab assign`, or the
    smallest failing scenario for `rebalance-lab simulate`.
    The exit status is 0 if all checks passed, and 1 if some failed.
    """
    require_hypothesis()
    # these modules import Hypothesis, which the other commands do not need
    from rebalance_conformance.checking import as_expected, checks_named
    from rebalance_conformance.checks import CHECKS
    from rebalance_conformance.subject import subject_of
    from rebalance_conformance.watched import results_in_time

    expected = _expected(expect or [])
    checks_named(expected)
    with redirect_stdout(sys.stderr):  # output of the author's module is not a result
        subject = subject_of(name)
    results = as_expected(results_in_time(subject, CHECKS, examples=examples, seconds=timeout), expected)
    if output == "json":
        report = Report(subject.name, tuple(results))
        document = as_document(report, examples)
        print_document(json_text(document))
    else:
        console = stdout()
        console.print(Text.assemble((name, "bold"), f", suite {SUITE_VERSION}, {examples} groups a check"))
        width = max(len(item.name) for item in CHECKS)
        report = Report(subject.name, tuple(_shown(results, width, console)))
        _print_failures(report, stdout())
    if not report.passed:
        count = len(report.failures)
        complain(f"{name} fails {count} of {len(report.results)} checks")
        raise typer.Exit(int(ExitStatus.SOME_INPUTS_FAILED))


class CheckDocument(msgspec.Struct, frozen=True):
    """A check in `ReportDocument`. ``group`` is a document for ``rebalance-lab assign``."""

    check: str
    demands: str
    outcome: str
    reason: str | None
    group: dict[str, Any] | None
    scenario: dict[str, Any] | None


class ReportDocument(msgspec.Struct, frozen=True):
    """What ``check --format json`` prints."""

    assignor: str
    suite_version: str
    examples: int
    passed: bool
    checks: Sequence[CheckDocument]


def as_document(report: Report, examples: int) -> ReportDocument:
    """Return the report as a document."""
    checks = [
        CheckDocument(
            result.check,
            result.doc,
            result.outcome,
            result.reason or None,
            msgspec.json.decode(result.line) if result.line else None,
            msgspec.json.decode(result.scenario) if result.scenario else None,
        )
        for result in report.results
    ]
    return ReportDocument(report.assignor, report.suite_version, examples, report.passed, checks)


def _expected(listed: Sequence[str]) -> dict[str, str]:
    expected = {}
    for text in listed:
        name, _, reason = text.partition("=")
        if not reason.strip():
            raise InputError(
                "--expect", repr(text), "CHECK=REASON, such as impure='it reads the lag from a file'"
            )
        expected[name] = reason
    return expected


def _shown(results: Iterator[Result], width: int, console: Console) -> Iterator[Result]:
    """Print and yield each result."""
    for result in results:
        signs, style = SIGNS[result.outcome]
        sign = signs.encode(console.encoding, "ignore").decode(console.encoding)[0]
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(no_wrap=True)
        row.add_column(no_wrap=True, min_width=width)
        row.add_column(overflow="fold")
        reported = result.outcome in (Outcome.PASSED, Outcome.FAILED)
        beside = result.doc if reported else f"{result.outcome}: {result.reason}"
        row.add_row(Text(sign, style), Text(result.check), Text(beside, "dim"))
        console.print(row)
        yield result


def _print_failures(report: Report, console: Console) -> None:
    """Print each fault once, with all checks that found it and the shortest line."""
    for reason, results in report.faults.items():
        names = ", ".join(result.check for result in results)
        console.print()
        console.print(Text.assemble((names, "bold red"), f": {reason}"))
        lines = [result.line for result in results if result.line]
        if lines:
            console.print(Text(GROUP_FOLLOWS, "dim"))
            console.out(min(lines, key=len))
        if results[0].scenario:
            console.print(Text(SCENARIO_FOLLOWS, "dim"))
            console.out(results[0].scenario)
        print_traceback(results[0].traceback)

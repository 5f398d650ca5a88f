"""The report of the suite: as text, and for notebooks as HTML with the counterexamples drawn."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec

from coordinator_core.model import NO_GENERATION, TopicPartition
from rebalance_conformance.answers import Given, named
from rebalance_conformance.cases import Case, subscribed
from rebalance_conformance.results import (
    GROUP_FOLLOWS,
    SCENARIO_FOLLOWS,
    SIGNS,
    SUITE_VERSION,
    Outcome,
    Result,
    told,
)
from rebalance_lab.scenarios.groups import parse_group
from rebalance_lab.verdicts.tables import Cell, html_table

MOST_LISTED = 40
"""The most partitions that are listed for a member; the others are counted."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all checks, in order."""

    assignor: str
    results: tuple[Result, ...]
    suite_version: str = SUITE_VERSION

    @property
    def passed(self) -> bool:
        """Whether there are no unexpected failures."""
        return not self.failures

    @property
    def failures(self) -> tuple[Result, ...]:
        """Return the failures without the expected ones."""
        return tuple(result for result in self.results if result.outcome is Outcome.FAILED)

    @property
    def faults(self) -> dict[str, list[Result]]:
        """Return the failures by their reasons: several checks may find the same fault."""
        together: dict[str, list[Result]] = {}
        for failure in self.failures:
            together.setdefault(failure.reason, []).append(failure)
        return together

    def __str__(self) -> str:
        """Return a line for each check, and the failures with their groups."""
        width = max((len(result.outcome) for result in self.results), default=0)
        lines = [f"{result.outcome:{width}}  {result.check}" for result in self.results]
        return "\n".join([f"assignor {self.assignor!r}:", *lines, *map(told, self.failures)])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Write the report as plain text in IPython."""
        printer.text(str(self))

    def _repr_html_(self) -> str:
        """Return the report as a notebook shows it.

        Each fault comes with its group and its assignment; then follow all checks.
        """
        failed, count = len(self.failures), len(self.results)
        summary = f"fails {failed} of {count} checks" if failed else f"fails none of {count} checks"
        title = f"<p><b>{escape(self.assignor)}</b> {summary} (suite {self.suite_version})</p>"
        faults = [_fault_html(reason, results) for reason, results in self.faults.items()]
        return "\n".join([title, *faults, html_table(("", "check", ""), map(_row, self.results))])

    def raise_for_failures(self) -> None:
        """Raise an error if a check failed.

        Raises:
            AssertionError: with every failure and its group.
        """
        if not self.passed:
            raise AssertionError("\n".join([f"assignor {self.assignor!r}:", *map(told, self.failures)]))


def _row(result: Result) -> list[Cell]:
    signs, style = SIGNS[result.outcome]
    text = result.doc if result.outcome is Outcome.PASSED else f"{result.outcome}: {result.reason}"
    beside = Cell(text, style if result.outcome is not Outcome.PASSED else "", result.doc, left=True)
    return [Cell(signs[0], style, str(result.outcome)), Cell(result.check, left=True), beside]


def _fault_html(reason: str, results: Sequence[Result]) -> str:
    """Return a fault once, with all checks that found it and the smallest of their groups."""
    names = ", ".join(result.check for result in results)
    parts = [f"<p><b>{escape(names)}</b>: {escape(reason)}</p>"]
    smallest = min((result for result in results if result.line), key=lambda r: len(r.line), default=None)
    if smallest is not None:
        parts += [_drawn(smallest), _folded(GROUP_FOLLOWS, smallest.line)]
    if results[0].scenario:
        parts.append(_folded(SCENARIO_FOLLOWS, results[0].scenario))
    if results[0].traceback:
        parts.append(_folded("the traceback", results[0].traceback))
    return "\n".join(parts)


def _folded(title: str, text: str) -> str:
    whole = f'<pre style="white-space:pre-wrap">{escape(text)}</pre>'
    return f"<details><summary>{escape(title.removesuffix(':'))}</summary>{whole}</details>"


def _drawn(result: Result) -> str:
    """Return the group of a fault as a table, with what each member got. The wrong partitions are marked."""
    parsed = parse_group(msgspec.json.decode(result.line), "group")
    case, given = Case(parsed.cluster, parsed.group), result.given
    topics = ", ".join(f"{topic} ({info.partitions:,})" for topic, info in case.cluster.topics.items())
    rows = list(_rows(case, given or {}, _named_in(result.reason), answered=given is not None))
    shown = [at for at, _ in enumerate(_HEAD) if at < _ALWAYS or any(row[at].text for row in rows)]
    table = html_table([_HEAD[at] for at in shown], [[row[at] for at in shown] for row in rows])
    return f"<p>topics and their partitions: {escape(topics) or 'none'}</p>\n{table}"


_HEAD = ("member", "topics", "owned", "generation", "assigned")
_ALWAYS = 2
"""The first columns are shown in any case, the others if a member has something in them."""


def _rows(case: Case, given: Given, wrong: Collection[str], *, answered: bool) -> Iterator[list[Cell]]:
    """Yield a row for each member, then one for those that are not in the group, and one for nobody."""
    blank = _left("")
    for member, subscription in case.group.items():
        generation = "" if subscription.generation == NO_GENERATION else str(subscription.generation)
        yield [
            *map(_left, (member, ", ".join(subscription.topics))),
            *(_partitions(list(subscription.owned), wrong), _left(generation)),
            _partitions(given.get(member, ()), wrong),
        ]
    for member in given:
        if member not in case.group:
            stranger = Cell(member, left=True, marked=(member,)), _left("not a member of the group")
            yield [*stranger, blank, blank, _partitions(given[member], wrong)]
    got = {partition for partitions in given.values() for partition in partitions}
    left_out = [partition for partition in subscribed(case) if answered and partition not in got]
    if left_out:
        yield [_left("nobody"), blank, blank, blank, _partitions(left_out, wrong)]


def _partitions(partitions: Sequence[TopicPartition], wrong: Collection[str]) -> Cell:
    """List partitions, those of the fault first."""
    names = sorted(map(named, partitions), key=lambda name: name not in wrong)
    more = [f"and {len(names) - MOST_LISTED:,} more"] if len(names) > MOST_LISTED else []
    return Cell(", ".join([*names[:MOST_LISTED], *more]), left=True, marked=wrong)


def _named_in(reason: str) -> frozenset[str]:
    """Return the words of a reason, among them the names of the partitions that are wrong."""
    return frozenset(re.findall(r"[^\s,;:]+", reason))


def _left(text: str) -> Cell:
    return Cell(text, left=True)

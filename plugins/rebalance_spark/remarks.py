"""Sentences about the scenarios of a report: those that are left out, and what their input lacks."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rebalance_lab.verdicts.words import agreeing, listed_names
from rebalance_spark.advising import first_draws
from rebalance_spark.capacity import MEMBERS
from rebalance_spark.costs import BY_COUNT, BY_RATE
from rebalance_spark.groups import LARGEST, REPAIRED, REPAIRS
from rebalance_spark.parts import GROUP, Subjects
from rebalance_spark.starts import about_starts
from rebalance_spark.stored import NO_ROW, Scored

_EXAMPLES, _MOST_FULL = 3, 12
NO_RATES = f"No scenario has rates: the balance is by partitions, {BY_COUNT} in place of {BY_RATE}."


def remarks(scored: Scored, common: npt.NDArray[np.bool_], subjects: Subjects, baseline: str) -> list[str]:
    """Return all of these sentences. ``common``: the scenarios that are compared."""
    return [
        *_left_out(scored, common),
        *_uneven(scored, subjects),
        *_repaired(scored),
        *about_starts(scored, baseline),
        *_idle(scored, subjects, baseline),
    ]


def _left_out(scored: Scored, common: npt.NDArray[np.bool_]) -> list[str]:
    """Return sentences about what is not compared: strategies, and scenarios."""
    ok, rows = scored.ok, scored.status != NO_ROW
    total = len(scored.scenarios)
    found = []
    if scored.retold:
        examples = _examples(scored.retold, np.arange(len(scored.retold)))
        found.append(
            f"{len(scored.retold):,} ids have scenarios with different texts, such as those of two snapshots"
            f" ({examples}): each is a scenario by itself, with its hash after the id"
        )
    found += [
        f"{name} is not compared: only {count:,} of {total:,} scenarios are scored under it so far"
        " (-s names the strategies to compare)"
        for name, count in scored.partly.items()
    ]
    found += [
        f"{name} completed no scenario and is not compared"
        for number, name in enumerate(scored.strategies)
        if not ok[:, number].any()
    ]
    out = ok.any(axis=1) & ~common
    if out.any():
        compared = [(n, name) for n, name in enumerate(scored.strategies) if ok[:, n].any()]
        failed = [(name, np.flatnonzero(out & rows[:, n] & ~ok[:, n]), "failed in") for n, name in compared]
        absent = [(name, np.flatnonzero(out & ~rows[:, n]), "is not scored yet for") for n, name in compared]
        which = "; ".join(
            f"{name} {verb} {len(places):,} ({_examples(scored.scenarios, places)})"
            for name, places, verb in [*failed, *absent]
            if len(places)
        )
        found.append(
            f"{int(out.sum()):,} scenarios are left out, because not all strategies have figures: {which}"
        )
    for places, why in (
        (np.flatnonzero(rows.any(axis=1) & ~ok.any(axis=1)), "were completed by no strategy"),
        (np.flatnonzero(~rows.any(axis=1)), "are not scored yet under these strategies"),
    ):
        if len(places):
            found.append(f"{len(places):,} scenarios {why} ({_examples(scored.scenarios, places)})")
    return found


def _examples(names: Sequence[str], rows: npt.NDArray[np.int64]) -> str:
    shown = ", ".join(names[i] for i in rows[:_EXAMPLES])
    return f"{shown}, ..." if len(rows) > _EXAMPLES else shown


def _uneven(scored: Scored, subjects: Subjects) -> list[str]:
    """Return a sentence about groups with fewer scenarios than others, if there are any.

    Of several draws of a group the first counts: their number is that of its members.
    """
    if subjects.column != GROUP or not subjects.names:
        return []
    counts = np.bincount(subjects.numbers, first_draws(scored))
    most = int(counts.max())
    fewer = np.flatnonzero(counts < most)
    if not len(fewer):
        return []
    of = f"{len(fewer):,} of {len(counts):,} {subjects.plural}"
    return [f"{of} are missing under some keys, such as hours ({_examples(subjects.names, fewer)})"]


def _idle(scored: Scored, subjects: Subjects, baseline: str) -> list[str]:
    """Return a sentence about groups that may have members without partitions, which owners do not show.

    Under ``range`` a group has as many members with partitions as its largest topic has partitions, at most.
    """
    if baseline.partition("+")[0] != "range" or not {LARGEST, MEMBERS} <= {*scored.others}:
        return []
    columns = zip(scored.values(LARGEST), scored.values(MEMBERS), strict=True)
    full = np.array([bool(largest) and largest == members for largest, members in columns])
    found = np.flatnonzero(np.bincount(subjects.numbers, full, len(subjects.names)) > 0)
    if not len(found):
        return []
    listed = listed_names([subjects.names[number] for number in found.tolist()], _MOST_FULL)
    which = f"{len(found):,} of {subjects.counted} ({listed})"
    return [
        f"{which} {agreeing('has', len(found))} as many members as the largest topic has partitions: further"
        " members own nothing under range, and a table of owners does not have them (a row without topic and"
        " partition adds one)"
    ]


def _repaired(scored: Scored) -> list[str]:
    """Return a sentence about scenarios of which rows of the input were repaired, if there are any."""
    repairs = scored.values(REPAIRS) if REPAIRS in scored.others else []
    firsts = first_draws(scored)
    rows = [i for i, count in enumerate(repairs) if isinstance(count, int) and count > 0 and firsts[i]]
    if not rows:
        return []
    total = sum(repairs[i] for i in rows)
    examples = _examples(scored.scenarios, np.array(rows))
    return [REPAIRED.format(rows=total, scenarios=len(rows), examples=examples)]

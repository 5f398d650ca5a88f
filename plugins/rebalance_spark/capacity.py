"""What the members of each group can handle: their greatest load, and how many of them it takes."""

from collections.abc import Sequence
from math import inf, isnan, nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.scaling import BESIDES, ONE_BY_ONE
from rebalance_lab.verdicts.switching import keeps_owners
from rebalance_spark.costs import Bools, by_strategy
from rebalance_spark.gains import Floats, Numbers
from rebalance_spark.parts import Subjects
from rebalance_spark.rows import ALIKE, LOADS, OWNERS, SIZES, loads_in, members_in
from rebalance_spark.stored import Figures2D, Scored
from rebalance_spark.sweeps import parted
from rebalance_spark.waits import Wait, longest_wait

MEMBERS, PARTITIONS = "members", "partitions"
MISSING, TO_EASE, HOT, LOAD = SIZES
"""The metrics of which the scenario counts that needs most."""


class Capacity(NamedTuple):
    """What the members of each of S subjects can handle, in the scenario where it matters most.

    ``busiest`` float64[S, K]: the greatest load of a member under each of K strategies, as a share of what it
    can handle, of ``scenarios``; ``mean``: that of all scenarios; ``busy``: in how many of them it is above
    ease. ``needed``, ``at_ease`` float64[S, K]: how many members it takes at the start so that none has more
    than it can handle at the end, or is not at ease; inf if no number is enough, and how many more where
    ``members``, the most of a scenario, is not known. ``hot``: the most partitions that have more than a
    member can handle; ``load``: that of all partitions, in members. ``partitions``: the most of a scenario.
    All are NaN where they are not known. ``each`` float64[N, K]: the load of the busiest member in each
    scenario; ``started`` float64[N]: its members at the start; ``tried`` and ``owning`` object[N, K]: the
    loads by number of members, and those of owners of the busiest partitions, as in the scores; ``rows``: the
    numbers of the scenarios of each subject; ``alike``: the topics of each that have as many partitions as
    another one. ``by_history`` bool[K]: whether loads under a strategy depend on what happened to the group
    before. ``seen`` has what `loads` returned.
    """

    busiest: Figures2D
    scenarios: Sequence[str]
    mean: Figures2D
    busy: Figures2D
    needed: Figures2D
    at_ease: Figures2D
    members: Floats
    hot: Floats
    load: Floats
    partitions: Floats
    each: Figures2D
    started: Floats
    tried: npt.NDArray[np.object_]
    owning: npt.NDArray[np.object_]
    rows: Sequence[Numbers]
    alike: Sequence[Sequence[str]]
    by_history: Bools
    seen: dict[tuple[int, int], dict[int, float]]

    def loads(self, number: int, strategy: int) -> dict[int, float]:
        """Return the greatest load of a member by the number of members at the start.

        There are the numbers that were tried in all scenarios.
        """
        if (number, strategy) not in self.seen:
            rows = self.rows[number]
            tried = zip(self.started[rows].tolist(), self.tried[rows, strategy], strict=True)
            by_scenario = [
                {int(members) + more: load for more, load in loads_in(text).items()}
                for members, text in tried
                if text and not isnan(members)
            ]
            sizes = sorted(set.intersection(*map(set, by_scenario))) if len(by_scenario) == len(rows) else []
            found = {size: max(loads[size] for loads in by_scenario) for size in sizes}
            self.seen[number, strategy] = found
        return self.seen[number, strategy]

    def holding(self, number: int, strategy: int, share: float) -> float:
        """Return the fewest members, from today's on, with which and with `BESIDES` more none has more.

        ``share`` is that of what a member can handle. It is NaN if no such number is known.
        """
        loads, members = self.loads(number, strategy), self.members[number]
        most, fewest = max(loads, default=0), self.started[self.rows[number]].min()
        has_all = most < fewest + ONE_BY_ONE  # up to a member for each partition
        for size in loads:
            near = range(size, min(size + BESIDES, most) + 1 if has_all else size + BESIDES + 1)
            if size >= members and all(loads.get(each, inf) <= share for each in near):
                return size
        return nan

    def without_hot(self, number: int, strategy: int) -> float:
        """Return the greatest load of a member without the partitions that are too much in some scenario.

        It is NaN if the scores do not have it.
        """
        owning = self._owning(number, strategy)
        if not all(owning):
            return nan
        hot = self.hottest(number, strategy)
        return max(
            load - sum(part for name, part in parts.items() if name in hot)
            for owners in owning
            for load, parts in owners
        )

    def loads_of_partitions(self, number: int, strategy: int) -> dict[str, list[float]]:
        """Return the loads of the busiest partitions in the scenarios in which they are, the busiest first.

        They are shares of what their owners can handle.
        """
        found: dict[str, list[float]] = {}
        for owners in self._owning(number, strategy):
            for _, parts in owners:
                for name, load in parts.items():
                    found.setdefault(name, []).append(load)
        return dict(sorted(found.items(), key=lambda each: (-max(each[1]), each[0])))

    def hottest(self, number: int, strategy: int) -> dict[str, list[float]]:
        """Return those of the busiest partitions that are too much for a member in some scenario."""
        loads = self.loads_of_partitions(number, strategy)
        return {name: each for name, each in loads.items() if max(each) > 1}

    def _owning(self, number: int, strategy: int) -> list[list[tuple[float, dict[str, float]]]]:
        return [members_in(text) if text else [] for text in self.owning[self.rows[number], strategy]]

    def wait(self, number: int, strategy: int) -> Wait | None:
        """Return how long records wait at most at the busiest member, as `longest_wait`, by scenarios."""
        rows = self.rows[number]
        found = longest_wait([self.scenarios[row] for row in rows], self.each[rows, strategy])
        if found is None:
            return None
        return found._replace(at=int(rows[found.at]), until=int(rows[found.until]))


def besides(known: Capacity) -> Figures2D:
    """Return the greatest load of subjects with today's members, and with up to `BESIDES` more.

    Only subjects in which it is too much under a strategy have those with more.
    """
    found = known.busiest.copy()
    busy = np.nanmax(known.busiest, axis=1, initial=0.0) > 1
    for number, strategy in np.argwhere(busy[:, None] & ~np.isnan(found)).tolist():
        now, loads = known.members[number], known.loads(number, strategy)
        near = (load for size, load in loads.items() if now <= size <= now + BESIDES)
        found[number, strategy] = max(found[number, strategy], *near, 0.0)
    return found


def capacity_of(scored: Scored, busiest: Figures2D, ease: float, subjects: Subjects) -> Capacity:
    """Return what subjects can handle. ``busiest`` is the load of the busiest member in each scenario.

    ``ease`` is that up to which members are at ease.
    """
    members = _column(scored, MEMBERS)
    needed = []
    for metric, share in ((MISSING, 1.0), (TO_EASE, ease)):
        more = _figures(scored, metric)
        if not np.isnan(more).all():
            more = np.where(np.isnan(more) & (busiest > share), np.inf, more)
        needed.append(_most(np.nan_to_num(members)[:, None] + more, subjects))
    hot, load = (np.fmax.reduce(_figures(scored, metric), axis=1) for metric in (HOT, LOAD))
    most = _most(np.stack([members, hot, load, _column(scored, PARTITIONS)], axis=1), subjects).T

    def sums(figures: npt.NDArray[Any]) -> Figures2D:
        return by_strategy(figures, lambda rows: np.bincount(subjects.numbers, rows, len(subjects.names)))

    known = ~np.isnan(busiest)
    by_subject = np.argsort(subjects.numbers, kind="stable")
    of_each = np.split(by_subject, np.cumsum(np.bincount(subjects.numbers))[:-1])
    topics = scored.texts(ALIKE)
    found = Capacity(
        _most(busiest, subjects),
        scored.scenarios,
        sums(np.nan_to_num(busiest)) / np.maximum(sums(known), 1),
        sums(busiest > ease),
        needed[0],
        needed[1],
        most[0],
        most[1],
        most[2],
        most[3],
        busiest,
        members,
        scored.texts(LOADS),
        scored.texts(OWNERS),
        of_each,
        [next((text.split(", ") for text in topics[each[0]] if text), []) for each in of_each],
        np.array([keeps_owners(parted(name)[0], default_registry()) for name in scored.strategies]),
        {},
    )
    return found._replace(needed=_exact(found, found.needed, 1.0), at_ease=_exact(found, found.at_ease, ease))


def _exact(known: Capacity, members: Figures2D, share: float) -> Figures2D:
    """Return the fewest members with which, and with `BESIDES` more, no scenario has more than a share.

    Of subjects of which the loads are not known, or not up to such a number, it is what ``members`` has: the
    most of what single scenarios take.
    """
    found = members.copy()
    for number, strategy in np.argwhere((known.busiest > share) & ~np.isnan(members)).tolist():
        held = known.holding(number, strategy, share)
        found[number, strategy] = members[number, strategy] if isnan(held) else held
    return found


def _figures(scored: Scored, metric: str) -> Figures2D:
    if any(each.name == metric for each in scored.metrics):
        return scored.figures(metric)
    return np.full((len(scored.scenarios), len(scored.strategies)), np.nan)


def _most(figures: Figures2D, subjects: Subjects) -> Figures2D:
    """Return the greatest known figure of the scenarios of each subject, NaN without any."""
    found = np.full((len(subjects.names), figures.shape[1]), np.nan)
    np.fmax.at(found, subjects.numbers, figures)
    return found


def _column(scored: Scored, name: str) -> npt.NDArray[np.float64]:
    """Return a column of the workload, NaN where it is not known."""
    if name not in scored.others:
        return np.full(len(scored.scenarios), np.nan)
    return np.array([np.nan if value is None else value for value in scored.values(name)], dtype=np.float64)

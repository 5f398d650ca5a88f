"""What to do in place of the present candidate of a grid: the one decision of commands and notebooks."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rebalance_lab.verdicts.aims import BALANCE, CARRYING, FRONT, LAG, MOVES, REQUESTS, STOPS, TWICE
from rebalance_lab.verdicts.grid import Aim, Grid
from rebalance_lab.verdicts.rule import Order, fewest_pairs

_PRICES = (*FRONT, *CARRYING, LAG, TWICE, BALANCE, REQUESTS)


class Decision(Enum):
    """What is decided, and by which rule."""

    ALONE = "there is nothing to choose from"
    TOO_FEW = "too few units"
    WORKS = "the present one does not work"
    CARRIES = "another one carries the load better"
    STOPS = "another one stops partitions less"
    FRONT = "another one is as good in everything and better in something"
    KEEP = "none stops partitions less"
    REFUSED = "those that stop partitions less carry the load worse"
    NOT_REPRODUCED = "the model does not reproduce the real group"
    UNKNOWN = "not known whether another one stops partitions less"

    @property
    def changes(self) -> bool:
        """Whether another candidate is chosen."""
        return self in (Decision.WORKS, Decision.CARRIES, Decision.STOPS, Decision.FRONT)


@dataclass(frozen=True)
class Choice:
    """What is decided. ``chosen`` is the present candidate if it is kept.

    ``alike`` are others that do as well, ``gains`` the aims in which the chosen one is better than the
    present one, ``price`` those in which it is worse. ``others`` are the candidates that a decision to keep
    is about: those that are refused, or of which it is not known. ``needed`` units would be enough to choose.
    """

    decision: Decision
    chosen: int
    alike: Sequence[int] = ()
    gains: Sequence[Aim] = ()
    price: Sequence[Aim] = ()
    others: Sequence[int] = ()
    needed: int = 0


def choose(grid: Grid) -> Choice:
    """Return what to choose in place of the present candidate.

    What lessens an overload comes first, and what worsens one is not chosen; then what stops partitions less;
    then what dominates. Of exchangeable candidates, however many, another one is chosen once in
    `rule.ONE_IN` cases at most. Candidates that no consumer and broker of Kafka run are not chosen in place
    of one that they run.
    """
    now = grid.now
    fit = [i for i in grid.working if i == now or grid.setups[i].is_kafka or not grid.setups[now].is_kafka]
    others = [i for i in fit if i != now]
    if not others:
        return Choice(Decision.ALONE, now)
    if len(grid.units) < fewest_pairs(len(others)):
        return Choice(Decision.TOO_FEW, now, needed=fewest_pairs(len(others)))
    if now not in fit:
        return _chosen(grid, Decision.WORKS, others)
    if lighter := _carrying_better(grid, others):
        return _chosen(grid, Decision.CARRIES, lighter)
    orders = {i: grid.order(STOPS, i, now) for i in others}
    heavier = [i for i in others if _is_lighter(grid, now, i)]
    better = [i for i in others if grid.is_surely_better(STOPS, i, now, len(others))]
    if less := [i for i in better if i not in heavier]:
        return _chosen(grid, Decision.STOPS, less)
    leading = [i for i in others if i not in heavier and grid.dominates(i, now, FRONT)]
    if leading := [i for i in leading if any(grid.is_surely_better(a, i, now, len(others)) for a in FRONT)]:
        return _chosen(grid, Decision.FRONT, leading)
    if better:
        return Choice(Decision.REFUSED, now, others=better)
    unknown = [i for i, order in orders.items() if order in (Order.UNKNOWN, Order.BETTER)]
    return Choice(Decision.UNKNOWN if unknown else Decision.KEEP, now, others=unknown)


def _is_lighter(grid: Grid, one: int, other: int) -> bool:
    return any(grid.is_better(aim, one, other) for aim in CARRYING)


def _carrying_better(grid: Grid, others: Sequence[int]) -> list[int]:
    """Return the candidates that lessen an overload, or the backlog that is left, of the present one.

    They are known to worsen neither. Of several, those count that none of the others carries the load better
    than.
    """

    def is_better(one: int, other: int) -> bool:
        return _is_lighter(grid, one, other) and not _is_lighter(grid, other, one)

    better = [
        i
        for i in others
        if is_better(i, grid.now)
        and any(grid.is_surely_better(aim, i, grid.now, len(others)) for aim in CARRYING)
    ]
    return [i for i in better if not any(is_better(j, i) for j in better)] or better


def _chosen(grid: Grid, decision: Decision, better: Sequence[int]) -> Choice:
    """Choose that one of some candidates than which none stops less, on the front, with the least change.

    Of several, it is the one that moves the fewest partitions.
    """
    beaten = {i for i in better for j in better if grid.is_better(STOPS, j, i)}
    unbeaten = [i for i in better if i not in beaten] or list(better)
    front = set(grid.front(FRONT))
    unbeaten = [i for i in unbeaten if i in front] or unbeaten

    def rank(i: int) -> tuple[float, ...]:
        return _distance(grid, i), grid.median(MOVES.key, i), grid.median(STOPS.key, i)

    chosen, *alike = sorted(unbeaten, key=rank)
    gains = [aim for aim in _PRICES if grid.is_better(aim, chosen, grid.now)]
    price = [aim for aim in _PRICES if grid.is_better(aim, grid.now, chosen)]
    return Choice(decision, chosen, alike, gains, price)


def _distance(grid: Grid, candidate: int) -> int:
    """Return in how many parts a candidate differs from the present one."""
    one, now = grid.setups[candidate], grid.setups[grid.now]
    parts = set(one.strategy.split("+")) ^ set(now.strategy.split("+"))
    return len(parts) + sum(now.settings.get(n) != value for n, value in one.settings.items())

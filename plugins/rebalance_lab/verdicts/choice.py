"""What to choose in place of the present candidate of a comparison, and its price."""

from collections.abc import Collection, Sequence

from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.dimensions import (
    BALANCE,
    LAG,
    LEFT,
    LOADED,
    REQUESTS,
    STOPS,
    TWICE,
    Dimension,
    dimension_of,
)
from rebalance_lab.verdicts.grid import Candidate
from rebalance_lab.verdicts.rule import Order
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import agreeing, from_to, listed_names

_LOAD = LOADED, LEFT
"""The dimensions that tell whether a group keeps up with its load."""


def choice(comparison: Comparison) -> str:
    """Return what to choose in place of the present candidate, as far as it is known, and its price.

    Nothing is chosen if the simulation does not reproduce the real group that it is held against. What
    lessens an overload comes first, and what worsens one is not chosen. If none is known to stop
    partitions less, that is a candidate that dominates it. Nothing has to change only if it carries the load,
    no remedy that was run helps, and no candidate that stops partitions alike is better in a headline metric.
    """
    now, working = comparison.now, comparison.working
    label = comparison.label(comparison.candidates[now])
    front = list(map(dimension_of, comparison.front_metrics))
    if not comparison.is_decided:
        return ""
    if comparison.seen is not None and comparison.seen.missed:
        return " Nothing is chosen on these figures."
    if now not in working:
        return f" Choose {_either(comparison, _chosen(comparison, working))} instead of {label}."
    if lighter := _carrying_better(comparison):
        return _for(comparison, _chosen(comparison, lighter), [*_LOAD, LAG, *front])
    orders = {i: comparison.compare(STOPS, now, i) for i in working if i != now}
    heavier = [i for i in working if _is_lighter(comparison.candidates[now], comparison.candidates[i])]
    better = [i for i, order in orders.items() if order is Order.WORSE]
    if fit := [i for i in better if i not in heavier]:
        chosen = _chosen(comparison, fit)
        price = _price(comparison, chosen)
        return f" Choose {_either(comparison, chosen)} instead of {label}.{price}"
    refused = _refused(comparison, better)
    is_least = set(orders.values()) <= {Order.BETTER, Order.ALIKE}
    none = f"one stops partitions less than {label}."
    if leading := [i for i in orders if i not in heavier and comparison.dominates(i, now)]:
        chosen = [i for i in leading if i in comparison.front] or leading
        chosen_for = _for(comparison, chosen, front)
        return f" N{none}{chosen_for}" if is_least else f"{refused}{chosen_for}"
    if not is_least:
        return refused
    is_helped = any(remedy.helps for tried in comparison.remedies.values() for remedy in tried)
    alike = [i for i, order in orders.items() if order is Order.ALIKE]
    is_behind = any(
        comparison.order(headline, i, now) is Order.BETTER for i in alike for headline in comparison.headlines
    )
    may_gain = is_helped or is_behind or not carries_load(comparison.candidates[now])
    return f" N{none}" if may_gain else f" Nothing has to change: n{none}"


def carries_load(candidate: Candidate) -> bool:
    """Return whether no member is overloaded, and the lag comes down, in all seeds."""
    return not any(value > 0 for dimension in _LOAD for value in dimension.harm(candidate).values)


def _carrying_better(comparison: Comparison) -> list[int]:
    """Return the candidates that lessen an overload, or the lag that is left, of the present one.

    They are known to worsen neither. Of several, those count that none of the others carries the load better
    than.
    """
    candidates = comparison.candidates

    def is_better(one: int, other: int) -> bool:
        return _is_lighter(candidates[one], candidates[other]) and not _is_lighter(
            candidates[other], candidates[one]
        )

    better = [i for i in comparison.working if is_better(i, comparison.now)]
    return [i for i in better if not any(is_better(j, i) for j in better)] or better


def _is_lighter(one: Candidate, other: Candidate) -> bool:
    return any(dimension.is_better(one, other) for dimension in _LOAD)


def _for(comparison: Comparison, chosen: Sequence[int], dimensions: Sequence[Dimension]) -> str:
    """Return which candidates to choose, in which figures they are better than now, and the price."""
    gains = _changed(comparison, chosen, Order.WORSE, dimensions)
    return f" Choose {_either(comparison, chosen)} for {gains}.{_price(comparison, chosen)}"


def _refused(comparison: Comparison, better: Sequence[int]) -> str:
    """Return why candidates that stop partitions less than the present one are not to be chosen."""
    if not better:
        return ""
    stop, do = (agreeing(verb, len(better)) for verb in ("stops", "does"))
    worse = _changed(comparison, better, Order.BETTER, [*_LOAD, LAG])
    label = comparison.label(comparison.candidates[comparison.now])
    return (
        f" {comparison.names(better)} {stop} them less than {label} but {do} not carry the load as well:"
        f" {worse}."
    )


def _chosen(comparison: Comparison, better: Sequence[int]) -> list[int]:
    """Return the candidates that none of them is better than, those of the front if there are any."""
    beaten = {i for i in better for j in better if comparison.compare(STOPS, j, i) is Order.BETTER}
    unbeaten = [i for i in better if i not in beaten] or list(better)
    return [i for i in unbeaten if i in comparison.front] or unbeaten


def _price(comparison: Comparison, chosen: Sequence[int]) -> str:
    """Return in which figures of the front, load, balance, repeated work and requests some are worse."""
    front = map(dimension_of, comparison.front_metrics)
    worse = _changed(comparison, chosen, Order.BETTER, [*front, *_LOAD, LAG, TWICE, BALANCE, REQUESTS])
    return f" The price: {worse}." if worse else ""


def _either(comparison: Comparison, numbers: Collection[int]) -> str:
    return " or ".join(comparison.label(comparison.candidates[i]) for i in numbers)


def _changed(
    comparison: Comparison, chosen: Sequence[int], order: Order, dimensions: Sequence[Dimension]
) -> str:
    """Return the figures in which the present candidate has an order to some that are chosen.

    Unless it has it to all of them, they are named.
    """
    now = comparison.now
    changed: dict[str, list[str]] = {}
    for dimension in dimensions:
        own = [i for i in chosen if comparison.compare(dimension, now, i) is order]
        under = "" if len(own) == len(chosen) else f" under {comparison.names(own)}"
        if own:
            shown, before = (range_of(comparison, dimension, numbers) for numbers in (own, [now]))
            changed.setdefault(under, []).append(f"{dimension.name} {shown} (now {before})")
    return "; ".join(f"{listed_names(own, len(own))}{under}" for under, own in changed.items())


def range_of(comparison: Comparison, dimension: Dimension, numbers: Collection[int]) -> str:
    """Return the medians of candidates, from the least to the greatest."""
    medians = [dimension.figure(comparison.candidates[i]).median for i in numbers]
    return from_to(as_text(min(medians)), as_text(max(medians)))

"""A comparison in words: which strategy stops partitions least, what to choose, and what it costs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import Registry
from rebalance_lab.verdicts.comparison import Comparison, Figure
from rebalance_lab.verdicts.dimensions import REQUESTS
from rebalance_lab.verdicts.lag import least_left, least_twice
from rebalance_lab.verdicts.load import carries_load, carry_load_best, carry_load_worse
from rebalance_lab.verdicts.reasons import STOPS, largest_parts, why
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, Order
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import MOST_NAMES, listed_names, more_findings

TWICE = "duplicate_records"
"""The metric that is the price of members that do not wait for one another."""
LEFT, MOST, LOADED = "lag_at_end", "max_lag", "utilization"
"""The metrics that tell whether a group keeps up with its load."""
BALANCE = "weighted_imbalance"
"""The metric of the load of the busiest member."""
SHARE = "capacity_lost"
"""The metric of the records that come while their partition is stopped."""

_OF_KAFKA = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The assignors of Kafka's Java client. Those of other clients are among them."""

_LEAST_SHARE = 0.0001
"""Of a smaller share of the records, only that it is smaller is told."""

_UNKNOWN = Figure(())


def answers(comparison: Comparison) -> list[str]:
    """Return sentences: which candidate stops partitions least, and why the first and the best stop them.

    Before them stands a load that no assignor can carry. So does what is left of the lag, if a large part of
    it is left under all candidates; it stands after them if it is left under some.
    """
    return [*comparison.load, *_answers(comparison)]


def _answers(comparison: Comparison) -> list[str]:
    metric = next((m for m in comparison.metrics if m.name == STOPS), None)
    if metric is None or any(isnan(figure.median) for figure in comparison.figures(metric)):
        return []
    best = sorted(comparison.best(metric))
    several = len(comparison.working) > 1
    verdict = _verdict(comparison, metric) if several else ""
    change = _change(comparison, metric) if set(comparison.working) - {comparison.now} else ""
    sentences = [text] if (text := f"{verdict}{change}".strip()) else []
    if not any(TWICE in text for text in sentences):
        sentences += _twice(comparison, best) if several else []
    sentences += _left_out(comparison) if len(comparison.candidates) > 1 else []
    left, under_all = _left(comparison)
    sentences = [*left, *sentences] if under_all else [*sentences, *left]
    whys = [why(comparison, *explained) for explained in largest_parts(comparison, best)]
    return [*sentences, *whys, *_without_effect(comparison)]


def _left_out(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence for each finding for which candidates are left out: the first one of each.

    It tells how many more findings they have.
    """
    names: dict[str, list[str]] = {}
    for candidate in comparison.candidates:
        for finding in candidate.findings[:1]:
            reason = finding.split("; ")[0] + more_findings(candidate.findings)
            names.setdefault(reason, []).append(comparison.label(candidate))
    for reason, labels in names.items():
        yield f"{listed_names(labels, len(labels))} {'is' if len(labels) == 1 else 'are'} left out: {reason}."


def _left(comparison: Comparison) -> tuple[list[str], bool]:
    """Return sentences if more than half of the largest lag is left, and whether it is under all."""
    left: dict[int, float] = {}
    busy: dict[int, float] = {}
    for i in comparison.working:
        figures = comparison.candidates[i].figures
        at_end, most, load = (figures.get(name, _UNKNOWN).median for name in (LEFT, MOST, LOADED))
        left |= {i: at_end} if at_end > least_left(most) else {}
        busy |= {i: round(100 * load)} if load > 1 else {}
    sentences = []
    if left:
        records = _under(comparison, left, " records")
        sentences.append(f"The lag has not come down by the end of the run: {records}.")
    if left and busy:
        sentences.append(f"The busiest member has {_under(comparison, busy, ' % of what it can handle')}.")
    return sentences, left.keys() == set(comparison.working)


def _under(comparison: Comparison, values: Mapping[int, float], unit: str) -> str:
    """Return the values of candidates, each once with the names of those that have it.

    Of more than `MOST_NAMES` values only the least and the greatest are named, with all candidates.
    """
    texts: dict[str, list[int]] = {}
    for i, value in values.items():
        texts.setdefault(as_text(value), []).append(i)
    if len(texts) > MOST_NAMES:
        low, high = (as_text(end(values.values())) for end in (min, max))
        texts = {f"{low} to {high}": list(values)}
    named = {
        text: "all" if 1 < len(own) == len(comparison.candidates) else _names(comparison, own)
        for text, own in texts.items()
    }
    return "; ".join(f"{text}{unit} under {names}" for text, names in named.items())


def _without_effect(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence for each setting that changes no figure of any strategy."""
    for name in comparison.varied:
        groups: dict[object, list[str]] = {}
        for candidate in comparison.candidates:
            others = {n: text for n, (text, _) in candidate.settings.items() if n != name}
            figures = repr((candidate.figures, candidate.findings))
            groups.setdefault((candidate.strategy, *others.items()), []).append(figures)
        is_varied = any(len(found) > 1 for found in groups.values())
        if is_varied and all(len(set(found)) == 1 for found in groups.values()):
            yield f"{name} makes no difference."


def _verdict(comparison: Comparison, metric: MetricSpec) -> str:
    """Return which candidates stop partitions least, as far as it is known."""
    if len(comparison.seeds) == 1:
        return _of_one_seed(comparison, metric)
    best = sorted(comparison.best(metric))
    if best:
        return _least(comparison, metric, best)
    working = comparison.working
    if _all_alike(comparison, metric, working):
        shown = _range(comparison, metric, working)
        return f"{_all_of(comparison)} stop partitions alike, within 1 %: {shown} {metric.unit}."
    return _not_known(comparison, metric)


def _change(comparison: Comparison, metric: MetricSpec) -> str:
    """Return what to choose in place of the present candidate, as far as it is known, and its price.

    What lessens an overload comes first, and what worsens one is not chosen. If none is known to stop
    partitions less, that is a candidate that dominates it. Nothing has to change only if it carries the load,
    no remedy that was run helps, and no candidate that stops partitions alike is better in a headline metric.
    """
    now, working = comparison.now, comparison.working
    label = comparison.label(comparison.candidates[now])
    if not comparison.is_decided:
        return ""
    if now not in working:
        return f" Choose {_either(comparison, _chosen(comparison, working, metric))} instead of {label}."
    if lighter := carry_load_best(comparison):
        metrics = [*_load(comparison), *comparison.front_metrics]
        return _for(comparison, _chosen(comparison, lighter, metric), metrics)
    orders = {i: comparison.order(metric, now, i) for i in working if i != now}
    heavier = carry_load_worse(comparison)
    better = [i for i, order in orders.items() if order is Order.WORSE]
    if fit := [i for i in better if i not in heavier]:
        chosen = _chosen(comparison, fit, metric)
        price = _price(comparison, chosen)
        return f" Choose {_either(comparison, chosen)} instead of {label}.{price}"
    refused = _refused(comparison, better)
    is_least = set(orders.values()) <= {Order.BETTER, Order.ALIKE}
    none = f"one stops partitions less than {label}."
    if leading := [i for i in orders if i not in heavier and comparison.dominates(i, now)]:
        chosen = [i for i in leading if i in comparison.front] or leading
        choice = _for(comparison, chosen, comparison.front_metrics)
        return f" N{none}{choice}" if is_least else f"{refused}{choice}"
    if not is_least:
        return refused
    is_helped = any(remedy.helps for tried in comparison.remedies.values() for remedy in tried)
    alike = [i for i, order in orders.items() if order is Order.ALIKE]
    is_behind = any(
        comparison.order(headline, i, now) is Order.BETTER for i in alike for headline in comparison.headlines
    )
    may_gain = is_helped or is_behind or not carries_load(comparison.candidates[now])
    return f" N{none}" if may_gain else f" Nothing has to change: n{none}"


def _for(comparison: Comparison, chosen: Sequence[int], metrics: Sequence[MetricSpec]) -> str:
    """Return which candidates to choose, in which metrics they are better than now, and the price."""
    gains = _changed(comparison, chosen, Order.WORSE, metrics)
    return f" Choose {_either(comparison, chosen)} for {gains}.{_price(comparison, chosen)}"


def _refused(comparison: Comparison, better: Sequence[int]) -> str:
    """Return why candidates that stop partitions less than the present one are not to be chosen."""
    if not better:
        return ""
    verb, do = ("stops", "does") if len(better) == 1 else ("stop", "do")
    worse = _changed(comparison, better, Order.BETTER, _load(comparison))
    label = comparison.label(comparison.candidates[comparison.now])
    names = _names(comparison, better)
    return f" {names} {verb} them less than {label} but {do} not carry the load as well: {worse}."


def _load(comparison: Comparison) -> list[MetricSpec]:
    """Return the metrics of the load."""
    found = {metric.name: metric for metric in comparison.metrics}
    return [found[name] for name in (LOADED, LEFT, MOST) if name in found]


def _chosen(comparison: Comparison, better: Sequence[int], metric: MetricSpec) -> list[int]:
    """Return the candidates that none of them is better than, those of the front if there are any."""
    beaten = {i for i in better for j in better if comparison.order(metric, j, i) is Order.BETTER}
    unbeaten = [i for i in better if i not in beaten] or list(better)
    return [i for i in unbeaten if i in comparison.front] or unbeaten


def _price(comparison: Comparison, chosen: Sequence[int]) -> str:
    """Return in which metrics of the front, load, balance, repeated work and requests some are worse."""
    others = [metric for metric in comparison.metrics if metric.name in (TWICE, BALANCE, REQUESTS.name)]
    metrics = [*comparison.front_metrics, *_load(comparison), *others]
    worse = _changed(comparison, chosen, Order.BETTER, metrics)
    return f" The price: {worse}." if worse else ""


def _either(comparison: Comparison, numbers: Collection[int]) -> str:
    return " or ".join(comparison.label(comparison.candidates[i]) for i in numbers)


def _changed(
    comparison: Comparison, chosen: Sequence[int], order: Order, metrics: Sequence[MetricSpec]
) -> str:
    """Return the figures in which the present candidate has an order to some that are chosen.

    Unless it has it to all of them, they are named.
    """
    now = comparison.now
    changed: dict[str, list[str]] = {}
    for metric in metrics:
        own = [i for i in chosen if _order(comparison, metric, now, i) is order]
        under = "" if len(own) == len(chosen) else f" under {_names(comparison, own)}"
        if own:
            shown, before = (_range(comparison, metric, numbers) for numbers in (own, [now]))
            changed.setdefault(under, []).append(f"{metric.name} {shown} (now {before})")
    return "; ".join(f"{listed_names(own, len(own))}{under}" for under, own in changed.items())


def _order(comparison: Comparison, metric: MetricSpec, one: int, other: int) -> Order:
    """Return what is known of the order of two candidates.

    A few records more handled twice are alike, and so are a few requests more, as in an advice.
    """
    if metric.name == REQUESTS.name:
        figures = comparison.figures(metric)
        return figures[one].order(figures[other], margin=REQUESTS.margin)
    if metric.name == TWICE:
        less, more = sorted((one, other), key=lambda i: comparison.figures(metric)[i].median)
        first, second = (comparison.figures(metric)[i].median for i in (less, more))
        if second - first <= least_twice(comparison.candidates[more].figures.get(MOST, _UNKNOWN).median):
            return Order.ALIKE
    return comparison.order(metric, one, other)


def _of_one_seed(comparison: Comparison, metric: MetricSpec) -> str:
    """Return the least and the greatest figure, which other seeds may have in another order."""
    texts = {i: as_text(comparison.figures(metric)[i].median) for i in comparison.working}
    least, most = (_range(comparison, metric, [i]) for i in _ends(comparison, metric))
    unknown = "One seed: not known whether the order holds with others."
    if least == most:
        return (
            f"In one run {_all_of(comparison).lower()} stop partitions for {least} {metric.unit}. {unknown}"
        )
    first, last = (_names(comparison, [i for i in texts if texts[i] == end]) for end in (least, most))
    return (
        f"In one run the least stopped time is that of {first}: {least} {metric.unit}; the most that of"
        f" {last}: {most}. {unknown}"
    )


def _ends(comparison: Comparison, metric: MetricSpec) -> tuple[int, int]:
    """Return the positions of the least and of the greatest median."""
    figures, working = comparison.figures(metric), comparison.working
    least, *_, most = sorted(working, key=lambda i: figures[i].median)
    return least, most


def _range(comparison: Comparison, metric: MetricSpec, numbers: Collection[int]) -> str:
    """Return the medians of candidates, from the least to the greatest."""
    figures = comparison.figures(metric)
    low, high = (as_text(end(figures[i].median for i in numbers)) for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _all_of(comparison: Comparison) -> str:
    return "All" if len(comparison.working) == len(comparison.candidates) else "All others"


def _all_alike(comparison: Comparison, metric: MetricSpec, numbers: Sequence[int]) -> bool:
    pairs = combinations(numbers, 2)
    return all(comparison.order(metric, one, other) is Order.ALIKE for one, other in pairs)


def _not_known(comparison: Comparison, metric: MetricSpec) -> str:
    """Return between which candidates the seeds do not decide, and which of the others are not the best."""
    beaten = comparison.beaten(metric)
    contenders = [i for i in comparison.working if i not in beaten]
    which = f"which of {_names(comparison, contenders)}" if beaten else "which strategy"
    few = "" if comparison.is_decided else f" ({FEWEST_PAIRS} are needed)"
    shown = _range(comparison, metric, contenders)
    unknown = (
        f"Not known from {len(comparison.seeds)} seeds{few} {which} stops partitions least: {shown}"
        f" {metric.unit}."
    )
    if not beaten:
        return unknown
    verb = "does" if len(beaten) == 1 else "do"
    return f"{unknown} {_names(comparison, beaten)} {verb} not: {_range(comparison, metric, beaten)}."


def _names(comparison: Comparison, numbers: Collection[int]) -> str:
    """Name all of the candidates: who is not named could be taken for somebody of whom the opposite holds."""
    return listed_names([comparison.label(comparison.candidates[i]) for i in numbers], len(numbers))


def _least(comparison: Comparison, metric: MetricSpec, best: Sequence[int]) -> str:
    figures, now = [figure.median for figure in comparison.figures(metric)], comparison.now
    others = [i for i in comparison.working if i not in best]
    verb = "stops" if len(best) == 1 else "stop"
    shown = _range(comparison, metric, best)
    least = f"{_names(comparison, best)} {verb} partitions least: {shown} {metric.unit}"
    least += _during(comparison, best)
    following, most = (
        [i for i in others if figures[i] == end(figures[j] for j in others)] for end in (min, max)
    )
    is_compared = now in others and not comparison.varied
    own = [figures[i] for i in best]
    less = (
        [f"{_less(own, figures[now])} less than {comparison.label(comparison.candidates[now])}"]
        if is_compared
        else []
    )
    if (now if is_compared else most[0]) not in following:
        less.append(
            f"{_less(own, figures[following[0]])} less than {_names(comparison, following)}, the next"
        )
    verb = "stops" if len(most) == 1 else "stop"
    last = (
        "" if is_compared else f" {_names(comparison, most)} {verb} them most: {as_text(figures[most[0]])}."
    )
    among = (
        ""
        if _all_alike(comparison, metric, best)
        else f" Which of {_names(comparison, best)} stops them least is not known from"
        f" {len(comparison.seeds)} seeds."
    )
    return f"{', '.join([least, ' and '.join(less)]) if less else least}.{last}{among}"


def _during(comparison: Comparison, best: Sequence[int]) -> str:
    """Return the share of the records that come while their partition is stopped, if a lag is measured."""
    of_best = [comparison.candidates[i].figures for i in best]
    shares, lags = ([own.get(name, _UNKNOWN).median for own in of_best] for name in (SHARE, MOST))
    if any(map(isnan, [*shares, *lags])):
        return ""
    low, high = (_percent_of_records(end(shares)) for end in (min, max))
    return f" ({low if low == high else f'{low} to {high}'} % of the records came then)"


def _percent_of_records(share: float) -> str:
    return as_text(100 * share) if share > _LEAST_SHARE else f"under {100 * _LEAST_SHARE:g}"


def _less(least: Collection[float], other: float) -> str:
    """Return a difference in percent, or two. Only a figure of 0 is 100 % less than another one."""
    low, high = (_percent_less(end(least), other) for end in (max, min))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _percent_less(least: float, other: float) -> str:
    percent = 100 * (1 - least / other)
    return f"{percent:.0f}" if percent <= 99 or not least else "over 99"


def _twice(comparison: Comparison, best: list[int]) -> Iterator[str]:
    """Yield a sentence for each of the best that handles more records twice than another candidate."""
    metric = next((m for m in comparison.metrics if m.name == TWICE), None)
    if metric is None or not best:
        return
    figures, working, now = comparison.figures(metric), comparison.working, comparison.now
    other = now if now in working and now not in best else min(working, key=lambda i: figures[i].median)
    for i in best:
        if _order(comparison, metric, other, i) is Order.BETTER:
            first, second = (comparison.label(comparison.candidates[j]) for j in (i, other))
            twice, fewer = (as_text(figures[j].median) for j in (i, other))
            yield f"{first} handles {twice} records twice, {second} {fewer}."


def what_it_takes(strategies: Mapping[str, str], registry: Registry) -> str:
    """Return what clients need for strategies whose assignors are not Kafka's, or an empty text.

    ``strategies`` maps names as they are shown to strategies. Only clients of the classic protocol assign.
    """
    foreign = {}
    for name, strategy in strategies.items():
        assignor, *modifiers = registry.aliases().get(strategy, strategy).split("+")
        if assignor not in _OF_KAFKA and registry.protocols().keys().isdisjoint(modifiers):
            foreign[name] = assignor
    if not foreign:
        return ""
    specs = registry.assignors()
    by_load = [
        name
        for name, assignor in foreign.items()
        if (spec := specs.get(assignor)) and (spec.provider or getattr(spec.factory, "provider", ""))
    ]
    loads = (
        f" Under {' and '.join(by_load)}, members must report their rates; otherwise partitions are counted."
        if by_load
        else ""
    )
    return (
        f"Kafka's own clients do not have {' and '.join(foreign)}; kafka-python, aiokafka and the Consumer of"
        f" rebalance_kafka do.{loads}"
    )

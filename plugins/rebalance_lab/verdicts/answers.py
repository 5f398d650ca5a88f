"""A comparison in words: which strategy stops partitions least, and why; what to choose is in `choice`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import isnan

from rebalance_lab.verdicts import as_seen
from rebalance_lab.verdicts.choice import choice, range_of
from rebalance_lab.verdicts.comparison import Comparison
from rebalance_lab.verdicts.dimensions import LAG, LEFT, LOADED, STOPS, TWICE
from rebalance_lab.verdicts.lag import least_left
from rebalance_lab.verdicts.reasons import largest_parts, why
from rebalance_lab.verdicts.rule import FEWEST_PAIRS, Order
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import MOST_NAMES, agreeing, from_to, listed_names, more_findings

SHARE = "capacity_lost"
"""The metric of the records that come while their partition is stopped."""

_LEAST_SHARE = 0.0001
"""Of a smaller share of the records, only that it is smaller is told."""


def answers(comparison: Comparison) -> list[str]:
    """Return sentences: which candidate stops partitions least, and why the first and the best stop them.

    Before them stands what was seen of a real group, and a load that no assignor can carry. So does what is
    left of the lag, if a large part of it is left under all candidates; it stands after them if it is left
    under some.
    """
    seen = [] if comparison.seen is None else as_seen.sentences(comparison.seen)
    return [*seen, *comparison.load, *_answers(comparison)]


def _answers(comparison: Comparison) -> list[str]:
    known = [STOPS.figure(candidate).median for candidate in comparison.candidates]
    if not known or any(map(isnan, known)):
        return []
    best = sorted(comparison.best(STOPS))
    several = len(comparison.working) > 1
    verdict = _verdict(comparison, best) if several else ""
    change = choice(comparison) if set(comparison.working) - {comparison.now} else ""
    sentences = [text] if (text := f"{verdict}{change}".strip()) else []
    if not any(TWICE.name in text for text in sentences):
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
        yield f"{listed_names(labels, len(labels))} {agreeing('is', len(labels))} left out: {reason}."


def _left(comparison: Comparison) -> tuple[list[str], bool]:
    """Return sentences if more than half of the largest lag is left, and whether it is under all."""
    left: dict[int, float] = {}
    busy: dict[int, float] = {}
    for i in comparison.working:
        at_end, most, load = (d.figure(comparison.candidates[i]).median for d in (LEFT, LAG, LOADED))
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
        texts = {from_to(*(as_text(end(values.values())) for end in (min, max))): list(values)}
    named = {
        text: "all" if 1 < len(own) == len(comparison.candidates) else comparison.names(own)
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


def _verdict(comparison: Comparison, best: Sequence[int]) -> str:
    """Return which candidates stop partitions least, as far as it is known."""
    working = comparison.working
    if len(comparison.seeds) == 1:
        return _of_one_seed(comparison)
    if best:
        return _least(comparison, best)
    if _all_alike(comparison, working):
        return f"{_all_of(comparison)} stop partitions alike, within 1 %: {_seconds(comparison, working)}."
    return _not_known(comparison)


def _seconds(comparison: Comparison, numbers: Collection[int]) -> str:
    return f"{range_of(comparison, STOPS, numbers)} partition seconds"


def _of_one_seed(comparison: Comparison) -> str:
    """Return the least and the greatest figure, which other seeds may have in another order."""
    texts: dict[str, list[int]] = {}
    for i in sorted(comparison.working, key=lambda i: STOPS.figure(comparison.candidates[i]).median):
        texts.setdefault(STOPS.shown(comparison.candidates[i]), []).append(i)
    (_, first), *_, (most, last) = [*texts.items()] * 2
    unknown = "One seed: not known whether the order holds with others."
    least = _seconds(comparison, first)
    if len(texts) == 1:
        same = f"In one run the stopped time of {_all_of(comparison).lower()} is the same: {least}."
        return f"{same} One seed: not known whether it is with others."
    return (
        f"In one run the least stopped time is that of {comparison.names(sorted(first))}: {least}; the most"
        f" that of {comparison.names(sorted(last))}: {most}. {unknown}"
    )


def _all_of(comparison: Comparison) -> str:
    return "All" if len(comparison.working) == len(comparison.candidates) else "All others"


def _all_alike(comparison: Comparison, numbers: Sequence[int]) -> bool:
    return all(
        comparison.compare(STOPS, one, other) is Order.ALIKE for one, other in combinations(numbers, 2)
    )


def _not_known(comparison: Comparison) -> str:
    """Return between which candidates the seeds do not decide, and which of the others are not the best."""
    beaten = comparison.beaten(STOPS)
    contenders = [i for i in comparison.working if i not in beaten]
    which = f"which of {comparison.names(contenders)}" if beaten else "which strategy"
    few = "" if comparison.is_decided else f" ({FEWEST_PAIRS} are needed)"
    unknown = (
        f"Not known from {len(comparison.seeds)} seeds{few} {which} stops partitions least:"
        f" {_seconds(comparison, contenders)}."
    )
    if not beaten:
        return unknown
    does = agreeing("does", len(beaten))
    return f"{unknown} {comparison.names(beaten)} {does} not: {range_of(comparison, STOPS, beaten)}."


def _least(comparison: Comparison, best: Sequence[int]) -> str:
    now, medians = comparison.now, [STOPS.figure(candidate).median for candidate in comparison.candidates]
    others = [i for i in comparison.working if i not in best]
    following, most = (
        [i for i in others if medians[i] == end(medians[j] for j in others)] for end in (min, max)
    )
    is_compared = now in others and not comparison.varied
    own = [medians[i] for i in best]
    said = (
        f"{comparison.names(best)} {agreeing('stops', len(best))} partitions least:"
        f" {_seconds(comparison, best)}{_during(comparison, best)}"
    )
    less = [f"{_less(own, medians[now])} less than {comparison.names([now])}"] if is_compared else []
    if (now if is_compared else most[0]) not in following:
        less.append(f"{_less(own, medians[following[0]])} less than {comparison.names(following)}, the next")
    said += f", {' and '.join(less)}." if less else "."
    if not is_compared:
        stop = agreeing("stops", len(most))
        said += f" {comparison.names(most)} {stop} them most: {as_text(medians[most[0]])}."
    contenders = [i for i in best if i not in comparison.beaten(STOPS)]
    if not _all_alike(comparison, contenders):
        which, seeds = comparison.names(contenders), len(comparison.seeds)
        said += f" Which of {which} stops them least is not known from {seeds} seeds."
    return said


def _during(comparison: Comparison, best: Sequence[int]) -> str:
    """Return the share of the records that come while their partition is stopped, if a lag is measured."""
    own = [comparison.candidates[i] for i in best]
    shares, lags = ([candidate.figure(name).median for candidate in own] for name in (SHARE, LAG.name))
    if any(map(isnan, [*shares, *lags])):
        return ""
    low, high = (_percent_of_records(end(shares)) for end in (min, max))
    return f" ({from_to(low, high)} % of the records came then)"


def _percent_of_records(share: float) -> str:
    return as_text(100 * share) if share > _LEAST_SHARE else f"under {100 * _LEAST_SHARE:g}"


def _less(least: Collection[float], other: float) -> str:
    """Return a difference in percent, or two. Only a figure of 0 is 100 % less than another one."""
    low, high = (_percent_less(end(least), other) for end in (max, min))
    return f"{from_to(low, high)} %"


def _percent_less(least: float, other: float) -> str:
    percent = 100 * (1 - least / other)
    return f"{percent:.0f}" if percent <= 99 or not least else "over 99"


def _twice(comparison: Comparison, best: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each of the best that handles more records twice than another candidate."""
    if not best or all(metric.name != TWICE.name for metric in comparison.metrics):
        return
    candidates, working, now = comparison.candidates, comparison.working, comparison.now
    least = min(working, key=lambda i: TWICE.figure(candidates[i]).median)
    other = candidates[now if now in working and now not in best else least]
    for one in (candidates[i] for i in best):
        if TWICE.is_better(other, one):
            twice, fewer = TWICE.shown(one), TWICE.shown(other)
            yield f"{comparison.label(one)} handles {twice} records twice, {comparison.label(other)} {fewer}."

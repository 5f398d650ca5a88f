"""Sentences about a load that no assignment can carry, and which candidates carry theirs."""

from collections.abc import Iterator, Sequence

from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.changes import Change
from rebalance_lab.verdicts.comparison import Candidate, Comparison
from rebalance_lab.verdicts.dimensions import LEFT, LOADED, Trial
from rebalance_lab.verdicts.lag import SLACK_RECORDS
from rebalance_lab.verdicts.overload import overload_of
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import listed_names

_MOST_NAMED = 3


def overload(history: History) -> tuple[str, ...]:
    """Return sentences about partitions and groups whose load is more than their members can handle."""
    return tuple(_sentences(history))


def overload_of_all(runs: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the sentences about load that hold in all runs, which have names and sentences of their own.

    If the runs have different figures, those of the first one are told, and its name.
    """
    if not runs:
        return ()
    name, first = runs[0]
    common = [t for t in first if all(_remedy(t) in map(_remedy, own) for _, own in runs)]
    differ = any(t not in own for t in common for _, own in runs)
    return (*common, f"The figures are those of {name}.") if differ else tuple(common)


def _remedy(text: str) -> str:
    return text.rpartition(". ")[2]


def _sentences(history: History) -> Iterator[str]:
    found = overload_of(history)
    if found is None:
        return
    if found.partitions:
        fastest, *rates = _apart(found.fastest, [rate for _, rate in found.partitions])
        named = [
            f"{p.topic} {p.partition} ({rate})" for (p, _), rate in zip(found.partitions, rates, strict=True)
        ]
        verb = "gets" if len(named) == 1 else "get"
        yield (
            f"{listed_names(named, _MOST_NAMED)} {verb} more records/s than the {fastest} that"
            " a member can handle in full batches. No assignor removes this backlog, only more partitions or"
            " faster processing."
        )
    if found.of_group:
        members, load = _apart(found.at_end.members, [found.at_end.load])
        is_all = found.at_end.running == history.process_rates.keys()
        which = "all members" if is_all else "the members that run at the end"
        yield (
            f"The load of {load} records/s is more than the {members} that {which} together can handle in"
            " full batches. No assignor removes this backlog, only more members or faster processing."
        )
    elif found.is_over and not found.partitions:
        worst, falls = found.worst, _falls(history, found.at_end.ms)
        away = sorted(found.at_end.running - worst.running)
        if not away or falls <= 0:
            return
        were = f"{listed_names(away, _MOST_NAMED)} {'was' if len(away) == 1 else 'were'}"
        members, load = _apart(worst.members, [worst.load])
        yield (
            f"While {were} away, the load of {load} records/s was more than the {members} that the members"
            " that ran together could handle in full batches. At the end of the run the lag falls by"
            f" {as_text(falls)} records/s. This backlog is worked off without a change."
        )


def _apart(limit: float, values: Sequence[float]) -> list[str]:
    """Return a limit and values above it as texts, with so many digits that none looks like the limit."""
    texts = [as_text(value) for value in (limit, *values)]
    digits = 0
    while texts[0] in texts[1:]:
        digits += 1
        texts = [f"{value:,.{digits}f}" for value in (limit, *values)]
    return texts


def _falls(history: History, ms: int) -> float:
    """Return by how many records/s the lag falls in the second half of a time at the end.

    It is 0 if the lag of a member rises.
    """
    since_ms = history.trace.events[-1].at_ms - ms / 2
    lags = [lag for lag in history.lags if lag.at_ms >= since_ms]
    if len(lags) < 2:
        return 0.0
    (from_ms, first), *_, (until_ms, last) = lags
    if any(own > first.by_client.get(client, 0.0) + SLACK_RECORDS for client, own in last.by_client.items()):
        return 0.0
    return 1_000 * (first.lag - last.lag) / (until_ms - from_ms)


# --- candidates of a comparison


def carries_load(candidate: Candidate) -> bool:
    """Return whether no member is overloaded, and the lag comes down, in all seeds."""
    trial = _trial(candidate)
    return not any(value > 0 for dimension in (LOADED, LEFT) for value in dimension.harm(trial).values)


def carry_load_best(comparison: Comparison) -> list[int]:
    """Return the candidates that lessen an overload, or the lag that is left, of the present one.

    They are known to worsen neither. Of several, those count that none of the others carries the load better
    than.
    """
    own = {i: comparison.candidates[i] for i in comparison.working}
    now = comparison.candidates[comparison.now]
    better = [i for i in own if _carries_better(own[i], now)]
    return [i for i in better if not any(_carries_better(own[j], own[i]) for j in better)] or better


def carry_load_worse(comparison: Comparison) -> list[int]:
    """Return the candidates that worsen an overload, or the lag that is left, of the present one."""
    now = comparison.candidates[comparison.now]
    return [i for i in comparison.working if _is_better_in_one(now, comparison.candidates[i])]


def _carries_better(one: Candidate, other: Candidate) -> bool:
    return _is_better_in_one(one, other) and not _is_better_in_one(other, one)


def _is_better_in_one(one: Candidate, other: Candidate) -> bool:
    a, b = _trial(one), _trial(other)
    return any(
        dimension.is_better(a, b) and dimension.figure(a).is_better(dimension.figure(b), "lower")
        for dimension in (LOADED, LEFT)
    )


def _trial(candidate: Candidate) -> Trial:
    return Trial(Change(candidate.strategy), candidate.figures)

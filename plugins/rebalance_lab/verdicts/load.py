"""Sentences about a load that no assignment can carry."""

from collections.abc import Iterator, Sequence

from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.overload import overload_of
from rebalance_lab.verdicts.tables import as_text
from rebalance_lab.verdicts.words import listed_names

_MOST_NAMED = 3


def overload(history: History) -> tuple[str, ...]:
    """Return sentences about partitions and groups whose load is more than their members can handle."""
    return tuple(_sentences(history))


def overload_of_all(runs: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return the sentences about load that hold in all runs, which have names and sentences of their own.

    If the runs have different figures, the sentence is of the first one, and its name is in front.
    """
    if not runs:
        return ()
    name, first = runs[0]
    common = [t for t in first if all(_remedy(t) in map(_remedy, own) for _, own in runs)]
    return tuple(t if all(t in own for _, own in runs) else f"{name}: {t}" for t in common)


def _remedy(text: str) -> str:
    return text.rpartition(". ")[2]


def _sentences(history: History) -> Iterator[str]:
    found = overload_of(history)
    if found is None:
        return
    if found.partitions:
        named = [f"{p.topic} {p.partition} ({as_text(rate)})" for p, rate in found.partitions]
        verb = "gets" if len(named) == 1 else "get"
        yield (
            f"{listed_names(named, _MOST_NAMED)} {verb} more records/s than the {as_text(found.fastest)} that"
            " a member can handle in full batches. No assignor removes this backlog, only more partitions or"
            " faster processing."
        )
    if found.of_group:
        yield (
            f"The load of {as_text(found.load)} records/s is more than the {as_text(found.members)} that all"
            " members together can handle in full batches. No assignor removes this backlog, only more"
            " members or faster processing."
        )

"""A check of random groups with faults, under every protocol that takes the assignor."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from random import Random

from coordinator_core.errors import InputError
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_conformance.search import Bench, Check, FaultError, Listener
from rebalance_conformance.subject import Subject
from rebalance_lab.fuzzing.campaign import examine_document, shrink_document, under_every_protocol
from rebalance_lab.fuzzing.drawing import draw_document

RUNS = 4
"""The runs under each protocol."""

_FAULTS = (
    "loss", "crash", "restart", "freeze", "rolling_restart", "coordinator_failover", "failover_in_step",
    "remove_member", "lag_view",
)  # fmt: skip
"""Faults by which members and coordinators forget, or see what was."""

MOST_TRIES = 150
"""The scenarios that are tried to find a smaller one."""


def _run(bench: Bench) -> None:
    """Fail if a run breaks a rule or does not come to rest.

    Raises:
        FaultError: with the smallest scenario that was found.
    """
    registry = default_registry()
    strategies = _strategies(bench.subject, registry)
    for number in range(min(RUNS, bench.examples)):
        for strategy in strategies:
            random = Random(f"check:{number}:{strategy.protocol}")
            document = draw_document(random, strategy, registry, faults=_FAULTS, aimed=False)
            bench.listener.running()
            defect = examine_document(document, strategy, registry).defect
            if defect is not None:
                tries = chain([True] * MOST_TRIES, repeat(False))
                goes_on = partial(_next, tries, bench.listener)
                defect, smallest = shrink_document(document, defect, strategy, registry, goes_on)
                raise FaultError(f"as {strategy.name}: {defect.check}: {defect.detail}", scenario=smallest)


fails_under_faults = Check(
    "fails-under-faults", _run, "Random groups with faults break no rule, under any protocol."
)


def _next(tries: Iterator[bool], listener: Listener) -> bool:
    """Return whether another smaller scenario may be tried, and tell the listener."""
    listener.running()
    return next(tries)


def _strategies(subject: Subject, registry: Registry) -> list[Strategy]:
    """Return the assignor under each protocol that takes it, or as it is, if it names one or has no name."""
    texts = under_every_protocol(subject.name, registry)
    if texts:
        return [registry.strategy(text) for text in texts]
    with suppress(InputError):
        return [registry.strategy(subject.name)]
    return [registry.strategy("range").with_changes(name=subject.name, wrappers=(lambda *_: subject.make(),))]

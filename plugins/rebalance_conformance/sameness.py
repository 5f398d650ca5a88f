"""Checks that the assignment depends only on the group."""

from collections.abc import Sequence
from functools import partial
from itertools import zip_longest

from rebalance_conformance.answers import Given, as_sets, difference
from rebalance_conformance.cases import Case, Order, copy_of, reordered, with_members
from rebalance_conformance.groups import ordinary_groups
from rebalance_conformance.remote import CannotRemakeError, Process, elsewhere
from rebalance_conformance.search import Bench, Check, FaultError, NotRunError, check

HASH_SEEDS = (1, 2, 3)

ORDERS: tuple[tuple[str, Order], ...] = (
    ("reversed", lambda items: items[::-1]),
    ("with the first one last", lambda items: [*items[1:], *items[:1]]),
)


@check("Members and topics may come in any order.", ordinary_groups())
def depends_on_order(bench: Bench, case: Case) -> None:
    """Fail if another order of members and topics changes an owner. The order of lists may change."""
    first = bench.given(case)
    for how, order in ORDERS:
        _same(first, bench.given(reordered(case, order)), case, f"its members and topics {how}")


def _depends_on_hash_seed(bench: Bench) -> None:
    """Fail if processes with different hash seeds return different assignments."""

    def examine(processes: Sequence[Process], case: Case) -> None:
        bench.listener.trying(case)
        for process in processes:
            process.send(case)
        first, *others = (process.receive(case) for process in processes)
        for seed, other in zip(HASH_SEEDS[1:], others, strict=True):
            _same(first, other, case, f"PYTHONHASHSEED={seed} in place of {HASH_SEEDS[0]}")

    try:
        with elsewhere(bench.subject.make, HASH_SEEDS) as processes:
            bench.try_all(ordinary_groups(), partial(examine, processes))
    except CannotRemakeError as error:
        raise NotRunError(f"it cannot be made again in another process: {error}") from error


depends_on_hash_seed = Check(
    "depends-on-hash-seed", _depends_on_hash_seed, "Every process gives the same answer."
)


@check("Every object gives the same answer.", ordinary_groups())
def not_deterministic(bench: Bench, case: Case) -> None:
    """Fail if two new objects return different assignments."""
    first = bench.given(case)
    for _ in range(3):
        _same(first, bench.given(case), case, "another fresh object")


@check("Earlier groups change nothing.", ordinary_groups(least_members=2))
def remembers_groups(bench: Bench, case: Case) -> None:
    """Fail if an earlier assignment changes the result of an object."""
    assignor = bench.subject.make()
    first = bench.given(case, assignor)
    _same(first, bench.given(case, assignor), case, "the same object again")
    leaver, *others = case.group
    assignor = bench.subject.make()
    bench.given(with_members(case, others), assignor)
    _same(first, bench.given(case, assignor), case, f"an object that assigned it without {leaver!r} before")


@check("The group and the cluster are left as they were.", ordinary_groups())
def mutates_input(bench: Bench, case: Case) -> None:
    """Fail if the group or the cluster is changed."""
    lent = copy_of(case)
    before = _written_out(lent)
    bench.lend(lent, case)
    for was, is_now in zip_longest(before, _written_out(lent), fillvalue="nothing"):
        if was != is_now:
            raise FaultError(f"it was lent {was}, and left {is_now} in its place", case)


def _same(first: Given, second: Given, case: Case, given: str) -> None:
    if as_sets(first) != as_sets(second):
        raise FaultError(f"given {given}: {difference(first, second)}", case, given=second)


def _written_out(case: Case) -> list[str]:
    """Return all visible values in their order."""
    topics = [f"topic {topic!r}, {info}" for topic, info in case.cluster.topics.items()]
    return topics + [f"member {member!r}, {subscription}" for member, subscription in case.group.items()]

"""Checks of the declared capabilities `sticky` and `balanced`."""

import msgspec
from hypothesis import strategies as st

from coordinator_core.model import NO_PARTITIONS, GroupSubscription, Partitions, Subscription
from coordinator_core.reading.raised import raised
from rebalance_conformance.answers import Given, as_sets, difference, named
from rebalance_conformance.cases import Case, with_members
from rebalance_conformance.groups import NEWEST_GENERATION, TOPICS, ordinary_groups
from rebalance_conformance.search import Bench, FaultError
from rebalance_conformance.subject import Subject

NO_CLAIMS = (
    "; the subscription of an eager member lists no owned partitions, because it revokes them before it"
    " joins: derive the assignor from coordinator_core.Memory, which sends them in the user data, or make it"
    " cooperative"
)


def not_sticky(bench: Bench) -> None:
    """Fail if an unchanged group gets another assignment (C-62)."""

    def examine(case: Case) -> None:
        settled, first = _settled(bench, case)
        second = bench.given(settled)
        if as_sets(first) != as_sets(second):
            reason = f"nothing changed, and still {difference(first, second)}"
            raise FaultError(reason + without_claims(bench.subject), settled, given=second)

    bench.try_all(ordinary_groups(), examine)


def moves_too_much_on_leave(bench: Bench) -> None:
    """Fail if a member loses a partition because another one leaves, with equal subscriptions (C-67)."""

    def examine(drawn: tuple[Case, int]) -> None:
        case, number = drawn
        settled, first = _settled(bench, case)
        leaver = list(case.group)[number % len(case.group)]
        after = with_members(settled, [m for m in settled.group if m != leaver])
        given = bench.given(after)
        for member in after.group:
            lost = sorted(set(first.get(member, ())) - set(given.get(member, ())))
            if lost:
                reason = f"{leaver!r} left, and {member!r}, which stays, lost {named(lost[0])}"
                raise FaultError(reason + without_claims(bench.subject), after, given=given)

    groups = ordinary_groups(alike=True, plain=True, least_members=2)
    bench.try_all(st.tuples(groups, st.integers(0, 9)), examine)


def unbalanced(bench: Bench) -> None:
    """Fail if members with equal subscriptions differ by more than one partition."""

    def examine(case: Case) -> None:
        settled, given = _settled(bench, case)
        loads = {member: len(given.get(member, ())) for member in case.group}
        most, least = max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)
        if loads[most] - loads[least] > 1:
            shown = settled if bench.subject.cooperative else case
            reason = f"{most!r} got {loads[most]} partitions and {least!r} got {loads[least]}"
            raise FaultError(reason, shown, given=given)

    bench.try_all(ordinary_groups(alike=True, plain=True), examine)


def without_claims(subject: Subject) -> str:
    """Return the reason why the assignor sees no claims; empty if its members send them."""
    if subject.cooperative or subject.make().subscription_user_data(TOPICS) is not None:
        return ""
    return NO_CLAIMS


def _settled(bench: Bench, case: Case) -> tuple[Case, Given]:
    """Return the group as it joins after its assignment, and that assignment.

    A cooperative group needs a second round, which assigns the partitions that the first one held back.
    """
    given = bench.given(case)
    after = _rejoined(bench, case, given, NEWEST_GENERATION + 1)
    if not bench.subject.cooperative:
        return after, given
    given = bench.given(after)
    return _rejoined(bench, after, given, NEWEST_GENERATION + 2), given


def _rejoined(bench: Bench, case: Case, given: Given, generation: int) -> Case:
    members = {}
    for member, subscription in case.group.items():
        members[member] = _owning(bench, subscription, Partitions.of(given.get(member, ())), generation)
    return Case(case.cluster, GroupSubscription(members))


def _owning(bench: Bench, subscription: Subscription, owned: Partitions, generation: int) -> Subscription:
    """Return the subscription of the member when it joins again.

    The user data are those of its assignor. Only a cooperative member lists what it owns.
    """
    assignor = bench.subject.make()
    try:
        assignor.on_assignment(owned, generation)
        data = assignor.subscription_user_data(subscription.topics)
    except Exception as error:
        raise FaultError(f"on_assignment or subscription_user_data raised {raised(error)}") from error
    listed = owned if bench.subject.cooperative else NO_PARTITIONS
    return msgspec.structs.replace(subscription, owned=listed, generation=generation, user_data=data)

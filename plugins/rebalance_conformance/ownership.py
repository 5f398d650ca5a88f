"""Checks of the declared capabilities `sticky` and `balanced`."""

from hypothesis import strategies as st

from coordinator_core.model import GroupSubscription, Partitions
from rebalance_conformance.answers import Given, as_sets, difference, named
from rebalance_conformance.cases import Case, with_members
from rebalance_conformance.groups import NEWEST_GENERATION, TOPICS, ordinary_groups
from rebalance_conformance.rounds import Member
from rebalance_conformance.search import Bench, FaultError, check
from rebalance_conformance.subject import Subject

NO_CLAIMS = (
    "; the subscription of an eager member lists no owned partitions, because it revokes them before it"
    " joins: derive the assignor from coordinator_core.Memory, which sends them in the user data, or make it"
    " cooperative"
)


@check("What does not change is given the same.", ordinary_groups(), only="sticky")
def not_sticky(bench: Bench, case: Case) -> None:
    """Fail if an unchanged group gets another assignment (C-62)."""
    settled, first = _settled(bench, case)
    second = bench.given(settled)
    if as_sets(first) != as_sets(second):
        reason = f"nothing changed, and still {difference(first, second)}"
        raise FaultError(reason + without_claims(bench.subject), settled, given=second)


@check(
    "Who stays loses nothing to a leave.",
    st.tuples(ordinary_groups(alike=True, plain=True, least_members=2), st.integers(0, 9)),
    only="sticky",
)
def moves_too_much_on_leave(bench: Bench, drawn: tuple[Case, int]) -> None:
    """Fail if a member loses a partition because another one leaves, with equal subscriptions (C-67)."""
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


@check("Equal members get equal shares.", ordinary_groups(alike=True, plain=True), only="balanced")
def unbalanced(bench: Bench, case: Case) -> None:
    """Fail if members with equal subscriptions differ by more than one partition."""
    settled, given = _settled(bench, case)
    loads = {member: len(given.get(member, ())) for member in case.group}
    most, least = max(loads, key=loads.__getitem__), min(loads, key=loads.__getitem__)
    if loads[most] - loads[least] > 1:
        shown = settled if bench.subject.cooperative else case
        reason = f"{most!r} got {loads[most]} partitions and {least!r} got {loads[least]}"
        raise FaultError(reason, shown, given=given)


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
    members = {name: Member(bench.subject.make(), subscription) for name, subscription in case.group.items()}
    for name, member in members.items():
        member.receive(Partitions.of(given.get(name, ())), generation)
    return Case(case.cluster, GroupSubscription({name: member.joins() for name, member in members.items()}))

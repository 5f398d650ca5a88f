"""The checks of the suite in the order of their display."""

from collections.abc import Callable
from dataclasses import dataclass

from rebalance_conformance import ownership, purity, rounds, running, sameness, speed, unusual, validity
from rebalance_conformance.search import Bench
from rebalance_conformance.subject import COOPERATIVE, Subject


@dataclass(frozen=True, slots=True)
class Check:
    """A check, named after the fault that it finds. ``doc`` is the property of assignors without the fault.

    ``run`` raises FaultError or NotRunError. ``only`` is the trait of the assignors that it applies to.
    """

    name: str
    run: Callable[[Bench], None]
    doc: str
    only: str = ""

    def not_applicable_to(self, subject: Subject) -> str:
        """Return the reason why the check does not apply; empty if it does."""
        if not self.only or self.only in subject.traits:
            return ""
        if self.only == COOPERATIVE:
            return "it is not cooperative"
        return f"it does not declare {self.only!r}"


CHECKS = (
    Check("raises", validity.raises, "An ordinary group is no reason to raise."),
    Check("malformed-result", validity.malformed_result, "What comes back maps members to partitions."),
    Check("assigned-twice", validity.assigned_twice, "No partition is given twice."),
    Check(
        "assigned-to-non-subscriber",
        validity.assigned_to_non_subscriber,
        "Partitions go to who subscribes to them.",
    ),
    Check(
        "assigned-to-unknown-member",
        validity.assigned_to_unknown_member,
        "Partitions go to members of the group.",
    ),
    Check("unknown-partition", validity.unknown_partition, "Only partitions that exist are given."),
    Check("partition-left-out", validity.partition_left_out, "Every subscribed partition has an owner."),
    Check(
        "takes-from-owner",
        validity.takes_from_owner,
        "Nothing moves before its owner gave it up.",
        only=COOPERATIVE,
    ),
    Check("depends-on-order", sameness.depends_on_order, "Members and topics may come in any order."),
    Check("depends-on-hash-seed", sameness.depends_on_hash_seed, "Every process gives the same answer."),
    Check("not-deterministic", sameness.not_deterministic, "Every object gives the same answer."),
    Check("remembers-groups", sameness.remembers_groups, "Earlier groups change nothing."),
    Check("mutates-input", sameness.mutates_input, "The group and the cluster are left as they were."),
    Check("impure", purity.impure, "No clock, chance, socket or file is touched."),
    Check("no-members", unusual.no_members, "A group may be empty."),
    Check("no-partitions", unusual.no_partitions, "There may be nothing to assign."),
    Check("unknown-topics", unusual.unknown_topics, "Members may want and claim what does not exist."),
    Check("more-members", unusual.more_members_than_partitions, "There may be more members than partitions."),
    Check("member-without-topics", unusual.member_without_topics, "A member may subscribe to nothing."),
    Check("topic-without-members", unusual.topic_without_members, "A topic may have no subscriber."),
    Check("unicode-names", unusual.unicode_names, "Names may be any text."),
    Check("foreign-user-data", unusual.foreign_user_data, "User data of another assignor is no error."),
    Check(
        "invalid-after-rebalances",
        rounds.invalid_after_rebalances,
        "Answers stay valid through joins and leaves.",
    ),
    Check(
        "does-not-converge",
        rounds.does_not_converge,
        "A group comes to rest when changes end.",
        only=COOPERATIVE,
    ),
    Check("not-sticky", ownership.not_sticky, "What does not change is given the same.", only="sticky"),
    Check(
        "moves-too-much-on-leave",
        ownership.moves_too_much_on_leave,
        "Who stays loses nothing to a leave.",
        only="sticky",
    ),
    Check("unbalanced", ownership.unbalanced, "Equal members get equal shares.", only="balanced"),
    Check(
        "fails-in-a-group",
        running.fails_in_a_group,
        "A running group rests and owns all partitions.",
    ),
    Check(
        "not-sticky-in-a-group",
        running.not_sticky_in_a_group,
        "Who stays in a running group loses nothing to a leave.",
        only="sticky",
    ),
    Check(
        "unbalanced-in-a-group",
        running.unbalanced_in_a_group,
        "A running group rests with equal shares.",
        only="balanced",
    ),
    Check("slower-than-linear", speed.slower_than_linear, "Time grows with the group, not faster."),
)
"""All checks. Their names are unique."""

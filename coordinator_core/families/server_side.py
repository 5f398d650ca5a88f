"""Groups whose coordinator computes the assignments, as Kafka's first coordinator did.

An entry point of the plugin group ``rebalance_lab``.
"""

from collections.abc import Iterable, Mapping

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.server_side import ServerSideMember
from coordinator_core.client.server_side.member import ServerSideState
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.coordinator.server_side import server_side_part
from coordinator_core.coordinator.server_side.group import MOVES, Compute, Computed, State
from coordinator_core.families.family import Surroundings, remove_members
from coordinator_core.model import GroupSubscription, Subscription
from coordinator_core.protocol.consumer_protocol import encode_assignments
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl


def _part(surroundings: Surroundings) -> CoordinatorPart:
    def assign(members: Mapping[str, tuple[str, ...]]) -> Computed:
        assignor = surroundings.make_assignor()
        wanted = dict.fromkeys(topic for topics in members.values() for topic in topics)
        known = surroundings.cluster_of(wanted)
        group = GroupSubscription({member: Subscription(listed) for member, listed in members.items()})
        assignment = compute_assignment(assignor, known, group)
        shares = dict(zip(members, encode_assignments(assignment, members), strict=True))
        return Computed(assignor.name, surroundings.partitions_of(wanted), shares)

    return server_side_part(Compute(surroundings.partitions_of, assign))


SERVER_SIDE = ProtocolSpec(
    "server-side",
    states={state.value: frozenset(after.value for after in moves) for state, moves in MOVES.items()},
    at_rest=frozenset({State.STABLE.value}),
    round_begins=frozenset({State.PREPARING.value}),
    vacant=frozenset({State.EMPTY.value, State.DEAD.value}),
    members_join=frozenset({ServerSideState.JOINING.value}),
    coordinator=_part,
    member=lambda settings: ServerSideMember,  # noqa: ARG005 - the settings are those of every consumer
    remove_members=remove_members,
    meaningless={
        "assignors": "the assignor is the coordinator's",
        "owned": "a group begins with the joins of its members",
        "static": "a join names no instance id",
        "cooperative": "members give up all partitions before they join",
        "delay": "members give up all partitions before they join",
    },
    doc="The coordinator runs the assignor and answers joins with the shares (Kafka's first coordinator).",
)


@hookimpl
def protocols() -> Iterable[ProtocolSpec]:
    """Return the protocols of this module."""
    return [SERVER_SIDE]

"""Groups that go from the classic to the consumer protocol, or back, while they run (PROTOCOL 11.9, KIP-848).

An entry point of the plugin group ``rebalance_lab``. No strategy names this family: a scenario whose members
are restarted with the other protocol asks for it.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import chain
from typing import Any

from coordinator_core.client.member import MakeMember
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.families.classic import CLASSIC
from coordinator_core.families.family import Surroundings
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.families.running_group import RunningGroup
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl

PROTOCOLS = {"classic": CLASSIC, "consumer": RECONCILE}
"""The protocols that members speak, by the names that ``group.protocol`` has."""

NAME_OF = {spec.name: name for name, spec in PROTOCOLS.items()}
"""The names of ``group.protocol`` by family."""


def _parts(surroundings: Surroundings) -> tuple[CoordinatorPart, ...]:
    made = (spec.coordinator(surroundings) for spec in PROTOCOLS.values() if spec.coordinator is not None)
    return tuple(made)


def _member(settings: Any, protocol: str) -> MakeMember:
    make: Callable[[Any], MakeMember] | None = PROTOCOLS[protocol].member
    assert make is not None
    return make(settings)


def _running_group(*members: Any, kind: str, **given: Any) -> RunningGroup:
    make: Callable[..., RunningGroup] | None = PROTOCOLS[kind].running_group
    assert make is not None
    return make(*members, **given)


def _states() -> dict[str, frozenset[str]]:
    """Return the moves of both kinds of group, and those from one kind to the other."""
    states: dict[str, frozenset[str]] = {}
    for state, after in chain(CLASSIC.states.items(), RECONCILE.states.items()):
        states[state] = states.get(state, frozenset()) | frozenset(after)
    of_consumers = RECONCILE.at_rest | RECONCILE.round_begins | (frozenset(RECONCILE.states) - CLASSIC.vacant)
    for state in CLASSIC.states.keys() - CLASSIC.vacant:
        states[state] |= of_consumers
    for state in of_consumers:
        states[state] |= CLASSIC.at_rest
    return states


MIGRATION = replace(
    CLASSIC,
    name="migration",
    states=_states(),
    at_rest=CLASSIC.at_rest | RECONCILE.at_rest,
    round_begins=CLASSIC.round_begins | RECONCILE.round_begins,
    vacant=CLASSIC.vacant | RECONCILE.vacant,
    coordinator=_parts,
    member=_member,
    settings=RECONCILE.settings,
    running_group=_running_group,
    remove_members=None,
    stops={
        "waiting": "the group had changed, and no heartbeat had come since, or members waited for the others",
        "messages": "partitions were free, and the member that was to have them had not asked for them yet",
    },
    meaningless={
        "remove_member": "LeaveGroup is a request of the classic protocol",
        "delay": "the coordinator gives the partitions of a lost member to others at once",
    },
    own_epochs=True,
    planned=False,
    aliases={},
    of_scenarios=True,
    doc="A group whose members go from one of Kafka's two protocols to the other while it runs.",
)


@hookimpl
def protocols() -> Iterable[ProtocolSpec]:
    """Return the protocols of this module."""
    return [MIGRATION]

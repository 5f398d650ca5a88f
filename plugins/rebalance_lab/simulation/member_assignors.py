"""The assignors of a group: of each member, of its coordinator, and those that members name."""

from collections.abc import Callable
from functools import partial
from itertools import chain

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.errors import InputError
from coordinator_core.families.migration import NAME_OF
from coordinator_core.registry.hookspecs import DEFAULT_PROTOCOL, ProtocolSpec, Strategy
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.scenario import Member, Scenario
from rebalance_lab.simulation.world.host import SimulatedHost

COORDINATORS = "uniform-848"
"""The assignor of the coordinator, if the strategy is one for members: the default one of Kafka's."""

DEFAULTS = ("range", "cooperative-sticky")
"""The assignors of members of the classic protocol beside a strategy of the other: Kafka's defaults."""


class MemberAssignors:
    """The assignors of a scenario under a strategy. ``host_of`` returns what one knows of its member."""

    def __init__(
        self,
        scenario: Scenario,
        strategy: Strategy,
        registry: Registry,
        spec: ProtocolSpec,
        host_of: Callable[[Member], SimulatedHost],
    ) -> None:
        self._scenario, self._strategy, self._registry = scenario, strategy, registry
        self._spec, self._host_of = spec, host_of

    def of(self, member: Member) -> list[Assignor]:
        """Return the assignors of a member, the preferred one first."""
        texts, spoken = member.overrides.assignors, self.protocol_of(member)
        if spoken != NAME_OF.get(self._strategy.protocol, ""):
            texts = texts or (DEFAULTS if spoken == "classic" else (COORDINATORS,))
        own = [self._registry.strategy(text, what="assignor") for text in texts]
        host = self._host_of(member)
        return [self._registry.build(strategy, host) for strategy in own or [self._strategy]]

    def protocol_of(self, member: Member) -> str:
        """Return the protocol that a member speaks, as ``group.protocol`` has it."""
        return member.overrides.protocol or NAME_OF.get(self._strategy.protocol, "")

    def of_coordinator(self) -> Strategy:
        """Return the assignor of the coordinator: Kafka's default one, if the strategy is for members."""
        if self._spec.of_scenarios and self._strategy.protocol == DEFAULT_PROTOCOL:
            return self._registry.strategy(COORDINATORS, what="assignor")
        return self._strategy

    def by_name(self) -> dict[str, Callable[[], Assignor]]:
        """Return the assignors that members name, by their names on the wire, that of the strategy first."""
        own = [
            self._registry.strategy(t, what="assignor") for t in chain(*self._scenario.assignors_of_members)
        ]
        makers = [partial(self._registry.build, strategy) for strategy in (self.of_coordinator(), *own)]
        return {make().name: make for make in makers} if own else {}

    def common(self, member: Member) -> Assignor:
        """Return the assignor of a member on which the group that runs already has agreed.

        Raises:
            InputError: if its members have no assignor in common.
        """
        if self._spec.own_epochs or not self._scenario.assignors_of_members:
            return self.of(member)[0]
        listed = [[a.name for a in self.of(other)] for other in self._scenario.running]
        for name in listed[0]:
            if all(name in names for names in listed):
                return next(a for a in self.of(member) if a.name == name)
        where = f"scenario {self._scenario.name!r}: members"
        raise InputError(where, "members with owned without a common assignor", "one that all of them have")

"""The entries of the story of a run: rounds, and the occurrences between them."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from coordinator_core.protocol import events as ev


@dataclass
class MemberRound:
    """The changes of one member in one round.

    ``assigned`` and ``kept`` are what it owns at the end of the round. ``held`` are the partitions that the
    round gave it and took away again. ``notes``: what its protocol family tells besides.
    """

    revoked: ev.PartitionMap = field(default_factory=dict)
    lost: ev.PartitionMap = field(default_factory=dict)
    assigned: ev.PartitionMap = field(default_factory=dict)
    kept: ev.PartitionMap = field(default_factory=dict)
    held: ev.PartitionMap = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Round:
    """A rebalance from its first cause until the group rests, or until the next round aborts it.

    - ``generation`` is 0 until the new generation has started. ``generations`` lists those that started in
      the round: without a coordinator several may, before the group rests in the last one.
    - ``rest`` is the state in which the group came to rest.
    - ``stable_ms`` is None if the group did not come to rest; ``aborted`` is the reason if something ended
      the round before, at ``aborted_ms``.
    - ``members`` maps the names of consumers to their changes.
    - ``report`` is the report of the assignor.
    - ``joined`` lists the new members of its generations, ``left`` maps the members that the group has lost
      since the last round to the reasons. ``returned`` lists those that are in the generation again, under
      another id.
    - ``waited_ms`` is the time until the generation started. ``waited_for`` maps the members whose join or
      removal ended this time to a description, and is empty for the first round of an empty group.
      ``waits`` has the parts of this time by their causes (`traces.causes.WAITS`), if members joined.
      ``idle_meanwhile_ms`` is the part of this time in which nobody worked on partitions, summed over them.
    - ``taken_over_ms`` is the time at which ``taken_over_by``, the last member, took over its assignment.
    - ``moved`` is the number of partitions that got another owner than their last one; ``moves`` has these
      numbers by the last owner and the new one.
    - ``stopped`` is the number of partitions that nobody worked on until members took them over in this
      round, ``stopped_ms`` the sum of these times and ``longest_stop_ms`` the longest.
    - ``notices`` has the number of notices that servers sent to members, by their text.
    """

    began_ms: int
    causes: list[str]
    generation: int = 0
    generations: list[int] = field(default_factory=list)
    protocol: str = ""
    leader: str = ""
    rest: str = "Stable"
    stable_ms: int | None = None
    members: dict[str, MemberRound] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    aborted: str = ""
    aborted_ms: int | None = None
    was_empty: bool = False
    joined: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    returned: list[str] = field(default_factory=list)
    waited_ms: int | None = None
    waited_for: dict[str, str] = field(default_factory=dict)
    waits: dict[str, int] = field(default_factory=dict)
    idle_meanwhile_ms: int = 0
    taken_over_ms: int | None = None
    taken_over_by: str = ""
    moved: int = 0
    moves: dict[str, dict[str, int]] = field(default_factory=dict)
    stopped: int = 0
    stopped_ms: int = 0
    longest_stop_ms: int = 0
    notices: dict[str, int] = field(default_factory=dict)

    @property
    def number(self) -> str:
        """The generation, or the first and the last one that started in the round: ``3-6``."""
        several = self.generations[1:]
        return f"{self.generations[0]}-{self.generation}" if several else str(self.generation)

    @property
    def name(self) -> str:
        """``generation 5``, ``generations 3-6``, or ``a round`` if none has started."""
        return f"generation{'s' * bool(self.generations[1:])} {self.number}" if self.generation else "a round"


@dataclass
class InitialGroup:
    """A group that rested already when the run began. ``owned``: the partitions of consumers, by name."""

    at_ms: int
    generation: int
    protocol: str = ""
    leader: str = ""
    owned: dict[str, ev.PartitionMap] = field(default_factory=dict)


@dataclass
class Occurrence:
    """An event from outside, or a change of a member without a round."""

    at_ms: int
    text: str


Entry: TypeAlias = Round | InitialGroup | Occurrence

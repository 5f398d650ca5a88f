"""A consumer as the fold of a trace has it."""

from dataclasses import dataclass, field

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev


@dataclass(slots=True)
class Consumer:
    """A process of a consumer.

    ``taken_over``: the generation of the last assignment that it took over. ``stopped``: the partitions that
    it owns and does not work on, with the reason. ``handles``: the records/s that it can handle, polls
    included; None if nothing limits it. ``batches``: the event that describes them. ``state``: the last one
    of its client. ``in_callback``: whether a callback of the application runs. ``how``: how it has ended,
    ``error`` the reason if it has failed.
    """

    started: ev.MemberStarted
    topics: tuple[str, ...]
    member_id: str = ""
    generation: int = -1
    taken_over: int = -1
    owned: dict[TopicPartition, None] = field(default_factory=dict)
    stopped: dict[TopicPartition, str] = field(default_factory=dict)
    handles: float | None = None
    batches: ev.ApplicationStarted | None = None
    state: str = ""
    in_callback: bool = False
    paused: bool = False
    cut_off: bool = False
    how: str = ""
    error: str = ""

    @property
    def works(self) -> bool:
        """Whether it handles records."""
        return not (self.paused or self.cut_off)

    def works_on(self, partition: TopicPartition) -> bool:
        """Whether it handles records of a partition that it owns."""
        return self.works and partition not in self.stopped

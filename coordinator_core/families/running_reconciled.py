"""The group of the consumer protocol that runs already when a scenario begins: its records, and its members.

All members have reached the target, and own their shares. Their epoch is the generation of the scenario.
"""

from collections.abc import Callable, Iterator

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.coordinator.reconcile.group import FAMILY
from coordinator_core.coordinator.reconcile.state import (
    CURRENT,
    MEMBER,
    PATTERN,
    SHARE,
    TARGET,
    Current,
    Resolved,
    Target,
    part_record,
)
from coordinator_core.coordinator.reconcile.state import Member as StoredMember
from coordinator_core.coordinator.records import GroupRecord, Record, StoredGroup
from coordinator_core.families.running_group import RunningGroup, RunningMember
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE


class ReconciledGroup(RunningGroup):
    """The group at time 0."""

    def records(self, make: Callable[[str], Assignor]) -> Iterator[Record]:  # noqa: ARG002 - the interface's
        """Yield the records of the group in the log."""
        group_id, epoch = self.group_id, self.number
        yield GroupRecord(group_id, StoredGroup(PROTOCOL_TYPE, None, epoch, None, (), 0, FAMILY))
        for member in self.members.values():
            owned = tuple(sorted(member.owned))
            yield part_record(group_id, MEMBER, member.member_id, _stored(member, self.protocol))
            yield part_record(group_id, SHARE, member.member_id, owned)
            yield part_record(group_id, CURRENT, member.member_id, Current(epoch, epoch, assigned=owned))
        for pattern, topics in {m.pattern: m.topics for m in self.members.values()}.items():
            if pattern is not None:
                yield part_record(group_id, PATTERN, pattern, Resolved(tuple(sorted(topics)), 0))
        counts = {name: info.partitions for name, info in self.based_on.topics.items()}
        yield part_record(group_id, TARGET, "", Target(epoch, self.protocol, counts))
        yield from self.offsets()


def _stored(running: RunningMember, assignor: str) -> StoredMember:
    config, pattern = running.config, running.pattern
    return StoredMember(
        config.client_id,
        f"/{config.client_id}",
        config.group_instance_id,
        config.client_rack,
        config.max_poll_interval_ms,
        () if pattern is not None else running.topics,
        pattern,
        assignor,
    )

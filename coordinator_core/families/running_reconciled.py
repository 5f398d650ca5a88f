"""The group of the consumer protocol that runs already when a scenario begins: its records, and its members.

All members have reached the target, and own their shares. Their epoch is the generation of the scenario.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.client.facade import Client
from coordinator_core.client.outcome import ClientOutcome
from coordinator_core.coordinator.reconcile.group import FAMILY
from coordinator_core.coordinator.reconcile.state import (
    CURRENT,
    MEMBER,
    SHARE,
    TARGET,
    Current,
    Target,
    part_record,
)
from coordinator_core.coordinator.reconcile.state import Member as StoredMember
from coordinator_core.coordinator.records import GroupRecord, Record, StoredGroup
from coordinator_core.families.running_group import RunningGroup, RunningMember, running_group
from coordinator_core.protocol.consumer_protocol import PROTOCOL_TYPE


@dataclass(frozen=True, slots=True)
class ReconciledGroup:
    """The group at time 0. ``running`` has its members and topics."""

    running: RunningGroup

    def records(self, make: Callable[[str], Assignor]) -> Iterator[Record]:  # noqa: ARG002 - the interface's
        """Yield the records of the group in the log."""
        running = self.running
        group_id, epoch = running.group_id, running.number
        yield GroupRecord(group_id, StoredGroup(PROTOCOL_TYPE, None, epoch, None, (), 0, FAMILY))
        for member in running.members.values():
            owned = tuple(sorted(member.owned))
            yield part_record(group_id, MEMBER, member.member_id, _stored(member, running.protocol))
            yield part_record(group_id, SHARE, member.member_id, owned)
            yield part_record(group_id, CURRENT, member.member_id, Current(epoch, epoch, assigned=owned))
        topics = {name: info.partitions for name, info in running.based_on.topics.items()}
        yield part_record(group_id, TARGET, "", Target(epoch, running.protocol, topics))
        yield from running.offsets()

    def resume(self, client: Client, name: str, *, last_response_ms: int, now_ms: int) -> ClientOutcome:
        """Let the client of a member continue its membership."""
        return self.running.resume(client, name, last_response_ms=last_response_ms, now_ms=now_ms)


def reconciled_group(members: Iterable[Any], **given: Any) -> ReconciledGroup:
    """Return the group of at least one member. The arguments are those of `running_group`."""
    return ReconciledGroup(running_group(members, **given))


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

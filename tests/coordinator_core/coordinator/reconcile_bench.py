"""A coordinator that reconciles groups, on the test bench: the first members of each topic get runs of it."""

import re
from dataclasses import replace

import msgspec

from coordinator_core.coordinator import classic
from coordinator_core.coordinator.migration import between, downgrade
from coordinator_core.coordinator.reconcile import reconcile_part
from coordinator_core.coordinator.reconcile.group import Computing
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.model import TopicPartition
from coordinator_core.protocol.reconcile import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest


def reconcile_bench(base):  # noqa: C901 - many short methods
    """Return the bench of a coordinator whose groups it reconciles.

    ``migration``: the policy of one that also has classic groups.
    """

    class ReconcileBench(base):
        def __init__(
            self,
            *,
            max_size=100,
            migration=None,
            kafka="4.4",
            interval_ms=0,
            own=None,
            assignors=("runs", "other"),
            **given,
        ):
            self.topics, self.computed, self.hidden, self.seen = {"t": 4, "u": 2}, [], {}, {}
            computing = Computing(
                assignors,
                self.existing,
                self.matching,
                self.assign,
                self.may_describe,
                own_settings=lambda _: own or {},
            )
            batched = {} if kafka < "4.3" else {"assignment_interval_ms": interval_ms}
            settings = ReconcileSettings(max_size=max_size, kafka=kafka, **batched)
            parts = (reconcile_part(computing, settings),)
            if migration is not None:
                computing = msgspec.structs.replace(computing, downgrade=downgrade)
                settings = msgspec.structs.replace(settings, migration_policy=migration)
                part = replace(reconcile_part(computing, settings), between=between(computing, settings))
                parts = (classic.PART, part)
            super().__init__(parts=parts, **given)

        def existing(self, names):
            return {name: self.topics[name] for name in names if name in self.topics}

        def matching(self, pattern):
            try:
                return tuple(name for name in self.topics if re.fullmatch(pattern, name))
            except re.error as error:
                raise ValueError(str(error)) from error

        def may_describe(self, principal, topic):
            return topic not in self.hidden.get(principal, ())

        def assign(self, assignor, members, _alike):
            self.computed.append((assignor, members))
            self.seen |= dict.fromkeys(sorted(members))  # in the order in which they joined
            shares = {member: [] for member in members}
            for topic, count in self.topics.items():
                takers = [m for m in self.seen if m in members and topic in members[m].topics]
                for number in range(count if takers else 0):
                    shares[takers[number * len(takers) // count]].append(TopicPartition(topic, number))
            return {member: tuple(sorted(share)) for member, share in shares.items()}

        def tell(self, *told, **fields):
            """Send a heartbeat. Return the response, or None while records are being written."""
            return self.replies.get(self.send_tell(*told, **fields))

        def send_tell(self, member_id, epoch, owned=None, **fields):
            """Send a heartbeat. ``owned``: partition numbers of t, or pairs. Return the id of the request."""
            if owned is not None:
                owned = tuple(TopicPartition(*(tp if isinstance(tp, tuple) else ("t", tp))) for tp in owned)
            request = ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=member_id, member_epoch=epoch, topic_partitions=owned, **fields
            )
            return self.send(request, member_id)

        def join(self, member_id, topics=("t",), **fields):
            fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": topics, **fields}
            return self.tell(member_id, 0, (), **fields)

        def settle(self, *members):
            """Let members report what they were assigned until the group is Stable."""
            for _ in range(9):
                for member_id in members:
                    current = self.current(member_id)
                    answer = self.tell(member_id, current.epoch, current.assigned)
                    assert not answer.error
            assert self.state() == "Stable"

        def pair(self):
            """Make a Stable group of a, which owns 0 and 1, and b, which owns 2 and 3. Return its epoch."""
            self.join("a")
            self.join("b")
            self.settle("a", "b")
            return self.group().generation

        def delete_topic(self, topic, topic_id):
            """Delete a topic."""
            self.take(self.coordinator.on_topics_deleted({topic: topic_id}, now_ms=self.now_ms))
            self.change_topics(**{name: count for name, count in self.topics.items() if name != topic})

        def described(self):
            """Describe the group."""
            return self.ask(ConsumerGroupDescribeRequest(group_id="g"))

        def current(self, member_id):
            return self.group().durable.currents[member_id]

        def fail_over(self):
            """Start another broker, which has the log."""
            self.start()
            self.take_over()

    return ReconcileBench

"""Test doubles for the parts of an application: assignors, a listener, a position source."""

from coordinator_core.model import RebalanceProtocol

EAGER, COOPERATIVE = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE


class DealingAssignor:
    """Deals the partitions of each topic to its subscribers in turn."""

    def __init__(self, name="dealing", protocols=(EAGER,), user_data=None, calls=None):
        self.name, self.supported_protocols, self.user_data = name, protocols, user_data
        self.calls = [] if calls is None else calls
        self.seen = []

    def subscription_user_data(self, topics):
        return self.user_data

    def assign(self, cluster, group):
        self.seen.append((cluster, group))
        dealt = {member: [] for member in group}
        for topic, info in cluster.topics.items():
            subscribers = sorted(group.subscribers(topic))
            for number in range(info.partitions):
                dealt[subscribers[number % len(subscribers)]].append((topic, number))
        return dealt

    def on_assignment(self, partitions, generation):
        self.calls.append(("on_assignment", sorted(partitions), generation))


class RecordingListener:
    """Logs every call, with the partitions owned then. ``raises`` has the exceptions to raise."""

    def __init__(self):
        self.calls, self.owned, self.raises, self.client = [], [], {}, None

    def _note(self, name, partitions):
        self.calls.append((name, [tuple(tp) for tp in partitions]))
        if self.client is not None:
            self.owned.append((name, sorted(self.client.owned)))
        if name in self.raises:
            raise self.raises[name]

    def on_partitions_revoked(self, partitions):
        self._note("revoked", partitions)

    def on_partitions_assigned(self, partitions):
        self._note("assigned", partitions)

    def on_partitions_lost(self, partitions):
        self._note("lost", partitions)


class Source:
    """A PositionSource whose positions the test sets."""

    def __init__(self):
        self.offsets, self.calls = {}, []

    def positions(self, partitions, *, now_ms):
        return {partition: self.offsets[partition] for partition in partitions if partition in self.offsets}

    def started(self, positions, *, now_ms):
        self.calls.append(("started", dict(positions)))
        self.offsets |= positions

    def stopped(self, partitions, *, now_ms):
        self.calls.append(("stopped", sorted(partitions)))

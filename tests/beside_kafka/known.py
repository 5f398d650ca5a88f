"""The differences that have a reason: two runs of the same Kafka show them, too."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.beside_kafka import steps as s
from tests.beside_kafka.comparing import Body, Difference

NEEDS_OWN_PARTITIONS = frozenset({"none", "rebalance_in_progress"})


class History:
    """What a script has done so far, by the responses of both brokers."""

    def __init__(self) -> None:
        self._leaders: dict[int, tuple[str, str]] = {}
        self._has_consumers = self._has_named_range = False
        self._all_named_range = True
        self._has_classic = self._has_random = False
        self.has_shares_of_no_partition = self.may_be_deleted = False
        self._generation, self._unsynced = 0, set[str]()
        self._is_preparing = self.has_lost_a_round = False

    def add(self, step: s.AnyStep, kafka: Body, other: Body) -> None:
        """Take the responses to a step."""
        if isinstance(step, s.SyncGroup):
            given = (item for share in step.shares.values() for item in share.items())
            self.has_shares_of_no_partition |= any(
                number >= s.SHARED.get(topic, 0) for topic, numbers in given for number in numbers
            )
        if isinstance(step, s.JoinGroup):
            self.may_be_deleted = self._has_consumers and kafka.get("error_code") == "unknown_member_id"
        if isinstance(step, s.Restart):
            self.has_lost_a_round |= self._is_preparing or bool(self._unsynced)
            return
        self._is_preparing |= kafka.get("error_code") == "rebalance_in_progress"
        if kafka.get("error_code") != "none":
            return
        if isinstance(step, s.JoinGroup | s.SyncGroup | s.LeaveGroup):
            self._is_preparing = isinstance(step, s.LeaveGroup)
        if isinstance(step, s.JoinGroup):
            self._leaders.setdefault(kafka["generation_id"], (kafka["leader"], other.get("leader", "")))
            self._has_classic = True
            if kafka["generation_id"] > self._generation:
                self._generation = kafka["generation_id"]
                self._unsynced.clear()
            self._unsynced.add(step.member)
            prefix = step.instance or "client-"
            self._has_random = self._has_random or not kafka["member_id"].startswith(prefix)
        elif isinstance(step, s.SyncGroup):
            self._unsynced.discard(step.member)
        elif isinstance(step, s.ConsumerHeartbeat):
            self._has_consumers = True
            if step.epoch == "join":
                self._has_named_range = True
                self._all_named_range = self._all_named_range and step.assignor == "range"

    def lose(self, step: s.AnyStep) -> None:
        """Take a request of which a restart keeps the response away: with a JoinGroup a round has begun."""
        self._is_preparing |= isinstance(step, s.JoinGroup)

    def leaders_before(self, generation: int) -> tuple[str | None, str | None]:
        """Return the ids of the leader of the generation before this one, on both brokers."""
        earlier = [number for number in self._leaders if number < generation]
        return self._leaders[max(earlier)] if earlier else (None, None)

    def has_been_both(self) -> bool:
        """Return whether the group has had members of both protocols."""
        return self._has_consumers and self._has_classic

    def has_ids_that_decide(self) -> bool:
        """Return whether an assignor of the broker gets member ids that the broker drew.

        The assignor range sorts the ids, of which the beginning is known if the member joined a group of the
        classic protocol.
        """
        is_range = self._has_named_range and self._all_named_range
        return self.has_been_both() and (self._has_random or not is_range)


def _is_new_leader(found: Difference, history: History) -> bool:
    if not isinstance(found.step, s.JoinGroup) or found.path != ".leader":
        return False
    before = history.leaders_before(found.bodies[0]["generation_id"])
    if history.has_been_both():
        return True
    return None not in before and all(
        leader != body["leader"] for leader, body in zip(before, found.bodies, strict=True)
    )


def _is_error_of_a_batch(found: Difference, history: History) -> bool:
    errors = {"transaction_abortable", "invalid_txn_state"}
    return isinstance(found.step, s.CommitInTransaction) and {str(found.kafka), str(found.other)} == errors


def _is_share_by_random_ids(found: Difference, history: History) -> bool:
    if not history.has_ids_that_decide():
        return False
    if found.path.endswith(".error_code"):
        return {found.kafka, found.other} == NEEDS_OWN_PARTITIONS
    of_shares = (".member_epoch", ".group_state", ".generation_id")
    return "assignment" in found.path or found.path.endswith(of_shares)


def _is_failure_of_uniform(found: Difference, history: History) -> bool:
    is_error = found.path == ".error_code" and found.kafka == "unknown_server_error"
    return is_error and isinstance(found.step, s.ConsumerHeartbeat) and history.has_shares_of_no_partition


def _is_still_shown(found: Difference, history: History) -> bool:
    shows = isinstance(found.step, s.DescribeConsumerGroup | s.DescribeGroup | s.ListGroups)
    return shows and history.may_be_deleted


def _is_repeated_generation(found: Difference, history: History) -> bool:
    return found.path == ".generation_id" and history.has_lost_a_round and found.kafka < found.other


class Known(NamedTuple):
    reason: str
    fits: Callable[[Difference, History], bool]


TABLE: Sequence[Known] = (
    Known(
        "the leader after the leader has left, or after a consumer group has become a classic one, is the"
        " first of a hash map over random member ids",
        _is_new_leader,
    ),
    Known(
        "TxnOffsetCommit without a transaction: Kafka verifies several producers in one request, and the"
        " version of the first one decides on the error of all",
        _is_error_of_a_batch,
    ),
    Known(
        "the share of a member depends on the ids of members of the classic protocol in a consumer group,"
        " which are random",
        _is_share_by_random_ids,
    ),
    Known(
        "a leader has given out partitions that a topic lacks: Kafka's uniform fails on them whenever it"
        " computes, ours only keeps such a group from going over",
        _is_failure_of_uniform,
    ),
    Known(
        "an Empty group that a join of an unknown member has deleted is shown by Kafka until the next record"
        " of any group in the partition",
        _is_still_shown,
    ),
    Known(
        "after a restart Kafka gives out generations again that no SyncGroup of their leader had stored; here"
        " generations only grow, and one is written down when its round begins",
        _is_repeated_generation,
    ),
)


def reason_of(difference: Difference, history: History) -> str | None:
    """Return why a difference is no fault, or None."""
    return next((known.reason for known in TABLE if known.fits(difference, history)), None)

"""A coordinator of both protocols, on the test bench, with members that speak the classic one."""

import pytest

from coordinator_core.coordinator.classic.states import GroupState
from coordinator_core.coordinator.reconcile.settings import POLICIES
from coordinator_core.model import Partitions, Subscription
from coordinator_core.protocol.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_core.protocol.error_codes import ErrorCode
from tests.coordinator_core.coordinator.reconcile_bench import reconcile_bench


def told(owned=(), topics=("t",), generation=-1, rack=None, version=3):
    """The subscription of a consumer that owns partition numbers of t."""
    pairs = Partitions.of(("t", number) for number in owned)
    return encode_subscription(Subscription(topics, pairs, generation, rack), version=version)


@pytest.fixture
def make_migrating_bench(make_bench):
    reconciling = reconcile_bench(make_bench)

    class MigratingBench(reconciling):
        """Members that speak the classic protocol ``join``; those of the consumer protocol ``arrive``."""

        def __init__(self, migration=POLICIES[0], **given):
            super().__init__(migration=migration, **given)

        join, settle, arrive = make_bench.join, make_bench.settle, reconciling.join

        def classic_group(self, *shares, instances=(), **given):
            """Make a Stable classic group whose members own partition numbers of t. Return their ids."""
            for number in range(len(shares)):
                instance = instances[number] if number < len(instances) else None
                self.enter(metadata=told(), instance=instance, client=f"c{number}", **given)
            self.until(GroupState.COMPLETING_REBALANCE)
            group = self.group()
            ids = list(group.members)
            encoded = {
                member_id: encode_assignment(Partitions.of(("t", number) for number in share))
                for member_id, share in zip(ids, shares, strict=True)
            }
            for member_id in ids:
                self.sync(member_id, shares=encoded if member_id == group.leader else {})
            assert group.state is GroupState.STABLE
            return ids

        def rejoin(self, member_id, owned=(), **given):
            """Join again, with what the member owns. Return the generation, or the error."""
            answer = self.joined(member_id, metadata=told(owned), **given)
            return answer.error or answer.generation_id

        def rejoin_later(self, member_id, owned=()):
            """Join again. Return the id of the request."""
            return self.join(member_id, metadata=told(owned))

        def owns(self, member_id, generation):
            """Ask for the assignment. Return the partition numbers of t, or the error."""
            answer = self.synced(member_id, generation)
            if answer.error:
                return answer.error
            return [tp.partition for tp in decode_assignment(answer.assignment)[0]]

        def is_told_to_join(self, member_id, generation):
            return self.beat(member_id, generation) is ErrorCode.REBALANCE_IN_PROGRESS

    return MigratingBench


@pytest.fixture
def bench(make_migrating_bench):
    return make_migrating_bench()


@pytest.fixture
def make_told():
    return told

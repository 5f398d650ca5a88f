"""Our consumer on an embedded broker: records, commits and membership."""

from time import monotonic

import pytest

from coordinator_core.client.classic.states import MemberState
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_kafka import Consumer
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from tests.rebalance_kafka.live import SECONDS, Told, broker, member, polled, produce, run, settled, values

STRATEGIES = ("range", "sticky", "cooperative-sticky", "optimal")
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


# --- reading


def deals(cluster, group):
    """All partitions to one member."""
    given = [(topic, n) for topic, info in cluster.topics.items() for n in range(info.partitions)]
    return {min(group): given}


@pytest.mark.parametrize("strategy", [*STRATEGIES, deals, [deals]])
def test_a_consumer_reads_all_records_of_all_partitions(strategy):
    async def work():
        async with broker() as kafka, member(kafka, strategy=strategy) as consumer:
            for partition in range(4):
                await produce(kafka.address, partition, b"%d-a" % partition, b"%d-b" % partition)
            read = (await polled(consumer, until=lambda read: len(read[consumer]) == 8))[consumer]
            assert consumer.assignment == tuple(("t", n) for n in range(4))
            for partition in range(4):
                mine = [(r.offset, r.value) for r in read if r.partition == partition]
                assert mine == [(0, b"%d-a" % partition), (1, b"%d-b" % partition)]
                assert consumer.position("t", partition) == 2

    run(work())


def test_a_poll_with_timeout_zero_lets_the_connections_run():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka) as consumer:
            await produce(kafka.address, 0, b"a")
            read, until = [], monotonic() + SECONDS
            while not read and monotonic() < until:
                read += await consumer.poll(0)
            assert [each.value for each in read] == [b"a"]

    run(work())


def test_a_pattern_matches_topics_created_later():
    async def work():
        async with broker({"ab": 1, "b": 1}) as kafka:
            options = {"bootstrap_servers": kafka.address, "group_id": "g"}
            settings = {"metadata.max.age.ms": 100, "heartbeat.interval.ms": 50, "enable.auto.commit": False}
            async with Consumer(**options, settings=settings) as consumer:
                consumer.subscribe_pattern("a.*")
                await polled(consumer, until=lambda _: consumer.assignment == (("ab", 0),))
                kafka.create_topics({"ac": 2, "ba": 1})
                wanted = (("ab", 0), ("ac", 0), ("ac", 1))
                await polled(consumer, until=lambda _: consumer.assignment == wanted)

    run(work())


def test_a_seek_can_go_back_and_forward():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka) as consumer:
            await produce(kafka.address, 0, b"0", b"1", b"2")
            assert await values(consumer, 3) == [b"0", b"1", b"2"]
            consumer.seek("t", 0, 1)
            assert await values(consumer, 2) == [b"1", b"2"]
            consumer.seek_to("t", 0, "earliest")
            assert await values(consumer, 3) == [b"0", b"1", b"2"]
            consumer.seek("t", 0, 0)
            consumer.seek_to("t", 0, "latest")
            await polled(consumer, until=lambda _: consumer.position("t", 0) == 3)
            await produce(kafka.address, 0, b"3")
            assert await values(consumer, 1) == [b"3"]

    run(work())


def test_an_offset_out_of_range_is_reset():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka) as consumer:
            await produce(kafka.address, 0, b"0")
            await values(consumer, 1)
            consumer.seek("t", 0, 77)
            assert await values(consumer, 1) == [b"0"]

    run(work())


def test_a_paused_partition_returns_no_records_until_it_resumes():
    async def work():
        async with broker({"t": 2}) as kafka, member(kafka) as consumer:
            await settled(consumer, partitions=2)
            consumer.pause("t", 0)
            await produce(kafka.address, 0, b"paused")
            await produce(kafka.address, 1, b"running")
            assert await values(consumer, 1) == [b"running"]
            await produce(kafka.address, 1, b"more")
            assert await values(consumer, 1) == [b"more"]
            consumer.resume("t", 0)
            assert await values(consumer, 1) == [b"paused"]

    run(work())


@pytest.mark.parametrize("call", ["position", "pause", "resume"])
def test_an_unassigned_partition_is_an_error(call):
    async def work():
        async with broker() as kafka, member(kafka) as consumer:
            with pytest.raises(InputError, match="a partition that is assigned to this consumer"):
                getattr(consumer, call)("t", 0)
            with pytest.raises(InputError, match="a partition that is assigned"):
                consumer.seek("t", 0, 0)

    run(work())


# --- committing


def test_a_restarted_consumer_continues_at_its_committed_offsets():
    async def work():
        async with broker({"t": 1}) as kafka:
            await produce(kafka.address, 0, b"0", b"1")
            async with member(kafka) as consumer:
                await values(consumer, 2)
                await consumer.commit()
                assert consumer.events[-1] == ev.OffsetsCommitted(client="rebalance-lab", partitions=1)
            await produce(kafka.address, 0, b"2")
            async with member(kafka) as consumer:
                assert await values(consumer, 1) == [b"2"]

    run(work())


def test_given_offsets_are_committed():
    async def work():
        async with broker({"t": 2}) as kafka:
            await produce(kafka.address, 0, b"0", b"1", b"2")
            async with member(kafka) as consumer:
                await values(consumer, 3)
                await consumer.commit({T0: 1})
            async with member(kafka) as consumer:
                assert await values(consumer, 2) == [b"1", b"2"]

    run(work())


def test_a_refused_commit_raises_the_error_of_the_broker():
    async def work():
        async with broker() as kafka, member(kafka) as consumer:
            with pytest.raises(InputError, match="expected a response without an error"):
                await consumer.commit({T0: 1})

    run(work())


def test_polls_auto_commit():
    async def work():
        settings = {"enable.auto.commit": True, "auto.commit.interval.ms": 20}
        async with broker({"t": 1}) as kafka, member(kafka, settings=settings) as consumer:
            await produce(kafka.address, 0, b"0")
            await values(consumer, 1)
            async with AdminClient(places_of(kafka.address, "here")) as admin:
                while await admin.committed("g") != {T0: 1}:
                    await consumer.poll(0.02)

    run(work())


# --- its group


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_consumers_share_the_partitions_and_the_last_one_owns_all(strategy):
    async def work():
        async with broker() as kafka, member(kafka, strategy=strategy) as first:
            await settled(first)
            async with member(kafka, strategy=strategy) as second:
                await settled(first, second)
                assert {len(first.assignment), len(second.assignment)} == {2}
                assert [first.is_leader, second.is_leader].count(True) == 1
            await settled(first)
            assert len(first.assignment) == 4

    run(work())


@pytest.mark.parametrize(
    ("strategy", "calls"),
    [
        ("range", [("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3]), ("assigned", [0, 1])]),
        ("cooperative-sticky", [("assigned", [0, 1, 2, 3]), ("revoked", [2, 3])]),
    ],
)
def test_the_listener_is_called_in_order(strategy, calls):
    async def work():
        told, others = Told(), Told()
        async with broker() as kafka:
            # instance ids decide who comes first where both are equal
            ids = [{"group.instance.id": name} for name in "ab"]
            async with member(kafka, strategy=strategy, listener=told, settings=ids[0]) as first:
                await settled(first)
                async with member(kafka, strategy=strategy, listener=others, settings=ids[1]) as second:
                    await settled(first, second)
                    assert told.calls == calls
                    assert others.calls == [("assigned", [2, 3])]
                assert others.calls[-1] == ("revoked", [2, 3])

    run(work())


def test_unsubscribe_leaves_the_group_and_revokes_all_partitions():
    async def work():
        told = Told()
        async with broker() as kafka, member(kafka, listener=told) as first, member(kafka) as second:
            await settled(first, second)
            mine = [tp.partition for tp in first.assignment]
            first.unsubscribe()
            assert (first.assignment, first.state) == ((), MemberState.UNJOINED)
            assert told.calls[-1] == ("revoked", mine)
            await settled(second)
            first.subscribe("t")
            await settled(first, second)

    run(work())


def test_a_fenced_member_ends():
    async def work():
        settings = {"group.instance.id": "ada"}
        async with broker() as kafka:
            first, second = member(kafka, settings=settings), member(kafka, settings=settings)
            async with second:
                await first.start()
                await settled(first)
                await settled(second)
                with pytest.raises(RebalanceLabError, match="FENCED_INSTANCE_ID"):
                    await polled(first, until=lambda _: False)
                await first.close()
                assert second.state is MemberState.STABLE

    run(work())

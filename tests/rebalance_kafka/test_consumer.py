"""Our consumer on an embedded broker: what it reads and commits, and its life in a group."""

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


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_reads_all_records_of_all_partitions(strategy):
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


def test_it_hands_out_no_more_at_once_than_max_poll_records():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka, settings={"max.poll.records": 2}) as consumer:
            await produce(kafka.address, 0, *(b"%d" % n for n in range(7)))
            sizes = []
            while sum(sizes) < 7:
                records = await consumer.poll()
                sizes.append(len(records))
                await consumer.commit()
            assert max(sizes) == 2

    run(work())


def test_a_poll_without_time_lets_the_connections_have_their_turn():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka) as consumer:
            await produce(kafka.address, 0, b"a")
            read, until = [], monotonic() + SECONDS
            while not read and monotonic() < until:
                read += await consumer.poll(0)
            assert [each.value for each in read] == [b"a"]

    run(work())


def test_a_pattern_is_met_by_topics_that_come_later():
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


def test_another_subscription_takes_the_place_of_the_one_before():
    async def work():
        async with broker({"t": 1, "u": 2}) as kafka, member(kafka) as consumer:
            await settled(consumer, partitions=1)
            consumer.subscribe("u")
            await polled(consumer, until=lambda _: consumer.assignment == (("u", 0), ("u", 1)))

    run(work())


def test_seeking_goes_back_and_forth():
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


def test_an_offset_out_of_range_begins_anew():
    async def work():
        async with broker({"t": 1}) as kafka, member(kafka) as consumer:
            await produce(kafka.address, 0, b"0")
            await values(consumer, 1)
            consumer.seek("t", 0, 77)
            assert await values(consumer, 1) == [b"0"]

    run(work())


def test_a_paused_partition_gives_nothing_until_it_goes_on():
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
def test_a_partition_that_is_not_its_own_is_an_error(call):
    async def work():
        async with broker() as kafka, member(kafka) as consumer:
            with pytest.raises(InputError, match="a partition that is assigned to this consumer"):
                getattr(consumer, call)("t", 0)
            with pytest.raises(InputError, match="a partition that is assigned"):
                consumer.seek("t", 0, 0)

    run(work())


# --- committing


def test_it_goes_on_after_a_restart_where_it_has_committed():
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


def test_offsets_of_ones_own_choice_are_committed():
    async def work():
        async with broker({"t": 2}) as kafka:
            await produce(kafka.address, 0, b"0", b"1", b"2")
            async with member(kafka) as consumer:
                await values(consumer, 3)
                await consumer.commit({T0: 1})
            async with member(kafka) as consumer:
                assert await values(consumer, 2) == [b"1", b"2"]

    run(work())


def test_nothing_to_commit_is_committed_at_once():
    async def work():
        async with broker() as kafka, member(kafka) as consumer:
            await consumer.commit({})

    run(work())


def test_a_commit_that_is_refused_says_why():
    async def work():
        async with broker() as kafka, member(kafka) as consumer:
            with pytest.raises(InputError, match="expected a response without an error"):
                await consumer.commit({T0: 1})

    run(work())


def test_what_was_not_committed_is_read_again():
    async def work():
        async with broker({"t": 1}) as kafka:
            await produce(kafka.address, 0, b"0")
            for _ in range(2):
                async with member(kafka) as consumer:
                    assert await values(consumer, 1) == [b"0"]

    run(work())


def test_auto_commit_happens_while_it_polls():
    async def work():
        settings = {"enable.auto.commit": True, "auto.commit.interval.ms": 20}
        async with broker({"t": 1}) as kafka, member(kafka, settings=settings) as consumer:
            await produce(kafka.address, 0, b"0")
            await values(consumer, 1)
            async with AdminClient(places_of(kafka.address, "here")) as admin:
                while await admin.committed("g") != {T0: 1}:
                    await consumer.poll(0.02)

    run(work())


def test_a_commit_takes_no_records_from_the_next_poll():
    async def work():
        settings = {"max.poll.records": 1, "enable.auto.commit": True}
        async with broker({"t": 1}) as kafka:
            await produce(kafka.address, 0, *(b"%d" % n for n in range(5)))
            async with member(kafka, settings=settings) as consumer:
                assert await values(consumer, 1) == [b"0"]
                await consumer.commit()
                assert consumer.position("t", 0) == 1
            async with member(kafka, settings=settings) as consumer:
                assert await values(consumer, 4) == [b"1", b"2", b"3", b"4"]

    run(work())


# --- its group


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_share_the_partitions_and_the_one_that_stays_has_all(strategy):
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


def test_the_strategy_that_all_have_is_taken():
    async def work():
        async with (
            broker() as kafka,
            member(kafka, strategy=["sticky", "range"]) as first,
            member(kafka, strategy=["range"]) as second,
        ):
            await settled(first, second)
            assert {e.protocol for e in first.events if isinstance(e, ev.Joined)} <= {"sticky", "range"}
            assert [e.protocol for e in second.events if isinstance(e, ev.Joined)][-1] == "range"

    run(work())


@pytest.mark.parametrize(
    ("strategy", "calls"),
    [
        ("range", [("assigned", [0, 1, 2, 3]), ("revoked", [0, 1, 2, 3]), ("assigned", [0, 1])]),
        ("cooperative-sticky", [("assigned", [0, 1, 2, 3]), ("revoked", [2, 3])]),
    ],
)
def test_the_listener_hears_of_everything_in_order(strategy, calls):
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


def test_unsubscribing_leaves_the_group_and_gives_everything_up():
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


def test_closing_leaves_the_group():
    async def work():
        async with broker() as kafka:
            async with member(kafka, settings={"session.timeout.ms": 600_000}) as consumer:
                await settled(consumer)
            removed = [e.event for e in kafka.trace("g").events if isinstance(e.event, ev.MemberRemoved)]
            assert len(removed) == 1
            assert kafka.trace("g").ended.group_state == "Empty"
            await consumer.close()

    run(work())


def test_a_static_member_comes_back_to_what_it_had():
    async def work():
        settings = {"group.instance.id": "ada", "session.timeout.ms": 600_000}
        async with broker() as kafka, member(kafka) as other:
            async with member(kafka, settings=settings) as ada:
                await settled(ada, other)
                had, generation = ada.assignment, other.generation
            async with member(kafka, settings=settings) as ada:
                await settled(ada, other)
                assert (ada.assignment, other.generation) == (had, generation)

    run(work())


def test_a_member_that_is_fenced_ends():
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

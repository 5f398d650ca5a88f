"""Offsets and records in transactions, from the requests of a producer to what a consumer gets."""

from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.model import TopicPartition
from coordinator_core.protocol import events as ev
from rebalance_kafka.broker import recorder
from rebalance_kafka.wire.apis import Api
from tests.rebalance_kafka.damage import REQUESTS
from tests.rebalance_kafka.live import BY_NAME, broker, member, polled, run
from tests.rebalance_kafka.records import batch
from tests.rebalance_kafka.stand import Line

ID = "tx"
((TOPIC, (ROW,)),) = (
    (each["name"], each["partitions"]) for each in REQUESTS[Api.TXN_OFFSET_COMMIT]["topics"]
)


class Producer:
    """A producer with a transactional id, request by request."""

    def __init__(self, line):
        self.line, self.sequence = line, 0

    @classmethod
    async def to(cls, address):
        self = cls(await Line.to(address))
        await self.initialize()
        return self

    async def initialize(self):
        begun = await self.line.ask(Api.INIT_PRODUCER_ID, 4, transactional_id=ID, transaction_timeout=60_000)
        assert begun.error_code in (Wire.none, Wire.concurrent_transactions)
        if begun.error_code is not Wire.none:
            return await self.initialize()
        self.id, self.epoch, self.sequence = begun.producer_id, begun.producer_epoch, 0
        return None

    @property
    def named(self):
        return {"transactional_id": ID, "producer_id": self.id, "producer_epoch": self.epoch}

    async def write(self, *values):
        topics = ({"name": TOPIC, "partitions": (0,)},)
        named = {f"v3_and_below_{name}": value for name, value in self.named.items()}
        added = await self.line.ask(Api.ADD_PARTITIONS_TO_TXN, 3, v3_and_below_topics=topics, **named)
        records = batch(*values, producer=(self.id, self.epoch, self.sequence), transactional=True)
        self.sequence += len(values)
        data = ({"name": TOPIC, "partition_data": ({"index": 0, "records": records},)},)
        answer = await self.line.ask(Api.PRODUCE, BY_NAME, transactional_id=ID, topic_data=data)
        ((row,),) = (topic.partition_responses for topic in answer.responses)
        assert row.error_code is Wire.none, (row, added)

    async def add_group(self):
        added = await self.line.ask(Api.ADD_OFFSETS_TO_TXN, 3, group_id="g", **self.named)
        assert added.error_code is Wire.none

    async def commit(self, *partitions, version=3, offset=5, metadata="", **other):
        """Commit an offset for partitions 0, or those given. Return the errors by partition."""
        rows = tuple(
            {
                **ROW,
                "partition_index": number,
                "committed_offset": offset,
                "committed_metadata": metadata,
            }
            for number in partitions or (0,)
        )
        topics = ({"name": TOPIC, "partitions": rows},)
        answer = await self.line.ask(
            Api.TXN_OFFSET_COMMIT, version, **{**self.named, "group_id": "g", "topics": topics, **other}
        )
        return {row.partition_index: row.error_code for topic in answer.topics for row in topic.partitions}

    async def end(self, *, committed):
        ended = await self.line.ask(Api.END_TXN, 3, committed=committed, **self.named)
        assert ended.error_code is Wire.none


async def fetched(line, version, *, require_stable=True):
    """Return offset and error of partition 0."""
    group = {"group_id": "g", "topics": ({"name": TOPIC, "partition_indexes": (0,)},)}
    fields = group if version < 8 else {"groups": (group,)}
    answer = await line.ask(Api.OFFSET_FETCH, version, require_stable=require_stable, **fields)
    (found,) = (answer,) if version < 8 else answer.groups
    ((row,),) = (topic.partitions for topic in found.topics)
    return row.committed_offset, row.error_code


def test_offsets_are_committed_with_the_transaction():
    async def work():
        async with broker({TOPIC: 2}) as kafka:
            producer = await Producer.to(kafka.address)
            for version in range(5):
                await producer.add_group()
                assert await producer.commit(0, 7, version=version, offset=version) == {
                    0: Wire.none,
                    7: Wire.unknown_topic_or_partition,
                }
                before = (version - 1, Wire.none)
                for fetch in (7, 9):
                    assert await fetched(producer.line, fetch) == (-1, Wire.unstable_offset_commit)
                    assert await fetched(producer.line, fetch, require_stable=False) == before
                await producer.end(committed=True)
                assert await fetched(producer.line, 9) == (version, Wire.none)
            await producer.line.close()

    run(work())


def test_offsets_outside_a_transaction_are_refused():
    async def work():
        async with broker({TOPIC: 1}) as kafka:
            producer = await Producer.to(kafka.address)
            line = producer.line
            assert await producer.commit() == {0: Wire.invalid_txn_state}
            assert await producer.commit(version=4) == {0: Wire.transaction_abortable}
            await producer.add_group()
            assert await producer.commit(group_id="h") == {0: Wire.invalid_txn_state}
            assert await producer.commit(producer_id=99) == {0: Wire.invalid_producer_id_mapping}
            assert await producer.commit(transactional_id="y") == {0: Wire.invalid_producer_id_mapping}
            assert await producer.commit(producer_epoch=7) == {0: Wire.invalid_producer_epoch}
            assert await producer.commit(generation_id=3) == {0: Wire.illegal_generation}
            assert await producer.commit() == {0: Wire.none}
            older = producer.epoch
            await producer.initialize()
            assert await producer.commit(producer_epoch=older) == {0: Wire.invalid_producer_epoch}
            assert await fetched(line, 9) == (-1, Wire.none)
            await line.close()

    run(work())


def test_a_commit_adds_its_group_to_the_transaction():
    """KIP-890: from version 5 on. The end gives the next epoch."""

    async def work():
        async with broker({TOPIC: 1}) as kafka:
            producer = await Producer.to(kafka.address)
            line = producer.line
            assert await producer.commit(version=5) == {0: Wire.none}
            assert await fetched(line, 9) == (-1, Wire.unstable_offset_commit)
            ended = await line.ask(Api.END_TXN, 5, committed=True, **producer.named)
            assert (ended.error_code, ended.producer_id, ended.producer_epoch) == (Wire.none, producer.id, 1)
            assert await fetched(line, 9) == (5, Wire.none)
            assert await producer.commit(version=5) == {0: Wire.invalid_producer_epoch}
            await line.close()

    run(work())


def test_a_commit_may_be_of_another_group_in_the_same_log_partition():
    """Kafka's transactions have partitions of the log of groups."""

    async def work():
        settings = {"offsets.topic.num.partitions": 1}
        async with broker({TOPIC: 1}, settings=settings) as kafka:
            producer = await Producer.to(kafka.address)
            await producer.add_group()
            assert await producer.commit(group_id="h", transactional_id="y") == {
                0: Wire.invalid_producer_id_mapping
            }
            assert await producer.commit(group_id="h") == {0: Wire.none}
            assert await producer.commit(group_id="i", transactional_id="y") == {0: Wire.none}
            await producer.end(committed=True)
            for group in "hi":
                asked = {"group_id": group, "topics": None}
                answer = await producer.line.ask(Api.OFFSET_FETCH, 9, groups=(asked,), require_stable=True)
                ((row,),) = (topic.partitions for topic in answer.groups[0].topics)
                assert (row.committed_offset, row.error_code) == (5, Wire.none)
            await producer.line.close()

    run(work())


def test_a_commit_names_topics_by_their_ids():
    """KIP-1319: from version 6 on."""

    async def work():
        async with broker({TOPIC: 1}) as kafka:
            producer = await Producer.to(kafka.address)
            ids = [kafka.ids.ids[TOPIC], UUID(int=7)]
            rows = ({**ROW, "partition_index": 0, "committed_offset": 5, "committed_metadata": ""},)
            topics = tuple({"topic_id": number, "partitions": rows} for number in ids)
            named = {**producer.named, "group_id": "g", "topics": topics, "member_id": ""}
            answer = await producer.line.ask(Api.TXN_OFFSET_COMMIT, 6, group_instance_id=None, **named)
            found = {topic.topic_id: topic.partitions[0].error_code for topic in answer.topics}
            assert found == {ids[0]: Wire.none, ids[1]: Wire.unknown_topic_id}
            unknown = {"generation_id": 3, "group_instance_id": None}
            answer = await producer.line.ask(
                Api.TXN_OFFSET_COMMIT, 6, **{**named, "group_id": "h", **unknown}
            )
            assert answer.topics[1].partitions[0].error_code is Wire.group_id_not_found
            await producer.line.close()

    run(work())


def test_a_transaction_ends_on_a_group_when_the_store_accepts_it(monkeypatch):
    monkeypatch.setattr("rebalance_kafka.broker.transactions.RETRY_MS", 20)

    async def work():
        async with broker({TOPIC: 1}) as kafka:
            producer = await Producer.to(kafka.address)
            await producer.add_group()
            await producer.commit()
            sql, append = kafka._node.data.store._sql, kafka._node.data.store.append

            def failing(partition, records):
                sql.execute("pragma query_only = on")
                try:
                    return append(partition, records)
                finally:
                    sql.execute("pragma query_only = off")

            monkeypatch.setattr(kafka._node.data.store, "append", failing)
            await producer.end(committed=True)
            assert await fetched(producer.line, 9) == (-1, Wire.unstable_offset_commit)
            monkeypatch.setattr(kafka._node.data.store, "append", append)
            while (await fetched(producer.line, 9))[1] is Wire.unstable_offset_commit:
                pass
            assert await fetched(producer.line, 9) == (5, Wire.none)
            await producer.line.close()

    run(work())


def test_offsets_in_a_transaction_survive_a_restart(tmp_path):
    async def work():
        async with broker({TOPIC: 1}, data_dir=tmp_path) as kafka:
            producer = await Producer.to(kafka.address)
            await producer.add_group()
            await producer.commit()
            await producer.line.close()
        async with broker(data_dir=tmp_path) as kafka:
            producer.line = await Line.to(kafka.address)
            assert await fetched(producer.line, 9) == (-1, Wire.unstable_offset_commit)
            await producer.end(committed=True)
            assert await fetched(producer.line, 9) == (5, Wire.none)
            await producer.line.close()

    run(work())


def test_our_consumer_reads_committed_records_only_and_goes_over_the_others():
    async def work():
        settings = {"isolation.level": "read_committed"}
        async with (
            broker({TOPIC: 1}) as kafka,
            member(kafka, TOPIC, settings=settings) as committed,
            member(kafka, TOPIC, group_id="all") as every,
        ):
            producer = await Producer.to(kafka.address)
            await producer.write(b"aborted")
            await producer.end(committed=False)
            await producer.write(b"1", b"2")
            await producer.end(committed=True)
            await producer.write(b"late")
            place = TOPIC, 0
            assert await values(committed, 2) == [b"1", b"2"]
            assert await values(every, 4) == [b"aborted", b"1", b"2", b"late"]
            await producer.end(committed=False)
            at_the_end = lambda _: committed.assignment and committed.position(*place) == 7  # noqa: E731
            assert await polled(committed, until=at_the_end) == {committed: []}
            await producer.line.close()

    run(work())


async def values(consumer, count):
    read = await polled(consumer, until=lambda read: len(read[consumer]) >= count)
    return [each.value for each in read[consumer]]


def test_our_consumer_waits_for_stable_offsets():
    async def work():
        async with broker({TOPIC: 1}) as kafka:
            producer = await Producer.to(kafka.address)
            await producer.write(b"0", b"1")
            await producer.add_group()
            await producer.commit(offset=1)
            async with member(kafka, TOPIC) as consumer:
                await polled(consumer, until=lambda _: consumer.assignment)
                for _ in range(5):
                    assert await consumer.poll(0.02) == []
                assert consumer.position(TOPIC, 0) == -1
                await producer.end(committed=True)
                assert await values(consumer, 1) == [b"1"]
                await consumer.commit()
                assert dict(kafka._node.coordinator.offsets("g"))[TopicPartition(TOPIC, 0)].offset in (2, 3)
            await producer.line.close()

    run(work())


def test_lag_is_measured_at_commits_in_transactions(monkeypatch):
    monkeypatch.setattr(recorder, "MEASURE_EVERY_MS", 0)

    async def work():
        async with broker({TOPIC: 1}) as kafka, member(kafka, TOPIC) as consumer:
            producer = await Producer.to(kafka.address)
            await producer.write(b"0", b"1", b"2")
            await producer.end(committed=True)
            await values(consumer, 3)
            await producer.add_group()
            mine = {"member_id": consumer.member_id, "generation_id": consumer.generation}
            assert await producer.commit(offset=1, **mine) == {0: Wire.none}
            trace = kafka.trace("g")
            assert [each.event.lag for each in trace.events if type(each.event) is ev.LagMeasured] == [3.0]
            await producer.line.close()

    run(work())


# --- confluent-kafka

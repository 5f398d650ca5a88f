"""The durable state of the broker, in SQLite: topics, record batches, transactions and the coordinator's log.

Without a folder it is in memory. With a folder, a write is on the disk before any client receives the
response. Every call that writes is one transaction: a process that dies leaves whole transactions only.
Damaged files are not opened, nor files from which the last writes are missing (`commits`). Every row has a
checksum, and a damaged one is an error that names it, before any is deleted.

If the disk is full, writes raise errors, and everything can be read.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from coordinator_core.coordinator.records import Record, compact, decode_record, encode_record
from coordinator_core.errors import InputError
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker.commits import Commits
from rebalance_kafka.broker.schema import (
    RESTORE,
    checksum_of,
    connect,
    damage,
    inserting,
    inspect,
    is_whole,
    prepare,
)
from rebalance_kafka.broker.stored import Configs, NewBatch, StoredBatch, Transaction
from rebalance_kafka.broker.write_ahead import incomplete_write

LOG = logging.getLogger(__name__)

FILE = "broker.sqlite"
_PRIMARY = 0xFF
"""The bits of an error code of SQLite that say its kind."""
COMPACT_AFTER = 50_000
"""Records between two compactions of the coordinator's log, or as many as the last one kept, if more."""

_NO_CONFIGS: Mapping[str, Configs] = {}


class Store:
    """The store of one broker, for one process at a time.

    Raises:
        InputError: if the folder cannot be written to, another process uses it, or the files are damaged.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                expected = "a folder to write to"
                raise InputError(str(folder), error.strerror or "an error", expected) from None
        self.path = ":memory:" if folder is None else str(folder / FILE)
        dropped = incomplete_write(Path(f"{self.path}-wal"))  # SQLite would drop writes after damage, too
        self._ids: dict[str, int] = {}
        self._appended = self._kept = 0
        self._said = ""
        self._commits = Commits(None if folder is None else folder / f"{FILE}-commits")
        with self.errors_named():
            self._sql = connect(self.path)
            try:
                version = inspect(self._sql, self.path)
                self._commits.compare(self._count("commits") if version > 0 else 0)
                prepare(self._sql, self.path, version)
                self._commits.open()
                self.topics()
            except BaseException:
                self.close()
                raise
        if dropped is not None:
            LOG.warning("%s", dropped)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Raise errors of SQLite as an `InputError` that names the file."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
            raise self._named(error) from None

    def failed(self, error: sqlite3.Error) -> str:
        """Log an error of a call, with the file and what to do, unless it is the same as the last one.

        Return its text without the file, for a client.
        """
        named = self._named(error)
        if str(named) != self._said:
            self._said = str(named)
            LOG.warning("%s", named)
        return str(error)

    def _named(self, error: Exception) -> InputError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & _PRIMARY
        expected = "a broker's data that no other process uses, in a folder to write to"
        if code == sqlite3.SQLITE_FULL:
            expected = "space on the disk"
        elif code == sqlite3.SQLITE_IOERR:
            expected = "a disk that can be read and written, with space"
        elif code == sqlite3.SQLITE_CORRUPT and not isinstance(error, OSError):
            expected = f"a whole SQLite file; {RESTORE}"
            if str(error).startswith("a damaged row"):
                expected += ", or delete the row, which loses what it contains"
        return InputError(self.path, str(error), expected)

    def close(self) -> None:
        """Close the database, so that another process can use the folder."""
        self._sql.close()
        self._commits.close()

    # --- topics

    def topics(self) -> dict[str, int]:
        """Return the topics, each with the number of its partitions, in the order of their creation."""
        rows = self._sql.execute("select id, name, partitions from topics order by id").fetchall()
        self._ids = {name: number for number, name, _ in rows}
        return {name: partitions for _, name, partitions in rows}

    def save_topics(self, topics: Mapping[str, int], configs: Mapping[str, Configs] = _NO_CONFIGS) -> None:
        """Create topics, or change the number of their partitions. ``configs``: of new topics."""
        with self._transaction():
            self._sql.executemany(
                "insert into topics (name, partitions, uuid) values (?, ?, randomblob(16))"
                " on conflict (name) do update set partitions = excluded.partitions",
                list(topics.items()),
            )
            self._sql.executemany(
                f"update topics set checksum = {checksum_of('topics')} where name = ?",
                [(topic,) for topic in topics],
            )
            for topic, own in configs.items():
                self._write_configs(topic, own)
        self.topics()

    def delete_topics(self, topics: Sequence[str]) -> None:
        """Delete topics, with their records and configurations."""
        rows = [(self._ids[topic],) for topic in topics]
        with self._transaction():
            for table in ("batches", "configs", "starts", "transactions"):
                self._sql.executemany(f"delete from {table} where topic = ?", rows)
            self._sql.executemany("delete from topics where id = ?", rows)
        self.topics()

    def topic_ids(self) -> dict[str, UUID]:
        """Return the id of each topic. A topic that is deleted and created again has another id."""
        rows = self._sql.execute("select name, uuid from topics order by id")
        return {name: UUID(bytes=number) for name, number in rows}

    def configs(self) -> dict[str, dict[str, str]]:
        """Return the configurations of each topic that has some."""
        rows = self._sql.execute(
            "select topics.name, configs.name, value from configs join topics on topics.id = topic"
            " order by topic, configs.name"
        )
        found: dict[str, dict[str, str]] = {}
        for topic, name, value in rows:
            found.setdefault(topic, {})[name] = value
        return found

    def save_configs(self, configs: Mapping[str, Configs]) -> None:
        """Replace the configurations of topics."""
        with self._transaction():
            for topic, own in configs.items():
                self._write_configs(topic, own)

    def _write_configs(self, topic: str, configs: Configs) -> None:
        (number,) = self._sql.execute("select id from topics where name = ?", (topic,)).fetchone()
        self._sql.execute("delete from configs where topic = ?", (number,))
        rows = [(number, name, value) for name, value in configs.items()]
        self._sql.executemany(inserting("configs"), rows)

    def group_configs(self) -> dict[str, dict[str, str]]:
        """Return the configurations of each group that has some."""
        rows = self._sql.execute("select group_id, name, value from group_configs order by group_id, name")
        found: dict[str, dict[str, str]] = {}
        for group, name, value in rows:
            found.setdefault(group, {})[name] = value
        return found

    def save_group_configs(self, configs: Mapping[str, Configs]) -> None:
        """Replace the configurations of groups."""
        rows = [(group, name, value) for group, own in configs.items() for name, value in own.items()]
        with self._transaction():
            self._sql.executemany("delete from group_configs where group_id = ?", [(g,) for g in configs])
            self._sql.executemany(inserting("group_configs"), rows)

    # --- records

    def append_batches(self, batches: Iterable[NewBatch], begun: Iterable[Transaction] = ()) -> None:
        """Write all batches, with the transactions that they begin, or, if an error occurs, nothing."""
        with self._transaction():
            self._append(batches)
            rows = [(self._ids[each.topic], *each[1:]) for each in begun]
            self._sql.executemany(inserting("transactions"), rows)

    def end_transaction(self, markers: Sequence[NewBatch], *, committed: bool) -> None:
        """Write the markers of a producer's transaction or, if an error occurs, nothing."""
        open_one = "where topic = ? and partition = ? and producer = ? and last is null"
        with self._transaction():
            self._append(markers)
            for each in markers:
                place = self._ids[each.topic], each.partition, each.producer
                if committed:
                    self._sql.execute(f"delete from transactions {open_one}", place)
                else:
                    checksum = checksum_of("transactions", last="?1")
                    change = f"update transactions set last = ?1, checksum = {checksum}"
                    self._sql.execute(f"{change} {open_one}", (each.first, *place))

    def _append(self, batches: Iterable[NewBatch]) -> None:
        rows = [(self._ids[batch.topic], *batch[1:]) for batch in batches]
        self._sql.executemany(inserting("batches"), rows)

    def transactions(self) -> Iterator[Transaction]:
        """Yield the open and the aborted transactions of each partition by their first records."""
        rows = self._sql.execute(
            "select name, partition, first, producer, last from transactions join topics on topics.id = topic"
            " order by topic, partition, first"
        )
        yield from map(Transaction._make, rows)

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the offset after the last record of each partition that has, or had, records."""
        rows = self._sql.execute(
            "select name, partition, max(last) from batches join topics on topics.id = topic"
            " group by topic, partition"
        )
        return self.starts() | {(name, partition): last + 1 for name, partition, last in rows}

    def starts(self) -> dict[tuple[str, int], int]:
        """Return the offset of the first record of each partition whose first records were deleted."""
        rows = self._sql.execute("select name, partition, first from starts join topics on topics.id = topic")
        return {(name, partition): first for name, partition, first in rows}

    def delete_records(self, starts: Mapping[tuple[str, int], int]) -> None:
        """Delete the batches of partitions that end before an offset, which is the start from now on."""
        rows = [(self._ids[topic], partition, before) for (topic, partition), before in starts.items()]
        with self._transaction():
            for table in ("batches", "transactions"):
                where = "where topic = ? and partition = ? and last < ?"
                self._sql.executemany(f"delete from {table} {where}", rows)
            self._sql.executemany(inserting("starts", "insert or replace"), rows)

    def _select(
        self, columns: str, topic: str, partition: int, rest: str = "", *values: int
    ) -> sqlite3.Cursor:
        """Select batches of a partition. ``rest``: more conditions, and the order."""
        query = f"select {columns} from batches where topic = ? and partition = ? {rest}"
        return self._sql.execute(query, (self._ids[topic], partition, *values))

    def _batches(
        self, columns: str, topic: str, partition: int, rest: str, *values: int
    ) -> Iterator[tuple[Any, ...]]:
        """Yield columns of batches, ``first`` first. Raise an error at one that is not as it was written."""
        for found, *row in self._select(f"{is_whole('batches')}, {columns}", topic, partition, rest, *values):
            if not found:
                raise damage(self._sql, "batches", (self._ids[topic], partition, row[0]))
            yield tuple(row)

    def size(self) -> int:
        """Return the bytes of all batches."""
        return int(self._sql.execute("select coalesce(sum(length(data)), 0) from batches").fetchone()[0])

    def producers(self, newest: int) -> Iterator[tuple[str, int, int, int, int, int, int]]:
        """Yield topic, partition, producer, epoch, sequence, first and last of idempotent producers' batches.

        Yield the ``newest`` batches of each partition and producer, and as many markers, in the order in
        which they were written.
        """
        yield from self._sql.execute(
            "select name, partition, producer, epoch, sequence, first, last from ("
            " select *, row_number() over"
            " (partition by topic, partition, producer, sequence < 0 order by first desc) as back"
            " from batches where producer >= 0) join topics on topics.id = topic"
            " where back <= ? order by topic, partition, first",
            (newest,),
        )

    def batches_from(self, topic: str, partition: int, offset: int) -> Iterator[StoredBatch]:
        """Yield the batches of a partition, from the batch that contains the offset."""
        row = self._select("max(first)", topic, partition, "and first <= ?", offset).fetchone()
        rest = "and first >= ? order by first"
        yield from self._stored(topic, partition, rest, row[0] or 0)

    def batch_since(self, topic: str, partition: int, timestamp_ms: int) -> StoredBatch | None:
        """Return the first batch with a record of this time or later."""
        rest = "and max_timestamp_ms >= ? order by first limit 1"
        return next(self._stored(topic, partition, rest, timestamp_ms), None)

    def newest_batch(self, topic: str, partition: int) -> StoredBatch | None:
        """Return the first batch with the largest time of the partition."""
        rest = "order by max_timestamp_ms desc, first limit 1"
        return next(self._stored(topic, partition, rest), None)

    def _stored(self, topic: str, partition: int, rest: str, *values: int) -> Iterator[StoredBatch]:
        columns = ", ".join(StoredBatch._fields)
        yield from map(StoredBatch._make, self._batches(columns, topic, partition, rest, *values))

    def next_producer_id(self) -> int:
        """Return a producer id that has not been used before."""
        number = self._count("producer", otherwise=-1) + 1
        with self._transaction():
            self._set_counter("producer", number)
        return number

    def _count(self, counter: str, otherwise: int = 0) -> int:
        found = self._sql.execute("select value from counters where name = ?", (counter,)).fetchone()
        return otherwise if found is None else int(found[0])

    def _set_counter(self, counter: str, value: int) -> None:
        self._sql.execute(inserting("counters", "insert or replace"), (counter, value))

    # --- transactions

    def transactional_ids(self) -> Iterator[bytes]:
        """Yield the newest record of each transactional id."""
        rows = self._sql.execute("select record from transactional_ids order by name").fetchall()
        yield from (record for (record,) in rows)

    def save_transactional_id(self, name: str, record: bytes) -> None:
        """Replace the record of a transactional id."""
        with self._transaction():
            self._sql.execute(inserting("transactional_ids", "insert or replace"), (name, record))

    # --- the coordinator's log

    def append(self, partition: int, records: Iterable[Record]) -> ErrorCode:
        """Write all of the coordinator's records. If that fails, write none and return a retriable error.

        It is the error by which Kafka's coordinator answers if its log has a KAFKA_STORAGE_ERROR.
        """
        rows = [(partition, encode_record(record)) for record in records]
        try:
            with self._transaction():
                self._sql.executemany("insert into log (partition, record) values (?, ?)", rows)
        except sqlite3.Error as error:
            self.failed(error)
            return ErrorCode.NOT_COORDINATOR
        self._appended += len(rows)
        if self._appended > max(COMPACT_AFTER, self._kept):
            self.try_to_compact()
        return ErrorCode.NONE

    def logged(self) -> list[int]:
        """Return the partitions of the coordinator's log that have records."""
        return [row for (row,) in self._sql.execute("select distinct partition from log order by partition")]

    def read(self, partition: int) -> Sequence[Record]:
        """Return the records of a partition of the coordinator's log, in order.

        Raises:
            InputError: if a record is damaged. It names the row.
        """
        query = "select number, cast(record as blob) from log where partition = ? order by number"
        rows = self._sql.execute(query, (partition,))
        return [self._decoded(partition, *row) for row in rows]

    def _decoded(self, partition: int, number: int, data: bytes) -> Record:
        try:
            where = f"{self.path}, row {number} of the table log, partition {partition}"
            return decode_record(data, where)
        except InputError as error:
            advice = f"{RESTORE}, or delete the row, which loses what it contains"
            raise InputError(error.where, error.found, f"{error.expected}; {advice}") from None

    def try_to_compact(self) -> None:
        """Compact the coordinator's log. If that fails, it stays as it is, and is compacted later."""
        try:
            self.compact()
        except (sqlite3.Error, InputError) as error:
            LOG.warning("the coordinator's log is not compacted: %s", error)

    def compact(self) -> None:
        """Keep only the newest record of each key.

        Raises:
            InputError: if a record is damaged. The log of its partition stays as it is.
        """
        self._appended = self._kept = 0
        for partition in self.logged():
            records = self.read(partition)
            kept = compact(records)
            self._kept += len(kept)
            if len(kept) == len(records):
                continue
            with self._transaction():
                self._sql.execute("delete from log where partition = ?", (partition,))
                self._sql.executemany(
                    "insert into log (partition, record) values (?, ?)",
                    [(partition, encode_record(record)) for record in kept],
                )

    # --- internals

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all of a block, and count it, or nothing."""
        number = self._commits.number + 1
        self._sql.execute("begin immediate")
        try:
            yield
            self._set_counter("commits", number)
            self._sql.execute("commit")
        except BaseException:
            if self._sql.in_transaction:  # SQLite has rolled back already if the disk is full
                self._sql.execute("rollback")
            raise
        self._commits.note(number)
        self._said = ""

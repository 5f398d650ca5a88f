"""The durable state of the broker, in SQLite: topics, record batches, transactions and the coordinator's log.

Without a folder it is in memory. With a folder, a write is on the disk before any client receives the
response. Every call that writes is one transaction: a process that dies leaves whole transactions only.
Damaged files are not opened. A damaged record of the coordinator's log is an error before any is deleted.
"""

import logging
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias
from uuid import UUID

from coordinator_core.coordinator.records import Record, compact, decode_record, encode_record
from coordinator_core.errors import InputError
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker.write_ahead import incomplete_write

LOG = logging.getLogger(__name__)

FILE = "broker.sqlite"
COMPACT_AFTER = 50_000
"""Records between two compactions of the coordinator's log, or as many as the last one kept, if more."""

RESTORE = "restore the folder from a copy"

_FORMAT = 4
_TABLES = """
create table topics (id integer primary key, name text not null unique, partitions integer not null);
create table batches (
    topic integer not null, partition integer not null, first integer not null, last integer not null,
    max_timestamp_ms integer not null, producer integer not null, epoch integer not null,
    sequence integer not null, data blob not null,
    primary key (topic, partition, first)
) without rowid;
create table log (number integer primary key, partition integer not null, record blob not null);
create table counters (name text primary key, value integer not null) without rowid;
"""
_SINCE_FORMAT_2 = """
alter table topics add column uuid blob;
update topics set uuid = randomblob(16);
create table configs (
    topic integer not null, name text not null, value text not null, primary key (topic, name)
) without rowid;
create table starts (
    topic integer not null, partition integer not null, first integer not null,
    primary key (topic, partition)
) without rowid;
"""
_SINCE_FORMAT_3 = """
create table transactions (
    topic integer not null, partition integer not null, first integer not null, producer integer not null,
    last integer,
    primary key (topic, partition, first)
) without rowid;
create table transactional_ids (name text primary key, record blob not null) without rowid;
"""
_SINCE_FORMAT_4 = ""
"""Records of transactional ids have checksums. Those that earlier formats wrote are read without."""
_SCRIPTS = (_TABLES, _SINCE_FORMAT_2, _SINCE_FORMAT_3, _SINCE_FORMAT_4)


Configs: TypeAlias = Mapping[str, str]
"""Values of a topic's configurations by their names."""

_NO_CONFIGS: Mapping[str, Configs] = {}


class StoredBatch(NamedTuple):
    """A record batch in the store."""

    first: int
    last: int
    max_timestamp_ms: int
    data: bytes


_STORED = ", ".join(StoredBatch._fields)


class BatchHeader(NamedTuple):
    """A record batch in the store, without its records. ``producer`` is -1 without an idempotent producer."""

    first: int
    last: int
    max_timestamp_ms: int
    producer: int
    sequence: int
    size: int

    @property
    def is_marker(self) -> bool:
        """Return whether the batch is the marker of a transaction."""
        return self.producer >= 0 and self.sequence == NO_SEQUENCE


NO_SEQUENCE = -1
"""The sequence of a batch without an idempotent producer, and of the marker of a transaction."""


class NewBatch(NamedTuple):
    """A record batch to write to a partition. ``sequence`` is `NO_SEQUENCE` in a marker."""

    topic: str
    partition: int
    first: int
    last: int
    max_timestamp_ms: int
    producer: int
    epoch: int
    sequence: int
    data: bytes


class Transaction(NamedTuple):
    """A transaction on a partition, from its first record to its marker. ``last`` is None while it is open.

    The store has open transactions and aborted ones.
    """

    topic: str
    partition: int
    first: int
    producer: int
    last: int | None = None


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
        with self.errors_named():
            self._sql = sqlite3.connect(self.path, isolation_level=None, timeout=0)
            try:
                _prepare(self._sql, self.path)
                self.topics()
            except BaseException:
                self._sql.close()
                raise
        if dropped is not None:
            LOG.warning("%s", dropped)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Raise errors of SQLite as an `InputError` that names the file."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            expected = "a broker's data that no other process uses, in a folder to write to"
            if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) == sqlite3.SQLITE_CORRUPT:
                expected = f"a whole SQLite file; {RESTORE}"
            raise InputError(self.path, str(error), expected) from None

    def close(self) -> None:
        """Close the database, so that another process can use the folder."""
        self._sql.close()

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
            for topic, own in configs.items():
                self._write_configs(topic, own)
        self.topics()

    def delete_topics(self, topics: Iterable[str]) -> None:
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
        self._sql.executemany("insert into configs values (?, ?, ?)", rows)

    # --- records

    def append_batches(self, batches: Iterable[NewBatch], begun: Iterable[Transaction] = ()) -> None:
        """Write all batches, with the transactions that they begin, or, if an error occurs, nothing."""
        with self._transaction():
            self._append(batches)
            rows = [(self._ids[each.topic], *each[1:]) for each in begun]
            self._sql.executemany("insert into transactions values (?, ?, ?, ?, ?)", rows)

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
                    self._sql.execute(f"update transactions set last = ? {open_one}", (each.first, *place))

    def _append(self, batches: Iterable[NewBatch]) -> None:
        rows = [(self._ids[batch.topic], *batch[1:]) for batch in batches]
        self._sql.executemany("insert into batches values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

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
            self._sql.executemany("insert or replace into starts values (?, ?, ?)", rows)

    def headers(self, topic: str, partition: int) -> Iterator[BatchHeader]:
        """Yield the batches of a partition without their records, oldest first."""
        columns = "first, last, max_timestamp_ms, producer, sequence, length(data)"
        yield from map(BatchHeader._make, self._select(columns, topic, partition, "order by first"))

    def partition_size(self, topic: str, partition: int) -> int:
        """Return the bytes of the batches of a partition."""
        return int(self._select("coalesce(sum(length(data)), 0)", topic, partition).fetchone()[0])

    def batch(self, topic: str, partition: int, first: int) -> bytes | None:
        """Return the batch that begins at an offset, None if there is none."""
        row = self._select("data", topic, partition, "and first = ?", first).fetchone()
        return None if row is None else bytes(row[0])

    def _select(
        self, columns: str, topic: str, partition: int, rest: str = "", *values: int
    ) -> sqlite3.Cursor:
        """Select batches of a partition. ``rest``: more conditions, and the order."""
        query = f"select {columns} from batches where topic = ? and partition = ? {rest}"
        return self._sql.execute(query, (self._ids[topic], partition, *values))

    def replace_batch(
        self, topic: str, partition: int, first: int, data: bytes | None, max_timestamp_ms: int
    ) -> None:
        """Replace a batch by one with the same offsets, or delete it."""
        place = (self._ids[topic], partition, first)
        where = "where topic = ? and partition = ? and first = ?"
        with self._transaction():
            if data is None:
                self._sql.execute(f"delete from batches {where}", place)
            else:
                values = (data, max_timestamp_ms, *place)
                self._sql.execute(f"update batches set data = ?, max_timestamp_ms = ? {where}", values)

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
        yield from map(StoredBatch._make, self._select(_STORED, topic, partition, rest, row[0] or 0))

    def batch_since(self, topic: str, partition: int, timestamp_ms: int) -> StoredBatch | None:
        """Return the first batch with a record of this time or later."""
        rest = "and max_timestamp_ms >= ? order by first limit 1"
        row = self._select(_STORED, topic, partition, rest, timestamp_ms).fetchone()
        return None if row is None else StoredBatch._make(row)

    def newest_batch(self, topic: str, partition: int) -> StoredBatch | None:
        """Return the first batch with the largest time of the partition."""
        rest = "order by max_timestamp_ms desc, first limit 1"
        row = self._select(_STORED, topic, partition, rest).fetchone()
        return None if row is None else StoredBatch._make(row)

    def next_producer_id(self) -> int:
        """Return a producer id that has not been used before."""
        with self._transaction():
            self._sql.execute(
                "insert into counters values ('producer', 0)"
                " on conflict (name) do update set value = value + 1"
            )
        return int(self._sql.execute("select value from counters where name = 'producer'").fetchone()[0])

    # --- transactions

    def transactional_ids(self) -> Iterator[bytes]:
        """Yield the newest record of each transactional id."""
        rows = self._sql.execute("select record from transactional_ids order by name").fetchall()
        yield from (record for (record,) in rows)

    def save_transactional_id(self, name: str, record: bytes) -> None:
        """Replace the record of a transactional id."""
        with self._transaction():
            self._sql.execute("insert or replace into transactional_ids values (?, ?)", (name, record))

    # --- the coordinator's log

    def append(self, partition: int, records: Iterable[Record]) -> ErrorCode:
        """Write all of the coordinator's records. If that fails, write none and return a retriable error."""
        rows = [(partition, encode_record(record)) for record in records]
        try:
            with self._transaction():
                self._sql.executemany("insert into log (partition, record) values (?, ?)", rows)
        except sqlite3.Error:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        self._appended += len(rows)
        if self._appended > max(COMPACT_AFTER, self._kept):
            try:
                self.compact()
            except (sqlite3.Error, InputError) as error:  # the log stays as it is, and is tried again later
                LOG.warning("the coordinator's log is not compacted: %s", error)
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
        return [self._decoded(number, data) for number, data in self._sql.execute(query, (partition,))]

    def _decoded(self, number: int, data: bytes) -> Record:
        try:
            return decode_record(data, f"{self.path}, row {number} of the table log")
        except InputError as error:
            advice = f"{RESTORE}, or delete the row, which loses what it contains"
            raise InputError(error.where, error.found, f"{error.expected}; {advice}") from None

    def compact(self) -> None:
        """Keep only the newest record of each key.

        Raises:
            InputError: if a record is damaged. The log of its partition stays as it is.
        """
        self._appended = self._kept = 0
        for partition in self.logged():
            kept = compact(self.read(partition))
            self._kept += len(kept)
            with self._transaction():
                self._sql.execute("delete from log where partition = ?", (partition,))
                self._sql.executemany(
                    "insert into log (partition, record) values (?, ?)",
                    [(partition, encode_record(record)) for record in kept],
                )

    # --- internals

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._sql.execute("begin immediate")
        try:
            yield
            self._sql.execute("commit")
        except BaseException:
            if self._sql.in_transaction:  # SQLite has rolled back already if the disk is full
                self._sql.execute("rollback")
            raise


def _prepare(sql: sqlite3.Connection, path: str) -> None:
    """Lock the file for this process. Create the tables if the file is new."""
    sql.execute("pragma locking_mode = exclusive")
    (version,) = sql.execute("pragma user_version").fetchone()
    (tables,) = sql.execute("select count(*) from sqlite_master").fetchone()
    if version == 0 and tables:
        raise InputError(path, "another program's database", "a broker's data, or no file")
    if not 0 <= version <= _FORMAT:
        raise InputError(path, f"format {version}", f"format {_FORMAT}, which this version writes")
    found = [text for (text,) in sql.execute("pragma quick_check(3)")]
    if found != ["ok"]:
        raise InputError(path, f"damage ({', '.join(found)})", f"a whole SQLite file; {RESTORE}")
    sql.execute("pragma journal_mode = wal")
    sql.execute("pragma synchronous = full")
    missing = _SCRIPTS[version:]
    sql.executescript(f"begin immediate; {' '.join(missing)} pragma user_version = {_FORMAT}; commit;")
    if _schema(sql) != _expected_schema():
        raise InputError(path, "other tables (damage)", f"those of format {_FORMAT}; {RESTORE}")


def _schema(sql: sqlite3.Connection) -> list[tuple[object, ...]]:
    return sql.execute("select type, name, tbl_name, sql from sqlite_master order by name").fetchall()


@cache
def _expected_schema() -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.executescript(" ".join(_SCRIPTS))
        return _schema(sql)

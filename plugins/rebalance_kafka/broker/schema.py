"""The tables of the broker's database, in all their formats, and the checksums of their rows.

Every table has a column ``checksum`` of all others of the row, except the coordinator's log, whose records
have checksums of their own. It shows that a row is not what was written, and not that a row is missing.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from zlib import crc32

from coordinator_core.errors import InputError

RESTORE = "restore the folder from a copy"

_FORMAT = 6
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

COLUMNS: Mapping[str, Sequence[str]] = {
    "topics": ("id", "name", "partitions", "uuid"),
    "batches": (
        *("topic", "partition", "first", "last", "max_timestamp_ms"),
        *("producer", "epoch", "sequence", "data"),
    ),
    "configs": ("topic", "name", "value"),
    "starts": ("topic", "partition", "first"),
    "transactions": ("topic", "partition", "first", "producer", "last"),
    "counters": ("name", "value"),
    "transactional_ids": ("name", "record"),
    "group_configs": ("group_id", "name", "value"),
}
"""Table -> its columns with one checksum."""

_NAMES: Mapping[str, Sequence[str]] = {
    "topics": ("name", "id"),
    "batches": ("topic", "partition", "first"),
    "configs": ("topic", "name"),
    "starts": ("topic", "partition"),
    "transactions": ("topic", "partition", "first"),
    "counters": ("name",),
    "transactional_ids": ("name",),
    "group_configs": ("group_id", "name"),
}
"""Table -> the columns that name a row in a message."""


@cache
def checksum_of(table: str, **new: str) -> str:
    """Return the SQL of the checksum of a row. ``new``: the SQL of columns that have other values."""
    columns = (new.get(column, column) for column in COLUMNS[table])
    return f"row_checksum({', '.join(f'cast({column} as blob)' for column in columns)})"


@cache
def inserting(table: str, verb: str = "insert") -> str:
    """Return the statement that writes a row of a table, with its checksum."""
    columns = COLUMNS[table]
    values = [f"?{number}" for number, _ in enumerate(columns, 1)]
    checksum = checksum_of(table, **dict(zip(columns, values, strict=True)))
    return f"{verb} into {table} ({', '.join(columns)}, checksum) values ({', '.join(values)}, {checksum})"


@cache
def is_whole(table: str) -> str:
    """Return the SQL of whether a row is as it was written."""
    return f"checksum is {checksum_of(table)}"


_SINCE_FORMAT_5 = " ".join(
    f"alter table {table} add column checksum integer; update {table} set checksum = {checksum_of(table)};"
    for table in COLUMNS
    if table != "group_configs"
)
_SINCE_FORMAT_6 = """
create table group_configs (
    group_id text not null, name text not null, value text not null, checksum integer,
    primary key (group_id, name)
) without rowid;
"""
_SCRIPTS = (
    *(_TABLES, _SINCE_FORMAT_2, _SINCE_FORMAT_3, _SINCE_FORMAT_4),
    *(_SINCE_FORMAT_5, _SINCE_FORMAT_6),
)


def connect(path: str) -> sqlite3.Connection:
    """Open a database, in which every statement is a transaction unless one is begun."""
    sql = sqlite3.connect(path, isolation_level=None, timeout=0)
    sql.create_function("row_checksum", -1, _row_checksum, deterministic=True)
    return sql


def _row_checksum(*values: bytes | None) -> int:
    checksum = 0
    for value in values:
        size = -1 if value is None else len(value)
        checksum = crc32(value or b"", crc32(b"%d," % size, checksum))
    return checksum


def inspect(sql: sqlite3.Connection, path: str) -> int:
    """Lock a file for this process, and look for damage of its pages. Return its format, 0 if it is new.

    Raises:
        InputError: if it is damaged, or not of a format that this version reads.
    """
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
    return int(version)


def prepare(sql: sqlite3.Connection, path: str, version: int) -> None:
    """Create the tables that a file of this format does not have, and check every row.

    Nothing is written to a file of the newest format: it can be on a disk that is full.

    Raises:
        InputError: if there are other tables.
        sqlite3.DatabaseError: if a row is damaged. It names the row.
    """
    sql.execute("pragma journal_mode = wal")
    sql.execute("pragma synchronous = full")
    if version < _FORMAT:
        missing = " ".join(_SCRIPTS[version:])
        sql.executescript(f"begin immediate; {missing} pragma user_version = {_FORMAT}; commit;")
    if _schema(sql) != _expected_schema():
        raise InputError(path, "other tables (damage)", f"those of format {_FORMAT}; {RESTORE}")
    for table, names in _NAMES.items():
        named = ", ".join(f"cast({name} as blob)" for name in names)
        rows = sql.execute(f"select {named} from {table} where not {is_whole(table)}").fetchall()
        if rows:
            raise damage(sql, table, rows[0], len(rows) - 1)


def damage(
    sql: sqlite3.Connection, table: str, row: Iterable[object], more: int = 0
) -> sqlite3.DatabaseError:
    """Return the error of a damaged row.

    ``row``: the values of the columns that name it, as far as they can be read. ``more``: the number of
    other damaged rows of the table.
    """
    shown = ", ".join(_shown(sql, *each) for each in zip(_NAMES[table], row, strict=True))
    others = f" and {more:,} more of it" if more else ""
    return sqlite3.DatabaseError(f"a damaged row of the table {table} ({shown}){others}")


def _shown(sql: sqlite3.Connection, column: str, value: object) -> str:
    """Return a value that names a row: of a topic, with its name."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else f"{value}"
    rows = sql.execute("select cast(name as blob) from topics where id = ?", (text,)).fetchall()
    if column == "topic" and rows:
        text += f" {rows[0][0].decode(errors='replace')!r}"
    return f"{column} {text}"


def _schema(sql: sqlite3.Connection) -> list[tuple[object, ...]]:
    return sql.execute("select type, name, tbl_name, sql from sqlite_master order by name").fetchall()


@cache
def _expected_schema() -> list[tuple[object, ...]]:
    with closing(connect(":memory:")) as sql:
        sql.executescript(" ".join(_SCRIPTS))
        return _schema(sql)

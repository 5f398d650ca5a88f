"""Workloads from tables with a row per partition, as monitoring systems export them."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, and_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.model import MOST_PARTITIONS
from rebalance_lab.scenarios.groups import SCENARIO_DURATION
from rebalance_spark.applications import Several, check_application, column_of, literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NOTHING: Mapping[str, Any] = MappingProxyType({})

GROUP_COLUMNS = ("group", "member", "topic", "partition")
"""The columns by which a table is recognized as one of partitions."""

REPAIRS = "repairs"
"""The column with the number of rows of a group that were repaired."""

REPAIRED_KINDS = "repaired"
"""The column with these rows by their kinds: a text ``amounts=2, duplicates=1``, or null."""

KINDS = {
    "amounts": "with a rate or lag that is no amount, which counts as 0",
    "duplicates": "of a partition that has another row, which count as one",
    "places": "with a topic or a partition alone, which have neither",
    "nameless": "without a group, which are one group",
}
"""The kinds of repaired rows, and what they are. A row has one of them."""

DIFFERING = "differing"
"""The column with the names of kept columns that differ in a group, and are null for this reason."""

LARGEST = "largest_topic"
"""The column with the number of partitions of the largest topic."""

DRAW = "draw"
"""The key that tells the draws of a group apart."""

REPAIRED_ROWS = "{rows:,} rows of the input were repaired, in {scenarios:,} scenarios ({examples})"
REPAIRED = (
    f"{REPAIRED_ROWS}: a rate or lag that is no amount counts as 0, and several rows of a partition count as"
    " one"
)

_AMOUNTS = ("_rate", "_lag")
"""The columns with amounts, which a table need not have."""

_LEAVE = "5m"
_LIMIT = 1e300
_OWNED = "array<struct<_topic:string,_numbers:array<int>>>"
"""The topics of a member, each with the partitions that it owns."""


def groups_to_workload(
    table: "DataFrame",
    *,
    group: str = "group",
    member: str = "member",
    topic: str = "topic",
    partition: str = "partition",
    rate: str | None = None,
    lag: str | None = None,
    keys: Sequence[str] = (),
    keep: Sequence[str] = (),
    events: Sequence[Mapping[str, Any]] | None = None,
    draws: int | None = None,
    application: Mapping[str, Any] = NOTHING,
) -> "DataFrame":
    """Return a workload of running groups from a table with a row per partition and its owner.

    The arguments name columns, also nested ones (``labels.consumer_group``). A column may be an array, or a
    field of an array of structures: then a row has several partitions. `rate`: records/s. `lag`: records that
    wait. `keys`: columns that tell rows with the same group apart, as an hour; the ``scenario_id`` has them
    before the group (``hour=7/payments``). `keep`: further columns, as a team; null in a group in which they
    differ; the column ``differing`` names these. `events`: the events of every scenario. By default one
    member leaves after five of ten minutes. Hashes of the ``scenario_id`` and the members select it, so that
    it is each member, in the order of names, equally often. `draws`: make so many scenarios of each group, in
    each of which another member leaves; a group with fewer members has as many as members. With `events`, the
    draws differ in their seeds. ``draw``, from 0 on, is the last of the keys then. `application`: fields of
    all members, such as ``process_rate`` and ``client``: a value as in a scenario, the name of a column after
    ``@`` (the greatest value of each member counts), or `applications.Several` values. Of these each makes a
    scenario of each group, and the field is a key.

    A row without a member is a partition without an owner; a row without a topic and a partition is a member
    that owns nothing. Members subscribe to all topics of their group. A topic has all partitions up to the
    greatest number; those without a row have no owner.

    Some rows are repaired. The column ``repairs`` has their number in each group, and ``repaired`` the
    numbers by kind. A rate or lag that is null, no number, negative or not finite counts as 0. Of several
    rows of a partition the mean rate, the greatest lag and the last member in the order of names count; no
    member never wins over a named one. A row with a topic or a partition only, or with a partition that is no
    number, has neither. The rows without a group are one group.

    Raises:
        InputError: if a column or a field does not exist, or if `draws` is less than 1.
    """
    check_draws(draws)
    check_application(application, "application")
    from pyspark.sql import functions as sf

    by = ["_id"]
    named = {"_group": group, "_member": member, "_topic": topic, "_partition": partition}
    named |= {name: column for name, column in (("_rate", rate), ("_lag", lag)) if column is not None}
    of_columns = {name: column for name, value in application.items() if (column := column_of(value))}
    named |= {f"_field_{name}": column for name, column in of_columns.items()}
    rows = _flat(table, named, keys, keep)
    rows = rows.repartition(*by)  # one exchange in place of one for each aggregation below
    constant = [name for name in rows.columns if name.startswith(("_group", "_key", "_keep"))]
    once = rows.groupBy(*by, "_topic", "_partition").agg(
        sf.max("_member").alias("_member"),
        sf.avg("_rate").alias("_rate"),
        sf.max("_lag").alias("_lag"),
        *_repairs(),
        *(sf.min(name).alias(name) for name in constant),
        *(sf.max(name).alias(f"_most{name}") for name in constant),
    )
    topics = _topics(once.where("_topic is not null"), by, rate is not None, lag is not None)
    owned = _owned(once.where("_topic is not null and _member is not null"), by)
    fields = [sf.max(f"_field_{name}").alias(f"_field_{name}") for name in of_columns]
    of_members = rows.where("_member is not null")
    everyone = (
        of_members.groupBy(*by, "_member").agg(*fields)
        if fields
        else of_members.select(*by, "_member").distinct()
    )
    members = everyone.join(owned, [*by, "_member"], "left")
    nothing = sf.array().cast(_OWNED)
    listed = members.groupBy(*by).agg(
        sf.array_sort(
            sf.collect_list(
                sf.struct(
                    "_member",
                    sf.coalesce("_owned", nothing).alias("_owned"),
                    *(f"_field_{name}" for name in of_columns),
                )
            )
        ).alias("_members")
    )
    same = {name: sf.min(name).eqNullSafe(sf.max(f"_most{name}")) for name in constant}
    differing = [sf.when(~same[f"_keep{n}"], sf.lit(_short(name))) for n, name in enumerate(keep)]
    groups = once.groupBy(*by).agg(
        *(sf.sum(kind).cast("int").alias(kind) for kind in KINDS),
        sf.nullif(sf.concat_ws(", ", *differing), sf.lit("")).alias(DIFFERING),
        *(sf.when(same[name], sf.min(name)).alias(name) for name in constant),
    )
    whole = groups.join(topics, by, "left").join(listed, by, "left")
    nobody = sf.array().cast(listed.schema["_members"].dataType)
    whole = whole.withColumn("_members", sf.coalesce("_members", nobody))
    if draws is not None:
        most = sf.lit(draws) if events is not None else _members_at_most(draws)
        whole = whole.withColumn(DRAW, sf.explode(sf.sequence(sf.lit(0), most - 1)))
    for name, value in application.items():
        if isinstance(value, Several):
            whole = whole.withColumn(f"_several_{name}", sf.explode(sf.array(*map(literal, value.values))))
    return whole.select(*_columns(keys, keep, events, application, drawn=draws is not None))


def _members_at_most(draws: int) -> "Column":
    """Return the number of draws of a group in which another member leaves in each."""
    from pyspark.sql import functions as sf

    return sf.greatest(sf.least(sf.lit(draws), sf.size("_members")), sf.lit(1))


def check_draws(draws: int | None) -> None:
    """Check the number of draws.

    Raises:
        InputError: if it is less than 1.
    """
    if draws is not None and draws < 1:
        raise InputError("draws", f"{draws}", "at least 1, or none")


def _flat(
    table: "DataFrame", columns: Mapping[str, str], keys: Sequence[str], keep: Sequence[str]
) -> "DataFrame":
    """Return a row per partition, with columns of known names and types. ``columns`` has the given names."""
    from pyspark.sql import functions as sf

    named = dict(columns)
    named |= {f"_key{number}": column for number, column in enumerate(keys)}
    named |= {f"_keep{number}": column for number, column in enumerate(keep)}
    is_array = {alias: _is_array(table, column) for alias, column in named.items()}
    rows = table.select(*(_column(table, column).alias(alias) for alias, column in named.items()))
    arrays = [alias for alias in named if is_array[alias]]
    if arrays:
        single = [name for name in named if name not in arrays]
        rows = rows.select(*single, sf.inline_outer(sf.arrays_zip(*arrays)))
    whole = sf.col("_partition").try_cast("int")
    has_both = sf.col("_topic").isNotNull() & (whole >= 0)
    name = sf.coalesce(sf.col("_group").cast("string"), sf.lit(""))
    return rows.select(
        sf.concat_ws("/", *_parts(keys), name).alias("_id"),
        *(f"_key{number}" for number in range(len(keys))),
        *(f"_keep{number}" for number in range(len(keep))),
        name.alias("_group"),
        _kind_of_repair(has_both, name, columns).alias("_repaired"),
        sf.nullif(sf.col("_member").cast("string"), sf.lit("")).alias("_member"),
        sf.when(has_both, sf.col("_topic").cast("string")).alias("_topic"),
        sf.when(has_both, whole).alias("_partition"),
        *(_amount(amount, columns).alias(amount) for amount in _AMOUNTS),
        *(name for name in columns if name.startswith("_field_")),
    )


def _parts(keys: Sequence[str]) -> list["Column"]:
    """Return the parts of the ids of rows before the group."""
    from pyspark.sql import functions as sf

    return [
        sf.concat(sf.lit(f"{key}="), sf.coalesce(sf.col(f"_key{number}").cast("string"), sf.lit("")))
        for number, key in enumerate(keys)
    ]


def _short(name: str) -> str:
    """Return the name that a key or a kept column has in a workload."""
    return name.rpartition(".")[2]


def _column(table: "DataFrame", name: str) -> "Column":
    from pyspark.sql import functions as sf

    return sf.col(f"`{name}`" if name in table.columns else name)


def _is_array(table: "DataFrame", name: str) -> bool:
    """Return whether a column, or a field of one, has several values in a row.

    Raises:
        InputError: if it does not exist.
    """
    from pyspark.sql.types import ArrayType, DataType, StructType

    kind: DataType = table.schema
    arrays = False
    for part in [name] if name in table.columns else name.split("."):
        if not isinstance(kind, StructType) or part not in kind.names:
            expected = f"a column among {', '.join(table.columns)}, or a field of one"
            raise InputError("groups", repr(name), expected)
        kind = kind[part].dataType
        if isinstance(kind, ArrayType):
            arrays, kind = True, kind.elementType
    return arrays


def _amount(name: str, columns: Mapping[str, str]) -> "Column":
    from pyspark.sql import functions as sf

    if name not in columns:
        return sf.lit(None).cast("double")
    return sf.when(_is_amount(name), sf.col(name).try_cast("double")).otherwise(0.0)


def _is_amount(name: str) -> "Column":
    from pyspark.sql import functions as sf

    number = sf.col(name).try_cast("double")
    return sf.coalesce(number.between(0.0, _LIMIT) & ~sf.isnan(number), sf.lit(False))


def _kind_of_repair(has_both: "Column", group: "Column", columns: Mapping[str, str]) -> "Column":
    """Return why a row is repaired, or null. That of a member without partitions has no amounts."""
    from pyspark.sql import functions as sf

    amounts = [_is_amount(name) for name in _AMOUNTS if name in columns]
    numbered = sf.coalesce(sf.col("_partition").try_cast("int") >= 0, sf.lit(False))
    has_neither = sf.col("_topic").isNull() & ~numbered
    are_amounts = reduce(and_, amounts, sf.lit(True))
    wrong = sf.when(~sf.coalesce(has_both, sf.lit(False)), "places").when(~are_amounts, "amounts")
    return sf.when(group == "", "nameless").when(~has_neither, wrong)


def _repairs() -> list["Column"]:
    """Return the numbers of the repaired rows of a partition by kind. Of several rows, one is not repaired.

    A row that is repaired for another reason is no duplicate, too.
    """
    from pyspark.sql import functions as sf

    counts = {kind: sf.count_if(sf.col("_repaired") == kind) for kind in KINDS if kind != "duplicates"}
    others = sf.count("*") - sf.count("_repaired")
    repeated = sf.when(sf.col("_topic").isNull(), 0).otherwise(sf.count("*") - 1)
    counts["duplicates"] = sf.least(others, repeated)
    return [count.alias(kind) for kind, count in counts.items()]


def _topics(once: "DataFrame", by: Sequence[str], rates: bool, lags: bool) -> "DataFrame":
    """Return the topics of each group as ``_topics``, and their sizes."""
    from pyspark.sql import functions as sf

    rates_of = sf.map_from_entries(sf.collect_list(sf.struct("_partition", "_rate")))
    lags_of = sf.map_from_entries(sf.collect_list(sf.struct("_partition", "_lag")))
    each = once.groupBy(*by, "_topic").agg(
        (sf.max("_partition") + 1).alias("partitions"),
        rates_of.alias("_rates"),
        lags_of.alias("_lags"),
    )
    fields = [sf.col("partitions")]
    fields += [_per_partition("_rates", "double").alias("rates")] if rates else []
    fields += [_per_partition("_lags", "bigint").alias("backlog")] if lags else []
    pairs = sf.array_sort(sf.collect_list(sf.struct("_topic", sf.struct(*fields).alias("_fields"))))
    return each.groupBy(*by).agg(
        sf.map_from_entries(pairs).alias("_topics"),
        sf.sum("partitions").alias("_count"),
        sf.max("partitions").alias("_largest"),
    )


def _per_partition(name: str, kind: str) -> "Column":
    """Return the values of a map by partition as an array; 0 where the map has none."""
    from pyspark.sql import functions as sf

    numbers = sf.sequence(sf.lit(0), sf.col("partitions") - 1)
    values = sf.transform(numbers, lambda n: sf.coalesce(sf.try_element_at(name, n), sf.lit(0.0)).cast(kind))
    return sf.when(sf.col("partitions") <= MOST_PARTITIONS, values)


def _field(member: "Column", name: str, value: Any) -> "Column":
    """Return a field of a member: of a column of the table, one of several values, or the same for all."""
    from pyspark.sql import functions as sf

    if column_of(value):
        return member[f"_field_{name}"]
    return sf.col(f"_several_{name}") if isinstance(value, Several) else literal(value)


def _owned(once: "DataFrame", by: Sequence[str]) -> "DataFrame":
    from pyspark.sql import functions as sf

    numbers = sf.sort_array(sf.collect_list("_partition")).alias("_numbers")
    each = once.groupBy(*by, "_member", "_topic").agg(numbers)
    pairs = sf.array_sort(sf.collect_list(sf.struct("_topic", "_numbers")))
    return each.groupBy(*by, "_member").agg(pairs.alias("_owned"))


def _columns(
    keys: Sequence[str],
    keep: Sequence[str],
    events: Sequence[Mapping[str, Any]] | None,
    application: Mapping[str, Any],
    *,
    drawn: bool,
) -> list["Column"]:
    """Return the columns of the workload."""
    from pyspark.sql import functions as sf

    listed = sf.col("_members")
    topics = sf.coalesce(sf.map_keys("_topics"), sf.array().cast("array<string>"))
    members = sf.transform(
        listed,
        lambda m: sf.struct(
            m["_member"].alias("id"),
            topics.alias("topics"),
            sf.map_from_entries(m["_owned"]).alias("owned"),
            *(_field(m, name, value).alias(name) for name, value in application.items()),
        ),
    )
    name = sf.coalesce(sf.nullif(sf.substring("_group", 1, 249), sf.lit("")), sf.lit("group"))
    document = sf.to_json(
        sf.struct(
            name.alias("name"),
            sf.lit(SCENARIO_DURATION).alias("duration"),
            sf.col("_topics").alias("topics"),
            members.alias("members"),
        )
    )
    by_hash = sf.transform(
        listed, lambda m: sf.struct(sf.xxhash64("_id", m["_member"]).alias("_hash"), m["_member"])
    )
    number = sf.col(DRAW) if drawn else sf.lit(0)
    leaving = sf.get(sf.array_sort(by_hash), number)["_member"]
    leave = sf.struct(sf.lit(_LEAVE).alias("at"), leaving.alias("leave"))
    happens = sf.when(sf.size(listed) > 1, sf.to_json(sf.array(leave))).otherwise("[]")
    if events is not None:
        happens = sf.lit(msgspec.json.encode(events).decode())
    text = sf.concat(sf.substr(document, sf.lit(1), sf.length(document) - 1), sf.lit(',"events":'), happens)
    sizes = [
        sf.size(listed).alias("members"),
        sf.coalesce("_count", sf.lit(0)).cast("int").alias("partitions"),
        (sf.size(listed) > 1).cast("int").alias("events"),
    ]
    several = [name for name, value in application.items() if isinstance(value, Several)]
    draw = [sf.concat(sf.lit(f"{name}="), sf.col(f"_several_{name}").cast("string")) for name in several]
    draw += [sf.concat(sf.lit(f"{DRAW}="), DRAW)] if drawn else []
    counts = [sf.when(sf.col(kind) > 0, sf.concat(sf.lit(f"{kind}="), kind)) for kind in KINDS]
    return [
        sf.concat_ws("/", *_parts(keys), *draw, "_group").alias("scenario_id"),
        sf.concat(text, sf.lit("}")).alias("scenario"),
        *(sizes if events is None else []),
        reduce(add, map(sf.col, KINDS)).alias(REPAIRS),
        sf.nullif(sf.concat_ws(", ", *counts), sf.lit("")).alias(REPAIRED_KINDS),
        sf.col(DIFFERING),
        sf.coalesce("_largest", sf.lit(0)).cast("int").alias(LARGEST),
        *(sf.col(f"_key{number}").alias(_short(key)) for number, key in enumerate(keys)),
        *(sf.col(f"_several_{name}").cast("string").alias(name) for name in several),
        *([sf.col(DRAW)] if drawn else []),
        *(sf.col(f"_keep{number}").alias(_short(name)) for number, name in enumerate(keep)),
    ]

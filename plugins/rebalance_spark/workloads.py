"""Workloads of running groups, from tables with a row per partition as monitoring systems export them.

Spark finds the columns, cleans them and brings the rows of each group together; `groups.scenarios_of` makes
the scenarios of a group.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import LARGEST
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.verdicts.rule import FEWEST_PAIRS
from rebalance_spark.applications import check_application, column_of
from rebalance_spark.groups import PROBLEMS, Options, made_of
from rebalance_spark.sizes import WORKLOAD_NAMES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

NOTHING: Mapping[str, Any] = MappingProxyType({})
AMOUNTS = ("rate", "lag")
ON_BAD = ("repair", "row", "raise")

SENTENCES = {
    "unreadable_rate": "rates that are no plain numbers: {} ({}); each takes the mean of its topic",
    "unknown_rate": "unknown rates: {} ({}); each takes the mean of its topic",
    "missing_row": "partitions without a row: {} ({}); each has no owner and the mean rate of its topic",
    "unknown_lag": "unknown lags: {} ({}); each counts as no backlog",
    "duplicate": "further rows of a partition: {} ({}); the mean rate, greatest lag and last owner count",
    "no_partition": "rows with a topic or a partition alone: {} ({}); they have neither",
    "no_rate_row": "partitions without a row in the rates: {} ({}); each takes the mean of its topic",
    "no_group": "rows without a group: {} ({}); they are left out",
    "impossible": "groups that cannot be: {} ({}); they are errors",
    "unnamed_key": "groups with rows apart by a column that is no key: {} ({}); keys may name it",
    "no_owner_row": "partitions with a rate that no group owns: {} ({}); they are left out",
    "no_members": "groups without members: {} ({}); they are errors",
    "differing": "kept columns that differ in a group: {} ({}); they are null there",
    "few_scenarios": f"groups with few scenarios: {{}} ({{}}); a decision takes {FEWEST_PAIRS} of each",
    "repeated_id": "ids that several scenarios have: {} ({}); more keys tell them apart",
}
"""The kinds of problems, each with its sentence of the count and the example."""
_OF_GROUPS, _OF_ROWS = list(SENTENCES)[:7], list(SENTENCES)[:9]
"""The kinds that make a group an error under ``row``, and those that are refused under ``raise``."""
_PLACE = ("topic", "partition")
_GREATEST = {"rate": LARGEST, "lag": 1e18}
_KEYS = ("string", "tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")
"""The types of columns that may be keys: figures with fractions and values of several parts are none."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload of Spark, which is computed when it is used; that of a table once, and kept on disks.

    ``scenarios`` has ``scenario_id``, ``group``, the keys, ``scenario``, ``members``, ``partitions``,
    ``events``, ``repairs`` (of tables of partitions) and the kept columns. ``problems`` has a row for each of
    `SENTENCES` that was found: ``kind`` (string), ``count`` (bigint) and ``example`` (string).
    """

    scenarios: "DataFrame"
    problems: "DataFrame"

    def transform(self, function: Callable[..., "DataFrame"], *args: Any, **kwargs: Any) -> "DataFrame":
        """Return what a function, such as `score`, makes of the scenarios."""
        return self.scenarios.transform(function, *args, **kwargs)


def workload(
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
    rates: "DataFrame | None" = None,
    interval: str | int = "1s",
    on_bad: str = "repair",
    draws: int | None = None,
    events: Sequence[Mapping[str, Any]] | None = None,
    application: Mapping[str, Any] = NOTHING,
) -> Workload:
    """Return a workload of running groups from a table with a row per partition and its owner.

    The arguments name columns, also nested ones (``labels.consumer_group``). A column may be an array, or a
    field of an array of structures: then a row has several partitions. `rate`: records in an `interval`.
    `lag`: records that wait. By default they are the columns of these names, if there are any. `keys`:
    columns that tell rows with the same group apart, as an hour; the ``scenario_id`` has them before the
    group (``hour=7/payments``). `keep`: further columns, as a team; null in a group in which they differ.

    `rates`: a table with ``topic``, ``partition``, ``rate`` and maybe ``lag``, if these are not in that of
    the owners. Of keys that it alone has, such as the hour, each value is one of all groups.

    `events`: the events of every scenario. By default one member leaves after five of ten minutes. Hashes of
    the id and the members select it, so that it is each member equally often. `draws`: make so many scenarios
    of each group, in each of which another member leaves; a group with fewer members has as many as members.
    With `events`, the draws differ in their seeds. ``draw``, from 0 on, is the last of the keys then.
    `application`: fields of all members, such as ``process_rate`` and ``client``: a value as in a scenario,
    the name of a column after ``@`` (the greatest value of each member counts), or `applications.Several`
    values. Of these each makes a scenario of each group, and the field is a key.

    A row without a member is a partition without an owner; a row without a topic and a partition is a member
    that owns nothing. Members subscribe to all topics of their group. A topic has all partitions up to the
    greatest number. Those without a row have no owner; they and all others of which the rate is unknown
    (null, no number, negative or not finite; 1,234.5 is a number) have the mean of the known rates of the
    topic, or else of the group; with none, the group has no rates. An unknown lag is no backlog. Of several
    rows of a partition the mean rate, the greatest lag and the last member in the order of names count; no
    member never wins over a named one. A row with a topic or a partition only has neither. Rows without a
    group are left out.

    `on_bad`: ``repair`` does so and counts these rows in ``repairs``; ``row`` makes an error of a group with
    such a row, which scoring reports; ``raise`` looks for such rows at once, in a job. A group cannot be, and
    is such an error always, if a topic has a number of 200,000 or more, or rows for fewer than a tenth of its
    numbers. Up to the number 99 a topic may have few rows: exporters leave out idle partitions.

    Raises:
        InputError: if a column or a field does not exist or a value is not allowed; with ``raise``, of the
            first kind of problem.
    """
    from pyspark import StorageLevel

    for where, names in (("keys", keys), ("keep", keep)):
        if isinstance(names, str):
            raise InputError(where, repr(names), f"a list of columns, such as [{names!r}]")
    if draws is not None and draws < 1:
        raise InputError("draws", f"{draws}", "at least 1, or none")
    if on_bad not in ON_BAD:
        raise InputError("on_bad", repr(on_bad), one_of(on_bad, ON_BAD))
    check_application(application, "application")
    measured = table if rates is None else rates
    named = {"group": group, "member": member, "topic": topic, "partition": partition}
    named |= {f"key{n}": name for n, name in enumerate(keys)}
    named |= {f"keep{n}": name for n, name in enumerate(keep)}
    named |= {f"field_{name}": column for name, value in application.items() if (column := column_of(value))}
    for alias, name in (("rate", rate), ("lag", lag)):
        if name or alias in measured.columns:
            named[alias] = name or alias
    named |= {f"other{n}": name for n, name in enumerate(_others([table, measured], set(named.values())))}
    rows = _placed(_flat(table, named, "table")) if rates is None else _joined(table, rates, named)
    options = Options(
        keys=[_short(name) for name in keys],
        keep=[_short(name) for name in keep],
        candidates=[
            (field.name, _short(named[field.name]))
            for field in rows.schema.fields
            if field.name.startswith(("keep", "other")) and field.dataType.simpleString() in _KEYS
        ],
        amounts=[name for name in AMOUNTS if name in named],
        on_bad=on_bad,
        draws=draws,
        events=events,
        application=dict(application),
    )
    columns = [*Options(draws=draws).columns, *options.keys, *options.several, *options.keep]
    for name in (name for name in columns if columns.count(name) > 1):
        raise InputError("table", f"a second column {name!r}", "another name")
    made = _made(rows, options, 1_000 / parse_duration(interval, "interval", at_least_ms=1))
    made = made.persist(StorageLevel.DISK_ONLY)  # scenarios and problems are columns of the same rows
    found = Workload(made.where("scenario is not null").drop("problems"), problems_of(made))
    if on_bad == "raise":
        _refuse(found.problems)
    return found


def of_scenarios(frame: "DataFrame", keys: Sequence[str] = ()) -> Workload:
    """Return a workload of scenarios. The ``scenario_id`` gets the keys, and ``group`` is it without them.

    Raises:
        InputError: if a key is no column.
    """
    from pyspark.sql import functions as sf

    for key in (key for key in keys if key not in frame.columns):
        raise InputError("keys", repr(key), one_of(key, frame.columns))
    name = sf.coalesce(sf.col("scenario_id").cast("string"), sf.lit(""))
    first = {"scenario_id": sf.concat_ws("/", *_id_parts(keys, keys), name)}
    first |= {"group": sf.col("group") if "group" in frame.columns else name}
    names = dict.fromkeys(
        [*keys, *(each for each in WORKLOAD_NAMES[1:] if each in frame.columns), *frame.columns]
    )
    others = [sf.col(f"`{each}`") for each in names if each not in first]
    made = frame.select(*(column.alias(each) for each, column in first.items()), *others)
    nothing = sf.array().cast(PROBLEMS).alias("problems")
    rows = made.select("scenario_id", "group", "scenario", nothing)
    return Workload(made, problems_of(rows, are_groups=bool(keys)))


def said(problems: Iterable[Any], on_bad: str = "repair") -> list[str]:
    """Return a sentence for each row of ``Workload.problems``, in the order of `SENTENCES`."""
    rows = {row["kind"]: row for row in problems}
    found = {kind: text for kind, text in SENTENCES.items() if kind in rows}
    if on_bad == "row":
        found |= {
            kind: f"{text.rpartition(';')[0]}; their groups are errors"
            for kind, text in found.items()
            if kind in _OF_GROUPS
        }
    return [text.format(f"{rows[kind]['count']:,}", rows[kind]["example"]) for kind, text in found.items()]


def _refuse(problems: "DataFrame") -> None:
    found = {row["kind"]: row for row in problems.collect()}
    for kind in (kind for kind in _OF_ROWS if kind in found):
        times, example = found[kind]["count"], found[kind]["example"]
        raise InputError("table", f"{kind} {times:,} times ({example})", 'none (on_bad="repair" allows it)')


def problems_of(made: "DataFrame", *, are_groups: bool = True) -> "DataFrame":
    """Return the problems of scenarios: those in their column ``problems``, and those of all together.

    Without `are_groups`, each scenario stands for itself, and none of them is one of few.
    """
    from pyspark.sql import functions as sf

    of_all = [
        f"named_struct('kind', '{kind}', 'count', 1L, 'example', cast({name} as string))"
        for kind, name in (("repeated_id", "scenario_id"), ("few_scenarios", "`group`"))[: 1 + are_groups]
    ]
    listed = f"if(scenario is null, problems, concat(problems, array({', '.join(of_all)})))"
    each = made.selectExpr(f"inline({listed})")
    summed = each.groupBy("kind", "example").agg(sf.sum("count").alias("times"))
    counted = "kind in ('few_scenarios', 'repeated_id')"
    wrong = summed.where(f"if({counted}, if(kind = 'repeated_id', times > 1, times < {FEWEST_PAIRS}), true)")
    # a name with a line feed or another control character must not break a line
    line = sf.replace(sf.col("example"), sf.lit("\n"), sf.lit("\\n"))
    wrong = wrong.withColumn("example", sf.regexp_replace(line, r"[\p{Cc}\p{Zl}\p{Zp}]", "?"))
    times = f"concat(example, ': ', times, if(kind = 'repeated_id', ' rows', ' of {FEWEST_PAIRS}'))"
    example = f"min(if({counted}, {times}, example)) as example"
    count = f"sum(if({counted}, 1L, times)) as count"
    return wrong.groupBy("kind").agg(sf.expr(count), sf.expr(example))


# --- the columns, in Spark


def _short(name: str) -> str:
    """Return the name that a key or a kept column has in a workload."""
    return name.rpartition(".")[2]


def _id_parts(keys: Sequence[str], columns: Sequence[str]) -> list["Column"]:
    """Return the parts of an id before the group, such as ``hour=7``."""
    from pyspark.sql import functions as sf

    pairs = zip(keys, columns, strict=True)
    texts = {key: sf.coalesce(sf.col(f"`{column}`").cast("string"), sf.lit("")) for key, column in pairs}
    return [sf.concat(sf.lit(f"{key}="), text) for key, text in texts.items()]


def has_column(frame: "DataFrame", name: str) -> bool:
    """Return whether a table has a column, or one of which it may be a field."""
    return name in frame.columns or name.partition(".")[0] in frame.columns


def _others(frames: Sequence["DataFrame"], used: Collection[str]) -> dict[str, None]:
    """Return the names of the columns that are not used and may be keys."""
    fields = [field for frame in frames for field in frame.schema.fields]
    return dict.fromkeys(f.name for f in fields if f.name not in used and f.dataType.simpleString() in _KEYS)


def _is_array(frame: "DataFrame", name: str, where: str) -> bool:
    """Return whether a column, or a field of one, has several values in a row.

    Raises:
        InputError: if it does not exist.
    """
    from pyspark.sql.types import ArrayType, DataType, StructType

    kind: DataType = frame.schema
    arrays = False
    for part in [name] if name in frame.columns else name.split("."):
        if not isinstance(kind, StructType) or part not in kind.names:
            raise InputError(where, repr(name), one_of(name, frame.columns))
        kind = kind[part].dataType
        if isinstance(kind, ArrayType):
            arrays, kind = True, kind.elementType
    return arrays


def _flat(frame: "DataFrame", named: Mapping[str, str], where: str) -> "DataFrame":
    """Return columns under other names, with a row for each entry of those that are arrays."""
    from pyspark.sql import functions as sf

    arrays = [alias for alias, name in named.items() if _is_array(frame, name, where)]
    columns = {alias: sf.col(f"`{n}`" if n in frame.columns else n) for alias, n in named.items()}
    rows = frame.select(*(column.alias(alias) for alias, column in columns.items()))
    single = [alias for alias in named if alias not in arrays]
    return rows.select(*single, sf.inline_outer(sf.arrays_zip(*arrays))) if arrays else rows


def _placed(rows: "DataFrame") -> "DataFrame":
    """Return rows with topic and number of a partition, or neither: then ``alone`` has what there is."""
    topic, number = "nullif(cast(topic as string), '')", "try_cast(partition as double)"
    whole = f"if({number} >= 0 and {number} = floor({number}), try_cast({number} as bigint), null)"
    found = rows.selectExpr("*", f"{topic} as name", f"{whole} as number")
    text = "if((name is null) != (number is null), concat_ws(' ', name, cast(partition as string)), null)"
    names = [f"`{column}`" for column in rows.columns if column not in _PLACE]
    both = ["if(number is null, null, name) as topic", "if(name is null, null, number) as partition"]
    return found.selectExpr(*names, *both, f"{text} as alone")


def _joined(owners: "DataFrame", rates: "DataFrame", named: Mapping[str, str]) -> "DataFrame":
    """Return a row for each pair of an owner and a rate of a partition, and for each of them without other.

    Keys of both are equal in a pair. ``owned`` and ``rated`` are null where there is none.
    """
    from pyspark.sql import functions as sf

    if "rate" not in named:
        raise InputError("rates", f"the columns {', '.join(rates.columns)}", "'rate' among them")
    of_rates = [a for a, n in named.items() if has_column(rates, n)]
    left = {
        a: n for a, n in named.items() if a not in AMOUNTS and (has_column(owners, n) or a not in of_rates)
    }
    both = [a for a in named if a in _PLACE or (a.startswith("key") and a in of_rates)]
    right = {a: n for a, n in named.items() if a in both or a not in left}
    one = _placed(_flat(owners, left, "owners")).withColumn("owned", sf.lit(True))
    other = _placed(_flat(rates, right, "rates")).withColumn("rated", sf.lit(True))
    if alone := [name for name in both if name not in left]:
        one = one.crossJoin(other.select(*alone).distinct())
    twice = [*both, "alone"]
    other = other.withColumnsRenamed({name: f"right_{name}" for name in twice})
    # no topic is equal to no other, but a key may be null in both
    equal = [sf.col(n).eqNullSafe(sf.col(f"right_{n}")) for n in both if n not in _PLACE]
    equal += [sf.col(name) == sf.col(f"right_{name}") for name in _PLACE]
    merged = {name: sf.coalesce(name, f"right_{name}") for name in twice}
    return one.join(other, reduce(and_, equal), "full_outer").withColumns(merged)


def _made(rows: "DataFrame", options: Options, scale: float) -> "DataFrame":
    """Return the scenarios with their problems, and rows without a scenario with those of no group."""
    from pyspark.sql import functions as sf

    name = sf.nullif(sf.col("group").cast("string"), sf.lit(""))
    keys = _id_parts(options.keys, [f"key{n}" for n in range(len(options.keys))])
    columns = [
        sf.when(name.isNotNull(), sf.concat_ws("/", *keys, name)).alias("id"),
        name.alias("group"),
        sf.expr("nullif(cast(member as string), '') as member"),
        *("topic", "partition", "alone"),
        *(name if name in rows.columns else sf.lit(True).alias(name) for name in ("owned", "rated")),
        *(name for name in rows.columns if name.startswith(("key", "keep", "other", "field_"))),
    ]
    for amount in options.amounts:
        # 1,234.5 is a number, but 1,234 may be one with a decimal comma
        text = f"cast({amount} as string)"
        plain = f"if({text} rlike '^[0-9]{{1,3}}(,[0-9]{{3}})+[.][0-9]+$', replace({text}, ',', ''), {text})"
        factor, number = scale if amount == "rate" else 1, f"try_cast({plain} as double)"
        known = f"coalesce({number} between 0 and {_GREATEST[amount]}D, false)"
        columns.append(sf.expr(f"if({known}, {number} * {factor}D, null) as {amount}"))
        columns.append(sf.expr(f"if({known}, null, cast({amount} as string)) as wrong_{amount}"))
    clean = rows.select(*columns)
    # rows without a group are together too many for a process, and in parts are counted as well
    part = sf.when(sf.col("group").isNull(), sf.pmod(sf.xxhash64("topic", "partition"), sf.lit(64)))
    types = {field.name: field.dataType.simpleString() for field in clean.schema.fields}
    schema = ", ".join(f"`{name}` {types.get(kind, kind)}" for name, kind in options.columns.items())

    def made(group: "pa.Table") -> "pa.Table":
        return made_of(group, options)

    return clean.groupBy("id", part).applyInArrow(made, schema)

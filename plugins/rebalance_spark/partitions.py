"""A table of rates and one of members, as a table with a row per partition."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_spark.groups import GROUP_COLUMNS, groups_to_workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RATE, LAG = "rate", "lag"


def partitions_to_workload(
    rates: "DataFrame",
    members: "DataFrame",
    *,
    interval_ms: int = 1_000,
    columns: Mapping[str, str] | None = None,
    keys: Sequence[str] = (),
    **of_groups: Any,
) -> "DataFrame":
    """Return a workload of running groups from the rates of partitions and the members that own them.

    ``rates`` has a row per partition, with ``topic``, ``partition``, ``rate`` and maybe ``lag``; ``members``
    has ``group``, ``member``, ``topic`` and ``partition``. `interval_ms`: a rate is the number of records in
    so long. `columns` has the names of these columns where they differ, in either table. Of `keys` that rates
    alone have, such as an hour, each value is one of all groups. The other arguments are those of
    `groups_to_workload`. A partition without a rate has the rate 0.

    Raises:
        InputError: if a column does not exist, or as `groups_to_workload`.
    """
    named = dict(columns or {})
    table = with_rates(rates, members, interval_ms=interval_ms, columns=named, keys=keys)
    given: dict[str, Any] = {name: named.get(name, name) for name in GROUP_COLUMNS}
    given |= {name: name for name in (RATE, LAG) if name in table.columns}
    return groups_to_workload(table, keys=keys, **given, **of_groups)


def with_rates(
    rates: "DataFrame",
    members: "DataFrame",
    *,
    interval_ms: int,
    columns: Mapping[str, str],
    keys: Sequence[str],
) -> "DataFrame":
    """Return the table of members with the rates per second of their partitions, as `partitions_to_workload`.

    Raises:
        InputError: if a column does not exist.
    """
    from pyspark.sql import functions as sf

    if interval_ms < 1:
        raise InputError("interval", f"{interval_ms} ms", "at least a millisecond")
    places = [columns.get("topic", "topic"), columns.get("partition", "partition")]
    of_rates = [key for key in keys if key in rates.columns]
    on = [*places, *of_rates]
    rate, lag = columns.get(RATE, RATE), columns.get(LAG, LAG)
    for where, table, names in (("rates", rates, [*on, rate]), ("members", members, places)):
        for name in names:
            if name not in table.columns:
                raise InputError(where, repr(name), one_of(name, table.columns))
    amounts = [(sf.sum(rate) * (1_000 / interval_ms)).alias(RATE)]
    amounts += [sf.max(lag).alias(LAG)] if lag in rates.columns else []
    once = rates.groupBy(*on).agg(*amounts)
    alone = [key for key in of_rates if key not in members.columns]
    everyone = members.drop(RATE, LAG)
    if alone:
        everyone = everyone.crossJoin(rates.select(*alone).distinct())
    known = {column: sf.coalesce(column, sf.lit(0)) for column in once.columns if column not in on}
    return everyone.join(once, on, "left").withColumns(known)

"""The scenarios of one group from the rows of its partitions, in time that grows with their number only."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from math import fsum
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.fields import MOST_PARTITIONS
from rebalance_lab.scenarios.groups import SCENARIO_DURATION
from rebalance_lab.scoring.documents import unreadable
from rebalance_spark.applications import Several, column_of
from rebalance_spark.sizes import Size, size_of

DRAW = "draw"
"""The key that tells the draws of a group apart."""
REPAIRS = "repairs"
"""The column with the number of rows of a group that were repaired."""
SPARSE, DENSE_UP_TO = 10, 100
"""A topic with a greatest number of `DENSE_UP_TO` or more has a row for one of `SPARSE` numbers at least."""

_LEAVE = "5m"
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_KINDS = (
    "unreadable_rate",
    "unknown_rate",
    "missing_row",
    "unknown_lag",
    "duplicate",
    "no_partition",
    "no_rate_row",
)
"""The kinds of problems of rows that are repaired."""
PROBLEMS = "array<struct<kind:string,count:bigint,example:string>>"
_PROBLEM = pa.struct([("kind", pa.string()), ("count", pa.int64()), ("example", pa.string())])
_TYPES = {"string": pa.string(), "int": pa.int32(), PROBLEMS: pa.list_(_PROBLEM)}


class Problem(NamedTuple):
    """So many problems of a kind, with an example."""

    kind: str
    number: int
    example: str


@dataclass(frozen=True, slots=True)
class Options:
    """How the scenarios of a group are made of its rows.

    ``amounts``: those of ``rate`` and ``lag`` that are there. ``candidates``: the columns among the rows that
    may be keys which nobody named, with their names. The other fields are arguments of `workload`.
    """

    keys: Sequence[str] = ()
    keep: Sequence[str] = ()
    candidates: Sequence[tuple[str, str]] = ()
    amounts: Sequence[str] = ()
    on_bad: str = "repair"
    draws: int | None = None
    events: Sequence[Mapping[str, Any]] | None = None
    application: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> dict[str, str]:
        """Return the columns of scenarios with their types, or the columns of rows that have these types."""
        return {
            **dict.fromkeys(["scenario_id", "group"], "string"),
            **{name: f"key{n}" for n, name in enumerate(self.keys)},
            **dict.fromkeys(self.several, "string"),
            **({} if self.draws is None else {DRAW: "int"}),
            "scenario": "string",
            **dict.fromkeys([*Size._fields, REPAIRS], "int"),
            **{name: f"keep{n}" for n, name in enumerate(self.keep)},
            "problems": PROBLEMS,
        }

    @property
    def several(self) -> list[str]:
        """Return the fields of the application that have several values."""
        return [name for name, value in self.application.items() if isinstance(value, Several)]


class _Group(NamedTuple):
    """The rows of a group: the values of each column, and of each partition of each topic its rows."""

    name: str
    values: Mapping[str, list[Any]]
    members: list[str]
    topics: Mapping[str, Mapping[int, list[int]]]

    def known(self, column: str, rows: Iterable[int]) -> list[Any]:
        """Return the values of rows that have one."""
        values = self.values[column]
        return [value for row in rows if (value := values[row]) is not None]

    def partitions(self) -> Iterator[tuple[str, int, list[int]]]:
        """Yield the topic, the number and the rows of each partition that has some, in order."""
        for topic, numbers in self.topics.items():
            for number, rows in numbers.items():
                yield topic, number, rows


def made_of(rows: pa.Table, options: Options) -> pa.Table:
    """Return `scenarios_of` as a table with the columns of the options."""
    found = scenarios_of(rows, options)
    types = {name: _TYPES.get(kind) or rows.schema.field(kind).type for name, kind in options.columns.items()}
    return pa.table({name: pa.array([row.get(name) for row in found], kind) for name, kind in types.items()})


def scenarios_of(rows: pa.Table, options: Options) -> list[dict[str, Any]]:
    """Return the scenarios of a group from its rows: one, or one for each draw and each of several values.

    The first of them has the ``problems`` of the group. Rows without a group make a row with only these.
    """
    name = rows.column("group")[0].as_py()
    group = _group_of(name or "", rows, options)
    if name is None:
        return [{"problems": _strays(group)}]
    error = _impossible(group)
    repairs, problems = _repaired(group, options.amounts, gaps=error is None)
    if error is not None:
        problems.append(Problem("impossible", 1, str(error)))
    elif options.on_bad == "row" and problems:
        kind, number, example = problems[0]
        error = InputError(f"group {name!r}", f"{kind} {number:,} times ({example!r})", "none (on_bad)")
    if not group.members:
        problems.append(Problem("no_members", 1, name))
    row = {"group": name, REPAIRS: 0 if error else repairs, "problems": []}
    row |= {key: rows.column(f"key{n}")[0].as_py() for n, key in enumerate(options.keys)}
    for n, column in enumerate(options.keep):
        values = [value for value in rows.column(f"keep{n}").to_pylist() if value is not None]
        differs = any(value != values[0] for value in values)
        row[column] = None if differs or not values else values[0]
        problems += [Problem("differing", 1, f"{column} in {name}")] if differs else []
    problems += _unnamed_key(group, rows, options.candidates)
    made = [row | scenario for scenario in _scenarios(group, rows, options, error)]
    made[0]["problems"] = problems
    return made


def _group_of(name: str, rows: pa.Table, options: Options) -> _Group:
    wrong = [f"wrong_{amount}" for amount in options.amounts]
    columns = ("member", "topic", "partition", "alone", "owned", "rated", *options.amounts, *wrong)
    values = {column: rows.column(column).to_pylist() for column in columns}
    topics: dict[str, dict[int, list[int]]] = {}
    for row, (topic, number) in enumerate(zip(values["topic"], values["partition"], strict=True)):
        if topic is not None:
            topics.setdefault(topic, {}).setdefault(number, []).append(row)
    members = sorted({member for member in values["member"] if member is not None})
    return _Group(
        name, values, members, {topic: dict(sorted(topics[topic].items())) for topic in sorted(topics)}
    )


def _strays(group: _Group) -> list[Problem]:
    """Return the problems of rows without a group: those of owners, and rates that nobody owns."""
    found: dict[str, list[str]] = {"no_group": [], "no_partition": [], "no_owner_row": []}
    columns = (group.values[name] for name in ("owned", "alone", "topic", "partition"))
    for owned, alone, topic, number in zip(*columns, strict=True):
        kind = "no_group" if owned else "no_owner_row" if topic is not None else "no_partition"
        found[kind].append(alone or f"{topic} {number}")
    found["no_owner_row"] = list(set(found["no_owner_row"]))  # each partition once
    return [Problem(kind, len(places), min(places)) for kind, places in found.items() if places]


def _impossible(group: _Group) -> InputError | None:
    """Return why a group cannot be: a number is too great, or so few others are there that it is wrong."""
    for topic, numbers in group.topics.items():
        where, greatest = f"group {group.name!r}, topic {topic!r}", max(numbers)
        if greatest >= MOST_PARTITIONS:
            return InputError(where, f"partition {greatest:,}", f"numbers below {MOST_PARTITIONS:,}")
        if greatest >= DENSE_UP_TO and len(numbers) * SPARSE <= greatest:
            found = f"partition {greatest:,}, and rows of {len(numbers):,} partitions"
            return InputError(where, found, f"rows of at least {-(-(greatest + 1) // SPARSE):,}")
    return None


def _repaired(group: _Group, amounts: Sequence[str], *, gaps: bool) -> tuple[int, list[Problem]]:
    """Return the number of rows that are repaired, and of which kinds they are.

    Of several rows of a partition all but one are duplicates; those without an amount are among them. With
    `gaps`, a partition without a row is one with an unknown rate.
    """
    values, repairs = group.values, 0
    found: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    found["no_partition"] = [f"{group.name} {text}" for text in values["alone"] if text is not None]
    for topic, number, rows in group.partitions():
        place = f"{group.name} {topic} {number}"
        bad = {row for row in rows for amount in amounts if values[amount][row] is None}
        for amount in amounts:
            wrong = [
                values[f"wrong_{amount}"][row]
                for row in bad
                if values[amount][row] is None and values["rated"][row]
            ]
            for text in sorted(wrong, key=str):
                kind = "unreadable_rate" if amount == "rate" and _is_unreadable(text) else f"unknown_{amount}"
                found[kind].append(f"{place}: {'null' if text is None else repr(text)}")
        found["no_rate_row"] += [place for row in bad if not values["rated"][row]]
        found["duplicate"] += [place] * (len(rows) - 1)
        repairs += max(len(rows) - 1, len(bad))
    if gaps and "rate" in amounts:
        for topic, numbers in group.topics.items():
            absent = [number for number in range(max(numbers)) if number not in numbers]
            found["missing_row"] += [f"{group.name} {topic} {number}" for number in absent]
            repairs += len(absent)
    problems = [Problem(kind, len(texts), texts[0]) for kind, texts in found.items() if texts]
    return repairs + len(found["no_partition"]), problems


def _is_unreadable(text: str | None) -> bool:
    """Return whether a text has digits and is no number, such as one with a unit or a decimal comma."""
    if text is None or not any(map(str.isdecimal, text)):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def _unnamed_key(group: _Group, rows: pa.Table, candidates: Sequence[tuple[str, str]]) -> list[Problem]:
    """Return which column tells the rows of partitions apart, such as the hour, if one does.

    It has nearly as many values as rows for each partition, and the same ones for all of them: one row may
    be a duplicate besides, or a tenth of them. Of several columns it is that with the fewest values.
    """
    several = [each for _, _, each in group.partitions() if len(each) > 1]
    others, most = sum(map(len, several)) - len(several), max(map(len, several), default=0)
    found = []
    for column, name in candidates if several else []:
        values = rows.column(column).to_pylist()
        told = [{values[row] for row in each} for each in several]
        apart, different = sum(map(len, told)) - len(told), len(set().union(*told))
        if apart and others - apart <= max(1, others // 10) and different <= 2 * most:
            found.append((different, f"{name}: {different} values in {group.name}"))
    return [Problem("unnamed_key", 1, example) for _, example in sorted(found)[:1]]


def _scenarios(
    group: _Group, rows: pa.Table, options: Options, error: InputError | None
) -> Iterator[dict[str, Any]]:
    """Yield the id, the further keys, the text and the size of each scenario of a group."""
    group_id = rows.column("id")[0].as_py()
    before = group_id.removesuffix(group.name)
    leaving = sorted(group.members, key=lambda member: _hash(group_id, member))
    happens: list[Any] = [options.events] * (options.draws or 1)
    if options.events is None:
        leaves = [[{"at": _LEAVE, "leave": member}] for member in leaving] if len(leaving) > 1 else [[]]
        happens = leaves[: options.draws or 1]
    document: dict[str, Any] = {
        "name": group.name[:249],
        "duration": SCENARIO_DURATION,
        "topics": {},
        "members": [],
    }
    if error is None:
        document |= {"topics": _topics(group, options.amounts), "members": _members(group, rows, options)}
    for chosen in product(*(options.application[name].values for name in options.several)):
        fields = dict(zip(options.several, chosen, strict=True))
        whole = {**document, "members": [member | fields for member in document["members"]]}
        begun = _json(whole).removesuffix("}")
        keys = {key: value if isinstance(value, str) else _json(value) for key, value in fields.items()}
        for draw, events in enumerate(happens):
            drawn = keys if options.draws is None else {**keys, DRAW: draw}
            yield {
                "scenario_id": before + "/".join([*(f"{k}={v}" for k, v in drawn.items()), group.name]),
                **drawn,
                "scenario": unreadable(error) if error else f'{begun},"events":{_json(events)}}}',
                **(Size() if error else size_of({**whole, "events": events}))._asdict(),
            }


def _json(value: Any) -> str:
    return _ENCODER.encode(value).decode()


def _hash(group_id: str, member: str) -> bytes:
    return blake2b(f"{group_id}\0{member}".encode(errors="replace"), digest_size=8).digest()


def _topics(group: _Group, amounts: Sequence[str]) -> dict[str, Any]:
    """Return the topics of a document. An unknown rate is the mean of the topic, or else of the group."""
    rates: dict[str, dict[int, float]] = {topic: {} for topic in group.topics}
    lags: dict[str, dict[int, int]] = {topic: {} for topic in group.topics}
    for topic, number, rows in group.partitions():
        if "rate" in amounts and (known := group.known("rate", rows)):
            rates[topic][number] = fsum(known) / len(known)
        if "lag" in amounts and (known := group.known("lag", rows)):
            lags[topic][number] = int(max(known))
    every = [rate for known in rates.values() for rate in known.values()]
    found: dict[str, dict[str, Any]] = {}
    for topic, numbers in group.topics.items():
        count = max(numbers) + 1
        found[topic] = {"partitions": count}
        if every:
            usual = list(rates[topic].values()) or every
            mean = fsum(usual) / len(usual)
            found[topic]["rates"] = [rates[topic].get(number, mean) for number in range(count)]
        if any(lags.values()):
            found[topic]["backlog"] = [lags[topic].get(number, 0) for number in range(count)]
    return found


def _members(group: _Group, rows: pa.Table, options: Options) -> list[dict[str, Any]]:
    """Return the members of a document, with all fields but those of several values."""
    application = options.application
    same = {n: v for n, v in application.items() if not column_of(v) and n not in options.several}
    found = {m: {"id": m, "topics": list(group.topics), "owned": {}, **same} for m in group.members}
    for topic, number, of_partition in group.partitions():
        if owners := group.known("member", of_partition):
            found[max(owners)]["owned"].setdefault(topic, []).append(number)
    for name in (name for name, value in application.items() if column_of(value)):
        pairs = zip(group.values["member"], rows.column(f"field_{name}").to_pylist(), strict=True)
        for member, value in sorted(pair for pair in pairs if None not in pair):
            found[member][name] = value  # the greatest is the last
    return list(found.values())

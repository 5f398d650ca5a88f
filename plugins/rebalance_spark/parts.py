"""Scenarios in parts, by a column of their scores or of their workload, and as subjects of a decision."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import one_of
from rebalance_spark.stored import Scored, encoded

MOST_PARTS = 20
"""Of more values the most frequent are parts, and the others are one part together."""

_FEW = 8
"""So many different numbers are parts by themselves. More are put together by powers of two."""

SCENARIO, GROUP = "scenario_id", "group"


@dataclass(frozen=True, slots=True, eq=False)
class Subjects:
    """The subjects of decisions: a group with the scenarios of all its hours, or each scenario by itself.

    ``column`` is the column with their ``names``, which are sorted. ``numbers`` has that of each scenario.
    """

    column: str
    names: Sequence[str]
    numbers: npt.NDArray[np.int64]

    @property
    def are_scenarios(self) -> bool:
        """Whether each scenario is a subject."""
        return self.column == SCENARIO

    @property
    def singular(self) -> str:
        """The word for one subject."""
        return {SCENARIO: "scenario", GROUP: "group"}.get(self.column, f"value of {self.column}")

    @property
    def counted(self) -> str:
        """The number of the subjects with their word."""
        return f"{len(self.names):,} {self.singular if len(self.names) == 1 else self.plural}"

    @property
    def plural(self) -> str:
        """The word for several subjects."""
        return {SCENARIO: "scenarios", GROUP: "groups"}.get(self.column, f"values of {self.column}")


def subjects_of(scored: Scored, per: str = "") -> Subjects:
    """Return the subjects of decisions by a column of scores, or by several (``cluster,group``).

    The column ``group`` has the ids of scenarios without the keys before them, if the scores have no column
    of this name. It is the default, unless it is equal to ``scenario_id``, which is the default then.

    Raises:
        InputError: if the scores do not have a column.
    """
    known = list(dict.fromkeys((GROUP, SCENARIO, *scored.others)))
    columns = per.split(",") if per else [GROUP]
    for name in columns:
        if name not in known:
            raise InputError("--per", repr(name), one_of(name, known))
    texts = [_texts(scored, name) for name in columns]
    if not per and texts[0] == scored.scenarios:
        columns = [SCENARIO]
    marks = ["" if name == GROUP or len(columns) == 1 else f"{name}=" for name in columns]
    whole = ["/".join(map(add, marks, values)) for values in zip(*texts, strict=True)]
    numbers, names = encoded(pa.array(whole, pa.string()))
    return Subjects(GROUP if GROUP in columns else ",".join(columns), names, numbers)


def _texts(scored: Scored, column: str) -> list[str]:
    """Return the value of a column for each scenario, as text."""
    if column in scored.others:
        return ["" if value is None else str(value) for value in scored.values(column)]
    return scored.scenarios if column == SCENARIO else _without_keys(scored)


def _without_keys(scored: Scored) -> list[str]:
    """Return the ids without ``KEY=VALUE/`` before them, where the key is a column of the scores."""
    texts = list(scored.scenarios)
    for _ in scored.others:
        key = texts[0].partition("=")[0] if texts else ""
        column = key if key in scored.others else key.rpartition(".")[2]
        if column not in scored.others or not all(text.startswith(f"{key}=") for text in texts):
            break
        values = [f"{key}={'' if value is None else value}/" for value in scored.values(column)]
        texts = [
            text.removeprefix(value) if text.startswith(value) else text.partition("/")[2]
            for text, value in zip(texts, values, strict=True)
        ]
    return texts


def parts_of(values: Sequence[Any]) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """Return the parts: their names, and which scenarios belong to each. Numbers are in their order."""
    texts = ["" if value is None else str(value) for value in values]
    names = _of_numbers(values) if _are_numbers(values) else _of_texts(texts)
    order = list(dict.fromkeys(name for _, name in sorted(set(names))))
    labels = np.array([name for _, name in names], dtype=object)
    return [(name or "(none)", np.asarray(labels == name, dtype=np.bool_)) for name in order]


def _are_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in known)


def _of_numbers(values: Sequence[Any]) -> list[tuple[float, str]]:
    different = {value for value in values if value is not None}
    if len(different) <= _FEW:
        return [(np.inf, "") if value is None else (value, f"{value:g}") for value in values]
    return [(np.inf, "") if value is None or value != value else _range(value) for value in values]


def _range(value: float) -> tuple[float, str]:
    if value < 1:
        return -1.0, "less than 1"
    low = 2 ** int(np.log2(value))
    return float(low), f"{low:,}" if low == 1 else f"{low:,} to {2 * low - 1:,}"


def _of_texts(texts: Sequence[str]) -> list[tuple[float, str]]:
    counted = Counter(texts)
    if len(counted) <= MOST_PARTS:
        return [(0, text) for text in texts]
    kept = {text for text, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_PARTS]}
    rest = f"{len(counted) - MOST_PARTS:,} others"
    return [(0, text) if text in kept else (1, rest) for text in texts]


def times_per_day(scored: Scored, given: str, subjects: Subjects) -> npt.NDArray[np.float64]:
    """Return how often a day the scenarios of each subject happen, NaN where the column has no number.

    Raises:
        InputError: if it is neither a number nor a column of numbers.
    """
    expected = "how often a day what happens in a scenario happens, or a column of the scores with it"
    try:
        times = float(given)
    except ValueError:
        if given not in scored.others:
            raise InputError("--per-day", repr(given), one_of(given, scored.others)) from None
    else:
        if not 0 < times < np.inf:
            raise InputError("--per-day", repr(given), expected)
        return np.full(len(subjects.names), times)
    values = scored.values(given)
    strange = next((v for v in values if v is not None and (isinstance(v, bool) or not _is_number(v))), None)
    if strange is not None:
        raise InputError("--per-day", f"{strange!r} in {given}", expected)
    found = np.array([np.nan if value is None else float(value) for value in values])
    known = ~np.isnan(found)
    size = len(subjects.names)
    counts = np.bincount(subjects.numbers[known], minlength=size)
    sums = np.bincount(subjects.numbers[known], found[known], size)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0

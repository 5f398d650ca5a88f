"""``batch``: the time of a batch, for those who know it better than the records/s of a member."""

from collections.abc import Mapping
from math import sqrt
from typing import Any

from coordinator_core.client.config import ClientConfig
from coordinator_core.errors import InputError
from coordinator_core.reading.checks import inside
from coordinator_core.reading.settings import settings_of
from rebalance_lab.scenarios.documents import Bounds

BATCH = "batch"
RATE, DEVIATION = "process_rate", "record_cv"
OVERHEAD = "batch_overhead"
MOST_RECORDS = "max.poll.records"


def with_rates(entry: Any, config: Mapping[str, Any], where: str) -> Any:
    """Return the entry of a member, or a list of them, with a process_rate in place of the time of a batch.

    A batch of ``max.poll.records`` records, of the member's settings or of ``config``, takes that time in the
    mean, with its overhead if none is given. Of two times, the mean and the deviation are those of a time
    that is anywhere between them. What is no entry of a member stays as it is.

    Raises:
        InputError: if the time is wrong, or a field is given that follows from it.
    """
    if isinstance(entry, list):
        return [with_rates(each, config, inside(where, i)) for i, each in enumerate(entry)]
    if not isinstance(entry, Mapping) or entry.get(BATCH) is None:
        return entry
    low, high = Bounds.read(entry[BATCH], inside(where, BATCH))
    if not high:
        raise InputError(inside(where, BATCH), "0ms", "more than 0ms, or no batch: records take no time then")
    for field in (RATE,) if low == high else (RATE, DEVIATION):
        if entry.get(field) is not None:
            expected = (
                f"one of the two: {field} follows from batch, the time of max.poll.records records; of"
                f" smaller polls, {OVERHEAD} is what each takes besides its records"
            )
            raise InputError(where.removesuffix(": "), f"{BATCH} and {field}", expected)
    mean_ms, records = (low + high) / 2, _most_records(entry.get("config"), config)
    rates: dict[str, Any] = {RATE: records * 1_000 / mean_ms}
    if low < high:
        deviation_ms = (high - low) / sqrt(12)
        rates[DEVIATION] = deviation_ms / mean_ms * sqrt(records)
    return {OVERHEAD: 0} | {key: value for key, value in entry.items() if key != BATCH} | rates


def _most_records(*settings: Any) -> int:
    """Return max.poll.records. What is wrong with a member's settings is found when they are read."""
    for config in settings:
        value = config.get(MOST_RECORDS) if isinstance(config, Mapping) else None
        if isinstance(value, int) and value > 0:
            return value
    return int(settings_of(ClientConfig)[MOST_RECORDS].default)

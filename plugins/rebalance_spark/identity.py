"""The identity of a score: what was computed, for which scenario, and in which run."""

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator_core.assigning.loading import reference_in
from rebalance_lab.scoring.labels import parted
from rebalance_lab.scoring.rows import HASH_LENGTH, Job, plugin_versions, program_version, registry_with

if TYPE_CHECKING:
    from pyspark.sql import Column


def scenario_hash_column() -> "Column":
    """Return what `rows.scenario_hash` returns, for the column ``scenario``."""
    from pyspark.sql import functions as sf

    return sf.substring(sf.sha2(sf.coalesce("scenario", sf.lit("")), 256), 1, HASH_LENGTH)


def new_run_id() -> str:
    """Return an id for a run. A later run has a greater one."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{token_hex(4)}"


def identified(job: Job) -> Job:
    """Return a job with a hash for each of its strategies, the sources of their files, and an id for the run.

    A hash is of all that decides about a score beside its scenario: the strategy with its options, the source
    of a strategy from a file or a module, seed, fidelity, timeout, the start, and the versions of the program
    and of plugins. Call it where the files are: in the driver.
    """
    if job.hashes:
        return job
    paths = dict.fromkeys(_file_of(each) for each in (*job.strategies, job.start))
    sources = tuple((path, Path(path).read_bytes()) for path in paths if Path(path).is_file())
    common = (
        job.fidelity.value,
        job.timeout,
        ("of each scenario", job.seed),
        [_hash_of_module(name) for name in job.plugins],
        program_version(),
        plugin_versions(registry_with(job.plugins)),
    )
    start = [("start", job.start, _source_of(job.start))] if job.start else []
    whole = _hashes(job, (*common, *start))
    hashes = _hashes(job, (*common, job.metrics, *start)) if job.metrics else whole
    run_id = job.run_id or new_run_id()
    return replace(job, hashes=hashes, whole=whole, run_id=run_id, sources=sources)


def _hashes(job: Job, common: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(
        sha256(msgspec.json.encode((strategy, _source_of(strategy), common))).hexdigest()[:HASH_LENGTH]
        for strategy in job.strategies
    )


def _source_of(strategy: str) -> str:
    """Return the hash of the file with the assignor, or an empty text if it has a name of its own."""
    if path := _file_of(strategy):
        return _hash_of_file(Path(path))
    reference = reference_in(parted(strategy)[0])
    return "" if reference is None else _hash_of_module(reference.rpartition(":")[0])


def _file_of(strategy: str) -> str:
    """Return the path of ``path.py:Name``, or an empty text for another strategy."""
    source = (reference_in(parted(strategy)[0]) or "").rpartition(":")[0]
    return source if source.endswith(".py") else ""


def _hash_of_module(name: str) -> str:
    spec = find_spec(name)
    return _hash_of_file(Path(spec.origin)) if spec is not None and spec.origin else ""


def _hash_of_file(path: Path) -> str:
    """Return the hash of a file, or an empty text for one inside an archive."""
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""

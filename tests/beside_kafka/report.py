"""What came of the scripts of a kind, as lines of text."""

from collections.abc import Iterator

from tests.beside_kafka.running import Result
from tests.beside_kafka.steps import written


def described(result: Result) -> Iterator[str]:
    """Yield the numbers, the reasons of what is explained, all faults, and a short script for each sign."""
    yield str(result)
    for reason, count in result.known.most_common():
        yield f"  explained {count:>4}: {reason}"
    for seed, difference in result.once:
        yield f"  only once, seed {seed}, step {difference.number}: {difference}"
    for fault in result.faults:
        yield f"  fault, seed {fault.seed}, step {fault.difference.number}: {fault.difference}"
    for fault in {fault.difference.sign: fault for fault in reversed(result.faults)}.values():
        yield f"  seed {fault.seed}, {fault.difference}:"
        yield from (f"    {line}" for line in written(fault.script).splitlines())


def traced(result: Result) -> Iterator[str]:
    """Yield every step of every script with its responses."""
    for seed, outcome in result.outcomes.items():
        yield f"  seed {seed}"
        yield from (f"    {line}" for line in outcome.trace)

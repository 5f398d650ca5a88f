"""Java 4.4 clients on Kafka 4.4: the predicted range of six seeds beside three real runs.

``python -m tests.calibration.java44`` prints the table. The scenarios are in ``scenarios/java44``, and the
real figures in ``java44.json``.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rebalance_lab import default_registry, measure, simulate
from rebalance_lab.scenarios.files import load_scenario
from tests.calibration.cells import SCENARIOS
from tests.calibration.figures import ACCURACY_SECONDS, stops_of

REAL = Path(__file__).parent / "java44.json"
SEEDS = 6


class Row(NamedTuple):
    """A scenario under a strategy: stopped partition seconds of the real runs, and of each seed.

    ``accuracy`` is that of a real figure: each stop of a partition is known to a tenth of a second.
    """

    scenario: str
    strategy: str
    real: list[float]
    predicted: list[float]
    accuracy: float
    duplicates: list[float]

    @property
    def strict(self) -> bool:
        """Whether the real median is in the range of the seeds."""
        return min(self.predicted) <= median(self.real) <= max(self.predicted)

    @property
    def hit(self) -> bool:
        """Whether it is, as far as it is accurate."""
        low, high = min(self.predicted), max(self.predicted)
        return low - self.accuracy <= median(self.real) <= high + self.accuracy

    def __str__(self) -> str:
        verdict = "in  " if self.strict else "near" if self.hit else "out "
        found = f"real {_range(self.real):17} predicted {_range(self.predicted)}"
        return f"{verdict} {self.scenario:15} {self.strategy:29} {found}"


def _range(values: list[float]) -> str:
    return f"{median(values):5.1f} ({min(values):.1f}-{max(values):.1f})"


def rows() -> Iterator[Row]:
    """Yield the row of each cell."""
    registry = default_registry()
    for cell in json.loads(REAL.read_text(encoding="utf-8"))["cells"]:
        name, strategy = cell["scenario"], cell["strategy"]
        scenario = load_scenario(SCENARIOS / "java44" / f"{name}.yaml")
        traces = [simulate(replace(scenario, seed=seed), strategy, registry) for seed in range(SEEDS)]
        found = [measure(trace, registry) for trace in traces]
        stops = median(sum(1 for _ in stops_of(trace)) for trace in traces)
        yield Row(
            name,
            strategy,
            cell["stopped_seconds"],
            [each["stopped_partition_seconds"] for each in found],
            ACCURACY_SECONDS * stops,
            [each["duplicate_records"] for each in found],
        )


def main() -> None:
    """Print the rows, and how many real medians are in the range."""
    found = list(rows())
    for row in found:
        print(row)  # noqa: T201
    strict, hits = sum(row.strict for row in found), sum(row.hit for row in found)
    print(f"{strict} of {len(found)} in the range, {hits} with the accuracy of the real figures")  # noqa: T201


if __name__ == "__main__":
    main()

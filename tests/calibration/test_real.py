"""A cell of each of two client libraries. Figures vary from run to run, and the machine is shared."""

from contextlib import ExitStack

import pytest

from coordinator_core import default_registry
from tests.calibration import brokers
from tests.calibration.cells import RECONCILED, Cell
from tests.calibration.figures import Figures, figures
from tests.calibration.member import franz_go_member
from tests.calibration.observed import trace_of
from tests.calibration.predicted import predicted
from tests.calibration.real import run
from tests.real_kafka.jars import jars_or_skip, or_skip
from tests.rebalance_kafka.peers import missing

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.killed]

CELLS = [
    pytest.param(
        Cell("leave", "kafka-python", "range"),
        6,  # all stop, but those of the last members to join only for a moment
        marks=pytest.mark.skipif(bool(missing("kafka-python")), reason="kafka-python is not installed"),
        id="kafka-python",
    ),
    pytest.param(Cell("leave", "franz-go", RECONCILED), 3, id="franz-go"),
]
MISSED = {"franz-go": {"duplicates"}}
"""Figures that are out of range after a member leaves: the document says why."""

FACTOR = 3.0
SECONDS = 1.0


@pytest.fixture(params=["serve", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request):
    if request.param == "kafka":
        jars_or_skip()
    with ExitStack() as stack:
        yield brokers.kafka(stack) if request.param == "kafka" else brokers.serve


@pytest.mark.parametrize(("cell", "stopped"), CELLS)
@pytest.mark.skipif(bool(missing("confluent")), reason="confluent-kafka is not installed")
def test_the_real_figures_are_near_the_predicted_ones(tmp_path, place, cell, stopped):
    if cell.client == "franz-go":
        or_skip(franz_go_member)
    observed = run(cell.document, cell.client, cell.strategy, tmp_path, place)
    real = figures(trace_of(observed, cell.scenario, cell.strategy), default_registry())
    several = predicted(cell, seeds=10)
    assert real.stopped_partitions >= stopped
    for figure in (name for name in Figures._fields if name not in MISSED.get(cell.client, ())):
        values = [getattr(each, figure) for each in several]
        low, high = min(values) / FACTOR - SECONDS, max(values) * FACTOR + SECONDS
        assert low <= getattr(real, figure) <= high, figure

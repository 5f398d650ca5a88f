"""One cell with real clients. The figures vary from run to run, and the machine is shared."""

from contextlib import ExitStack

import pytest

from coordinator_core import default_registry
from tests.calibration import brokers
from tests.calibration.cells import Cell, document_of
from tests.calibration.figures import Figures, figures
from tests.calibration.observed import trace_of
from tests.calibration.predicted import predicted
from tests.calibration.real import run
from tests.real_kafka.jars import jars_or_skip
from tests.rebalance_kafka.peers import missing

pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.killed]

CELL = Cell("leave", "kafka-python", "range")
FACTOR = 3.0
SECONDS = 1.0


@pytest.fixture(params=["serve", pytest.param("kafka", marks=pytest.mark.kafka)])
def place(request):
    if request.param == "kafka":
        jars_or_skip()
    with ExitStack() as stack:
        yield brokers.kafka(stack) if request.param == "kafka" else brokers.serve


@pytest.mark.skipif(bool(missing("kafka-python")), reason="kafka-python is not installed")
@pytest.mark.skipif(bool(missing("confluent")), reason="confluent-kafka is not installed")
def test_the_real_figures_are_near_the_predicted_ones(tmp_path, place):
    document = document_of(CELL.scenario)
    observed = run(document, CELL.client, CELL.strategy, tmp_path, place)
    real = figures(trace_of(observed, CELL.scenario, CELL.strategy), default_registry())
    several = predicted(CELL, seeds=10)
    assert real.stopped_partitions >= 6, "all stop, but those of the last members to join only for a moment"
    for figure in Figures._fields:
        values = [getattr(each, figure) for each in several]
        low, high = min(values) / FACTOR - SECONDS, max(values) * FACTOR + SECONDS
        assert low <= getattr(real, figure) <= high, figure

"""The table of real and predicted figures."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab import default_registry, simulate
from rebalance_lab.scenarios.scenario import parse_scenario
from tests.calibration.__main__ import read, write
from tests.calibration.cells import CLIENTS, ORDER, STRATEGIES, Cell, cells, document_of, simulated_by
from tests.calibration.figures import Figures, stops_of
from tests.calibration.predicted import predicted
from tests.calibration.table import apart, markdown, rows, summary, text

CELL = Cell("leave", "librdkafka", "range")


def runs(*seconds):
    return [Figures(s, 12, s / 2, s / 4, 0.0) for s in seconds]


def test_a_real_median_in_the_predicted_range_is_a_hit():
    table = rows({CELL: runs(5.0, 9.0, 6.0)}, {CELL: runs(*range(1, 12))})
    found = {row.figure: row for row in table}
    stopped = found["stopped_seconds"]
    assert (stopped.real, stopped.predicted, stopped.low, stopped.high) == (6.0, 6.0, 1.5, 10.5)
    assert all(row.hit and row.near for row in table)
    assert summary(table).startswith("5 of 5 real medians")


@pytest.mark.parametrize(
    ("real", "hit", "near"), [(11.2, False, True), (10.95, True, True), (30.0, False, False)]
)
def test_medians_are_near_within_a_fifth_and_ranges_have_the_accuracy_of_the_measurement(real, hit, near):
    table = rows({CELL: runs(real)}, {CELL: runs(9.0, 10.0, 11.0)})
    assert (table[0].hit, table[0].near) == (hit, near)
    assert ("MISS" in text(table[:1])) is not hit
    assert ("**" in markdown(table)) is not hit


def test_the_summary_counts_clear_orders_that_are_predicted_and_no_others():
    cells = [Cell("leave", "librdkafka", strategy) for strategy in ("range", "sticky", "roundrobin")]
    real = dict(zip(cells, (runs(10.0), runs(20.0), runs(11.0)), strict=True))
    predicted = dict(zip(cells, (runs(3.0, 4.0), runs(5.0, 6.0), runs(8.0, 9.0)), strict=True))
    assert "right in 1 of 2 pairs" in summary(rows(real, predicted))


def test_cells_without_real_figures_are_left_out():
    assert rows({}, {CELL: runs(1.0)}) == []


def test_real_figures_are_read_as_they_were_written(tmp_path):
    real = {CELL: runs(1.0, 2.0), Cell("join", "aiokafka", "range"): runs(3.0)}
    write(tmp_path / "real.json", real)
    assert read(tmp_path / "real.json") == real


def test_every_scenario_is_a_document_with_a_client():
    chosen = list(cells(ORDER, ("aiokafka", "rebalance-lab"), ("range", "cooperative-sticky")))
    assert len(chosen) == 3 * len(ORDER) - 1
    for scenario in ORDER:
        document = simulated_by(document_of(scenario), "rebalance-lab")
        assert document["name"] == scenario
        assert {entry["client"] for entry in document["members"]} == {"rebalance-lab"}


def test_a_group_that_the_brokers_reconcile_has_its_times_from_them():
    config = Cell("join", "java", "uniform-848+reconcile").document["config"]
    times = {name: value for name, value in config.items() if "session" in name or "heartbeat" in name}
    assert times == {"group.consumer.session.timeout.ms": "6s", "group.consumer.heartbeat.interval.ms": "1s"}


def test_only_clients_with_the_protocol_are_measured_under_it():
    reconciled = {cell.client for cell in cells(ORDER, CLIENTS, STRATEGIES) if cell.is_reconciled}
    assert reconciled == {"librdkafka", "java", "franz-go", "rebalance-lab"}


def test_stops_count_from_the_first_change_on():
    """Partitions move while the members join one after another: they are no stops of the change."""
    document = simulated_by(document_of("join"), "java") | {"events": [], "seed": 2}
    quiet = simulate(parse_scenario(document, where="s"), "uniform-848+reconcile", default_registry())
    assert any(isinstance(line.event, ev.Revoked) for line in quiet.events)
    assert list(stops_of(quiet)) == []
    (run,) = predicted(Cell("join", "java", "uniform-848+reconcile"), seeds=1)
    assert run.stopped_partitions > 0


def test_figures_of_two_brokers_are_apart_if_their_ranges_are():
    other = Cell("join", "aiokafka", "range")
    one = {CELL: runs(4.0, 5.0), other: runs(4.0, 5.0)}
    two = {CELL: runs(6.0, 5.3), other: runs(6.0, 5.05)}
    (stopped, *rest) = apart({"kafka": one, "serve": two})
    assert stopped == f"{CELL} stopped_seconds: kafka 4.5 (4.0-5.0), serve 5.7 (5.3-6.0)"
    assert [line.split()[3] for line in rest] == ["longest_stop_seconds:"]
    assert next(apart({"serve": two, "kafka": one})).endswith("kafka 4.5 (4.0-5.0)")

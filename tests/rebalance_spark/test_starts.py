"""The assignment with which a running group starts."""

import json
from types import SimpleNamespace

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.simulation.planning.counting import counting
from rebalance_lab.simulation.planning.starting import problem_at_start, started
from rebalance_spark import scenarios
from rebalance_spark.choices import Fidelity
from rebalance_spark.rows import Job, Scorer
from rebalance_spark.starts import moves_at_start
from tests.rebalance_spark.workloads import scenario, write_parquet

OWNED = {"a": [0, 1], "b": [5, 4], "c": [2], "d": None}
"""The partitions of each member; the last one joins. One of six has no owner."""

DOCUMENT = {
    **json.loads(scenario(partitions=6)),
    "members": [
        {"id": name, "topics": ["orders"], **({} if numbers is None else {"owned": {"orders": numbers}})}
        for name, numbers in OWNED.items()
    ],
    "events": [{"at": "30s", "leave": "c"}],
}
TEXT = json.dumps(DOCUMENT)
COUNTING = ("range", "roundrobin", "sticky", "cooperative-sticky")


def loaded(**fields):
    return load_scenario_text(json.dumps({**DOCUMENT, **fields}), "test")


def owners(found):
    return {m.id: None if m.owned is None else [p.partition for p in m.owned] for m in found.members}


@pytest.mark.parametrize(
    ("assignor", "expected"),
    [
        ("range", {"a": [0, 1], "b": [2, 3], "c": [4, 5], "d": None}),
        ("roundrobin", {"a": [0, 3], "b": [1, 4], "c": [2, 5], "d": None}),
        ("sticky", {"a": [0, 1], "b": [4, 5], "c": [2, 3], "d": None}),
    ],
)
def test_a_running_group_starts_with_the_assignment_of_an_assignor(assignor, expected):
    found = started(loaded(), default_registry().assignor(assignor))
    assert owners(found) == expected
    assert found.events == loaded().events


def test_a_cooperative_assignor_hands_out_in_a_second_round_what_it_held_back():
    members = [
        {"id": m, "topics": ["orders"], "owned": {"orders": n}} for m, n in (("a", [*range(6)]), ("c", []))
    ]
    found = started(loaded(members=members), default_registry().assignor("cooperative-sticky"))
    assert sorted(len(numbers) for numbers in owners(found).values()) == [3, 3]


def test_rates_count():
    topics = {"orders": {"partitions": 6, "rates": [50, 50, 1, 1, 1, 1]}}
    found = started(loaded(topics=topics), default_registry().assignor("optimal"))
    assert not any({0, 1} <= {*numbers} for numbers in owners(found).values() if numbers)


def test_a_scenario_without_a_running_group_is_not_changed():
    given = load_scenario_text(scenario(), "test")
    assert started(given, default_registry().assignor("range")) is given
    assert problem_at_start(given) is None


@pytest.mark.parametrize("strategy", COUNTING)
def test_a_strategy_moves_nothing_in_a_group_that_starts_with_its_own_assignment(strategy):
    registry = default_registry()
    each = [counting(registry.strategy(strategy), registry)]
    own = started(loaded(), registry.assignor(strategy))
    assert moves_at_start(problem_at_start(own), each) == [0]
    before = moves_at_start(problem_at_start(loaded()), each)
    assert before == [{"range": 3, "roundrobin": 2}.get(strategy, 0)]


def test_rows_have_the_start_and_the_moves_of_strategies_that_count():
    names = ("range", "sticky", "lag-aware")
    rows = {
        start: Scorer(Job(names, Fidelity.PLAN, start=start, examined=1.0)).rows("x", TEXT)
        for start in ("", "range")
    }
    assert [(row.get("start_assignor"), row.get("start_moves")) for row in rows[""]] == [
        (None, 3),
        (None, 0),
        (None, None),
    ]
    assert [(row.get("start_assignor"), row.get("start_moves")) for row in rows["range"]] == [
        ("range", 0),
        ("range", 0),
        ("range", None),
    ]
    assert rows["range"][0]["moved_partitions"] < rows[""][0]["moved_partitions"]


def test_views_start_as_the_scores_did(tmp_path, monkeypatch):
    jobs = []
    monkeypatch.setattr(scenarios, "Scorer", jobs.append)
    worst = {("rounds", "range"): SimpleNamespace(worst_scenario="x")}
    findings = SimpleNamespace(headlines=["rounds"], strategies=["range"], figures=worst)
    workload = write_parquet(tmp_path / "workload.parquet", {"x": TEXT})
    source = scenarios.Workload(workload, None, {}, {})
    scenarios.write_views(findings, tmp_path / "page.html", source, "range")
    assert [job.start for job in jobs] == ["range"]


def test_scenarios_that_are_not_examined_have_no_moves():
    (row,) = Scorer(Job(("range",), Fidelity.PLAN, examined=0.0)).rows("x", TEXT)
    assert (row["status"], "start_moves" in row) == ("ok", False)


def test_the_protocol_starts_with_the_assignment_too():
    rows = [Scorer(Job(("range",), start=start, examined=1.0)).rows("x", TEXT)[0] for start in ("range", "")]
    assert rows[0]["moved_partitions"] < rows[1]["moved_partitions"]
    assert [row["start_moves"] for row in rows] == [0, 3]

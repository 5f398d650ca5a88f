"""The generators of scenarios: every row is one, depends on nothing but its number, and is as described."""

from statistics import median

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan

PROFILES = ["microservices", "pipeline", "skewed", "churny"]


def rows(profile, count, seed=1):
    generate = default_registry().workloads()[profile].generate
    return [generate(seed, row) for row in range(count)]


def parsed(document):
    return parse_scenario(document, where=document["name"])


@pytest.mark.parametrize("profile", PROFILES)
def test_every_row_is_a_scenario_whose_changes_are_over_before_it_ends(profile):
    for document in rows(profile, 100 if profile != "pipeline" else 10):
        scenario = parsed(document)
        assert all(60_000 <= event.at_ms <= 780_000 for event in scenario.events)
        assert scenario.duration_ms == 900_000


@pytest.mark.parametrize("profile", PROFILES)
def test_a_row_depends_on_its_profile_seed_and_number_alone(profile):
    first = rows(profile, 5)
    assert rows(profile, 5) == first
    assert default_registry().workloads()[profile].generate(1, 3) == first[3]
    assert rows(profile, 5, seed=2) != first
    assert len({document["seed"] for document in first}) == 5


@pytest.mark.parametrize("profile", PROFILES)
def test_a_group_under_it_ends_stable(profile):
    for document in rows(profile, 3 if profile != "pipeline" else 1):
        assert plan(parsed(document), "cooperative-sticky", default_registry()).ended.group_state == "Stable"


def test_microservices_are_small():
    documents = rows("microservices", 400)
    sizes = [len(document["members"]) for document in documents]
    assert min(sizes) == 1
    assert max(sizes) == 8
    assert median(sizes) <= 2
    assert {t["partitions"] for d in documents for t in d["topics"].values()} == {1, 3, 6, 12}
    assert {len(d["events"]) for d in documents} == {0, 1, 2, 3}


def test_pipelines_are_large():
    for document in rows("pipeline", 20):
        assert 100 <= len(document["members"]) <= 400
        partitions = sum(t["partitions"] for t in document["topics"].values())
        assert 1_000 - 20 <= partitions <= 5_000


def test_skewed_traffic_is_mostly_of_a_few_partitions():
    for document in rows("skewed", 50):
        rates = sorted(document["topics"]["clicks"]["rates"], reverse=True)
        assert 8 <= len(rates) <= 80
        assert sum(rates) == pytest.approx(1_000 * len(rates), rel=1e-3)
        assert sum(rates[: len(rates) // 4]) > sum(rates) / 2


def test_churny_groups_grow_and_shrink_again():
    documents = rows("churny", 60)
    for document in documents:
        kinds = [next(k for k in event if k != "at") for event in document["events"]]
        assert kinds.count("join") == kinds.count("leave") in range(1, 5)
    restarted = sum("rolling_restart" in event for d in documents for event in d["events"])
    assert 15 <= restarted <= 45

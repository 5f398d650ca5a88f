"""What it takes to switch a group to another assignor."""

from coordinator_core.registry.registry import default_registry
from rebalance_lab.verdicts.switching import (
    keeps_owners,
    steps_of_a_switch,
)


def test_a_switch_among_eager_assignors_takes_one_restart_with_both_classes():
    first, second, back, together = steps_of_a_switch("range", "roundrobin", default_registry())
    package = "org.apache.kafka.clients.consumer"
    assert f"={package}.RoundRobinAssignor,{package}.RangeAssignor (librdkafka: roundrobin,range)" in first
    assert "the next deployment can leave out the old class" in second
    assert "with range first" in back
    assert "members that join topics" in together


def test_a_switch_to_a_cooperative_assignor_takes_two_restarts():
    steps = steps_of_a_switch("sticky", "cooperative-sticky", default_registry())
    assert len(steps) == 3
    assert "restart them all again" in steps[1]


def test_the_steps_of_other_assignors_are_not_known():
    assert steps_of_a_switch("range", "optimal", default_registry()) == []


def test_an_assignment_that_depends_on_the_owners_before_it_is_known_by_its_assignor():
    keeps = {"sticky": True, "cooperative-sticky+static": True, "range": False, "roundrobin+static": False}
    assert {name: keeps_owners(name, default_registry()) for name in keeps} == keeps
    assert not keeps_owners("nobody.py:Mine", default_registry())

"""The cells that runs reach: how they are counted, and that a long run reaches those of the protocols."""

import secrets

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.fuzzing.campaign import Campaign, fuzz, under_every_protocol
from rebalance_lab.fuzzing.coverage import Coverage, CoverageCell
from tests.places import DATA

RUNS = 1_500
ANY = "any"
HEARTBEAT = CoverageCell("classic", "Stable", "Heartbeat", "java", "NONE")


def named():
    """The cells of the list, each with the reason why none reaches it, "" if runs do."""
    lines = (DATA / "cells.txt").read_text().splitlines()
    rows = [line.partition(": ") for line in lines if line and not line.startswith("#")]
    return {tuple(cell.split()): reason for cell, _, reason in rows}


def reached_by(coverage):
    cells = [(cell.family, cell.request, cell.state, cell.answer) for cell in coverage.counts]
    return {*cells, *((family, request, ANY, answer) for family, request, _, answer in cells)}


def test_cells_are_new_once():
    coverage = Coverage()
    assert coverage.add({HEARTBEAT: 3}) == 1
    assert coverage.add({HEARTBEAT: 2, HEARTBEAT._replace(answer="UNKNOWN_MEMBER_ID"): 1}) == 1
    assert coverage.counts[HEARTBEAT] == 5


def test_the_list_has_every_family():
    assert all(len(cell) == 4 for cell in named())
    assert {family for family, *_ in named()} == set(default_registry().protocols())


@pytest.mark.slow
@pytest.mark.weekly
def test_a_long_run_reaches_the_cells_that_the_protocols_name():
    registry = default_registry()
    texts = ("range", "sticky", "cooperative-sticky", "cooperative-sticky+static")
    strategies = [text for each in texts for text in under_every_protocol(each, registry)]
    campaign = Campaign(tuple(strategies), secrets.randbelow(2**32))
    tally = fuzz(campaign, goes_on=lambda tally: tally.begun < RUNS)
    assert tally.found == [], campaign.seed
    reached = reached_by(tally.coverage)
    assert [cell for cell, reason in named().items() if (cell in reached) is bool(reason)] == [], (
        campaign.seed
    )

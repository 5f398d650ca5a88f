"""A snapshot of a live group of several libraries, and a comparison of strategies on it."""

import json
import subprocess
import sys

import pytest
import yaml

from rebalance_kafka.broker.background import BackgroundBroker
from tests.places import ROOT
from tests.rebalance_kafka.peers.stage import DESCRIBING, GROUP, Stage
from tests.rebalance_kafka.test_real_clients import KINDS, RECORDS, consume, produce, where_there_is

pytestmark = pytest.mark.peer

TOPICS = {"orders": 8, "payments": 4}


def rebalance_lab(*arguments):
    """Status, what was printed, what was complained of."""
    code = "from rebalance_lab.cli.main import run; run()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [where_there_is(*KINDS)])
def test_a_snapshot_of_a_group_of_all_kinds_is_compared(tmp_path, kinds):
    with Stage(tmp_path, TOPICS) as stage:
        assert isinstance(stage.broker, BackgroundBroker)
        members = [stage.member(kind, "range", name=kind) for kind in kinds]
        owners = stage.stable(members)
        tool = stage.tool(DESCRIBING)
        consume(members, produce(tool, stage, 0))
        for member in members:
            member.ask("commit")
        waiting = len(produce(tool, stage, RECORDS))
        command = ("snapshot", "--bootstrap-server", stage.broker.address, "--ask", "leave,join")
        status, _, complaint = rebalance_lab(*command, "--group", GROUP, "-o", tmp_path / "shop.yaml")
        assert (status, complaint) == (0, "")
        status, rows, complaint = rebalance_lab(*command, "--all-groups")
        assert (status, complaint) == (0, "")
    document = yaml.safe_load((tmp_path / "shop.yaml").read_text())
    reported = {
        member["id"]: {(topic, n) for topic, numbers in member["owned"].items() for n in numbers}
        for member in document["members"]
    }
    assert reported == {member.name: set(mine) for member, mine in owners.items()}
    assert {name: topic["partitions"] for name, topic in document["topics"].items()} == TOPICS
    assert sum(sum(topic["backlog"]) for topic in document["topics"].values()) == waiting
    (row,) = map(json.loads, rows.splitlines())
    assert (row["scenario_id"], row["strategy"]) == (GROUP, "range")
    assert json.loads(row["scenario"]) == document
    status, table, _ = rebalance_lab(
        "compare", tmp_path / "shop.yaml", "-s", "range", "-s", "cooperative-sticky", "--format", "json"
    )
    assert status == 0
    figures = {each["strategy"]: each["metrics"] for each in json.loads(table)["strategies"]}
    assert figures["cooperative-sticky"]["avoidable_moves"] == 0
    assert figures["cooperative-sticky"]["rounds"] >= figures["range"]["rounds"] == 2
    assert figures["cooperative-sticky"]["moved_partitions"] > 0

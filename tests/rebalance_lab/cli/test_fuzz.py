"""`rebalance-lab fuzz`: what it says, what it writes, and how what was found is had again."""

import pytest
import yaml

from coordinator_core.registry.registry import default_registry
from rebalance_lab.cli import fuzz
from rebalance_lab.fuzzing.drawing import FAULTS
from rebalance_lab.scenarios.files import load_scenario
from tests.places import ROOT
from tests.rebalance_lab.cli.commands import the_error

FAILS = """\
class Fails:
    name = "fails"

    def __init__(self):
        self.generation = 0

    def on_assignment(self, partitions, generation):
        self.generation = generation

    def assign(self, cluster, group):
        if self.generation >= 2:
            return [][0]
        owned = {member: [] for member in group}
        for topic in cluster.topics:
            able = [member for member in group.sorted_members() if topic in group[member].topics]
            for p in range(cluster.partition_count(topic)) if able else ():
                owned[able[0]].append((topic, p))
        return owned
"""


REGISTRY = default_registry()


@pytest.fixture
def static(small):
    """A scenario with static members, which not every protocol has."""
    document = yaml.safe_load(small.read_text())
    document["members"] = [{"id": "m", "topics": list(document["topics"]), "instance_id": "one"}]
    document["events"] = []
    path = small.with_name("static.yaml")
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_run_without_a_finding_says_what_it_has_seen(lab, here):
    answer = lab("fuzz", "-s", "range", "-s", "sticky+reconcile", "--runs", 4, "--seed", 3, "-j", 1)
    assert (answer.status, answer.err) == (0, "")
    said = " ".join(answer.out.split())
    assert said.startswith("4 runs of 2 strategies with seed 3: nothing found; ")
    assert list(here.iterdir()) == []


@pytest.mark.slow
def test_a_scenario_is_examined_as_it_is_on_request(lab, small):
    answer = lab("fuzz", small, "-s", "range", "--replay")
    assert (answer.status, answer.out) == (0, "small, range: nothing found\n")


@pytest.mark.slow
def test_without_a_strategy_those_are_tried_that_can_run_the_scenarios(lab, static):
    answer = lab("fuzz", static, "--runs", 1, "--seed", 3, "-j", 1)
    assert answer.status == 0
    number = int(answer.out.split("of ")[1].split()[0])
    assert number == len(fuzz._strategies([], False, fuzz._documents([static], REGISTRY), REGISTRY))
    tried = fuzz._strategies(["sticky"], True, fuzz._documents([static], REGISTRY), REGISTRY)
    assert "sticky+classic" in tried
    assert "sticky+watcher" not in tried


@pytest.mark.slow
def test_what_is_found_is_written_and_can_be_had_again(lab, here):
    (here / "fails.py").write_text(FAILS)
    options = ("-s", "fails.py:Fails", "--runs", 30, "--seed", 1, "-j", 1)
    answer = lab("fuzz", *options)
    assert answer.status == 1
    said = " ".join(answer.out.split())
    assert "fails.py:Fails, run" in said
    (path,) = here.glob("fuzz-raises-1.yaml")
    assert f"again: rebalance-lab fuzz {path.name} -s fails.py:Fails --replay" in said
    assert path.read_text().startswith("# raises: ")
    again = lab("fuzz", path.name, "-s", "fails.py:Fails", "--replay")
    assert again.status == 1
    assert "IndexError" in again.out
    smallest = yaml.safe_load(path.read_text())
    assert {topic["partitions"] for topic in smallest["topics"].values()} == {1}
    assert (smallest["events"], len(smallest["members"])) == ([], 2)
    lab("fuzz", *options)
    assert (here / "fuzz-raises-1-2.yaml").exists(), "nothing that is there is replaced"


@pytest.mark.slow
def test_the_assignor_of_the_documents_whose_fault_needs_faults_is_found(lab, here, monkeypatch):
    monkeypatch.setattr(fuzz, "SHRINKING_SECONDS", 5)
    page = (ROOT / "assignors" / "README.md").read_text().split("## What only faults show")[1]
    (here / "two_steps.py").write_text(page.split("```py\n")[1].split("```")[0])
    (command,) = (line for line in page.splitlines() if line.startswith("rebalance-lab fuzz -s"))
    answer = lab(*command.split()[1:], "--seed", 2)
    assert answer.status == 1
    assert "not-settled: at the end " in " ".join(answer.out.split())
    (path,) = here.glob("*.yaml")
    load_scenario(path)


@pytest.mark.slow
def test_a_strategy_is_tried_under_every_protocol_on_request(lab, here):
    answer = lab("fuzz", "-s", "sticky", "--every-family", "--runs", 5, "--seed", 2, "-j", 1)
    assert " of 5 strategies " in " ".join(answer.out.split())


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--faults", "fire"], "--faults: found 'fire', expected one of "),
        (["--set", "session.timeout.ms"], "--set: found 'session.timeout.ms', expected NAME=LOW..HIGH"),
        (["--set", "session.timeout=1s..2s"], "--set: found 'session.timeout'"),
        (["--set", "session.timeout.ms=9s..6s"], "--set session.timeout.ms: found 9s above 6s"),
        (["--set", "enable.auto.commit=0..1"], "--set enable.auto.commit: found '0'"),
        (["--replay"], "--replay: found no scenario, expected the file of one"),
        (["none.yaml"], "none.yaml: found a file that cannot be read"),
        (["--out", "/"], "/: found a path that cannot be written"),
    ],
)
def test_wrong_use_has_one_clear_error(options, error, lab, here):
    found = the_error(lab("fuzz", "-s", "range", "--runs", 1, *options))
    assert found.startswith(error)


def test_the_help_names_all_faults(lab):
    said = "".join(lab("fuzz", "--help").out.split())
    assert all(name in said for name in FAULTS)

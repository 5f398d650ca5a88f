"""What the README says can be done: its plugin works, its commands run, its scenario is one."""

import re
import shlex
import subprocess
import sys
import types

import pytest

from coordinator_core.documents.files import load_scenario_text
from coordinator_core.model import Cluster, GroupSubscription, Subscription, TopicInfo
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_spark.schema import SCORE_COLUMNS
from tests.places import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language):
    """The fenced blocks of a language; "" for those that show output."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for named, text in fenced if named == language]


def commands():
    """The rebalance-lab commands that show their output, but for the two that set everything up."""
    listed = [line for block in blocks("sh") for line in block.splitlines()]
    return [line for line in listed if line.startswith(("rebalance-lab", "echo"))]


def run(command):
    """A command line with at most one pipe, as the shell would run it."""
    *before, last = command.split(" | ")
    given = "".join(f"{shlex.split(part)[1]}\n" for part in before)
    code = "from coordinator_core.cli.main import run; run()"
    arguments = [sys.executable, "-c", code, *shlex.split(last)[1:]]
    return subprocess.run(arguments, input=given, capture_output=True, text=True, cwd=ROOT, check=False)


def test_the_plugin_of_the_readme_is_a_plugin():
    module = types.ModuleType("busiest_first")
    exec(blocks("python")[0], module.__dict__)
    registry = Registry()
    registry.register(module, name="busiest-first")
    assignor = registry.assignor("busiest-first")
    cluster = Cluster({"clicks": TopicInfo(4, weights=(90.0, 50.0, 40.0, 10.0))})
    group = GroupSubscription({m: Subscription(("clicks",)) for m in ("a", "b")})
    assert assignor.assign(cluster, group) == {
        "a": [("clicks", 0), ("clicks", 3)],
        "b": [("clicks", 1), ("clicks", 2)],
    }


def test_the_scenario_of_the_readme_is_a_scenario():
    scenario = load_scenario_text(blocks("yaml")[0], "README.md")
    assert len(scenario.members) == 4


def test_the_readme_shows_some_commands():
    assert len(commands()) >= 3


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme_runs_and_prints_what_the_readme_shows(command):
    ran = run(command)
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = [block.strip() for block in blocks("")]
    assert "\n".join(line.rstrip() for line in ran.stdout.strip().splitlines()) in shown


def test_the_readme_has_every_column_of_scores():
    rows = [
        f"| `{c.name}` | {c.type} | {c.unit} | {'yes' if c.nullable else 'no'} | {c.doc} |"
        for c in SCORE_COLUMNS
    ]
    assert "\n".join(rows) in README


def test_the_readme_has_every_profile_of_generate():
    told = re.findall(
        r"^\| `([a-z]+)` \|", README.split("| profile of `generate` |")[1].split("\n\n")[0], re.MULTILINE
    )
    assert told == list(default_registry().workloads())

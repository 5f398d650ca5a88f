"""`rebalance-lab compare`: a strategy, metric or provider that fails is told, and the others go on."""

import json
import re
from pathlib import Path

import pytest

from coordinator_core.registry.hookspecs import MetricSpec, ProviderSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.cli import compare as compare_module
from rebalance_lab.cli import running, trials
from rebalance_lab.verdicts.words import in_seeds
from tests.approved import approved
from tests.examples import rest_slow
from tests.places import placeless
from tests.rebalance_lab.cli.commands import figures_of, in_a_process


def assignor_that_raises():
    from coordinator_core.assigning.assignor import Assignor
    from coordinator_core.registry.hookspecs import AssignorSpec

    class Broken(Assignor):
        name = "broken"

        def assign(self, cluster, group):
            raise KeyError("oops")

    class Plugin:
        @hookimpl
        def assignors(self):
            return [AssignorSpec("broken", Broken)]

    return Plugin()


def metric_that_raises():
    class Plugin:
        @hookimpl
        def metrics(self):
            return [MetricSpec("broken", "", lambda history: 1 / 0)]

    return Plugin()


def use_with(monkeypatch, plugin):
    """The built-in plugins, loaded as always, and another."""
    from importlib.metadata import entry_points

    registry = Registry()
    registry.load(entry_points(group="rebalance_lab"))
    registry.register(plugin, name="mine")
    for module in (compare_module, running, trials):
        monkeypatch.setattr(module, "default_registry", lambda: registry)


def test_a_strategy_that_fails_is_named_and_the_others_go_on(lab, small, monkeypatch):
    use_with(monkeypatch, assignor_that_raises())
    answer = lab("compare", small, "-j", "1", "-s", "broken", "-s", "range", "--format", "json")
    assert answer.status == 1
    assert list(figures_of(answer)) == ["range"]
    (line,) = answer.err.splitlines()
    assert line.startswith("error: strategy 'broken': ")
    assert "KeyError: 'oops'" in line


AUTHORS = """
import os
import sys
import threading

from coordinator_core import Assignor
from coordinator_core.model import GroupAssignment


def makes(name, assign, base=object, /, **more):
    # A class of this name, whose assignors return what assign returns of a group.
    own = {"assign": lambda self, cluster, group: assign(group), "__module__": __name__}
    globals()[name] = type(name, (base,), own | more)


def right(group):
    return {min(group): [("orders", n) for n in range(4)]}


def said(**beside):
    assignment = GroupAssignment({}, user_data=beside.get("user_data"))
    assignment.report = beside.get("report", {})
    return assignment


def raises(error):
    raise error


makes("Right", right)
makes("Raises", lambda group: {min(group): [("orders", 1 / 0)]})
makes("Exits", lambda group: sys.exit(3))
makes("ReturnsNothing", lambda group: None)
makes("GivesTwice", lambda group: {member: [("orders", 0)] for member in sorted(group)})
makes("GivesToStrangers", lambda group: {"x": [("orders", 0)]})
makes("Lists", lambda group: {min(group): 5})
makes("FailsWhileListed", lambda group: {min(group): (1 / 0 for _ in range(4))})
makes("SaysText", lambda group: said(user_data={min(group): "text"}))
makes("ReportsAList", lambda group: said(report=["x"]))
makes("ReportsAnObject", lambda group: said(report={"x": object}))
makes("SendsText", right, subscription_user_data=lambda self, topics: "text")
makes("SendsTextByItself", right, Assignor, name="i", subscription_user_data=lambda self, topics: "text")
makes("SendsNothing", right, subscription_user_data=lambda self, topics: raises(ValueError("no data")))
makes("Deaf", right, on_assignment=lambda self, partitions, generation: raises(ValueError("will not hear")))
makes("Boasts", right, capabilities=("fastest",))
makes("BoastsOfANumber", right, capabilities=5)
makes("SpeaksText", right, supported_protocols=("eager",))
makes("NeedsMore", right, __init__=lambda self, needed: None)
makes("HasANumberForAName", right, name=5)
makes("Quits", right, __init__=lambda self: sys.exit(4))
"""
"""Assignors that go wrong, each in its way."""

IN_A_PROCESS = """
makes("Hangs", lambda group: threading.Event().wait())
makes("DiesWithItsProcess", lambda group: os._exit(9))
"""


@pytest.fixture
def authors(tmp_path):
    """A file of assignors, of which Right is the only one that works."""
    path = tmp_path / "authors.py"
    path.write_text(AUTHORS + IN_A_PROCESS)
    return path


def test_of_each_assignor_that_goes_wrong_there_is_a_line_and_the_others_go_on(lab, small, authors):
    names = re.findall(r'^makes\("(\w+)"', AUTHORS, re.MULTILINE)
    options = [part for name in names for part in ("-s", f"{authors}:{name}")]
    answer = lab("compare", small, "-j", "1", "--seed", "4", *options, "--format", "json")
    assert (answer.status, list(figures_of(answer))) == (1, [f"{authors}:Right"])
    lines = answer.err.replace(str(authors), "authors.py").splitlines()
    members = re.compile(r"\b([ab])-[0-9a-f-]{36}")  # their ids are drawn
    told = [members.sub(r"\1-ID", line.removeprefix("error: strategy ")) for line in lines]
    approved("assignor_failures", {line.split("'")[1]: line for line in told})


def test_an_assignor_that_hangs_has_failed_when_the_timeout_is_over(lab, small, authors):
    options = ["-j", "1", "-s", f"{authors}:Hangs", "-s", f"{authors}:Right", "--format", "json"]
    answer = lab("compare", small, "--timeout", "0.05", *options)
    assert (answer.status, list(figures_of(answer))) == (1, [f"{authors}:Right"])
    group = "on group 'small' in generation 1 (2 members, 4 partitions): no answer within 0.05 s"
    assert answer.err == f"error: strategy '{authors}:Hangs': assignor 'hangs' {group}\n"


@pytest.mark.slow
@pytest.mark.parametrize("added", [[""], ["", "+static"]])
def test_a_process_that_dies_is_told_without_a_traceback(small, authors, added):
    """Also in the only run."""
    strategies = [part for each in added for part in ("-s", f"{authors}:DiesWithItsProcess{each}")]
    done = in_a_process("compare", small, "--seed", "1", "--seeds", "1", *strategies)
    assert (done.returncode, done.stdout) == (1, b"")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == len(added)
    assert all("its process ended with status 9" in line for line in lines)


@pytest.mark.slow
def test_a_process_that_dies_or_hangs_takes_no_other_run_with_it(small, authors):
    """The run that ended its process is named. The runs of the others are done in other processes."""
    own = ["DiesWithItsProcess", "Hangs", "Exits", "ReportsAnObject", "Right"]
    chosen = ["range", *(f"{authors}:{name}" for name in own), "sticky"]
    options = [part for strategy in chosen for part in ("-s", strategy)]
    options += ["-j", "2", "--timeout", "2", "--seeds", "2", "--format", "json"]
    done = in_a_process("compare", small, *options)
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert [entry["strategy"] for entry in answer["strategies"]] == [chosen[0], *chosen[5:]]
    assert all(len(entry["values"]["rounds"]) == 2 for entry in answer["strategies"])
    errors = [f"error: strategy '{name}': " for name in chosen[1:5]]
    lines = done.stderr.decode().splitlines()
    assert [line.startswith(error) for line, error in zip(lines, errors, strict=True)] == [True] * 4
    assert ": its process ended with status 9 " in lines[0]
    assert lines[1].endswith(": no answer within 2 s")


@pytest.mark.parametrize("command", [("compare", "-j", 1), ("simulate",), ("explain",), ("advise",)], ids=str)
def test_code_that_ends_this_process_without_a_word_is_an_error_like_others(lab, small, authors, command):
    first, *options = command
    answer = lab(first, small, "-s", f"{authors}:DiesWithItsProcess", *options)
    assert (answer.status, answer.out) == (1, "")
    (line,) = answer.err.splitlines()
    assert "raised SystemExit: 9" in line


def test_of_an_assignor_that_goes_wrong_nothing_is_explained_and_the_others_are(lab, small, authors):
    answer = lab("explain", small, "-s", f"{authors}:Raises", "-s", "range")
    assert (answer.status, "ZeroDivisionError" in answer.err) == (1, True)
    assert "\nrange: " in answer.out


@pytest.mark.parametrize("timeout", rest_slow(["0", "inf", "1e300"]))
def test_without_a_timeout_or_with_an_endless_one_a_run_is_as_always(lab, small, timeout):
    options = ["-j", "1", "-s", "range", "--seed", "4", "--format", "json"]
    assert lab("compare", small, *options, "--timeout", timeout) == lab("compare", small, *options)


def test_a_provider_that_fails_is_told_with_the_assignor_and_the_others_go_on(lab, small, monkeypatch):
    class Failing:
        def __init__(self, host):
            pass

        def report(self):
            return None

        def assigned(self, partitions):
            pass

        def inform(self, cluster, group, reports):
            raise KeyError("no such table")

    class Plugin:
        @hookimpl
        def providers(self):
            return [ProviderSpec("failing", Failing), ProviderSpec("unmade", lambda host: 1 / 0)]

    use_with(monkeypatch, Plugin())
    options = ["-j", "1", "-s", "range+weights=failing", "-s", "range+weights=unmade", "-s", "range"]
    answer = lab("compare", small, *options, "--format", "json")
    assert answer.status == 1
    assert list(figures_of(answer)) == ["range"]
    failing, unmade = answer.err.splitlines()
    assert "assignor 'range' on group 'small'" in failing
    assert placeless(failing).endswith("raised KeyError: 'no such table'")
    assert placeless(unmade).endswith("plugin 'mine', provider 'unmade': ZeroDivisionError: division by zero")


def line_of(text):
    """The number of the line of this file that contains a text."""
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_a_metric_that_fails_is_one_error_and_a_missing_figure_while_the_others_are_shown(
    lab, small, monkeypatch
):
    use_with(monkeypatch, metric_that_raises())
    options = ["-j", "1", "-s", "range", "-s", "sticky", "--seeds", "2"]
    answer = lab("compare", small, *options, "--format", "json")
    assert answer.status == 1
    error = "plugin 'mine', metric 'broken': ZeroDivisionError: division by zero"
    (line,) = answer.err.splitlines()
    assert placeless(line) == f"error: {error}, in 4 of 4 runs"
    assert f"/test_compare_failures.py:{line_of('lambda history: 1 / 0')})" in line
    for figures in figures_of(answer).values():
        assert figures["broken"] is None
        assert figures["rounds"] == 1
    assert json.loads(answer.out)["errors"] == [line.removeprefix("error: ")]
    table = lab("compare", small, *options, "--all").out
    (row,) = [line for line in table.splitlines() if line.startswith("broken ")]
    assert row.split() == ["broken", "-", "-"]


def test_an_error_of_some_seeds_names_them_and_the_other_seeds_count(lab, small, tmp_path):
    """The assignor fails for half of the member ids, which depend on the seed."""
    (tmp_path / "moody.py").write_text(MOODY)
    options = ["-j", "1", "--seeds", "8", "-s", f"{tmp_path}/moody.py:Moody", "--format", "json"]
    answer = lab("compare", small, *options)
    assert answer.status == 1
    (line,) = answer.err.splitlines()
    (entry,) = json.loads(answer.out)["strategies"]
    rounds = zip(range(4, 12), entry["values"]["rounds"], strict=True)
    failed = [seed for seed, value in rounds if value is None]
    assert 0 < len(failed) < 8
    assert line.startswith(f"error: strategy '{tmp_path}/moody.py:Moody': assignor 'moody' on ")
    assert line.endswith(f" ({in_seeds(failed, range(4, 12))})")


MOODY = """
class Moody:
    def assign(self, cluster, group):
        if min(group)[-1] in "01234567":
            raise ValueError("not now")
        return {min(group): [("orders", n) for n in range(4)]}
"""


# --- runs that end badly


IMPOSSIBLE_SESSION = {
    "name": "impossible",
    "duration": "1m",
    "topics": {"t": {"partitions": 2, "rate": 2}},
    "members": [{"id": "c", "topics": ["t"]}],
    "config": {"session.timeout.ms": 1_000, "heartbeat.interval.ms": 300},
}
FOUND = "c failed: JoinGroup: INVALID_SESSION_TIMEOUT; set session.timeout.ms to a value from"


@pytest.fixture
def impossible(tmp_path):
    path = tmp_path / "impossible.json"
    path.write_text(json.dumps(IMPOSSIBLE_SESSION))
    return path


def test_a_run_that_ends_badly_is_told_in_all_documents(lab, impossible):
    options = ["-j", "1", "-s", "range", "-s", "sticky"]
    for written in ("json", "csv", "html"):
        answer = lab("compare", impossible, *options, "--format", written)
        assert answer.status == 1
        assert answer.out.count(FOUND) == 2


def test_simulate_ends_with_the_findings_as_errors(lab, impossible):
    answer = lab("simulate", impossible, "-s", "range")
    assert answer.status == 1
    assert answer.out.startswith("impossible under range")
    assert answer.err.startswith(f"error: strategy 'range': {FOUND}")

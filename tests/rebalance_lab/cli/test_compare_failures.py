"""`rebalance-lab compare`: a strategy, metric or provider that fails is told, and the others go on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator_core.registry.hookspecs import MetricSpec, ProviderSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.cli import compare as compare_module
from rebalance_lab.cli import running, trials
from rebalance_lab.verdicts.words import in_seeds
from tests.examples import rest_slow
from tests.places import placeless
from tests.rebalance_lab.cli.commands import figures_of, in_a_process, the_error


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

NEVER = threading.Event()


class Right:
    def assign(self, cluster, group):
        return {min(group): [("orders", n) for n in range(4)]}


class Raises:
    def assign(self, cluster, group):
        return {min(group): [("orders", 1 / 0)]}


class Exits:
    def assign(self, cluster, group):
        sys.exit(3)


class Hangs:
    def assign(self, cluster, group):
        NEVER.wait()


class ReturnsNothing:
    def assign(self, cluster, group):
        pass


class GivesTwice:
    def assign(self, cluster, group):
        return {member: [("orders", 0)] for member in group}


class GivesToStrangers:
    def assign(self, cluster, group):
        return {"x": [("orders", 0)]}


class Lists:
    def assign(self, cluster, group):
        return {min(group): 5}


class FailsWhileListed:
    def assign(self, cluster, group):
        return {min(group): (1 / 0 for _ in range(4))}


def said(**beside):
    assignment = GroupAssignment({}, user_data=beside.get("user_data"))
    assignment.report = beside.get("report", {})
    return assignment


class SaysText:
    def assign(self, cluster, group):
        return said(user_data={min(group): "text"})


class ReportsAList:
    def assign(self, cluster, group):
        return said(report=["x"])


class ReportsAnObject:
    def assign(self, cluster, group):
        return said(report={"x": object()})


class SendsText(Right):
    def subscription_user_data(self, topics):
        return "text"


class SendsTextByItself(Assignor):
    name = "sends-text-by-itself"

    def assign(self, cluster, group):
        return {}

    def subscription_user_data(self, topics):
        return "text"


class SendsNothing(Right):
    def subscription_user_data(self, topics):
        raise ValueError("no data")


class Deaf(Right):
    def on_assignment(self, partitions, generation):
        raise ValueError("will not hear")


class Boasts(Right):
    capabilities = ("fastest",)


class BoastsOfANumber(Right):
    capabilities = 5


class SpeaksText(Right):
    supported_protocols = ("eager",)


class NeedsMore(Right):
    def __init__(self, needed):
        pass


class HasANumberForAName(Right):
    name = 5


class Quits(Right):
    def __init__(self):
        sys.exit(4)


class DiesWithItsProcess:
    def assign(self, cluster, group):
        os._exit(9)
"""
"""Assignors that go wrong, each in its way."""

OF_ITS_GROUP = {
    "Raises": "raised ZeroDivisionError: division by zero",
    "Exits": "raised SystemExit: 3",
    "ReturnsNothing": "returned NoneType, not a mapping of members",
    "GivesTwice": "orders-0 went to both ",
    "GivesToStrangers": "there is no member 'x'",
    "Lists": "gets is no list of (topic, partition) pairs",
    "FailsWhileListed": "gets raised ZeroDivisionError: division by zero",
    "SaysText": "returned user data that are no mapping of members to bytes",
    "ReportsAList": "returned a report that is list, not a mapping",
    "ReportsAnObject": "returned a report that is not plain values: ",
}
OF_ITSELF = {
    "SendsText": "subscription_user_data returned 'text', expected bytes or None",
    "SendsTextByItself": "subscription_user_data returned 'text', expected bytes or None",
    "SendsNothing": "subscription_user_data raised ValueError: no data",
    "Deaf": "on_assignment raised ValueError: will not hear",
    "Boasts": "declares the unknown capability 'fastest'; there are sticky, ",
    "BoastsOfANumber": "declares capabilities 5, not a list of them",
    "SpeaksText": "declares supported_protocols ('eager',), not a list of RebalanceProtocol",
    "NeedsMore": "TypeError: NeedsMore.__init__() missing 1 required positional argument: 'needed'",
    "HasANumberForAName": "TypeError: the object that it returns has no name",
    "Quits": "SystemExit: 4",
}


def kebab(name):
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).removeprefix("-")


@pytest.fixture
def authors(tmp_path):
    """A file of assignors, of which Right is the only one that works."""
    path = tmp_path / "authors.py"
    path.write_text(AUTHORS)
    return path


def the_failure(answer, strategy):
    """The one line about a strategy, while Right ran to its end."""
    assert answer.status == 1
    (right,) = figures_of(answer)
    assert right.endswith(":Right")
    (line,) = answer.err.splitlines()
    assert line.startswith(f"error: strategy '{strategy}': ")
    return line


@pytest.mark.parametrize("name", OF_ITS_GROUP)
def test_an_assignor_that_goes_wrong_is_one_line_with_its_group_and_the_others_go_on(
    lab, small, authors, name
):
    options = ["-j", "1", "-s", f"{authors}:{name}", "-s", f"{authors}:Right", "--format", "json"]
    line = the_failure(lab("compare", small, *options), f"{authors}:{name}")
    group = "group 'small' in generation 1 (2 members, 4 partitions)"
    assert f"assignor '{kebab(name)}' on {group}: " in line
    assert OF_ITS_GROUP[name] in line


@pytest.mark.parametrize("name", OF_ITSELF)
def test_what_an_assignor_says_or_declares_wrongly_is_one_line_too(lab, small, authors, name):
    options = ["-j", "1", "-s", f"{authors}:{name}", "-s", f"{authors}:Right", "--format", "json"]
    line = the_failure(lab("compare", small, *options), f"{authors}:{name}")
    assert f"assignor '{kebab(name)}': " in line or f"assignor '{authors}:{name}': " in line
    assert OF_ITSELF[name] in line


def test_an_assignor_that_hangs_has_failed_when_the_timeout_is_over(lab, small, authors):
    options = ["-j", "1", "-s", f"{authors}:Hangs", "-s", f"{authors}:Right", "--format", "json"]
    line = the_failure(lab("compare", small, "--timeout", "0.05", *options), f"{authors}:Hangs")
    assert line.endswith(
        "assignor 'hangs' on group 'small' in generation 1 (2 members, 4 partitions): no answer within 0.05 s"
    )


@pytest.mark.slow
def test_in_processes_of_their_own_failures_and_hangs_are_told_the_same_way(small, authors):
    """And the processes end, the one that hangs included."""
    strategies = [f"{authors}:{name}" for name in ("Hangs", "Right", "Exits", "ReportsAnObject")]
    chosen = [part for each in strategies for part in ("-s", each)]
    done = in_a_process("compare", small, "-j", "2", "--timeout", "2", *chosen, "--format", "json")
    assert done.returncode == 1
    assert [each["strategy"] for each in json.loads(done.stdout)["strategies"]] == strategies[1:2]
    hangs, exits, reports = done.stderr.decode().splitlines()
    assert hangs.startswith(f"error: strategy '{strategies[0]}': assignor 'hangs' on group 'small' ")
    assert exits.startswith(f"error: strategy '{strategies[2]}': assignor 'exits' on group 'small' ")
    assert reports.startswith(f"error: strategy '{strategies[3]}': assignor 'reports-an-object' on group ")


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [[], ["-j", "2"]])
def test_a_process_that_dies_is_told_without_a_traceback(small, authors, jobs):
    options = ["-s", f"{authors}:DiesWithItsProcess", "-s", f"{authors}:DiesWithItsProcess+static"]
    done = in_a_process("compare", small, *jobs, *options)
    assert (done.returncode, done.stdout) == (1, b"")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 2
    assert all("its process ended with status 9" in line for line in lines)


@pytest.mark.slow
def test_a_process_that_dies_in_the_only_run_is_told_as_well(small, authors):
    done = in_a_process(
        "compare", small, "--seed", "1", "--seeds", "1", "-s", f"{authors}:DiesWithItsProcess"
    )
    assert (done.returncode, done.stdout) == (1, b"")
    (line,) = done.stderr.decode().splitlines()
    assert "its process ended with status 9" in line


@pytest.mark.parametrize("command", [("compare", "-j", 1), ("simulate",), ("explain",), ("advise",)], ids=str)
def test_code_that_ends_this_process_without_a_word_is_an_error_like_others(lab, small, authors, command):
    first, *options = command
    answer = lab(first, small, "-s", f"{authors}:DiesWithItsProcess", *options)
    assert (answer.status, answer.out) == (1, "")
    (line,) = answer.err.splitlines()
    assert "raised SystemExit: 9" in line


@pytest.mark.parametrize("command", ["compare", "simulate", "explain", "advise"])
def test_a_seed_has_the_limits_of_a_scenario(lab, small, command):
    answer = lab(command, small, "-s", "range", "--seed", "9223372036854775808")
    assert answer == (
        2,
        "",
        "error: --seed: found 9223372036854775808, expected a whole number from 0 to"
        " 9,223,372,036,854,775,807\n",
    )


@pytest.mark.parametrize("timeout", rest_slow(["0", "inf", "1e300"]))
def test_without_a_timeout_or_with_an_endless_one_a_run_is_as_always(lab, small, timeout):
    options = ["-j", "1", "-s", "range", "--seed", "4", "--format", "json"]
    assert lab("compare", small, *options, "--timeout", timeout) == lab("compare", small, *options)


@pytest.mark.parametrize("timeout", ["-1", "nan", "soon"])
def test_a_timeout_that_is_none_is_wrong_use(lab, small, timeout):
    answer = lab("compare", small, "-s", "range", "--timeout", timeout)
    assert (answer.status, answer.out) == (2, "")
    assert "--timeout" in answer.err


@pytest.mark.parametrize(
    "code", ["1 / 0", "def broken(:", "import sys; sys.exit(3)", "import no_such_module_here"]
)
def test_a_file_that_cannot_be_loaded_is_one_error_before_anything_runs(lab, small, tmp_path, code):
    (tmp_path / "bad.py").write_text(code)
    error = the_error(lab("compare", small, "-s", "range", "-s", f"{tmp_path}/bad.py:X"))
    assert error.startswith(f"plugin '{tmp_path}/bad.py:X', import: ")


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


@pytest.mark.slow
def test_a_process_that_dies_takes_no_other_run_with_it(small, authors):
    """The run that ended its process is named. The runs of the others are done in other processes."""
    chosen = ["range", f"{authors}:DiesWithItsProcess", "sticky", f"{authors}:Exits", f"{authors}:Right"]
    options = [part for strategy in chosen for part in ("-s", strategy)]
    done = in_a_process("compare", small, "-j", "2", "--seeds", "2", *options, "--format", "json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert [entry["strategy"] for entry in answer["strategies"]] == [chosen[0], chosen[2], chosen[4]]
    assert all(len(entry["values"]["rounds"]) == 2 for entry in answer["strategies"])
    dies, exits = done.stderr.decode().splitlines()
    assert dies.startswith(f"error: strategy '{chosen[1]}': its process ended with status 9 ")
    assert exits.startswith(f"error: strategy '{chosen[3]}': assignor 'exits' on group 'small' ")


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


@pytest.mark.parametrize("output", ["table", "json", "csv", "html"])
def test_findings_are_shown_in_every_format_with_status_1(lab, small, monkeypatch, output):
    def run_all(tasks, **options):
        runs = real_run_all(tasks, **options)
        return [replace(run, findings=FINDINGS[: number + 1]) for number, run in enumerate(runs)]

    real_run_all = running.run_all
    monkeypatch.setattr(running, "run_all", run_all)
    options = ["-j", "1", "-s", "range", "--seeds", "2", "--format", output]
    answer = lab("compare", small, *options)
    assert (answer.status, answer.err) == (1, "")
    text = " ".join(answer.out.split())
    assert all(finding in text for finding in (FINDINGS[0], f"{FINDINGS[1]} (seed 5)"))
    assert f"{FINDINGS[0]} (seed" not in text


FINDINGS = ("the group never rested", "orders-3 has no owner at the end")


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


def test_a_run_that_ends_badly_is_told_below_the_table_and_in_all_documents(lab, impossible):
    options = ["compare", impossible, "-j", "1", "-s", "range", "-s", "sticky"]
    answer = lab(*options)
    assert answer.status == 1
    assert f"range and sticky: {FOUND}" in " ".join(answer.out.split())
    for written in ("json", "csv", "html"):
        answer = lab(*options, "--format", written)
        assert answer.status == 1
        assert answer.out.count(FOUND) == 2


def test_simulate_ends_with_the_findings_as_errors(lab, impossible):
    answer = lab("simulate", impossible, "-s", "range")
    assert answer.status == 1
    assert answer.out.startswith("impossible under range")
    assert answer.err.startswith(f"error: strategy 'range': {FOUND}")

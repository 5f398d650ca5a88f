"""The magics, in an IPython of this process."""

import html
import re

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import compare_view, show
from rebalance_jupyter.display import picture, words
from rebalance_jupyter.magics import DEFAULT_STRATEGIES
from tests.rebalance_jupyter.samples import ALONE, SCALE_OUT, ran

BUSIEST = """\
class Busiest:
    name = "busiest"
    options = {"reverse": bool}

    def __init__(self, reverse=False):
        self.reverse = reverse

    def assign(self, cluster, group):
        members = sorted(group.sorted_members(), reverse=self.reverse)
        owned = {member: [] for member in group}
        for topic, info in cluster.topics.items():
            owned[members[0]] += [(topic, p) for p in range(info.partitions)]
        return owned

def first_come(cluster, group):
    return Busiest().assign(cluster, group)

def fails(cluster, group):
    raise ValueError("not <today>")
"""


def run_cell(shell, source):
    """Bundles that a cell displays; whatever it raises fails the test."""
    with capture_output() as captured:
        result = shell.run_cell(source)
    result.raise_error()
    assert captured.stderr == ""
    return [output.data for output in captured.outputs]


def read(bundle):
    """What a person reads."""
    return html.unescape(re.sub(r"<[^>]*>", "", bundle["text/html"]))


def completed(shell, line, below=ALONE):
    """What a notebook offers at the end of a cell's first line: what stands behind the delimiter."""
    with provisionalcompleter():
        found = list(shell.Completer.completions(f"{line}\n{below}", len(line)))
    return {(line[: each.start] + each.text).rpartition(" ")[2].rpartition("+")[2] for each in found}


def rebalance(shell, line, cell=ALONE):
    return run_cell(shell, f"%%rebalance {line}\n{cell}")


# --- %%rebalance


def test_a_cell_is_a_scenario_and_two_strategies_are_compared(shell):
    widget, _, shown = rebalance(shell, "", SCALE_OUT)
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert shown == compare_view([ran(strategy=name) for name in DEFAULT_STRATEGIES]).pictured()


def test_one_strategy_is_shown_by_itself(shell):
    *_, shown = rebalance(shell, "-s sticky")
    assert shown == show(ran(ALONE, "sticky")).pictured()


def test_traces_are_put_into_a_variable_too(shell):
    rebalance(shell, "-s range --strategy cooperative-sticky -o traces", SCALE_OUT)
    assert shell.user_ns["traces"] == [ran(strategy="range"), ran()]


def test_a_strategy_has_modifiers(shell):
    rebalance(shell, "-s cooperative-sticky+static -o traces")
    (trace,) = shell.user_ns["traces"]
    assert trace.strategy == "cooperative-sticky+static"
    (started,) = [line.event for line in trace.events if isinstance(line.event, ev.MemberStarted)]
    assert started.instance_id is not None


def test_a_class_of_a_cell_is_a_strategy_at_once_with_options_and_modifiers(shell):
    run_cell(shell, BUSIEST)
    two = ALONE.replace("id: solo", "id: solo, count: 2")
    rebalance(shell, "-s Busiest -s Busiest+reverse=yes -s Busiest+static -o traces", two)
    traces = shell.user_ns["traces"]
    assert [trace.strategy for trace in traces] == ["Busiest", "Busiest+reverse=yes", "Busiest+static"]
    assert {len(trace.started.topics) for trace in traces} == {1}
    run_cell(shell, BUSIEST.replace("members[0]", "members[-1]"))
    rebalance(shell, "-s Busiest -o again", two)
    assert shell.user_ns["again"][0] != traces[0]  # the class as it is now, not as it was


def test_another_name_of_a_strategy_is_not_that_of_a_variable(shell):
    run_cell(shell, "watcher, sticky = {}, {}\ndef rocketmq(): ...\n")
    rebalance(shell, "-s watcher -s rocketmq -s sticky -o traces", ALONE)
    assert [trace.strategy for trace in shell.user_ns["traces"]] == ["watcher", "rocketmq", "sticky"]


def test_a_function_of_a_cell_is_a_strategy_too(shell):
    run_cell(shell, BUSIEST)
    rebalance(shell, "-s first_come -o traces")
    assert shell.user_ns["traces"][0].ended.group_state == "Stable"


def test_what_is_installed_goes_before_what_a_cell_calls_by_the_same_name(shell):
    run_cell(shell, "sticky = 5")
    assert rebalance(shell, "-s sticky")[-1]["text/plain"].startswith("alone under sticky,")


@pytest.mark.parametrize(
    ("line", "cell", "problem"),
    [
        ("", "name: [\n", "scenario: line"),
        ("", "name: x\n", "scenario: duration"),
        ("", ALONE.replace("[t]", "[<b>]"), "<b>"),
        ("", "name", "scenario"),
        ("-s no-such", ALONE, "no-such"),
        ("-s Unknown", ALONE, "Unknown"),
        ("-s range+no-such", ALONE, "no-such"),
        ("-s shown", ALONE, "shown"),
    ],
)
def test_what_is_wrong_is_shown_in_a_line_and_nothing_is_kept(shell, line, cell, problem):
    run_cell(shell, "shown = 3")
    (bundle,) = rebalance(shell, f"{line} -o traces", cell)
    assert problem in read(bundle)
    assert "traces" not in shell.user_ns


def test_a_strategy_that_fails_is_said_below_the_others(shell):
    run_cell(shell, BUSIEST)
    *_, shown = rebalance(shell, "-s fails -s range -o traces")
    assert "not <today>" in shown["text/plain"]
    assert "not &lt;today&gt;" in shown["image/svg+xml"]
    assert [trace.strategy for trace in shell.user_ns["traces"]] == ["range"]
    *_, shown = rebalance(shell, "-s fails")
    assert shown["text/plain"].startswith("fails: ")


def test_an_exception_of_a_cell_is_shown_with_the_line_of_the_cell(shell):
    shell.run_cell("answer = 42", store_history=True)
    shell.run_cell(BUSIEST, store_history=True)
    *_, shown = rebalance(shell, "-s fails")
    line = 1 + BUSIEST.splitlines().index('    raise ValueError("not <today>")')
    place = f'(cell In[{shell.execution_count - 1}], line {line}: raise ValueError("not <today>"))'
    assert shown["text/plain"].endswith(f"raised ValueError: not <today> {place}")


def test_an_endless_loop_of_a_cell_is_ended_and_its_line_shown(shell):
    run_cell(shell, "def spin(cluster, group):\n    while True:\n        pass\n")
    *_, shown = rebalance(shell, "-s spin --limit 0.3")
    assert re.search(
        r"did not get further than .* s .*\(cell In\[\d+\], line [23]: (while|pass)", shown["text/plain"]
    )


def test_a_run_of_a_cell_takes_any_form_of_an_assignor_and_its_errors_are_short(shell):
    run_cell(shell, BUSIEST)
    shell.user_ns["scenario"] = ALONE
    run_cell(
        shell,
        "from rebalance_jupyter import run\nby = [run(scenario, s) for s in (Busiest, Busiest(), 'Busiest')]",
    )
    assert [trace.strategy for trace in shell.user_ns["by"]] == ["Busiest", "busiest", "Busiest"]
    with capture_output() as captured:
        assert not shell.run_cell("number = 1\nrun(scenario, fails)").success
    lines = (captured.stdout + captured.stderr).splitlines()
    assert lines[0] == "line 2: run(scenario, fails)"
    assert lines[1].startswith("AssignmentError: assignor 'fails'")
    assert len(lines) == 2


def test_a_bench_follows_the_class_of_a_cell(shell):
    run_cell(shell, BUSIEST)
    two = shell.user_ns["scenario"] = ALONE.replace("id: solo", "id: solo, count: 2")
    assert two != ALONE
    run_cell(
        shell,
        "from rebalance_jupyter import Lab\nlab = Lab(scenario, [Busiest, first_come, Busiest(), 'sticky'])",
    )
    lab = shell.user_ns["lab"]
    assert lab.strategies.value.splitlines() == ["Busiest", "first_come", "busiest", "sticky"]
    lab.run()
    before = lab.traces
    run_cell(shell, BUSIEST.replace("members[0]", "members[-1]"))
    lab.run()
    assert [a == b for a, b in zip(before, lab.traces, strict=True)] == [False, False, True, True]


# --- what else the extension brings


def test_plugins_are_listed_with_what_they_contribute(shell):
    (bundle,) = run_cell(shell, "%rebalance_plugins")
    registry = default_registry()
    kinds = (registry.assignors(), registry.metrics(), registry.scenario_events(), registry.modifiers())
    for records in kinds:
        for name in records:
            assert f"<b>{name}</b>" in bundle["text/html"]


def test_a_trace_at_the_end_of_a_cell_is_a_picture_and_words(shell):
    shell.user_ns["trace"] = ran()
    (bundle,) = run_cell(shell, "display(trace)")
    assert (bundle["image/svg+xml"], bundle["text/plain"]) == (picture([ran()]), words(ran()))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%%rebalance -s ", {"range", "cooperative-sticky", "Busiest"}),
        ("%%rebalance -s ren", {"rendezvous"}),
        ("%%rebalance -s coop", {"cooperative-sticky"}),
        ("%%rebalance --strategy Bus", {"Busiest"}),
        ("%%rebalance -s range -s  sti", {"sticky", "sticky-balanced"}),
        ("%%rebalance -s cooperative-sticky+sta", {"static"}),
        ("%%rebalance -s optimal+stri", {"strict"}),
        ("%%rebalance -s Busiest+rev", {"reverse"}),
        ("%%rebalance -s Busiest+static+wei", {"weights"}),
        ("%%rebalance -", {"-s", "-l", "-o"}),
        ("%%rebalance -s range -", {"-s", "-l", "-o"}),
    ],
)
def test_strategies_are_completed(shell, line, expected):
    run_cell(shell, BUSIEST)
    matches = completed(shell, line)
    assert expected <= matches
    if not line.endswith(" "):
        assert matches == expected


@pytest.mark.parametrize("jedi", [False, True])
def test_after_the_option_there_are_strategies_only(shell, jedi):
    """No keywords of Python, no files, no magics."""
    shell.Completer.use_jedi = jedi
    run_cell(shell, BUSIEST)
    registry = default_registry()
    names = {*registry.assignors(), *registry.aliases(), "Busiest", "first_come", "fails"}
    assert completed(shell, "%%rebalance -s ") == names
    assert completed(shell, "%%rebalance -s range -s ") == names


def test_the_scenario_of_a_cell_is_not_completed_with_strategies(shell):
    with provisionalcompleter():
        cell = "%%rebalance -s range\nname: ra"
        assert "range+" not in {each.text for each in shell.Completer.completions(cell, len(cell))}
        assert not {"rocketmq"} & {each.text for each in shell.Completer.completions(cell, len(cell))}


def test_options_of_an_assignor_are_completed_behind_a_plus(shell):
    line = "%%rebalance -s optimal+"
    registry = default_registry()
    options = registry.assignors()["optimal"].options
    assert completed(shell, line) == {*options, *registry.modifiers(), *registry.protocols()}


def test_the_magics_themselves_are_completed(shell):
    assert completed(shell, "%rebalance_pl", "") == {"%rebalance_plugins"}
    assert completed(shell, "%%rebal", "") == {"%%rebalance"}

"""The magics, in an IPython of this process."""

import html
import re

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import compare_view, show
from rebalance_jupyter.magics import DEFAULT_STRATEGIES
from tests.rebalance_jupyter.samples import ALONE, ran

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


def traces_of(shell, line, cell=ALONE):
    rebalance(shell, f"{line} -o traces", cell)
    return shell.user_ns["traces"]


# --- %%rebalance


def test_a_cell_is_a_scenario_of_which_one_run_is_shown_by_itself_and_two_are_compared(shell):
    widget, _, shown = rebalance(shell, "-o traces")
    assert "application/vnd.jupyter.widget-view+json" in widget
    traces = shell.user_ns["traces"]
    assert traces == [ran(ALONE, strategy=name) for name in DEFAULT_STRATEGIES]
    assert shown == compare_view(traces).pictured()
    *_, shown = rebalance(shell, "--strategy sticky")
    assert shown == show(ran(ALONE, "sticky")).pictured()


def test_classes_and_functions_of_cells_are_strategies_at_once_with_options_and_modifiers(shell):
    run_cell(shell, BUSIEST)
    names = ["first_come", "Busiest", "Busiest+reverse=yes", "Busiest+static"]
    line, two = " ".join(f"-s {name}" for name in names), ALONE.replace("id: solo", "id: solo, count: 2")
    traces = traces_of(shell, line, two)
    assert [trace.strategy for trace in traces] == names
    assert {trace.ended.group_state for trace in traces} == {"Stable"}
    assert [
        line.event.instance_id is not None
        for line in traces[3].events
        if isinstance(line.event, ev.MemberStarted)
    ] == [True, True]
    run_cell(shell, BUSIEST.replace("members[0]", "members[-1]"))
    assert traces_of(shell, "-s Busiest", two)[0] != traces[1]  # the class as it is now, not as it was


def test_what_is_installed_goes_before_what_a_cell_calls_by_the_same_name(shell):
    run_cell(shell, "watcher, sticky = {}, 5\ndef rocketmq(): ...\n")
    traces = traces_of(shell, "-s watcher -s rocketmq -s sticky")
    assert [trace.strategy for trace in traces] == ["watcher", "rocketmq", "sticky"]


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


def test_a_strategy_that_fails_is_said_below_the_others_with_the_line_of_its_cell(shell):
    shell.run_cell("answer = 42", store_history=True)
    shell.run_cell(BUSIEST, store_history=True)
    *_, shown = rebalance(shell, "-s fails -s range -o traces")
    line = 1 + BUSIEST.splitlines().index('    raise ValueError("not <today>")')
    place = f'(cell In[{shell.execution_count - 1}], line {line}: raise ValueError("not <today>"))'
    assert shown["text/plain"].endswith(f"raised ValueError: not <today> {place}")
    assert "not &lt;today&gt;" in shown["image/svg+xml"]
    assert [trace.strategy for trace in shell.user_ns["traces"]] == ["range"]


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


REGISTRY = default_registry()
NAMES = {*REGISTRY.assignors(), *REGISTRY.aliases()}
AFTER_OPTIMAL = {*REGISTRY.assignors()["optimal"].options, *REGISTRY.modifiers(), *REGISTRY.protocols()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
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
        ("%%rebal", {"%%rebalance"}),
        ("%%rebalance -s ", {*NAMES, "Busiest", "first_come", "fails"}),
        ("%%rebalance -s range -s ", {*NAMES, "Busiest", "first_come", "fails"}),
        ("%%rebalance -s optimal+", AFTER_OPTIMAL),
    ],
)
def test_strategies_are_completed_and_nothing_else_is_offered(shell, line, expected):
    """No keywords of Python, no files, no magics."""
    run_cell(shell, BUSIEST)
    assert completed(shell, line) == expected

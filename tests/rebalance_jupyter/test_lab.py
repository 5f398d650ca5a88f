"""The bench as it runs: what is said beside its controls, and what stays."""

from importlib.metadata import entry_points
from multiprocessing import get_context
from threading import Event
from types import SimpleNamespace

import pytest
from IPython.utils.capture import capture_output
from ipywidgets import HTML

from coordinator_core.protocol.events import MemberStarted
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_jupyter import Lab, run, show
from rebalance_jupyter.lab import EXAMPLE
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.verdicts.differences import differences
from tests.rebalance_jupyter.bench import SMALL, said
from tests.rebalance_jupyter.samples import ALONE


def strategies_of(lab):
    return [trace.strategy for trace in lab.traces]


# --- running


def test_it_opens_with_an_example_that_runs():
    lab = Lab()
    assert lab.document.value == EXAMPLE
    lab.run()
    assert strategies_of(lab) == lab.view.figures["strategies"] == ["range", "cooperative-sticky"]
    assert (said(lab.status), lab.view.errors) == ("", [])


def test_a_file_is_a_scenario_too_and_is_saved_beside_what_it_refers_to(tmp_path):
    (tmp_path / "rates.csv").write_text("timestamp,p0,p1\n0,3,4\n")
    rated = "{partitions: 2, rates_csv: rates.csv, interval: 40s}"
    (tmp_path / "day.yaml").write_text(SMALL.replace("{partitions: 4, rate: 40}", rated))
    lab = Lab(str(tmp_path / "day.yaml"), ["range"])
    lab.run()
    assert (said(lab.document_error), len(lab.traces)) == ("", 1)
    lab.save_button.click()
    assert lab.path.value == str(tmp_path / "scenario.yaml")
    assert load_scenario(tmp_path / "scenario.yaml").name == "small"
    assert Lab(SMALL).path.value == "scenario.yaml"


def test_run_shows_progress_takes_each_name_once_and_ends_with_the_buttons_as_they_were(lab, monkeypatch):
    monkeypatch.setattr("rebalance_jupyter.lab.REPORT_SECONDS", 0)
    seen = []
    lab.progress.observe(lambda change: seen.append(change.new), "value")
    lab.strategies.value = "\n range \n\nsticky\nrange\n"
    lab.run_button.click()
    lab._thread.join()
    assert seen[:-1] == sorted(seen[:-1])
    assert (max(seen), seen[-1], len(seen) > 40) == (100, 0, True)
    assert (lab.run_button.disabled, lab.cancel_button.disabled) == (False, True)
    assert strategies_of(lab) == ["range", "sticky"]


class Gate:
    """Contributes assignors: one that waits to be let through, one that never returns, one that fails.

    Authors' code runs in a process, so that the events are those of processes.
    """

    def __init__(self):
        events = get_context("fork")
        self.reached, self.open = events.Event(), events.Event()

    def assign(self, cluster, group):
        self.reached.set()
        assert self.open.wait(30)
        return {member: [] for member in group}

    def loop(self, cluster, group):
        self.reached.set()
        while True:
            pass

    def fail(self, cluster, group):
        raise ValueError("too many <members>")

    @hookimpl
    def assignors(self):
        def named(chosen, function):
            made = type("Made", (), {"name": chosen, "assign": staticmethod(function)})
            return AssignorSpec(chosen, made)

        return [named("slow", self.assign), named("endless", self.loop), named("broken", self.fail)]


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
def closed(gate):
    """A bench with the gate, which has not run."""
    registry = Registry()
    registry.load(entry_points(group="rebalance_lab"))
    registry.register(gate)
    return Lab(SMALL, ["range"], registry=registry)


@pytest.fixture
def gated(closed):
    closed.run()
    return closed


@pytest.mark.parametrize(
    ("has_run", "told"), [(True, "cancelled; this is the result before"), (False, "cancelled")]
)
def test_cancel_stops_the_run_and_the_last_good_result_stays(closed, gate, has_run, told):
    """Run stays enabled, so that the end of the kernel leaves it usable."""
    if has_run:
        closed.run()
    before = closed.traces
    closed.strategies.value = "endless\nsticky"
    closed.run_button.click()
    assert gate.reached.wait(30)
    assert (closed.run_button.disabled, closed.cancel_button.disabled) == (False, False)
    closed.run(wait=False)  # one at a time
    closed.cancel_button.click()
    closed._thread.join(60)
    assert (closed.traces, said(closed.status)) == (before, told)
    assert (closed.run_button.disabled, closed.cancel_button.disabled) == (False, True)
    closed.strategies.value = "slow\nsticky"
    gate.open.set()
    closed.run()
    assert (strategies_of(closed), said(closed.status)) == (["slow", "sticky"], "")


def test_strategies_that_fail_are_said_and_the_last_good_result_stays_if_all_do(gated):
    gated.strategies.value = "broken\nsticky"
    gated.run()
    (error,) = gated.view.errors
    assert error.startswith("broken: ")
    assert "too many <members>" in error
    assert (strategies_of(gated), said(gated.status)) == (["sticky"], "1 of 2 strategies ran")
    gated.strategies.value = "broken"
    gated.run()
    assert (strategies_of(gated), said(gated.status)) == (["sticky"], "0 of 1 strategies ran")
    gated.strategies.value = "sticky"
    gated.run()
    assert (gated.view.errors, said(gated.status)) == ([], "")


def test_a_kernel_that_ends_waits_for_the_end_of_the_run_while_its_messages_can_be_sent(
    gated, gate, monkeypatch
):
    ended = Event()
    monkeypatch.setattr(
        "rebalance_jupyter.lab.main_thread", lambda: SimpleNamespace(is_alive=lambda: not ended.is_set())
    )
    gated.strategies.value = "endless"
    gated.run(wait=False)
    assert gate.reached.wait(30)
    assert not gated._thread.daemon
    ended.set()
    gated._thread.join(30)
    assert (gated._thread.is_alive(), gated.cancel_button.disabled) == (False, True)


def test_what_nobody_foresaw_is_said_and_the_bench_goes_on(ready, monkeypatch):
    def broken(*_, **__):
        raise KeyError("odd")

    monkeypatch.setattr("rebalance_jupyter.running.simulate", broken)
    ready.run()
    assert said(ready.status) == "KeyError: 'odd'"
    assert (len(ready.traces), ready.run_button.disabled) == (1, False)


# --- running at each change


def members_of(trace):
    return sorted({line.event.client for line in trace.events if isinstance(line.event, MemberStarted)})


def test_a_change_after_the_first_run_runs_again_and_the_cursor_stays(ready):
    ready.view.at = 12_500
    ready.members.value = 3
    ready._thread.join()
    assert (members_of(ready.traces[0]), ready.view.at) == (["c-0", "c-1", "c-2"], 12_500)
    ready.document.value = SMALL.replace("40s", "10s")
    ready._thread.join()
    assert (ready.traces[0].started.duration_ms, ready.view.at) == (10_000, 10_000)


def test_a_change_before_the_first_run_or_without_live_runs_nothing(lab):
    lab.members.value = 3
    assert lab._thread is None
    lab.run()
    before, lab.live.value = lab.traces, False
    lab.members.value = 2
    lab._thread.join()
    assert lab.traces == before


def test_a_change_replaces_the_run_under_way(gated, gate):
    gate.open.set()
    gated.strategies.value = "endless"
    assert gate.reached.wait(30)
    gated.live.value = False
    gated.strategies.value = "slow"
    gated.live.value = True
    gated.members.value = 3
    gated.run()
    (trace,) = gated.traces
    assert (trace.strategy, members_of(trace)) == ("slow", ["c-0", "c-1", "c-2"])
    assert (said(gated.status), gated.cancel_button.disabled) == ("", True)


# --- what is wrong


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("document", "name: [", "scenario: line"),
        ("document", "", "scenario"),
        ("document", SMALL.replace("40s", "4 weeks"), "duration"),
        ("document", SMALL.replace("[t]", "['<b>']"), "<b>"),
        ("document", SMALL + "events:\n  - {at: 1m, leave: c-0}\n", "at most the duration"),
        ("strategies", "", "no strategy, expected one a line"),
        ("strategies", "range\nno-such", "no-such"),
        ("strategies", "range+nothing=1", "nothing"),
        ("strategies", "no/such/file.py:Name", "no/such/file.py"),
    ],
)
def test_what_is_malformed_is_said_beside_its_field_and_the_last_good_result_stays(
    ready, field, text, problem
):
    before, control, error = ready.traces, getattr(ready, field), getattr(ready, f"{field}_error")
    good, control.value = control.value, text
    assert problem in said(error)
    ready.run()
    assert problem in said(error)
    assert ready.traces == before
    control.value = good
    assert said(error) == ""


def test_a_bench_may_open_with_a_malformed_scenario_and_strategy():
    lab = Lab("name:\n- [", ["no-such"])
    lab.run()
    assert said(lab.document_error)
    assert "no-such" in said(lab.strategies_error)
    lab.document.value = SMALL
    assert (said(lab.document_error), lab.members.value, lab.traces) == ("", 2, ())


# --- the result


def test_owners_that_differ_at_the_cursor_are_shown_once_the_table_is_open():
    document = SMALL.replace("count: 2", "count: 3").replace("partitions: 4", "partitions: 8")
    lab = Lab(document, ["range", "roundrobin"])
    lab.run()
    (table,) = lab.differences.children
    lab.view.at = 20_000
    assert table.value == ""
    lab.differences.selected_index = 0
    assert differences(lab.traces, 20_000).rows
    for at_ms in (20_000, 0):
        lab.view.at = at_ms
        assert said(table) == said(HTML(differences(lab.traces, at_ms).as_html()))
    lab.strategies.value = "range"
    lab._thread.join()
    assert said(table) == "Run two strategies to see where their owners differ."


def test_the_bench_has_a_picture_that_follows_its_result(shell, ready):
    with capture_output() as captured:
        ready._ipython_display_()
        ready.strategies.value = "sticky"
        ready.run()
    widget, _, _, last = (output.data for output in captured.outputs)
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == ready.model_id
    assert last == show(run(ready.document.value, "sticky")).pictured()


def test_save_writes_the_document_as_it_stands_or_says_why_not(lab, tmp_path):
    lab.document.value = ALONE.replace("alone", "für mich <allein>")
    lab.path.value = str(tmp_path / "<mine>.yaml")
    lab.save_button.click()
    assert said(lab.saved) == f"saved as {tmp_path / '<mine>.yaml'}"
    assert (tmp_path / "<mine>.yaml").read_text(encoding="utf-8") == lab.document.value
    for path in ("no/such/folder/x.yaml", "."):
        lab.path.value = str(tmp_path / path)
        lab.save_button.click()
        assert said(lab.saved).startswith(str(tmp_path / path))
        assert 'role="alert"' in lab.saved.value

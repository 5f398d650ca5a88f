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
from tests.rebalance_jupyter.bench import SMALL, document_of, events_of, said
from tests.rebalance_jupyter.samples import ALONE
from tests.written import DEVICE, PLACES, check_written

# --- running


def test_it_opens_with_an_example_that_runs():
    lab = Lab()
    assert lab.document.value == EXAMPLE
    lab.run()
    assert [trace.strategy for trace in lab.traces] == ["range", "cooperative-sticky"]
    assert lab.view.figures["strategies"] == ["range", "cooperative-sticky"]
    assert (said(lab.status), lab.view.errors) == ("", [])


def test_a_file_is_a_scenario_too_and_what_it_refers_to_is_beside_it(tmp_path):
    (tmp_path / "rates.csv").write_text("timestamp,p0,p1\n0,3,4\n")
    path = tmp_path / "day.yaml"
    path.write_text(
        SMALL.replace("{partitions: 4, rate: 40}", "{partitions: 2, rates_csv: rates.csv, interval: 40s}")
    )
    lab = Lab(path, ["range"])
    assert said(lab.document_error) == ""
    lab.run()
    assert len(lab.traces) == 1
    assert Lab(str(path)).document.value == lab.document.value


def test_run_shows_progress_and_ends_with_the_buttons_as_they_were(lab, monkeypatch):
    monkeypatch.setattr("rebalance_jupyter.lab.REPORT_SECONDS", 0)
    seen = []
    lab.progress.observe(lambda change: seen.append(change.new), "value")
    lab.strategies.value = "range\nsticky"
    lab.run_button.click()
    lab._thread.join()
    assert seen[:-1] == sorted(seen[:-1])
    assert max(seen) == 100
    assert len(seen) > 40
    assert (seen[-1], lab.run_button.disabled, lab.cancel_button.disabled) == (0, False, True)
    assert [trace.strategy for trace in lab.traces] == ["range", "sticky"]


def test_names_are_taken_once_and_empty_lines_not_at_all(lab):
    lab.strategies.value = "\n range \n\nsticky\nrange\n"
    lab.run()
    assert [trace.strategy for trace in lab.traces] == ["range", "sticky"]


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
def gated(gate):
    registry = Registry()
    registry.load(entry_points(group="rebalance_lab"))
    registry.register(gate)
    lab = Lab(SMALL, ["range"], registry=registry)
    lab.run()
    return lab


def test_cancel_stops_the_run_and_the_last_good_result_stays(gated, gate):
    before = gated.traces
    gated.strategies.value = "endless\nsticky"
    gated.run_button.click()
    assert gate.reached.wait(30)
    assert gated.cancel_button.disabled is False
    gated.run(wait=False)  # one at a time
    gated.cancel_button.click()
    gated._thread.join(60)
    assert gated.traces == before
    assert said(gated.status) == "cancelled; this is the result before"
    assert (gated.run_button.disabled, gated.cancel_button.disabled) == (False, True)
    gated.strategies.value = "slow\nsticky"
    gate.open.set()
    gated.run()
    assert [trace.strategy for trace in gated.traces] == ["slow", "sticky"]
    assert said(gated.status) == ""


def test_a_strategy_that_fails_is_said_below_the_others(gated):
    gated.strategies.value = "broken\nsticky"
    gated.run()
    assert [trace.strategy for trace in gated.traces] == ["sticky"]
    (error,) = gated.view.errors
    assert error.startswith("broken: ")
    assert "too many <members>" in error
    assert said(gated.status) == "1 of 2 strategies ran"
    gated.strategies.value = "sticky"
    gated.run()
    assert (gated.view.errors, said(gated.status)) == ([], "")


def test_where_every_strategy_fails_the_last_good_result_stays(gated):
    before = gated.traces
    gated.strategies.value = "broken"
    gated.run()
    assert gated.traces == before
    assert len(gated.view.errors) == 1
    assert said(gated.status) == "0 of 1 strategies ran"


def test_run_stays_enabled_so_that_a_kernel_that_ends_leaves_it_usable(gated, gate):
    gated.strategies.value = "endless"
    gated.run_button.click()
    assert gate.reached.wait(30)
    assert not gated.run_button.disabled
    gated.cancel()
    gated._thread.join(60)


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
    assert not gated._thread.is_alive()
    assert gated.cancel_button.disabled


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
    assert members_of(ready.traces[0]) == ["c-0", "c-1", "c-2"]
    assert ready.view.at == 12_500
    ready.strategies.value = "sticky"
    ready._thread.join()
    assert ready.traces[0].strategy == "sticky"
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
    assert (said(gated.status), gated.run_button.disabled, gated.cancel_button.disabled) == ("", False, True)


# --- what is wrong


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: [", "scenario: line"),
        ("", "scenario"),
        (SMALL.replace("40s", "4 weeks"), "duration"),
        (SMALL.replace("[t]", "[other]"), "other"),
        (SMALL + "events:\n  - {at: 1m, leave: c-0}\n", "at most the duration"),
        (SMALL.replace("small", "small\nname: twice"), "twice"),
    ],
)
def test_a_malformed_scenario_is_said_beside_it_and_the_last_good_result_stays(ready, text, problem):
    before = ready.traces
    ready.document.value = text
    assert problem in said(ready.document_error)
    ready.run()
    assert problem in said(ready.document_error)
    assert ready.traces == before
    ready.document.value = SMALL
    assert said(ready.document_error) == ""


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("", "no strategy, expected one a line"),
        ("range\nno-such", "no-such"),
        ("range+nothing=1", "nothing"),
        ("no/such/file.py:Name", "no/such/file.py"),
    ],
)
def test_a_malformed_strategy_is_said_beside_it_and_the_last_good_result_stays(ready, names, problem):
    before = ready.traces
    ready.strategies.value = names
    ready.run()
    assert problem in said(ready.strategies_error)
    assert ready.traces == before
    ready.strategies.value = "sticky"
    ready.run()
    assert (said(ready.strategies_error), ready.traces[0].strategy) == ("", "sticky")


def test_both_fields_say_what_is_wrong_with_them(lab):
    lab.document.value, lab.strategies.value = "name: [", "no-such"
    lab.run()
    assert said(lab.document_error)
    assert "no-such" in said(lab.strategies_error)
    assert lab.traces == ()


def test_what_is_wrong_is_text_and_not_markup(lab):
    lab.document.value = SMALL.replace("[t]", "['<b>']")
    assert "&lt;b&gt;" in lab.document_error.value


def test_a_bench_may_open_with_a_malformed_scenario():
    lab = Lab("name:\n- [")
    assert said(lab.document_error)
    lab.document.value = SMALL
    assert (said(lab.document_error), lab.members.value) == ("", 2)


# --- owners that differ

DIFFERENT = SMALL.replace("count: 2", "count: 3").replace("partitions: 4", "partitions: 8")


def test_owners_that_differ_at_the_cursor_are_shown_once_the_table_is_open():
    lab = Lab(DIFFERENT, ["range", "roundrobin"])
    lab.run()
    (table,) = lab.differences.children
    lab.view.at = 20_000
    assert table.value == ""
    lab.differences.selected_index = 0
    assert said(table) == said(HTML(differences(lab.traces, 20_000).as_html()))
    assert differences(lab.traces, 20_000).rows
    lab.view.at = 0
    assert said(table) == "at 0 s: no partition has different owners"
    lab.strategies.value = "range\nrange+static"
    lab._thread.join()
    lab.view.at = 20_000
    assert said(table) == said(HTML(differences(lab.traces, 20_000).as_html()))
    lab.strategies.value = "range"
    lab._thread.join()
    assert said(table) == "Run two strategies to see where their owners differ."


# --- saving


def test_save_writes_the_document_as_it_stands(lab, tmp_path):
    lab.document.value = ALONE.replace("alone", "für mich <allein>")
    lab.path.value = str(tmp_path / "<mine>.yaml")
    lab.save_button.click()
    assert said(lab.saved) == f"saved as {tmp_path / '<mine>.yaml'}"
    assert (tmp_path / "<mine>.yaml").read_text(encoding="utf-8") == lab.document.value
    assert load_scenario(tmp_path / "<mine>.yaml").name == "für mich <allein>"


@pytest.mark.parametrize("kind", PLACES)
def test_save_leaves_its_place_what_it_is(lab, tmp_path, kind):
    def save(path):
        lab.path.value = str(path)
        lab.save_button.click()
        assert said(lab.saved).startswith("saved as ")

    written = check_written(save, tmp_path / "place" / "x.yaml", kind)
    assert kind == DEVICE or written.decode() == lab.document.value


@pytest.mark.parametrize("path", ["no/such/folder/x.yaml", "."])
def test_what_cannot_be_saved_is_said_beside_the_button(lab, path, tmp_path):
    lab.path.value = str(tmp_path / path)
    lab.save_button.click()
    assert said(lab.saved).startswith(str(tmp_path / path))
    assert 'role="alert"' in lab.saved.value


# --- without a kernel


def test_the_bench_has_a_picture_too(shell, ready):
    with capture_output() as captured:
        ready._ipython_display_()
    widget, _, shown = (output.data for output in captured.outputs)
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == ready.model_id
    assert shown == ready.view.pictured()


def test_the_picture_follows_the_result(shell, ready):
    with capture_output() as captured:
        ready._ipython_display_()
        ready.strategies.value = "sticky"
        ready.run()
    (*_, last) = captured.outputs
    assert last.data == show(run(ready.document.value, "sticky")).pictured()


def test_who_owns_what_cannot_be_resized(lab):
    """Given a running group, then members that own something are edited in the document only."""
    running = SMALL.replace("{id: c, count: 2,", "{id: c, owned: {t: [0]},")
    assert running != SMALL
    lab.document.value = running
    assert said(lab.document_error) == ""
    assert (lab.members.disabled, lab.partitions.disabled, lab.rate.disabled) == (True, True, False)
    lab.rate.value = 70
    assert "rate: 70" in lab.document.value
    assert "count" not in lab.document.value


# --- scenarios of groups that run, with replicas and with what waits

RUNNING = """\
name: running
duration: 40s
topics:
  t: {partitions: 2, rate: 40}
members:
  - id: c
    topics: [t]
    rack: a
    owned:
      t: [0, 1]
"""


def test_who_joins_a_group_that_runs_owns_nothing_yet():
    lab = Lab(RUNNING, ["range"])
    lab.kind.value = "join"
    lab.add_event.click()
    assert said(lab.event_error) == ""
    assert events_of(lab) == [{"at": "0ms", "join": {"id": "new-0", "topics": ["t"], "rack": "a"}}]


@pytest.mark.parametrize(
    ("said_of_each", "fixed"),
    [("backlog: [1, 2, 3, 4]", True), ("racks: [[a], [b], [a], [b]]", True), ("backlog: 40", False)],
)
def test_partitions_stay_where_something_is_said_of_each(said_of_each, fixed):
    lab = Lab(SMALL.replace("rate: 40", f"rate: 40, {said_of_each}"))
    assert said(lab.document_error) == ""
    assert (lab.partitions.disabled, lab.rate.disabled) == (fixed, False)
    lab.rate.value = 50
    assert document_of(lab)["topics"]["t"]["rate"] == 50
    assert document_of(lab)["topics"]["t"]["partitions"] == 4


def test_a_file_is_saved_beside_itself_where_what_it_refers_to_is_found(tmp_path):
    (tmp_path / "rates.csv").write_text("timestamp,p0,p1\n0,3,4\n")
    rated = "{partitions: 2, rates_csv: rates.csv, interval: 40s}"
    (tmp_path / "day.yaml").write_text(SMALL.replace("{partitions: 4, rate: 40}", rated))
    lab = Lab(tmp_path / "day.yaml")
    lab.save_button.click()
    assert lab.path.value == str(tmp_path / "scenario.yaml")
    assert load_scenario(tmp_path / "scenario.yaml").name == "small"
    assert Lab(SMALL).path.value == "scenario.yaml"


# --- what is said, and when


def test_a_wrong_strategy_is_said_as_soon_as_it_is_there(lab):
    lab.strategies.value = "range\nno-such"
    assert "no-such" in said(lab.strategies_error)
    lab.strategies.value = "range"
    assert said(lab.strategies_error) == ""


def test_a_first_run_that_is_cancelled_speaks_of_no_result_before(gate):
    registry = Registry()
    registry.load(entry_points(group="rebalance_lab"))
    registry.register(gate)
    lab = Lab(SMALL, ["endless"], registry=registry)
    lab.run(wait=False)
    assert gate.reached.wait(30)
    lab.cancel()
    lab._thread.join(60)
    assert (said(lab.status), lab.traces) == ("cancelled", ())

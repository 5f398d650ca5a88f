"""The bench, by its controls: what they do to the scenario, what is said beside them, what stays."""

import html
import re
from importlib.metadata import entry_points
from threading import Event

import pytest
import yaml

from coordinator_core.documents.files import load_scenario, load_scenario_text
from coordinator_core.protocol.events import MemberStarted
from coordinator_core.registry.hookspecs import AssignorSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_jupyter import Lab
from rebalance_jupyter.lab import EXAMPLE
from tests.rebalance_jupyter.samples import ALONE, NOBODY

SMALL = """\
name: small
duration: 40s
topics:
  t: {partitions: 4, rate: 40}
members:
  - {id: c, count: 2, topics: [t], process_rate: 100}
"""
RATED = SMALL.replace("{partitions: 4, rate: 40}", "{partitions: 2, rates: [1, 2]}")


def said(widget):
    """What a person reads in an HTML widget."""
    return html.unescape(re.sub(r"<[^>]*>", "", widget.value))


def document_of(lab):
    return yaml.safe_load(lab.document.value)


def events_of(lab):
    return document_of(lab).get("events") or []


@pytest.fixture
def lab():
    return Lab(SMALL, ["range"])


@pytest.fixture
def ready(lab):
    """A bench with a good result."""
    lab.run()
    assert [trace.strategy for trace in lab.traces] == ["range"]
    return lab


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
    """Contributes assignors: one that waits to be let through, one that fails."""

    def __init__(self):
        self.reached, self.open = Event(), Event()

    def assign(self, cluster, group):
        self.reached.set()
        assert self.open.wait(30)
        return {member: [] for member in group}

    def fail(self, cluster, group):
        raise ValueError("too many <members>")

    @hookimpl
    def assignors(self):
        def named(chosen, function):
            made = type("Made", (), {"name": chosen, "assign": staticmethod(function)})
            return AssignorSpec(chosen, made)

        return [named("slow", self.assign), named("broken", self.fail)]


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
    gated.strategies.value = "slow\nsticky"
    gated.run_button.click()
    assert gate.reached.wait(30)
    assert (gated.run_button.disabled, gated.cancel_button.disabled) == (True, False)
    gated.run(wait=False)  # one at a time
    gated.cancel_button.click()
    gate.open.set()
    gated._thread.join()
    assert gated.traces == before
    assert said(gated.status) == "cancelled; this is the result before"
    assert (gated.run_button.disabled, gated.cancel_button.disabled) == (False, True)
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


def test_what_nobody_foresaw_is_said_and_the_bench_goes_on(ready, monkeypatch):
    def broken(*_, **__):
        raise KeyError("odd")

    monkeypatch.setattr("rebalance_jupyter.views.simulate", broken)
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
    gated.strategies.value = "slow"
    assert gate.reached.wait(30)
    gated.members.value = 3
    gate.open.set()
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


# --- editing


def test_controls_show_what_the_document_says(lab):
    assert (lab.members.value, lab.partitions.value, lab.rate.value) == (2, 4, 40)
    lab.document.value = SMALL.replace("count: 2", "count: 700").replace("partitions: 4", "partitions: 12000")
    assert (lab.members.value, lab.partitions.value) == (700, 12_000)
    assert lab.target.options[:2] == ("c-0", "c-1")


def test_to_look_is_not_to_edit(lab):
    written = "# mine\n" + SMALL.replace("rate: 40", "rate: 40.50").replace("count: 2", "count: 9999")
    lab.document.value = written
    assert lab.document.value == written


@pytest.mark.parametrize(
    ("control", "value", "expected"),
    [
        ("members", 5, {"members": [{"id": "c", "count": 5, "topics": ["t"], "process_rate": 100}]}),
        ("partitions", 9, {"topics": {"t": {"partitions": 9, "rate": 40}}}),
        ("rate", 72.5, {"topics": {"t": {"partitions": 4, "rate": 72.5}}}),
    ],
)
def test_a_control_changes_its_own_field_only(lab, control, value, expected):
    getattr(lab, control).value = value
    assert document_of(lab) == {**yaml.safe_load(SMALL), **expected}
    assert load_scenario_text(lab.document.value, "scenario")


def test_controls_of_sizes_that_are_listed_one_by_one_are_off():
    lab = Lab(RATED)
    assert (lab.partitions.disabled, lab.rate.disabled, lab.members.disabled) == (True, True, False)
    lab.members.value = 3
    assert document_of(lab)["topics"] == {"t": {"partitions": 2, "rates": [1, 2]}}
    lab.document.value = SMALL
    assert (lab.partitions.disabled, lab.rate.disabled) == (False, False)


def test_a_control_leaves_a_malformed_document_alone(lab):
    lab.document.value = "name: ["
    lab.members.value = 7
    assert lab.document.value == "name: ["


def test_a_strategy_is_added_from_the_list(lab):
    lab.assignor.value = "stick"
    assert lab.strategies.value == "range"
    lab.assignor.value = "sticky"
    assert (lab.strategies.value, lab.assignor.value) == ("range\nsticky", "")
    assert set(lab.assignor.options) == set(default_registry().assignors())


@pytest.mark.parametrize(
    ("kind", "target", "expected"),
    [
        ("join", "extra", {"join": {"id": "extra", "topics": ["t"], "process_rate": 100}}),
        ("join", "", {"join": {"id": "new-0", "topics": ["t"], "process_rate": 100}}),
        ("leave", "c-0", {"leave": "c-0"}),
        ("crash", "c-1", {"crash": "c-1"}),
        ("restart", "c-1", {"restart": "c-1"}),
        ("pause", "c-0", {"pause": "c-0", "for": "30s"}),
        ("freeze", "c-0", {"freeze": "c-0", "for": "30s"}),
        ("cut", "c-0", {"cut": "c-0", "for": "30s"}),
        ("subscribe", "c-0", {"subscribe": "c-0", "topics": ["t"]}),
        ("remove_member", "c-0", {"remove_member": "c-0"}),
        ("add_partitions", "", {"add_partitions": {"t": 8}}),
        ("create_topic", "", {"create_topic": {"new-0": {"partitions": 6}}}),
        ("create_topic", "orders", {"create_topic": {"orders": {"partitions": 6}}}),
        ("delete_topic", "", {"delete_topic": "t"}),
        ("rolling_restart", "", {"rolling_restart": {"every": "10s", "down": "3s"}}),
        ("coordinator_failover", "", {"coordinator_failover": {"down": "3s"}}),
        ("calm", "", {"calm": True}),
    ],
)
def test_every_kind_of_event_is_added_at_the_cursor_and_runs(ready, kind, target, expected):
    ready.view.at = 12_500
    assert ready.add_event.description == "add at 12500ms"
    ready.kind.value, ready.target.value = kind, target
    ready.add_event.click()
    assert said(ready.event_error) == ""
    assert events_of(ready) == [{"at": "12500ms", **expected}]
    ready.run()
    assert (said(ready.document_error), ready.view.errors) == ("", [])
    assert 12_500 in [line.at_ms for line in ready.traces[0].events]


def test_a_late_view_is_added_where_the_protocol_has_views():
    bench = Lab(SMALL, ["watcher"])
    bench.run()
    bench.kind.value, bench.target.value = "lag_view", "c-0"
    bench.add_event.click()
    assert [event["lag_view"] for event in events_of(bench)] == [{"member": "c-0", "by": "10s"}]
    bench.run()
    assert (said(bench.document_error), bench.view.errors) == ("", [])


def test_every_kind_there_is_can_be_added(lab):
    assert set(lab.kind.options) == set(default_registry().scenario_events())


def test_events_are_added_one_after_another_and_name_whoever_joined(lab):
    lab.add_event.click()
    lab.add_event.click()
    assert [event["join"]["id"] for event in events_of(lab)] == ["new-0", "new-1"]
    assert "&" not in lab.document.value
    assert "*" not in lab.document.value
    assert lab.target.options == ("c-0", "c-1", "new-0", "new-1")


@pytest.mark.parametrize(
    "kind",
    ["leave", "crash", "restart", "pause", "freeze", "cut", "subscribe", "remove_member", "lag_view"],
)
@pytest.mark.parametrize(("target", "problem"), [("", "no member"), ("nobody", "nobody")])
def test_an_event_of_nobody_is_refused_beside_the_button(lab, kind, target, problem):
    lab.kind.value, lab.target.value = kind, target
    lab.add_event.click()
    assert problem in said(lab.event_error)
    assert lab.document.value == SMALL
    lab.target.value = "c-0"
    lab.add_event.click()
    assert (said(lab.event_error), len(events_of(lab))) == ("", 1)


def test_the_first_member_of_a_group_without_any_joins():
    lab = Lab(NOBODY, ["range"])
    assert lab.members.disabled
    lab.add_event.click()
    assert events_of(lab) == [{"at": "0ms", "join": {"id": "new-0", "topics": ["t"]}}]
    lab.run()
    assert len(lab.traces) == 1


def test_an_event_is_not_added_to_a_malformed_document(lab):
    lab.document.value = "name: ["
    lab.add_event.click()
    assert lab.document.value == "name: ["


# --- saving


def test_save_writes_the_document_as_it_stands(lab, tmp_path):
    lab.document.value = ALONE.replace("alone", "für mich <allein>")
    lab.path.value = str(tmp_path / "<mine>.yaml")
    lab.save_button.click()
    assert said(lab.saved) == f"saved as {tmp_path / '<mine>.yaml'}"
    assert (tmp_path / "<mine>.yaml").read_text(encoding="utf-8") == lab.document.value
    assert load_scenario(tmp_path / "<mine>.yaml").name == "für mich <allein>"


@pytest.mark.parametrize("path", ["no/such/folder/x.yaml", "."])
def test_what_cannot_be_saved_is_said_beside_the_button(lab, path, tmp_path):
    lab.path.value = str(tmp_path / path)
    lab.save_button.click()
    assert said(lab.saved).startswith(str(tmp_path / path))
    assert 'role="alert"' in lab.saved.value


# --- without a kernel


def test_the_bench_has_a_picture_too(ready):
    bundle = ready._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "<img" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


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
    lab = Lab(SMALL, ["slow"], registry=registry)
    lab.run(wait=False)
    assert gate.reached.wait(30)
    lab.cancel()
    gate.open.set()
    lab._thread.join()
    assert (said(lab.status), lab.traces) == ("cancelled", ())

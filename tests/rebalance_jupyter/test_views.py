"""The views as Python has them: what they hold, what they compare, and how they leave the notebook."""

import base64
import gzip
import json
import math
import re
import sys
from base64 import b64decode
from types import SimpleNamespace

import pytest
from IPython.utils.capture import capture_output

from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.families import classic
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_jupyter import RebalanceView, compare_view, display, run, show, to_html
from rebalance_jupyter.display import SEAM, picture, words
from rebalance_jupyter.figures import figures_of
from rebalance_jupyter.view_model import view_model
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.traces.findings import findings
from rebalance_lab.traces.history import History
from rebalance_lab.traces.trace import read_trace
from rebalance_lab.verdicts.measuring import measure
from rebalance_lab.verdicts.tables import as_text
from tests.places import SCENARIOS
from tests.rebalance_jupyter.samples import ALONE, NOBODY, SCALE_OUT, TOO_SHORT, ran
from tests.rebalance_lab.cli.commands import in_a_process
from tests.written import DEVICE, FILE, PLACES, check_written


class Fixed:
    """A registry with these metrics only: name to (figures of the runs in turn, what is better)."""

    def __init__(self, **metrics):
        self._metrics = {name: (iter(values), better) for name, (values, better) in metrics.items()}

    @hookimpl
    def metrics(self):
        return [
            MetricSpec(name, "count", lambda history, values=values: next(values), better)
            for name, (values, better) in self._metrics.items()
        ]


def rows_of(view):
    return [row for group in view.figures["groups"] for row in group["metrics"]]


def cells(**metrics):
    registry = Registry()
    registry.register(classic, name="classic")
    registry.register(Fixed(**metrics))
    count = len(next(iter(metrics.values()))[0])
    view = compare_view([ran()] * count, registry=registry)
    rows = rows_of(view)
    return {row["name"]: [(c["text"], c["best"], c["difference"]) for c in row["cells"]] for row in rows}


def state_in(page):
    """What a page holds."""
    packed = re.search(r'<script type="text/plain" id="state">(.*?)</script>', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


# --- run and show


def test_a_scenario_is_text_a_path_or_parsed():
    registry = default_registry()
    parsed = load_scenario_text(ALONE, "alone", registry=registry)
    assert run(parsed, "range") == run(ALONE, "range") == run(ALONE, registry.strategy("range"))
    assert run(SCENARIOS / "leave.yaml", "range") == run(str(SCENARIOS / "leave.yaml"), "range")


@pytest.mark.parametrize(
    ("scenario", "strategy", "problem"),
    [
        ("name: x\n", "range", InputError),
        (ALONE, "no-such", InputError),
        ("no/such/file.yaml", "range", InputError),
        (ALONE, f"{__name__}:invents", AssignmentError),
    ],
)
def test_what_cannot_be_run_is_an_error(scenario, strategy, problem, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(invents=invents))
    with pytest.raises(problem):
        run(scenario, strategy)


def invents(cluster, group):
    return {member: [("no-such-topic", 0)] for member in group}


@pytest.mark.parametrize("seed", [-1, 1.5, "1"])
def test_a_seed_is_an_integer_from_0_on(seed):
    with pytest.raises(InputError, match=f"seed: found {seed!r}, expected an integer, 0 or greater"):
        run(ALONE, "range", seed=seed)


def test_show_holds_the_trace_its_document_and_its_spans_as_bytes():
    view = show(ran())
    model = view_model(ran())
    (only,) = view.views
    assert view.traces == (ran(),)
    assert only == {"document": model.document, "spans": model.spans}
    assert isinstance(only["spans"], bytes)
    assert (view.at, view.round, view.selected, view.errors, view.figures) == (30_632, 1, "", [], {})


def test_another_trace_in_the_same_place_opens_anew():
    view = show(ran())
    view.at, view.round, view.selected = 90_000, 2, "clicks-1"
    view.show([ran(ALONE)], errors=["x: wrong"])
    assert view.traces == (ran(ALONE),)
    opening = view_model(ran(ALONE)).document["rounds"][0]["began"]
    assert (view.at, view.round, view.selected, view.errors) == (opening, 0, "", ["x: wrong"])


def test_a_view_opens_at_the_first_round_after_the_start_of_any_group_or_at_a_given_time():
    first = [view_model(ran(strategy=name)).document["opens"] for name in ("range", "cooperative-sticky")]
    assert compare_view([ran(strategy="range"), ran(), ran(ALONE)]).at == min(first)
    assert compare_view([ran(NOBODY)]).at == 0
    assert RebalanceView([ran()], at=5).at == 5
    assert state_in(RebalanceView([ran()], at=5).to_html())["at"] == 5


# --- comparison


def names_of_metrics(registry):
    """Those of every scenario without racks whose members have limits, without parts of others."""
    found = registry.metrics().values()
    return [m.name for m in found if not (m.part_of or m.name == "cross_rack_partitions")]


def test_compare_view_has_every_metric_of_every_trace_as_text():
    traces = [ran(strategy="range"), ran()]
    view = compare_view(traces)
    registry = default_registry()
    assert view.figures["strategies"] == ["range", "cooperative-sticky"]
    rows = [row["name"] for row in rows_of(view) if not registry.metrics()[row["name"]].part_of]
    assert sorted(rows) == sorted(names_of_metrics(registry))
    for trace, column in zip(traces, range(2), strict=True):
        measured = measure(trace, registry)
        for row in rows_of(view):
            assert row["cells"][column]["text"] == as_text(measured[row["name"]])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (([3, 5], "lower"), [("3", False, ""), ("5", False, "+2")]),
        (([3, 5], "higher"), [("3", False, "−2"), ("5", False, "")]),
        (([2, 2], "lower"), [("2", False, ""), ("2", False, "")]),
        (([2, 2, 3], "lower"), [("2", False, ""), ("2", False, ""), ("3", False, "+1")]),
        (([math.nan, 1, 2], "lower"), [("-", False, ""), ("1", False, ""), ("2", False, "+1")]),
        (([1, math.inf], "lower"), [("1", False, ""), ("inf", False, "+inf")]),
        (([1, math.inf], "higher"), [("1", False, "−inf"), ("inf", False, "")]),
        (([0.1, 0.123456], "lower"), [("0.1", False, ""), ("0.123", False, "+0.0235")]),
    ],
)
def test_beside_a_figure_of_one_run_is_its_difference_to_the_least_and_none_is_best(metric, expected):
    assert cells(m=metric) == {"m": expected}


def test_one_strategy_twice_is_numbered():
    assert compare_view([ran(), ran()]).figures["strategies"] == [
        "cooperative-sticky (1)",
        "cooperative-sticky (2)",
    ]


def test_runs_that_differ_in_the_seed_are_one_strategy_with_a_spread():
    traces = [run(SCALE_OUT, name, seed=seed) for name in ("range", "sticky") for seed in (1, 2, 3)]
    view = compare_view(traces)
    assert view.figures["strategies"] == ["range", "sticky"]
    assert view.traces == (traces[0], traces[3])
    measured = [measure(trace, default_registry())["stopped_partition_seconds"] for trace in traces[:3]]
    (row,) = (row for row in rows_of(view) if row["name"] == "stopped_partition_seconds")
    assert row["cells"][0]["number"] == sorted(measured)[1]
    assert row["cells"][0]["spread"] == f"{as_text(min(measured))} to {as_text(max(measured))}"


@pytest.mark.parametrize(
    ("values", "differs"),
    [([9.65, 9.66], False), ([9, 9.5], True), ([0, 0], False), ([0, 1], True), ([math.nan, 1], True)],
)
def test_a_metric_differs_if_it_is_more_than_a_tie(values, differs):
    registry = Registry()
    registry.register(classic, name="classic")
    registry.register(Fixed(m=(values, "lower")))
    (row,) = rows_of(compare_view([ran()] * 2, registry=registry))
    assert row["differs"] is differs


def test_the_answer_is_that_of_the_command_line(tmp_path):
    (tmp_path / "scale-out.yaml").write_text(SCALE_OUT)
    options = ("-s", "range", "-s", "sticky", "--seeds", "6", "--trace", tmp_path / "t")
    title, verdict, *_ = in_a_process("compare", tmp_path / "scale-out.yaml", *options).stdout.split(b"\n\n")
    traces = list(map(read_trace, sorted((tmp_path / "t").iterdir())))
    figures = figures_of(traces, default_registry())
    assert (len(traces), figures["strategies"]) == (12, ["range", "sticky"])
    assert (figures["title"], figures["answer"]) == (title.decode(), " ".join(verdict.decode().split()))
    assert figures["answer"].startswith("Choose sticky instead of range: ")


def test_what_members_can_handle_takes_their_polls_into_account():
    """Each record takes 2.5 ms. With their polls, batches of 2 take 12.5 ms and batches of 4 take 20 ms.

    The records of c3 take no time, its polls do. The load is 150 of 460 records/s.
    """
    document = """
name: polls
phase: 0s
topics: {t: {partitions: 2, rate: 150}}
members:
  - {id: c1, topics: [t], process_rate: 400, batch_overhead: [7ms, 8ms], config: {max.poll.records: 2}}
  - {id: c2, topics: [t], process_rate: 400, batch_overhead: 10ms, config: {max.poll.records: 4}}
  - {id: c3, topics: [t], batch_overhead: 20ms, config: {max.poll.records: 2}}
duration: 1m
"""
    trace = run(document, "range")
    assert "load 33 % (58 % with one away)" in compare_view([trace]).figures["title"]
    members = view_model(trace).document["members"]
    assert [member["process_rate"] for member in members] == [[[0, 160]], [[0, 200]], [[0, 100]]]


def test_a_metric_that_no_strategy_has_does_not_differ():
    figures = compare_view([ran(NOBODY, "range"), ran(NOBODY)]).figures
    metrics = [metric for group in figures["groups"] for metric in group["metrics"]]
    assert any(cell["number"] is None for metric in metrics for cell in metric["cells"])
    assert [metric["name"] for metric in metrics if metric["differs"]] == []


def test_a_comparison_of_nothing_has_its_errors():
    view = compare_view([], errors=["range: it failed"])
    assert (view.views, view.figures, view.errors) == ([], {}, ["range: it failed"])


def test_the_findings_of_each_run_are_shown_with_it():
    view = compare_view([ran(TOO_SHORT, "range"), ran(TOO_SHORT)], errors=["x: wrong"])
    each = [findings(History(trace)) for trace in view.traces]
    assert all(each)
    assert [shown["document"]["findings"] for shown in view.views] == list(map(list, each))
    names = ("range", "cooperative-sticky")
    told = [f"{name}: {text}" for name, texts in zip(names, each, strict=True) for text in texts]
    assert view.faults == [*told, "x: wrong"]
    assert show(ran()).faults == []


# --- leaving the notebook


def test_a_page_holds_the_models_and_nothing_from_elsewhere():
    view = compare_view([ran(strategy="range"), ran()], errors=["x: wrong"])
    page = to_html(view)
    state = state_in(page)
    assert page == view.to_html()
    assert [each["document"] for each in state["views"]] == [view_model(t).document for t in view.traces]
    assert [b64decode(each["spans"]) for each in state["views"]] == [view_model(t).spans for t in view.traces]
    assert (state["figures"], state["errors"]) == (view.figures, ["x: wrong"])
    assert set(re.findall(r"https?://[^\"\s]*", page)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
    }
    assert "default-src 'none'" in page


def test_a_trace_is_a_page_too():
    assert state_in(to_html(ran())) == state_in(show(ran()).to_html())


def test_text_of_a_scenario_cannot_leave_its_place_in_the_page():
    wicked = ALONE.replace("alone", '"</script><script>alert(1)</script><!--"')
    page = to_html(run(wicked, "range"))
    assert "alert(1)</script>" not in page
    assert state_in(page)["views"][0]["document"]["scenario"] == "</script><script>alert(1)</script><!--"


def displayed(view):
    """The outputs of a cell that ends with a view."""
    with capture_output() as captured:
        view._ipython_display_()
    return [output.data for output in captured.outputs]


def test_a_cell_displays_the_widget_and_the_picture_below_it(shell):
    view = compare_view([ran(strategy="range"), ran()], errors=["x: <wrong>"])
    widget, seam, shown = displayed(view)
    assert widget["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    assert seam["text/html"] == SEAM
    assert shown == view.pictured()
    assert b64decode(shown["image/png"]) == view.to_png(scale=1.5)
    assert "x: &lt;wrong&gt;" in shown["image/svg+xml"]
    assert shown["text/plain"] == "\n\n".join([words(ran(strategy="range")), words(ran()), "x: <wrong>"])


def test_the_picture_that_is_displayed_follows_the_view(shell):
    view = show(ran())
    with capture_output() as captured:
        view._ipython_display_()
        view.show([ran(ALONE)])
    *_, first, then = captured.outputs
    assert then.data == show(ran(ALONE)).pictured()
    assert (first.transient, then.update) == (then.transient, True)


def test_without_a_program_for_png_there_is_an_image_in_html(monkeypatch):
    view = show(ran())
    with_png = view.pictured()
    monkeypatch.setattr(display, "png_of", missing)
    shown = view.pictured()
    assert "image/png" not in shown
    (data,) = re.findall(
        r'<img alt="scale-out" src="data:image/svg\+xml;base64,([^"]*)">', shown["text/html"]
    )
    assert b64decode(data).decode() == picture([ran()])
    assert shown["image/svg+xml"] == with_png["image/svg+xml"] == view.to_svg()


def missing(svg, *, scale):
    raise InputError("PNG", "no module resvg_py", "it installed")


TO_PNG = [(RebalanceView.to_png, kind) for kind in (FILE, DEVICE)]
"""Both are written by one function, and a PNG takes long to draw."""


@pytest.mark.parametrize(("save", "kind"), [*((RebalanceView.to_svg, kind) for kind in PLACES), *TO_PNG])
def test_pictures_leave_their_place_what_it_is(tmp_path, save, kind):
    made = []
    written = check_written(lambda path: made.append(save(show(ran()), path)), tmp_path / "place" / "x", kind)
    expected = made[0] if isinstance(made[0], bytes) else made[0].encode()
    assert kind == DEVICE or written == expected


def test_a_picture_that_cannot_be_written_names_the_file(tmp_path):
    with pytest.raises(InputError, match=r"none/x.svg: found a path that cannot be written \(No such file"):
        show(ran()).to_svg(tmp_path / "none" / "x.svg")


def test_pictures_are_written_to_files(tmp_path):
    view = show(ran())
    assert view.to_svg(tmp_path / "run.svg") == (tmp_path / "run.svg").read_text()
    png = view.to_png(tmp_path / "run.png")
    assert png == (tmp_path / "run.png").read_bytes()
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (2 * 860, 2 * int(re.search(r'height="(\d+)"', view.to_svg())[1]))


def test_a_page_has_the_picture_for_readers_that_run_no_scripts():
    view = compare_view([ran(strategy="range"), ran()])
    assert f"<noscript>{view.to_svg()}</noscript>" in view.to_html()


@pytest.mark.slow
@pytest.mark.parametrize("stored", [True, False])
def test_what_nbconvert_writes_has_the_picture_with_and_without_the_state_of_widgets(shell, stored):
    exporters = pytest.importorskip("nbconvert.exporters", reason="nbconvert is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    view = show(ran())
    outputs = [nbformat.v4.new_output("display_data", data) for data in displayed(view)]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("show(trace)", outputs=outputs)])
    if stored:
        state = {"state": {view.model_id: {"model_name": "AnyModel"}}, "version_major": 2, "version_minor": 0}
        notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    page, _ = exporters.HTMLExporter().from_notebook_node(notebook)
    (data,) = re.findall(r'<img [^>]*src="data:image/svg\+xml;base64,([^"]*)"', page)
    assert b64decode(data).decode() == view.to_svg()
    assert (f'"model_id": "{view.model_id}"' in page) == stored


def test_an_empty_view_says_so():
    shown = RebalanceView().pictured()
    assert shown["text/plain"] == "nothing to show"
    assert "nothing to show" in shown["image/svg+xml"]


def test_the_package_says_what_there_is():
    import rebalance_jupyter

    assert all(hasattr(rebalance_jupyter, name) for name in rebalance_jupyter.__all__)


def test_the_picture_has_the_medians_of_the_table_and_names_the_seed_that_is_drawn():
    view = compare_view([run(SCALE_OUT, "range", seed=seed) for seed in (1, 2, 3)])
    (stopped,) = (row for row in rows_of(view) if row["name"] == "stopped_partition_seconds")
    first = compare_view(view.traces)
    assert len(view.traces) == 1
    svg = view.to_svg()
    assert f">stopped {stopped['cells'][0]['text']} partition seconds<" in svg
    assert svg != first.to_svg()
    assert ">Figures are medians of 3 seeds; the runs drawn have the seed 1.<" in svg


@pytest.mark.parametrize("zoom", [[1], [5, 5], [9, 2], [-1, 5], ["1s", "2s"], [0, 180_001], [0, 1, 2]])
def test_what_is_no_stretch_of_time_is_refused(zoom):
    view = show(ran())
    with pytest.raises(InputError, match=r"zoom: .* expected \[from, to\] in milliseconds, from 0 to 180000"):
        view.zoom = zoom
    assert view.zoom == []


def test_a_partition_that_no_trace_has_is_refused():
    view = show(ran())
    with pytest.raises(
        InputError, match="selected: found 'clicks-9', expected a partition: clicks-0 to clicks-5"
    ):
        view.selected = "clicks-9"
    view.selected = "clicks-5"
    view.show([])
    assert view.selected == ""

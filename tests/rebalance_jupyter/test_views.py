"""The views as Python has them: what they hold, what they compare, and how they leave the notebook."""

import base64
import json
import math
import re
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbconvert import HTMLExporter

from coordinator_core.documents.files import load_scenario_text
from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.families import classic
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry
from coordinator_core.reports.tables import as_text
from coordinator_core.scoring.measuring import measure
from coordinator_core.traces.findings import findings
from coordinator_core.traces.history import History
from rebalance_jupyter import RebalanceView, compare_view, run, show, to_html
from rebalance_jupyter.display import alert, picture
from rebalance_jupyter.view_model import view_model
from tests.places import SCENARIOS
from tests.rebalance_jupyter.samples import ALONE, TOO_SHORT, ran


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


def cells(**metrics):
    registry = Registry()
    registry.register(classic, name="classic")
    registry.register(Fixed(**metrics))
    count = len(next(iter(metrics.values()))[0])
    view = compare_view([ran()] * count, registry=registry)
    rows = view.figures["metrics"]
    return {row["name"]: [(c["text"], c["best"], c["difference"]) for c in row["cells"]] for row in rows}


def state_in(page):
    """What a page holds."""
    return json.loads(
        re.search(r'<script type="application/json" id="state">(.*?)</script>', page, re.DOTALL)[1]
    )


def test_html_of_a_notebook_without_the_state_of_its_widgets_has_pictures():
    bundle = show(ran())._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data=data)])
    notebook = nbformat.v4.new_notebook(cells=[cell])
    page, _ = HTMLExporter().from_notebook_node(notebook)
    assert base64.b64encode(picture(ran()).encode()).decode() in page


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


def test_show_holds_the_trace_its_document_and_its_spans_as_bytes():
    view = show(ran())
    model = view_model(ran())
    (only,) = view.views
    assert view.traces == (ran(),)
    assert only == {"document": model.document, "spans": model.spans}
    assert isinstance(only["spans"], bytes)
    assert (view.at, view.round, view.selected, view.errors, view.figures) == (0, -1, "", [], {})


def test_another_trace_in_the_same_place_begins_at_the_beginning():
    view = show(ran())
    view.at, view.round, view.selected = 90_000, 2, "clicks-1"
    view.show([ran(ALONE)], errors=["x: wrong"])
    assert view.traces == (ran(ALONE),)
    assert (view.at, view.round, view.selected, view.errors) == (0, -1, "", ["x: wrong"])


# --- comparison


def names_of_metrics(registry):
    """Those of every scenario."""
    return [metric.name for metric in registry.metrics().values() if not metric.optional]


def test_compare_view_has_every_metric_of_every_trace_as_text():
    traces = [ran(strategy="range"), ran()]
    view = compare_view(traces)
    registry = default_registry()
    assert view.figures["strategies"] == ["range", "cooperative-sticky"]
    assert [row["name"] for row in view.figures["metrics"]] == names_of_metrics(registry)
    for trace, column in zip(traces, range(2), strict=True):
        measured = measure(trace, registry)
        for row in view.figures["metrics"]:
            assert row["cells"][column]["text"] == as_text(measured[row["name"]])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (([3, 5], "lower"), [("3", True, ""), ("5", False, "+2")]),
        (([3, 5], "higher"), [("3", False, "−2"), ("5", True, "")]),
        (([2, 2], "lower"), [("2", False, ""), ("2", False, "")]),
        (([2, 2, 3], "lower"), [("2", True, ""), ("2", True, ""), ("3", False, "+1")]),
        (([math.nan, 1, 2], "lower"), [("-", False, ""), ("1", True, ""), ("2", False, "+1")]),
        (([1, math.inf], "lower"), [("1", True, ""), ("inf", False, "+inf")]),
        (([1, math.inf], "higher"), [("1", False, "−inf"), ("inf", True, "")]),
        (([0.1, 0.123456], "lower"), [("0.1", True, ""), ("0.123", False, "+0.0235")]),
    ],
)
def test_beside_a_figure_is_its_difference_to_the_best(metric, expected):
    assert cells(m=metric) == {"m": expected}


def test_one_strategy_twice_is_numbered():
    assert compare_view([ran(), ran()]).figures["strategies"] == [
        "cooperative-sticky (1)",
        "cooperative-sticky (2)",
    ]


def test_a_comparison_of_nothing_has_its_errors():
    view = compare_view([], errors=["range: it failed"])
    assert (view.views, view.errors) == ([], ["range: it failed"])
    assert [row["cells"] for row in view.figures["metrics"]] == [
        [] for _ in names_of_metrics(default_registry())
    ]


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
    assert [base64.b64decode(each["spans"]) for each in state["views"]] == [
        view_model(t).spans for t in view.traces
    ]
    assert (state["figures"], state["errors"]) == (view.figures, ["x: wrong"])
    assert set(re.findall(r"https?://[^\"\s]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


def test_a_trace_is_a_page_too():
    assert state_in(to_html(ran())) == state_in(show(ran()).to_html())


def test_text_of_a_scenario_cannot_leave_its_place_in_the_page():
    wicked = ALONE.replace("alone", '"</script><script>alert(1)</script><!--"')
    page = to_html(run(wicked, "range"))
    assert "alert(1)</script>" not in page
    assert state_in(page)["views"][0]["document"]["scenario"] == "</script><script>alert(1)</script><!--"


def bundle_of(widget):
    bundle = widget._repr_mimebundle_()
    return bundle[0] if isinstance(bundle, tuple) else bundle


def svg_of(image):
    """The picture in an image. JupyterLab shows no other pictures of a notebook that is not trusted."""
    data = re.search(r'src="data:image/svg\+xml;base64,([^"]*)"', image)
    return base64.b64decode(data[1]).decode()


def test_without_a_kernel_there_are_the_pictures():
    bundle = bundle_of(compare_view([ran(strategy="range"), ran()], errors=["x: <wrong>"]))
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert [*map(svg_of, re.findall(r"<img .*?>", bundle["text/html"]))] == [
        picture(ran(strategy="range")),
        picture(ran()),
    ]
    assert "x: &lt;wrong&gt;" in bundle["text/html"]
    assert bundle["text/plain"] == "scale-out under range\nscale-out under cooperative-sticky\nx: <wrong>"


def test_without_a_kernel_findings_are_in_the_colour_of_errors():
    bundle = bundle_of(show(ran(TOO_SHORT)))
    faults = show(ran(TOO_SHORT)).faults
    assert bundle["text/html"].endswith("\n".join(f"<p>{alert(fault)}</p>" for fault in faults))
    assert bundle["text/plain"] == "\n".join(["too-short under cooperative-sticky", *faults])


@pytest.mark.slow
def test_a_notebook_made_into_a_page_without_a_kernel_shows_the_pictures():
    exporters = pytest.importorskip("nbconvert.exporters", reason="nbconvert is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    output = nbformat.v4.new_output("display_data", bundle_of(show(ran())))
    cell = nbformat.v4.new_code_cell("show(trace)", outputs=[output])
    page, _ = exporters.HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=[cell]))
    (shown,) = re.findall(r'<img alt="scale-out under cooperative-sticky".*?>', page)
    assert svg_of(shown) == picture(ran())
    assert "widget-view+json" not in page


def test_an_empty_view_says_so():
    bundle = bundle_of(RebalanceView())
    assert (bundle["text/html"], bundle["text/plain"]) == ("<p>nothing to show</p>", "nothing to show")


def test_the_package_says_what_there_is():
    import rebalance_jupyter

    assert all(hasattr(rebalance_jupyter, name) for name in rebalance_jupyter.__all__)

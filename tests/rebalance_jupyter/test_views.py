"""The views as Python has them: what they hold, what they compare, and how they leave the notebook."""

import base64
import gzip
import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from base64 import b64decode
from types import SimpleNamespace

import pytest
from IPython.utils.capture import capture_output

from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.families import classic
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_jupyter import RebalanceView, compare_view, display, run, show
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
from tests.rebalance_jupyter.samples import ALONE, CROWD, NOBODY, SCALE_OUT, TOO_SHORT, ran
from tests.rebalance_lab.cli.commands import in_a_process

SVG = "{http://www.w3.org/2000/svg}"


class Fixed:
    """Contributes a metric: figures of the runs in turn, and what is better."""

    def __init__(self, values, better):
        self._values, self._better = iter(values), better

    @hookimpl
    def metrics(self):
        return [MetricSpec("m", "count", lambda history: next(self._values), self._better)]


def rows_of(view):
    return {row["name"]: row for group in view.figures["groups"] for row in group["metrics"]}


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


def invents(cluster, group):
    return {member: [("no-such-topic", 0)] for member in group}


@pytest.mark.parametrize(
    ("scenario", "strategy", "seed", "problem", "found"),
    [
        ("name: x\n", "range", None, InputError, "scenario"),
        (ALONE, "no-such", None, InputError, "no-such"),
        ("no/such/file.yaml", "range", None, InputError, "no/such/file.yaml"),
        (ALONE, f"{__name__}:invents", None, AssignmentError, "no-such-topic"),
        (ALONE, "range", -1, InputError, "seed: found -1, expected an integer, 0 or greater"),
        (ALONE, "range", "1", InputError, "seed: found '1', expected an integer, 0 or greater"),
    ],
)
def test_what_cannot_be_run_is_an_error(scenario, strategy, seed, problem, found, monkeypatch):
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(invents=invents))
    with pytest.raises(problem, match=found):
        run(scenario, strategy, seed=seed)


def test_show_holds_the_trace_its_document_and_its_spans_and_another_one_opens_anew():
    view, model = show(ran()), view_model(ran())
    assert (view.traces, view.views) == ((ran(),), [{"document": model.document, "spans": model.spans}])
    assert isinstance(model.spans, bytes)
    assert (view.at, view.round, view.selected, view.errors, view.figures) == (30_632, 1, "", [], {})
    view.at, view.round, view.selected = 90_000, 2, "clicks-1"
    view.show([ran(ALONE)], errors=["x: wrong"])
    opening = view_model(ran(ALONE)).document["rounds"][0]["began"]
    assert (view.traces, view.at, view.round, view.selected) == ((ran(ALONE),), opening, 0, "")
    assert (view.faults, view.errors) == (["x: wrong"], ["x: wrong"])


def test_a_view_opens_at_the_first_round_after_the_start_of_any_group_or_at_a_given_time():
    first = [view_model(ran(strategy=name)).document["opens"] for name in ("range", "cooperative-sticky")]
    assert compare_view([ran(strategy="range"), ran(), ran(ALONE)]).at == min(first)
    assert compare_view([ran(NOBODY)]).at == 0
    assert state_in(RebalanceView([ran()], at=5).to_html())["at"] == 5


STRETCH = r"expected \[from, to\] in milliseconds, from 0 to 180000"


@pytest.mark.parametrize(
    ("trait", "value", "told"),
    [
        *(
            ("zoom", zoom, f"zoom: .* {STRETCH}")
            for zoom in ([1], [5, 5], [-1, 5], ["1s", "2s"], [0, 180_001])
        ),
        *(
            ("notes", [[0, "a note"], note], r"notes\[1\]: .* expected \[milliseconds, text\]")
            for note in (5, "text", ["1s", "text"], [-1, "text"], [1, 2], [1, "text", 3])
        ),
        ("selected", "clicks-9", "selected: found 'clicks-9', expected a partition: clicks-0 to clicks-5"),
    ],
)
def test_what_is_no_stretch_note_or_partition_is_refused(trait, value, told):
    view = show(ran())
    before = getattr(view, trait)
    with pytest.raises(InputError, match=told):
        setattr(view, trait, value)
    assert getattr(view, trait) == before


# --- comparison


def test_compare_view_has_every_metric_of_every_trace_as_text():
    traces, registry = [ran(strategy="range"), ran()], default_registry()
    view = compare_view(traces)
    assert view.figures["strategies"] == ["range", "cooperative-sticky"]
    whole = {name for name, metric in registry.metrics().items() if not metric.part_of}
    assert set(rows_of(view)) & whole == whole - {"cross_rack_partitions"}
    for column, trace in enumerate(traces):
        measured = measure(trace, registry)
        shown = {name: row["cells"][column]["text"] for name, row in rows_of(view).items()}
        assert shown == {name: as_text(measured[name]) for name in shown}


@pytest.mark.parametrize(
    ("values", "better", "cells", "differs"),
    [
        ([3, 5], "lower", [("3", ""), ("5", "+2")], True),
        ([3, 5], "higher", [("3", "−2"), ("5", "")], True),
        ([2, 2, 3], "lower", [("2", ""), ("2", ""), ("3", "+1")], True),
        ([math.nan, 1, 2], "lower", [("-", ""), ("1", ""), ("2", "+1")], True),
        ([math.nan, math.nan], "lower", [("-", ""), ("-", "")], False),
        ([1, math.inf], "lower", [("1", ""), ("inf", "+inf")], True),
        ([1, math.inf], "higher", [("1", "−inf"), ("inf", "")], True),
        ([0.1, 0.123456], "lower", [("0.1", ""), ("0.123", "+0.0235")], True),
        ([9.65, 9.66], "lower", [("9.65", ""), ("9.66", "+0.01")], False),
        ([0, 0], "lower", [("0", ""), ("0", "")], False),
    ],
)
def test_beside_a_figure_of_one_run_is_its_difference_and_none_is_best(values, better, cells, differs):
    registry = Registry()
    registry.register(classic, name="classic")
    registry.register(Fixed(values, better))
    row = rows_of(compare_view([ran()] * len(values), registry=registry))["m"]
    assert [(cell["text"], cell["difference"]) for cell in row["cells"]] == cells
    assert (any(cell["best"] for cell in row["cells"]), row["differs"]) == (False, differs)


def test_runs_that_differ_in_the_seed_are_one_strategy_with_medians_in_the_table_and_in_the_picture():
    traces = [run(SCALE_OUT, name, seed=seed) for name in ("range", "sticky") for seed in (1, 2, 3)]
    view = compare_view(traces)
    assert view.figures["strategies"] == ["range", "sticky"]
    assert view.traces == (traces[0], traces[3])
    measured = [measure(trace, default_registry())["stopped_partition_seconds"] for trace in traces[:3]]
    cell = rows_of(view)["stopped_partition_seconds"]["cells"][0]
    assert cell["number"] == sorted(measured)[1]
    assert cell["spread"] == f"{as_text(min(measured))} to {as_text(max(measured))}"
    svg = view.to_svg()
    assert f">stopped {cell['text']} partition seconds<" in svg
    assert ">Figures are medians of 3 seeds; the runs drawn have the seed 1.<" in svg


@pytest.mark.slow
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


def test_the_findings_of_each_run_and_the_errors_are_shown():
    view = compare_view([ran(TOO_SHORT, "range"), ran(TOO_SHORT)], errors=["x: wrong"])
    each = [list(findings(History(trace))) for trace in view.traces]
    assert all(each)
    assert [shown["document"]["findings"] for shown in view.views] == each
    told = [f"{t.strategy}: {text}" for t, texts in zip(view.traces, each, strict=True) for text in texts]
    assert view.faults == [*told, "x: wrong"]
    nothing = compare_view([], errors=["x: wrong"])
    assert (nothing.views, nothing.figures, nothing.errors) == ([], {}, ["x: wrong"])


# --- leaving the notebook


def test_a_page_holds_the_models_and_the_picture_and_nothing_from_elsewhere():
    view = compare_view([ran(strategy="range"), ran()], errors=["x: wrong"])
    page = view.to_html()
    state = state_in(page)
    assert [each["document"] for each in state["views"]] == [view_model(t).document for t in view.traces]
    assert [b64decode(each["spans"]) for each in state["views"]] == [view_model(t).spans for t in view.traces]
    assert (state["figures"], state["errors"]) == (view.figures, ["x: wrong"])
    elsewhere = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}
    assert set(re.findall(r"https?://[^\"\s]*", page)) == elsewhere
    assert "default-src 'none'" in page
    assert f"<noscript>{view.to_svg()}</noscript>" in page


def test_text_of_a_scenario_cannot_leave_its_place_in_the_page():
    wicked = ALONE.replace("alone", '"</script><script>alert(1)</script><!--"')
    page = show(run(wicked, "range")).to_html()
    assert "alert(1)</script>" not in page
    assert state_in(page)["views"][0]["document"]["scenario"] == "</script><script>alert(1)</script><!--"


def displayed(view):
    """The outputs of a cell that ends with a view."""
    with capture_output() as captured:
        view._ipython_display_()
    return [output.data for output in captured.outputs]


def test_a_cell_displays_the_widget_and_the_picture_below_it_which_follows_the_view(shell):
    view = compare_view([ran(ALONE, "range"), ran(ALONE)], errors=["x: <wrong>"])
    with capture_output() as captured:
        view._ipython_display_()
        before, _ = view.pictured(), view.show([ran()])
    widget, seam, shown, then = captured.outputs
    assert widget.data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    assert seam.data["text/html"] == SEAM
    assert shown.data == before
    told = [words(ran(ALONE, "range")), words(ran(ALONE)), "x: <wrong>"]
    assert before["text/plain"] == "\n\n".join(told)
    assert "x: &lt;wrong&gt;" in before["image/svg+xml"]
    assert (shown.transient, then.data, then.update) == (then.transient, view.pictured(), True)
    assert b64decode(then.data["image/png"]) == view.to_png(scale=1.5)


def test_without_a_program_for_png_there_is_an_image_in_html(monkeypatch):
    def missing(svg, *, scale):
        raise InputError("PNG", "no module resvg_py", "it installed")

    monkeypatch.setattr(display, "png_of", missing)
    shown = show(ran()).pictured()
    assert "image/png" not in shown
    image = r'<img alt="scale-out" src="data:image/svg\+xml;base64,([^"]*)">'
    (data,) = re.findall(image, shown["text/html"])
    assert b64decode(data).decode() == shown["image/svg+xml"] == picture([ran()])


def test_pictures_are_written_to_files(tmp_path):
    view = show(ran())
    assert view.to_svg(tmp_path / "run.svg") == (tmp_path / "run.svg").read_text()
    png = view.to_png(tmp_path / "run.png")
    assert png == (tmp_path / "run.png").read_bytes()
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (2 * 860, 2 * int(re.search(r'height="(\d+)"', view.to_svg())[1]))
    with pytest.raises(InputError, match=r"none/x.svg: found a path that cannot be written \(No such file"):
        view.to_svg(tmp_path / "none" / "x.svg")


def test_members_have_the_letters_and_colours_of_the_view_in_the_picture_and_notes_have_flags():
    """Also after ten, and beside those of another scenario."""
    view = RebalanceView([ran(CROWD), ran(ALONE)])
    view.notes = [(10_000, "c2 <crashes>")]
    picture = ET.fromstring(view.to_svg())
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    colours = [box.get("fill") for box in picture.iter(f"{SVG}rect") if box.get("width") == "12"][:-1]
    members = [member for shown in view.views for member in shown["document"]["members"]]
    assert colours == [member["colour"] for member in members]
    assert [text[0] for text in texts[-len(members) - 1 : -1]] == [member["letter"] for member in members]
    assert "⚑ c2 <crashes>" in texts


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

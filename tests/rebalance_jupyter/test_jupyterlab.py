"""The widget and the bench in JupyterLab as people have it: a server, a kernel, a browser, and no network."""

import re
from importlib.util import find_spec

import pytest

from tests.rebalance_jupyter.browser import comes_to
from tests.rebalance_jupyter.jupyter import (
    click_lane,
    is_elsewhere,
    keys_step_and_do_not_reach_the_notebook,
    play_scrub_and_click_show_in_the_page_and_in_the_kernel,
    run_all,
    serving,
)

pytestmark = pytest.mark.slow

if find_spec("jupyterlab") is None or find_spec("ipykernel") is None:
    pytest.skip("jupyterlab and ipykernel are not installed", allow_module_level=True)

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect


ENDLESS = """\
class Endless:
    def assign(self, cluster, group):
        while True:
            pass
"""


@pytest.fixture
def server(tmp_path):
    with serving("jupyterlab", "LabApp", tmp_path / "home") as address:
        (tmp_path / "home" / "work" / "mine.py").write_text(ENDLESS)
        yield address


@pytest.fixture
def lab(server, browser):
    """The notebook, open and run; at the end nothing was asked for but from the server."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    elsewhere, errors = [], []

    def look(route):
        if is_elsewhere(route.request.url):
            elsewhere.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route("**/*", look)
    page.on("websocket", lambda socket: is_elsewhere(socket.url) and elsewhere.append(socket.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server}/lab/tree/view.ipynb")
    run_all(page)
    yield page
    assert elsewhere == []
    assert errors == []
    page.close()


def bench_view(lab):
    return lab.locator(".jp-Cell").nth(1).locator(".rbl")


def field(lab, label):
    """What stands beside a description of the bench."""
    row = lab.locator(".jp-Cell").nth(1).locator(".widget-inline-hbox", has_text=re.compile(rf"^{label}"))
    return row.locator("input, textarea, select").first


def test_the_widget_and_the_bench_in_jupyterlab(lab):
    view = lab.locator(".rbl").first
    view.scroll_into_view_if_needed()
    keys_step_and_do_not_reach_the_notebook(lab, view)
    play_scrub_and_click_show_in_the_page_and_in_the_kernel(lab, view)
    no_field_of_the_bench_is_cut_off(lab)
    the_bench_runs_edits_and_runs_again(lab)
    ids = lab.locator(".rbl [id]").evaluate_all("(found) => found.map((each) => each.id)")
    assert len(ids) == len(set(ids)) >= 6
    for theme, light in (("JupyterLab Dark", "false"), ("JupyterLab Light", "true")):
        lab.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        lab.wait_for_function(COLOURS, arg=light)
    an_endless_loop_is_cancelled_and_the_bench_outlives_its_kernel(lab)


def wait_for_document(lab, part):
    lab.wait_for_function(
        "(part) => [...document.querySelectorAll('textarea')].some((each) => each.value.includes(part))",
        arg=part,
    )


CUT_OFF = """(output) => {
  const end = output.getBoundingClientRect().right + 1;
  const found = [...output.querySelectorAll("input, textarea, button, select, .widget-html")];
  const shown = found.filter((each) => each.getBoundingClientRect().width);
  return shown.filter((each) => each.getBoundingClientRect().right > end).map((each) => each.outerHTML);
}"""


def no_field_of_the_bench_is_cut_off(lab):
    output = lab.locator(".jp-Cell").nth(1).locator(".jp-OutputArea-output").first
    for width in (900, 1_700, 1_400):
        lab.set_viewport_size({"width": width, "height": 1_000})
        expect(output.locator("textarea")).to_have_count(2)
        comes_to(lambda: output.evaluate(CUT_OFF), [])


def an_endless_loop_is_cancelled_and_the_bench_outlives_its_kernel(lab):
    """The first bench is that of the kernel that has ended; its cell is run again."""
    bench = lab.locator(".jp-Cell").nth(1)
    run, cancel = (bench.get_by_role("button", name=name) for name in ("Run", "Cancel"))
    strategies = field(lab, "strategies")
    strategies.fill("mine.py:Endless\nsticky")
    strategies.press("Tab")
    bench.get_by_text("mine.py:Endless (1 of 2)").wait_for()
    cancel.click()
    bench.get_by_text("cancelled; this is the result before").wait_for()
    expect(cancel).to_be_disabled()
    run.click()
    bench.get_by_text("mine.py:Endless (1 of 2)").wait_for()
    lab.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(run).to_be_enabled()
    lab.evaluate("jupyterapp.shell.currentWidget.content.widgets[1].model.outputs.clear()")
    run_all(lab)
    expect(cancel).to_be_disabled()
    run.click()
    bench_view(lab).locator(".rbl-view").nth(1).wait_for()


def the_bench_runs_edits_and_runs_again(lab):
    bench, view = lab.locator(".jp-Cell").nth(1), bench_view(lab)
    bench.get_by_role("button", name="Run").click()
    view.locator(".rbl-view").nth(1).wait_for()
    expect(view.locator(".rbl-view h3")).to_have_text(["range", "sticky"])
    expect(view.locator(".rbl-figures thead button")).to_have_text(["range", "sticky"])
    expect(view.locator(".rbl-row")).to_have_count(4)
    click_lane(view, 1, 0.5)
    bench.get_by_role("button", name=re.compile(r"^add at (?!0ms)")).click()
    wait_for_document(lab, "new-0")
    field(lab, "members").fill("3")
    field(lab, "members").press("Tab")
    wait_for_document(lab, "count: 3")
    view.locator(".rbl-row").nth(7).wait_for(state="attached")
    first = view.locator(".rbl-view").first.locator(".rbl-row title")
    expect(first).to_have_text(["c-0", "c-1", "c-2", "new-0"])


COLOURS = """(light) => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const [ground] = parts(getComputedStyle(document.querySelector(".rbl")).backgroundColor);
  const [ink] = parts(getComputedStyle(document.querySelector(".rbl svg text")).fill);
  return light === "true" ? ground > 240 && ink < 60 : ground < 60 && ink > 200;
}"""

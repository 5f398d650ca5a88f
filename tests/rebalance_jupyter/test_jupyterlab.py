"""The widget and the bench in JupyterLab as people have it: a server, a kernel, a browser, and no network."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from rebalance_jupyter.view_model import view_model
from tests.rebalance_jupyter.samples import SCALE_OUT, clock, ran, spans_of

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
if find_spec("jupyterlab") is None or find_spec("ipykernel") is None:
    pytest.skip("jupyterlab and ipykernel are not installed", allow_module_level=True)

BENCH = """\
name: bench
duration: 40s
topics:
  t: {partitions: 4, rate: 40}
members:
  - {id: c, count: 2, topics: [t], process_rate: 100}
"""
CELLS = [
    "from rebalance_jupyter import Lab, run, show\n"
    f"view = show(run({SCALE_OUT!r}, 'cooperative-sticky'))\nview",
    f"Lab({BENCH!r}, ['range', 'sticky'])",
    "print('the cursor is at', view.at, 'in round', view.round, 'on', view.selected)",
]
QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
HERE = ("127.0.0.1", "localhost")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture
def server(tmp_path):
    """The address of a JupyterLab that knows nothing of whoever runs the tests."""
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), home / "work" / "view.ipynb")
    quiet = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text(json.dumps(QUIET))
    names = {
        "HOME": "",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    port = free_port()
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=", f"--ServerApp.port={port}"]
    options += [
        "--ServerApp.port_retries=0",
        "--ServerApp.ip=127.0.0.1",
        "--LabApp.expose_app_in_browser=True",
    ]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={home / 'work'}"],
            env={**os.environ, **{name: str(home / folder) for name, folder in names.items()}},
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/api/status", process, home / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(address, process, log, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(address):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start: {log.read_text()[-2_000:]}")


@pytest.fixture
def lab(server, browser):
    """The notebook, open and run; at the end nothing was asked for but from the server."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    elsewhere, errors = [], []

    def look(route):
        address = urlsplit(route.request.url)
        if address.scheme in ("data", "blob") or address.hostname in HERE:
            route.continue_()
        else:
            elsewhere.append(route.request.url)
            route.abort()

    page.route("**/*", look)
    page.on("websocket", lambda socket: urlsplit(socket.url).hostname in HERE or elsewhere.append(socket.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{server}/lab/tree/view.ipynb")
    page.wait_for_function(
        "globalThis.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")
    page.locator(".rbl-view").first.wait_for()
    page.locator(".jp-OutputArea textarea").nth(1).wait_for()
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


def said_by_the_kernel(lab):
    """Run the last cell; what it prints."""
    lab.evaluate("""() => {
      const { content, sessionContext } = jupyterapp.shell.currentWidget;
      content.activeCellIndex = 2;
      content.widgets[2].model.outputs.clear();
      return jupyterapp.commands.execute("notebook:run-cell");
    }""")
    output = lab.locator(".jp-Cell").nth(2).locator(".jp-OutputArea-output")
    output.wait_for()
    return output.inner_text().strip()


def cells_of(lab):
    """How the notebook stands: what a key that reached it would change."""
    return lab.evaluate("""() => {
      const { content } = jupyterapp.shell.currentWidget;
      return [content.activeCellIndex, content.widgets.map((each) => each.model.sharedModel.getSource())];
    }""")


def click_lane(view, partition, part):
    view.locator("canvas").first.scroll_into_view_if_needed()
    box = view.locator("canvas").first.bounding_box()
    view.page.mouse.click(box["x"] + part * box["width"], box["y"] + 18 * (partition + 0.5))


def test_the_widget_and_the_bench_in_jupyterlab(lab, tmp_path):
    view = lab.locator(".rbl").first
    view.scroll_into_view_if_needed()
    keys_step_and_do_not_reach_the_notebook(lab, view)
    play_scrub_and_click_show_in_the_page_and_in_the_kernel(lab, view)
    the_bench_runs_edits_and_runs_again(lab)
    what_is_malformed_is_said_beside_the_field_and_the_last_result_stays(lab)
    ids = lab.locator(".rbl [id]").evaluate_all("(found) => found.map((each) => each.id)")
    assert len(ids) == len(set(ids)) >= 6
    the_theme_is_the_notebooks(lab, "JupyterLab Dark", "false", tmp_path / "dark")
    the_theme_is_the_notebooks(lab, "JupyterLab Light", "true", tmp_path / "light")


def keys_step_and_do_not_reach_the_notebook(lab, view):
    view.locator("h3").click()
    view.focus()
    before = cells_of(lab)
    for each in view_model(ran()).document["rounds"]:
        lab.keyboard.press("ArrowRight")
        assert view.locator(".rbl-time").inner_text() == clock(each["stable"])
        assert view.locator(".rbl-sentence").inner_text() == each["sentence"]
    for key in ("ArrowDown", "ArrowUp", "a", "b", "d", "d", "x", "m", "End", "Home"):
        lab.keyboard.press(key)
    assert cells_of(lab) == before
    assert view.locator(".rbl-time").inner_text() == clock(0)


def play_scrub_and_click_show_in_the_page_and_in_the_kernel(lab, view):
    view.focus()
    lab.keyboard.press("Space")
    lab.wait_for_function("!document.querySelector('.rbl-time').textContent.startsWith('0:00:00')")
    lab.keyboard.press("Space")
    stopped = view.locator(".rbl-time").inner_text()
    view.locator(".rbl-slider").fill("60000")
    assert view.locator(".rbl-time").inner_text() == clock(60_000) != stopped
    the_kernel_comes_to_say(lab, "clicks-0", 60_000, 60_000)
    click_lane(view, 4, 0.5)
    spans = [f"{clock(since)} to {clock(until)}: {o}" for p, o, since, until in spans_of(ran()) if p == 4]
    assert view.locator(".rbl-past li").all_inner_texts() == spans
    the_kernel_comes_to_say(lab, "clicks-4", 89_000, 91_000)


def the_kernel_comes_to_say(lab, partition, earliest_ms, latest_ms):
    """In the second round; it hears of the partition, the round and the time one after the other."""
    until = time.monotonic() + 60
    while True:
        said = said_by_the_kernel(lab)
        told = re.fullmatch(rf"the cursor is at (\d+) in round 2 on {partition}", said)
        if told is not None and earliest_ms <= int(told[1]) <= latest_ms:
            return
        assert time.monotonic() < until, said


def wait_for_document(lab, part):
    lab.wait_for_function(
        "(part) => [...document.querySelectorAll('textarea')].some((each) => each.value.includes(part))",
        arg=part,
    )


def the_bench_runs_edits_and_runs_again(lab):
    bench, view = lab.locator(".jp-Cell").nth(1), bench_view(lab)
    bench.get_by_role("button", name="Run").click()
    view.locator(".rbl-view").nth(1).wait_for()
    assert view.locator("h3").all_inner_texts() == ["range", "sticky"]
    assert view.locator(".rbl-figures thead th").all_inner_texts() == ["metric", "range", "sticky"]
    assert view.locator(".rbl-row").count() == 4
    click_lane(view, 1, 0.5)
    bench.get_by_role("button", name=re.compile(r"^add at (?!0ms)")).click()
    wait_for_document(lab, "new-0")
    field(lab, "members").fill("3")
    field(lab, "members").press("Tab")
    wait_for_document(lab, "count: 3")
    bench.get_by_role("button", name="Run").click()
    view.locator(".rbl-row").nth(7).wait_for()
    first = view.locator(".rbl-view").first.locator(".rbl-row title")
    assert sorted(first.evaluate_all("(found) => found.map((each) => each.textContent)")) == [
        *("c-0", "c-1", "c-2", "new-0"),
    ]


def what_is_malformed_is_said_beside_the_field_and_the_last_result_stays(lab):
    bench, document = lab.locator(".jp-Cell").nth(1), field(lab, "scenario")
    good = document.input_value()
    document.fill("name: [")
    document.press("Tab")
    error = bench.locator("[role=alert]").first
    error.wait_for()
    assert error.inner_text().startswith("scenario: line")
    bench.get_by_role("button", name="Run").click()
    assert bench_view(lab).locator(".rbl-row").count() == 8
    document.fill(good)
    document.press("Tab")
    error.wait_for(state="detached")


COLOURS = """(light) => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const [ground] = parts(getComputedStyle(document.querySelector(".rbl")).backgroundColor);
  const [ink] = parts(getComputedStyle(document.querySelector(".rbl svg text")).fill);
  return light === "true" ? ground > 240 && ink < 60 : ground < 60 && ink > 200;
}"""


def the_theme_is_the_notebooks(lab, theme, light, pictures):
    lab.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
    lab.wait_for_function("(light) => document.body.dataset.jpThemeLight === light", arg=light)
    lab.wait_for_function(COLOURS, arg=light)
    lab.locator("#jupyterlab-splash").wait_for(state="detached")
    for number in range(2):
        lab.locator(".jp-Cell").nth(number).locator(".jp-OutputArea").first.scroll_into_view_if_needed()
        path = pictures.with_name(f"{pictures.name}-{number}.png")
        lab.screenshot(path=path)
        assert path.stat().st_size > 10_000

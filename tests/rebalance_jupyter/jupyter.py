"""A Jupyter server that knows nothing of whoever runs the tests, and a notebook of the widgets open in it."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from rebalance_jupyter.view_model import view_model
from tests.rebalance_jupyter.bench import SMALL
from tests.rebalance_jupyter.browser import history_of
from tests.rebalance_jupyter.samples import SCALE_OUT, clock, ran, told_at

CELLS = [
    "from rebalance_jupyter import Lab, run, show\n"
    f"view = show(run({SCALE_OUT!r}, 'cooperative-sticky'))\nview",
    f"Lab({SMALL!r}, ['range', 'sticky'])",
    "print('the cursor is at', view.at, 'in round', view.round, 'on', view.selected)",
]
QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
HERE = ("127.0.0.1", "localhost")
FOLDERS = {
    "HOME": "",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def serving(module: str, app: str, home: Path, sources: Sequence[str] = CELLS) -> Iterator[str]:
    """The address of the application of a module, which takes options under the name ``app``."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    (home / "work").mkdir(parents=True)
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), home / "work" / "view.ipynb")
    quiet = home / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text(json.dumps(QUIET))
    port = free_port()
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=", f"--ServerApp.port={port}"]
    options += ["--ServerApp.port_retries=0", "--ServerApp.ip=127.0.0.1"]
    options += [f"--{app}.expose_app_in_browser=True", f"--ServerApp.root_dir={home / 'work'}"]
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            env={**os.environ, **{name: str(home / folder) for name, folder in FOLDERS.items()}},
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=home,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status", process, home / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(address, process, log, seconds=240):
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(address):
                return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the server did not start: {log.read_text()[-2_000:]}")


def is_elsewhere(address: str) -> bool:
    """Whether something is not on this machine."""
    parts = urlsplit(address)
    return parts.scheme not in ("data", "blob") and parts.hostname not in HERE


def run_all(page):
    """Run the open notebook and wait for its widgets."""
    run_whole(page)
    page.locator(".rbl-view").first.wait_for()
    page.locator(".jp-OutputArea textarea").nth(1).wait_for()


def run_whole(page):
    """Run the open notebook, once there is a kernel."""
    page.wait_for_function(
        "globalThis.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
    )
    page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells')")


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


def keys_step_and_do_not_reach_the_notebook(lab, view):
    view.locator(".rbl-view h3").click()
    view.focus()
    before = cells_of(lab)
    lab.keyboard.press("Home")
    for entry in view_model(ran()).document["rounds"]:
        for end in ("began", "stable"):
            lab.keyboard.press("ArrowRight")
            assert view.locator(".rbl-time").inner_text() == clock(entry[end])
            assert view.locator(".rbl-sentence").inner_text() == told_at(entry, entry[end])
    for key in ("ArrowDown", "ArrowUp", "a", "b", "d", "d", "x", "m", "End", "Home"):
        lab.keyboard.press(key)
    assert cells_of(lab) == before
    for inside in (".rbl-slider", "button >> nth=3", ".rbl-row >> nth=0"):
        view.locator(inside).focus()
        for key in ("ArrowDown", "ArrowUp", "a", "b", "d", "d", "x", "m", "End"):
            lab.keyboard.press(key)
        assert cells_of(lab) == before
        assert view.locator(".rbl-time").inner_text() != clock(0)
        lab.keyboard.press("Home")
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
    view.focus()
    lab.keyboard.press("0")  # the whole time; it opened with what happens first
    click_lane(view, 4, 0.5)
    assert view.locator(".rbl-past li").all_inner_texts() == history_of(ran(), 4)
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

"""Notebooks that were saved and are opened without their kernel: pictures in place of widgets."""

import json
from importlib.util import find_spec

import pytest

from tests.rebalance_jupyter.browser import comes_to
from tests.rebalance_jupyter.jupyter import run_all, serving
from tests.rebalance_jupyter.samples import SCALE_OUT

pytestmark = pytest.mark.slow

if find_spec("jupyterlab") is None or find_spec("ipykernel") is None or find_spec("notebook") is None:
    pytest.skip("jupyterlab, notebook and ipykernel are not installed", allow_module_level=True)

SOURCES = [
    f"from rebalance_jupyter import Lab, run, show\nshow(run({SCALE_OUT!r}, 'range'))",
    f"lab = Lab({SCALE_OUT!r}, ['range', 'sticky'])\nlab",
    "lab.run()",
]
APPLICATIONS = [("jupyterlab", "LabApp", "lab/tree"), ("notebook", "JupyterNotebookApp", "notebooks")]
ERROR = "model not found"
SHOWN = ".jp-NotebookPanel:not(.lm-mod-hidden)"
"""The notebook on top: JupyterLab opens again, below it, what was open when the page was last left."""
OF_THE_LAST_RUN = """() => {
  const { outputs } = jupyterapp.shell.currentWidget.content.widgets[1].model;
  return JSON.stringify(outputs.get(outputs.length - 1).data).includes("sticky");
}"""
"""Whether the picture below the bench is that of its result: it follows the widget."""


@pytest.fixture(params=APPLICATIONS, ids=["JupyterLab", "Notebook 7"])
def saved(request, tmp_path, browser):
    """The address of a notebook that was run and saved, its file, and a page without its kernel."""
    module, app, path = request.param
    with serving(module, app, tmp_path / "home", SOURCES) as server:
        address, file = f"{server}/{path}/view.ipynb", tmp_path / "home" / "work" / "view.ipynb"
        page = browser.new_page(viewport={"width": 1400, "height": 2000})
        page.set_default_timeout(60_000)
        page.goto(address)
        run_all(page)
        page.locator(".jp-Cell").nth(1).locator(".rbl-view").nth(1).wait_for()
        page.wait_for_function(OF_THE_LAST_RUN)
        comes_to(lambda: pictures_of(page), [False, False])
        page.evaluate("jupyterapp.commands.execute('docmanager:save')")
        page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
        page.evaluate("jupyterapp.serviceManager.sessions.shutdownAll()")
        page.goto("about:blank")
        yield address, file, page
        page.close()


def pictures_of(page):
    """Whether the images in outputs are visible."""
    return [image.is_visible() for image in page.locator(f"{SHOWN} .jp-OutputArea-child img").all()]


def test_a_saved_notebook_has_pictures_in_place_of_widgets(saved):
    """One test for both, as a server, a kernel and two runs are needed for either."""
    address, file, page = saved
    opened_again_it_has_pictures_and_no_error(address, page)
    the_picture_of_a_bench_is_that_of_its_last_run(file)
    not_trusted_it_has_pictures_too(address, file, page)


def opened_again_it_has_pictures_and_no_error(address, page):
    page.goto(address)
    page.get_by_text(ERROR).nth(1).wait_for(state="attached")
    comes_to(lambda: pictures_of(page), [True, True])
    assert [error.is_visible() for error in page.get_by_text(ERROR).all()] == [False, False]


def the_picture_of_a_bench_is_that_of_its_last_run(file):
    """Not of the first display, when nothing had run."""
    (*_, of_bench) = json.loads(file.read_text())["cells"][1]["outputs"]
    assert "sticky" in "".join(of_bench["data"]["image/svg+xml"])


def not_trusted_it_has_pictures_too(address, file, page):
    file.with_name("other.ipynb").write_text(file.read_text().replace("'range'", "'range' "))
    page.goto(address.replace("view", "other"))
    comes_to(lambda: pictures_of(page), [True, True])
    assert page.locator(SHOWN).get_by_text(ERROR).count() == 0

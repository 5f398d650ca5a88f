"""The widget in Notebook 7: it draws, has its keys, which the notebook would have too, and its kernel."""

from importlib.util import find_spec

import pytest

from tests.rebalance_jupyter.jupyter import (
    is_elsewhere,
    keys_step_and_do_not_reach_the_notebook,
    play_scrub_and_click_show_in_the_page_and_in_the_kernel,
    run_all,
    serving,
)

pytestmark = pytest.mark.slow

if find_spec("notebook") is None or find_spec("ipykernel") is None:
    pytest.skip("notebook and ipykernel are not installed", allow_module_level=True)


AT_ONCE = "const { timeout } = AbortSignal; AbortSignal.timeout = () => timeout.call(AbortSignal, 0);"
"""anywidget rejects the messages of the kernel if a module takes longer than two seconds; here, than none."""


@pytest.fixture
def server(tmp_path):
    with serving("notebook", "JupyterNotebookApp", tmp_path / "home") as address:
        yield address


def test_the_widget_in_notebook_7_whose_module_loads_late(server, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    page.add_init_script(AT_ONCE)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.goto(f"{server}/notebooks/view.ipynb")
    run_all(page)
    view = page.locator(".rbl").first
    view.scroll_into_view_if_needed()
    keys_step_and_do_not_reach_the_notebook(page, view)
    play_scrub_and_click_show_in_the_page_and_in_the_kernel(page, view)
    bench = page.locator(".jp-Cell").nth(1)
    bench.get_by_role("button", name="Run").click()
    bench.locator(".rbl-view").nth(1).wait_for()
    assert asked
    assert list(filter(is_elsewhere, asked)) == []
    page.close()

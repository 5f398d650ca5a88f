import shutil
import sys
from types import ModuleType

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from rebalance_jupyter import Lab, compare_view, show
from tests.rebalance_jupyter.bench import SMALL
from tests.rebalance_jupyter.browser import drawn, wait_until
from tests.rebalance_jupyter.samples import ran

VIEWPORT = {"width": 1000, "height": 800}
DRAWN = "document.getElementById('view').childElementCount"
SHOW_ALL = "document.querySelector('.rbl')?.rbl?.lens.all()"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """An IPython with the extension, in which nothing is left behind."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    config = Config({"HistoryManager": {"enabled": False}, "Completer": {"use_jedi": False}})
    made = InteractiveShell.instance(config=config, user_module=ModuleType("__main__"))
    made.run_line_magic("load_ext", "rebalance_jupyter")
    yield made
    made.restore_sys_module_state()
    InteractiveShell.clear_instance()


@pytest.fixture(scope="session")
def browser():
    """One browser without a window, for all tests."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    api.expect.set_options(timeout=60_000)  # enough beside a busy neighbour
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the path")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


class Tab:
    """A tab, used again and again; with what was asked for and what went wrong in it."""

    def __init__(self, browser, frozen, options):
        self.page = browser.new_page(**{"viewport": VIEWPORT, **options})
        self.page.set_default_timeout(60_000)  # enough beside a busy neighbour
        self.problems, self.requests, self.opened = [], [], []
        self.page.on(
            "console", lambda said: self.problems.append(said.text) if said.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        if frozen:
            self.page.clock.install()

    def forget(self):
        for noted in (self.problems, self.requests, self.opened):
            noted.clear()


@pytest.fixture(scope="session")
def tabs():
    """By the kind of screen."""
    return {}


@pytest.fixture
def opened(browser, tabs, tmp_path):
    """Open a view as a file. At the end: no error was logged, and nothing but the file was asked for.

    ``frozen``: time goes on in the page only where the test lets it, by `page.clock`. ``whole``: show the
    whole time, and not what happens first.
    """
    for tab in tabs.values():
        tab.forget()

    def open_page(view, *, frozen=False, whole=True, **options):
        key = repr((frozen, sorted(options.items())))
        tab = tabs[key] = tabs.get(key) or Tab(browser, frozen, options)
        path = tmp_path / f"view-{len(list(tmp_path.iterdir()))}.html"
        path.write_text(view if isinstance(view, str) else view.to_html(), encoding="utf-8")
        tab.opened.append(path.as_uri())
        tab.page.set_viewport_size(options.get("viewport", VIEWPORT))  # a test may have changed it
        tab.page.mouse.move(0, 0)
        tab.page.goto(path.as_uri())
        wait_until(tab.page, DRAWN)
        if whole:
            tab.page.evaluate(SHOW_ALL)
        if frozen:
            tab.page.clock.pause_at(tab.page.evaluate("Date.now()") / 1_000 + 1)
            tab.page.clock.run_for(50)
        elif whole:
            drawn(tab.page)
        return tab.page

    yield open_page
    for tab in tabs.values():
        assert tab.problems == []
        assert tab.requests == tab.opened


@pytest.fixture
def page(opened):
    """Three members on six partitions; one joins, one crashes."""
    return opened(show(ran()))


@pytest.fixture
def both(opened):
    """Two strategies in step, and a third that failed."""
    return opened(compare_view([ran(strategy="range"), ran()], errors=["broken: it <failed>"]))


@pytest.fixture
def lab():
    return Lab(SMALL, ["range"])


@pytest.fixture
def ready(lab):
    """A bench with a good result."""
    lab.run()
    assert [trace.strategy for trace in lab.traces] == ["range"]
    return lab

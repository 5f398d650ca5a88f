"""Take the pictures of the view in its document: ``python -m tests.rebalance_jupyter.take_pictures``."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from rebalance_jupyter import compare_view, run, show
from tests.places import ROOT, SCENARIOS
from tests.rebalance_jupyter.browser import go_to
from tests.rebalance_jupyter.conftest import BROWSERS

PLACE = ROOT / "notebooks" / "pictures"
PICTURES = (
    ("view.png", "scale-out", "cooperative-sticky", 36_000),
    ("two-owners.png", "late-view", "rocketmq", 36_000),
)
"""The file, the scenario, the strategy, and the time of the cursor in milliseconds."""


COMPARISON = """\
name: orders
duration: 4m
topics: {orders: {partitions: 24, rate: 4800}}
members:
  - {id: c, count: 5, topics: [orders], process_rate: 2500, batch_overhead: 200ms}
events:
  - {at: 60s, join: {id: c-6, topics: [orders], process_rate: 2500, batch_overhead: 200ms}}
  - {at: 62s, leave: c-2}
  - {at: 150s, crash: c-4}
"""
"""The scenario of the picture of a comparison, which fits one screen."""


def main() -> None:
    """Write all pictures."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, BROWSERS)))
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 600}, device_scale_factor=1.25)
        for name, scenario, strategy, at_ms in PICTURES:
            view = Path(folder) / "view.html"
            view.write_text(show(run(SCENARIOS / f"{scenario}.yaml", strategy)).to_html(), encoding="utf-8")
            page.goto(view.as_uri())
            go_to(page, at_ms)
            page.evaluate("document.activeElement.blur()")
            page.screenshot(path=PLACE / name, full_page=True)
        page = browser.new_page(viewport={"width": 1_400, "height": 900})
        view = Path(folder) / "comparison.html"
        runs = [run(COMPARISON, strategy) for strategy in ("range", "cooperative-sticky")]
        view.write_text(compare_view(runs).to_html(), encoding="utf-8")
        page.goto(view.as_uri())
        page.evaluate("document.activeElement.blur()")
        page.screenshot(path=PLACE / "comparison.png")
        browser.close()


if __name__ == "__main__":
    main()

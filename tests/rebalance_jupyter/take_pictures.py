"""Take the pictures of the view in its document: ``python -m tests.rebalance_jupyter.take_pictures``."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from rebalance_jupyter import run, show
from tests.places import ROOT, SCENARIOS
from tests.rebalance_jupyter.browser import go_to
from tests.rebalance_jupyter.conftest import BROWSERS

PICTURES = (
    ("view.png", "scale-out", "cooperative-sticky", 36_000),
    ("two-owners.png", "late-view", "rocketmq", 36_000),
)
"""The file, the scenario, the strategy, and the time of the cursor in milliseconds."""


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
            page.screenshot(path=ROOT / "notebooks" / "pictures" / name, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()

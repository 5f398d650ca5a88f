"""How long the browser takes to draw large groups and to move the cursor, and the bench to show a change.

    python -m tests.benchmarks.jupyter

*Bytes* is what goes from the kernel to the browser, *model* the time to make it. *Drawn* is from the call to
the first frame that shows it; *frame* the time from a move of the slider to the frame that shows it, of 100
moves; *by member* the same while lanes are grouped by member (regrouped when the cursor rests). *Zoom* is a
frame of 100 in which the window is narrowed from the whole time to a second, moved, and widened again.

The second table is the way from a change of a number in the bench to the new picture. Of several changes the
least times count: *run* is the CPU time until the view has its new state, *JSON* that to write the state, and
*drawn* the time from the state to the first frame that shows it.

The third table is a page with three strategies side by side, of 1,000 partitions and 100 members with rates:
its size, that of its data, and the CPU time of the main thread for a move of the cursor and of the window.
"""

import base64
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import compare_view, run
from rebalance_jupyter.lab import Lab
from rebalance_jupyter.page import MODULE, STYLE
from rebalance_jupyter.view_model import view_model
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.traces.trace import Trace
from tests.rebalance_jupyter.test_series import THOUSAND

MEMBERS, ROUNDS = 100, 20
PARTITIONS = (1_000, 10_000)
STRATEGIES = ("cooperative-sticky", "range")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

HEAD = (
    "partitions",
    "strategy",
    "bytes",
    "model",
    "drawn",
    "frame: median",
    "worst",
    "zoom",
    "worst",
    "by member",
    "worst",
)

CHANGES = 7
BENCH = """\
name: bench
duration: 10m
topics:
  orders: {partitions: 60, rate: 6000}
members:
  - {id: c, count: 10, topics: [orders], process_rate: 900}
events:
  - {at: 2m, join: {id: extra, topics: [orders], process_rate: 900}}
  - {at: 4m, crash: c-1}
  - {at: 6m, restart: c-1}
  - {at: 8m, leave: c-2}
"""

SIDE_BY_SIDE = ("range", "cooperative-sticky", "sticky")
MOVES = 100
PAGE_HEAD = ("strategies", "page", "data", "cursor", "zoom")

CHANGE_HEAD = ("strategies", "bytes", "run", "JSON", "drawn", "in all")

MEASURE = """async ({ source, document: text, spans }) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: module } = await import(url);
  const bytes = Uint8Array.from(atob(spans), (c) => c.charCodeAt(0));
  const views = [{ document: JSON.parse(text), spans: new DataView(bytes.buffer) }];
  const state = { views, figures: {}, errors: [], at: 0, zoom: [], selected: "", notes: [] };
  const model = {
    get: (name) => state[name], set: (name, value) => { state[name] = value; },
    save_changes() {}, on() {}, off() {},
  };
  const el = document.body.appendChild(document.createElement("div"));
  const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const timed = async (act) => {
    const began = performance.now();
    act();
    await shown();
    return performance.now() - began;
  };
  await shown();
  const drawn = await timed(() => module.render({ model, el }));
  const scrub = async () => {
    const slider = el.querySelector("input[type=range]");
    const times = [];
    for (let i = 1; i <= 100; i++)
      times.push(await timed(() => {
        slider.value = (slider.max * i) / 100;
        slider.dispatchEvent(new Event("input"));
      }));
    times.sort((a, b) => a - b);
    return [times[50], times[99]];
  };
  const byTopic = await scrub();
  const { lens } = el.querySelector(".rbl").rbl;
  const centre = lens.duration * 0.43;
  const narrowest = 1000 / lens.duration;
  const times = [];
  for (let i = 1; i <= 100; i++) {
    const part = narrowest ** Math.min(1, 1.5 - Math.abs(i / 50 - 1) * 1.5); // of the duration
    const half = (lens.duration * part) / 2;
    const at = centre + half * Math.sin(i / 5) / 2;
    times.push(await timed(() => lens.zoom(at - half, at + half)));
  }
  times.sort((a, b) => a - b);
  const zoomed = [times[50], times[99]];
  const grouping = el.querySelector("select[aria-label='Lanes grouped by']");
  grouping.value = "member";
  grouping.dispatchEvent(new Event("change"));
  return [drawn, ...byTopic, ...zoomed, ...(await scrub())];
}"""


MOVED = """async ({ moves, zooms }) => {
  const { lens } = document.querySelector(".rbl").rbl;
  const slider = document.querySelector(".rbl-slider");
  const narrowest = 1000 / lens.duration;
  for (let i = 1; i <= moves; i++) {
    if (zooms) {
      const half = (lens.duration * narrowest ** Math.min(1, 1.5 - Math.abs((2 * i) / moves - 1) * 1.5)) / 2;
      const at = lens.duration * 0.43 + half * Math.sin(i / 5) / 2;
      lens.zoom(at - half, at + half);
    } else {
      slider.value = (slider.max * i) / moves;
      slider.dispatchEvent(new Event("input"));
    }
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}"""
"""Moves of the cursor or of the window, a frame each."""


CHANGE = """async ({ source, states }) => {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: module } = await import(url);
  const state = { views: [], figures: {}, errors: [], at: 0, zoom: [], selected: "", notes: [] };
  const listeners = {};
  const model = {
    get: (name) => state[name], set: (name, value) => { state[name] = value; },
    save_changes() {}, off() {}, on(name, listener) { (listeners[name] ??= []).push(listener); },
  };
  const el = document.body.appendChild(document.createElement("div"));
  const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  module.render({ model, el });
  await shown();
  const times = [];
  for (const text of states) {
    const began = performance.now();
    Object.assign(state, JSON.parse(text));
    for (const view of state.views) {
      const bytes = Uint8Array.from(atob(view.spans), (c) => c.charCodeAt(0));
      view.spans = new DataView(bytes.buffer);
    }
    for (const name of ["change:views", "change:figures"]) listeners[name].forEach((listener) => listener());
    await shown();
    times.push(performance.now() - began);
  }
  return Math.min(...times);
}"""


def main() -> None:
    """Print the tables."""
    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        sys.exit(f"no browser; looked for {', '.join(BROWSERS)}")
    _line(HEAD)
    _line(["---"] * len(HEAD))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for partitions in PARTITIONS:
            for strategy in STRATEGIES:
                page = browser.new_page(viewport={"width": 1200, "height": 900})
                _line([f"{partitions:,}", strategy, *_measured(page, large(partitions, strategy))])
                page.close()
        _line(())
        _line(CHANGE_HEAD)
        _line(["---"] * len(CHANGE_HEAD))
        for strategies in (STRATEGIES[:1], STRATEGIES):
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            _line([", ".join(strategies), *_changed(page, strategies)])
            page.close()
        _line(())
        _line(PAGE_HEAD)
        _line(["---"] * len(PAGE_HEAD))
        _line([", ".join(SIDE_BY_SIDE), *_side_by_side(browser)])


def _side_by_side(browser: Browser) -> list[str]:
    view = compare_view([run(THOUSAND, strategy) for strategy in SIDE_BY_SIDE])
    text = view.to_html()
    data = text.partition('id="state">')[2].partition("</script>")[0]
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "view.html"
        path.write_text(text, encoding="utf-8")
        page.goto(path.as_uri())
        page.wait_for_selector(".rbl-lanes, canvas")
        page.wait_for_timeout(1_000)
        cursor, zoom = (_busy_ms(page, zooms=zooms) for zooms in (False, True))
        page.close()
    return [f"{len(text):,}", f"{len(data):,}", f"{cursor:,.1f} ms", f"{zoom:,.1f} ms"]


def _busy_ms(page: Page, *, zooms: bool) -> float:
    """Return the CPU time of the main thread for a move."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

    before = busy_s()
    page.evaluate(MOVED, {"moves": MOVES, "zooms": zooms})
    return 1_000 * (busy_s() - before) / MOVES


def large(partitions: int, strategy: str, members: int = MEMBERS, rounds: int = ROUNDS) -> Trace:
    """A planned run in which members leave and come back, a minute between."""
    changes = [{"leave": f"m-{i}"} if i % 2 == 0 else {"restart": f"m-{i - 1}"} for i in range(rounds - 1)]
    document = {
        "name": "large",
        "duration": f"{rounds + 1}m",
        "topics": {"t": {"partitions": partitions}},
        "members": [{"id": "m", "count": members, "topics": ["t"]}],
        "events": [{"at": f"{i}m", **change} for i, change in enumerate(changes, start=1)],
    }
    registry = default_registry()
    return plan(parse_scenario(document, where="large", registry=registry), strategy, registry)


def _measured(page: Page, trace: Trace) -> list[str]:
    began = perf_counter()
    model = view_model(trace)
    took_ms = 1_000 * (perf_counter() - began)
    data: dict[str, Any] = {
        "source": MODULE.read_text(),
        "document": json.dumps(model.document, separators=(",", ":")),
        "spans": base64.b64encode(model.spans).decode(),
    }
    page.set_content(f"<!doctype html><style>{STYLE.read_text()}</style>")
    times = page.evaluate(MEASURE, data)
    return [f"{len(data['document']) + len(model.spans):,}", *(f"{t:,.0f} ms" for t in (took_ms, *times))]


def _changed(page: Page, strategies: Sequence[str]) -> list[str]:
    lab = Lab(BENCH, strategies)
    lab.run()
    states, runs, texts = [], [], []
    for number in range(CHANGES):
        began = process_time()
        lab.members.value = 10 + (number + 1) % 2
        lab.run()
        ran = process_time()
        views = [{**view, "spans": base64.b64encode(view["spans"]).decode()} for view in lab.view.views]
        states.append(json.dumps({"views": views, "figures": lab.view.figures}, separators=(",", ":")))
        runs.append(1_000 * (ran - began))
        texts.append(1_000 * (process_time() - ran))
    page.set_content(f"<!doctype html><style>{STYLE.read_text()}</style>")
    drawn = page.evaluate(CHANGE, {"source": MODULE.read_text(), "states": states})
    times = (min(runs), min(texts), drawn)
    return [f"{len(states[0]):,}", *(f"{t:,.0f} ms" for t in (*times, sum(times)))]


def _line(cells: Any) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n" if cells else "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

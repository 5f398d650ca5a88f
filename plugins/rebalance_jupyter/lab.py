"""The bench: choose strategies, edit the scenario, run, and compare."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from html import escape
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any

import ipywidgets as widgets
import yaml

from coordinator_core.documents.fields import MOST_MEMBERS, MOST_PARTITIONS
from coordinator_core.documents.files import load_scenario_text, read_document, read_text
from coordinator_core.documents.scenario import Scenario
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.durations import format_duration
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.display import alert
from rebalance_jupyter.views import RebalanceView, figures_of, run_each, with_pictures

EXAMPLE = """\
name: bench
duration: 3m
topics:
  orders: {partitions: 8, rate: 800}
members:
  - {id: c, count: 3, topics: [orders], process_rate: 400}
events:
  - {at: 1m, join: {id: extra, topics: [orders], process_rate: 400}}
  - {at: 2m, crash: c-1}
"""
_TARGETED = ("leave", "crash", "restart", "pause", "freeze", "cut", "subscribe", "remove_member", "lag_view")
_KINDS = (
    "join",
    *_TARGETED,
    "add_partitions",
    "create_topic",
    "delete_topic",
    "rolling_restart",
    "coordinator_failover",
    "calm",
)
_LISTED_RATES = ("rates", "rates_csv", "rates_rows")
"""Rates of single partitions: the controls cannot change them, nor the number of partitions."""
REPORT_SECONDS = 0.1
"""The time between two reports of progress. Each is a message to the browser."""
_OWN = ("count", "id", "instance_id", "owned")
"""The fields that a copy of a member does not take over."""


class _CancelledError(Exception):
    """The run was cancelled."""


class Lab(widgets.VBox):
    """Controls above, the comparison below.

    ``strategies`` (a name in each line), the scenario (YAML, in ``document``) and the controls can be set by
    hand or by code. Errors are shown beside their field. The last good result stays, also in ``traces``.
    After the first run, each change starts another one, unless ``live`` is switched off.
    """

    def __init__(
        self,
        scenario: str | Path = EXAMPLE,
        strategies: Sequence[str] = ("range", "cooperative-sticky"),
        *,
        registry: Registry | None = None,
    ) -> None:
        self._registry = registry or default_registry()
        written = "\n" in str(scenario)
        self._base_dir = Path() if written else Path(scenario).parent
        self._cancelled = Event()
        self._thread: Thread | None = None
        self._lock = Lock()
        self._runs = self._again = False
        self._reported = 0.0
        text = str(scenario) if written else read_text(Path(scenario))
        wide = widgets.Layout(width="auto")
        self.strategies = widgets.Textarea(
            "\n".join(strategies), description="strategies", rows=4, layout=wide, continuous_update=False
        )
        self.assignor = widgets.Combobox(
            options=list(self._registry.assignors()), description="add", placeholder="a strategy"
        )
        self.strategies_error = widgets.HTML()
        self.document = widgets.Textarea(
            text, description="scenario", rows=14, layout=wide, continuous_update=False
        )
        self.document_error = widgets.HTML()
        self.members = widgets.BoundedIntText(min=1, max=MOST_MEMBERS, description="members")
        self.partitions = widgets.BoundedIntText(min=1, max=MOST_PARTITIONS, description="partitions")
        self.rate = widgets.BoundedFloatText(min=0, max=1e9, description="records/s")
        self.kind = widgets.Dropdown(options=_KINDS, description="event", layout=widgets.Layout(width="19em"))
        self.target = widgets.Combobox(
            description="member", style={"description_width": "initial"}, layout=widgets.Layout(width="13em")
        )
        self.add_event = widgets.Button(description="add at 0ms")
        self.event_error = widgets.HTML()
        self.run_button = widgets.Button(description="Run", button_style="primary", icon="play")
        self.cancel_button = widgets.Button(description="Cancel", disabled=True)
        self.live = widgets.Checkbox(True, description="run at each change", indent=False)
        self.progress = widgets.IntProgress(min=0, max=100, layout=widgets.Layout(width="12em"))
        self.status = widgets.HTML()
        self.path = widgets.Text(str(self._base_dir / "scenario.yaml"), description="save as")
        self.save_button = widgets.Button(description="Save")
        self.saved = widgets.HTML()
        self.view = RebalanceView()
        self._follow_document()
        self._connect()
        rows = widgets.Layout(flex_flow="row wrap")
        event = widgets.HBox([self.kind, self.target, self.add_event, self.event_error], layout=rows)
        save = widgets.HBox([self.path, self.save_button, self.saved], layout=rows)
        left = widgets.VBox(
            [self.strategies, self.assignor, self.strategies_error, self.members, self.partitions, self.rate],
            layout=widgets.Layout(width="38%", min_width="22em"),
        )
        right = widgets.VBox(
            [self.document, self.document_error, event, save],
            layout=widgets.Layout(width="60%", min_width="22em"),
        )
        self.live.layout.width = "auto"
        buttons = widgets.HBox(
            [self.run_button, self.cancel_button, self.live, self.progress, self.status], layout=rows
        )
        super().__init__([widgets.HBox([left, right], layout=rows), buttons, self.view])

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The last good result: a trace for each strategy."""
        return self.view.traces

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the bench, and its result for a notebook without a kernel."""
        return with_pictures(super()._repr_mimebundle_(**kwargs), self.view)

    def _connect(self) -> None:
        self.run_button.on_click(lambda _: self.run(wait=False))
        self.cancel_button.on_click(lambda _: self.cancel())
        self.add_event.on_click(lambda _: self._add_event())
        self.save_button.on_click(lambda _: self._save())
        self.document.observe(lambda _: self._run_live(self._follow_document()), "value")
        self.strategies.observe(lambda _: self._run_live(bool(self._chosen())), "value")
        self.assignor.observe(lambda _: self._add_strategy(), "value")
        for control in (self.members, self.partitions, self.rate):
            control.observe(lambda _: self._edit(self._set_sizes), "value")
        self.view.observe(self._follow_cursor, "at")

    # --- running

    def run(self, *, wait: bool = True) -> None:
        """Run every strategy on the scenario, or wait for the run under way. Errors are shown, not raised."""
        chosen = self._scenario(), self._chosen()
        with self._lock:
            if not self._runs and all(chosen):
                self._runs, self._again = True, False
                self._cancelled.clear()
                self.run_button.disabled, self.cancel_button.disabled = True, False
                self._thread = Thread(target=self._run_until_current, args=chosen, daemon=True)
                self._thread.start()
        if wait and self._thread is not None:
            self._thread.join()

    def cancel(self) -> None:
        """Stop the current run. The last good result stays."""
        with self._lock:
            self._again = False
            self._cancelled.set()

    def _run_live(self, valid: bool) -> None:
        """Run again after a valid change, in place of a run under way. The first run is started by hand."""
        if not valid or not self.live.value or self._thread is None:
            return
        with self._lock:
            if self._runs:
                self._again = True
                self._cancelled.set()
        self.run(wait=False)

    def _run_until_current(self, scenario: Scenario | None, strategies: Sequence[Strategy]) -> None:
        """Run, and run again as long as something has changed meanwhile."""
        while True:
            if scenario is not None and strategies:
                self._run(scenario, strategies)
            with self._lock:
                if not self._again:
                    self._runs = False
                    self.progress.value = 0
                    self.run_button.disabled, self.cancel_button.disabled = False, True
                    return
                self._again = False
                self._cancelled.clear()
            scenario, strategies = self._scenario(), self._chosen()

    def _run(self, scenario: Scenario, strategies: Sequence[Strategy]) -> None:
        try:
            traces, errors = run_each(
                scenario, strategies, self._registry, partial(self._report, scenario, strategies)
            )
            if traces:
                figures = figures_of(traces, self._registry)
                at_ms = min(self.view.at, scenario.duration_ms)
                self.view.show(traces, figures=figures, errors=errors, at_ms=at_ms)
            else:
                self.view.errors = errors
            self.status.value = f"{len(traces)} of {len(strategies)} strategies ran" if errors else ""
        except _CancelledError:
            if not self._again:
                self.status.value = "cancelled; this is the result before" if self.traces else "cancelled"
        except Exception as error:
            self.status.value = alert(f"{type(error).__name__}: {error}")

    def _report(self, scenario: Scenario, strategies: Sequence[Strategy], number: int, at_ms: int) -> None:
        if self._cancelled.is_set():
            raise _CancelledError
        if monotonic() - self._reported < REPORT_SECONDS:
            return
        self._reported = monotonic()
        self.status.value = f"{escape(strategies[number].name)} ..."
        self.progress.value = round(100 * (number + at_ms / scenario.duration_ms) / len(strategies))

    def _scenario(self) -> Scenario | None:
        try:
            scenario = self._parsed(self.document.value)
        except RebalanceLabError as error:
            self.document_error.value = alert(error)
            return None
        self.document_error.value = ""
        return scenario

    def _parsed(self, text: str) -> Scenario:
        return load_scenario_text(text, "scenario", base_dir=self._base_dir, registry=self._registry)

    def _chosen(self) -> list[Strategy]:
        """Return the strategies, or none if one of them is invalid."""
        names = list(dict.fromkeys(filter(None, map(str.strip, self.strategies.value.splitlines()))))
        try:
            strategies = [self._registry.strategy(name) for name in names]
        except RebalanceLabError as error:
            self.strategies_error.value = alert(error)
            return []
        self.strategies_error.value = "" if names else alert("no strategy, expected one a line")
        return strategies

    # --- editing

    def _read(self) -> dict[str, Any] | None:
        """Return the document if it is valid."""
        if self._scenario() is None:
            return None
        document = read_document(self.document.value, "scenario")
        return dict(document) if isinstance(document, Mapping) else None

    def _edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        document = None if self._following else self._read()
        if document is None:
            return
        before = deepcopy(document)
        change(document)
        if document != before:
            self.document.value = _as_yaml(document)

    def _follow_document(self) -> bool:
        """Set the controls to the values of the document. Return whether it is valid."""
        scenario = self._scenario()
        if scenario is None:
            return False
        document = read_document(self.document.value, "scenario")
        topic = next(iter(document["topics"].values()))
        listed = any(key in topic for key in _LISTED_RATES)
        owned = any("owned" in member for member in document["members"])
        counted = listed or owned or "racks" in topic or isinstance(topic.get("backlog"), list)
        joining = [m for event in scenario.events if event.kind == "join" for m in event.arguments.members]
        self._following = True
        try:
            self.members.disabled = not document["members"] or "owned" in document["members"][0]
            if document["members"]:
                self.members.value = document["members"][0].get("count", 1)
            self.partitions.value, self.partitions.disabled = topic["partitions"], counted
            self.rate.value, self.rate.disabled = topic.get("rate", 0), listed
            self.target.options = list(dict.fromkeys(m.id for m in (*scenario.members, *joining)))
        finally:
            self._following = False
        return True

    def _set_sizes(self, document: dict[str, Any]) -> None:
        """Change only the values that differ from the controls. Everything else stays as it was written."""
        topic = next(iter(document["topics"].values()))
        if topic["partitions"] != self.partitions.value and not self.partitions.disabled:
            topic["partitions"] = self.partitions.value
        if topic.get("rate", 0) != self.rate.value and not self.rate.disabled:
            topic["rate"] = self.rate.value
        if document["members"] and document["members"][0].get("count", 1) != self.members.value:
            document["members"][0]["count"] = self.members.value

    def _add_strategy(self) -> None:
        if self.assignor.value in self._registry.assignors():
            self.strategies.value = f"{self.strategies.value.rstrip()}\n{self.assignor.value}".lstrip()
            self.assignor.value = ""

    def _follow_cursor(self, _change: Any) -> None:
        self.add_event.description = f"add at {format_duration(self.view.at)}"

    def _add_event(self) -> None:
        document = self._read()
        if document is None:
            return
        try:
            event = {"at": format_duration(self.view.at), **self._event(document)}
            text = _as_yaml({**document, "events": [*(document.get("events") or []), event]})
            self._parsed(text)
        except RebalanceLabError as error:
            self.event_error.value = alert(error)
            return
        self.event_error.value = ""
        self.document.value = text

    def _event(self, document: Mapping[str, Any]) -> dict[str, Any]:
        kind, target = self.kind.value, self.target.value.strip()
        topic, described = next(iter(document["topics"].items()))
        if kind in _TARGETED and not target:
            raise InputError(kind, "no member", f"the name of one, such as {_first(self.target.options)}")
        if kind == "join":
            like = document["members"][0] if document["members"] else {"topics": list(document["topics"])}
            like = {k: v for k, v in like.items() if k not in _OWN}
            name = target or f"new-{len(document.get('events') or [])}"
            copy = deepcopy(like)  # YAML writes a reference for an object that occurs twice
            return {"join": {"id": name, **copy}}
        if kind == "subscribe":
            return {"subscribe": target, "topics": list(document["topics"])}
        if kind in ("pause", "freeze", "cut"):
            return {kind: target, "for": "30s"}
        if kind == "lag_view":
            return {"lag_view": {"member": target, "by": "10s"}}
        if kind == "add_partitions":
            return {"add_partitions": {topic: 2 * described["partitions"]}}
        if kind == "create_topic":
            return {"create_topic": {target or f"new-{len(document.get('events') or [])}": {"partitions": 6}}}
        if kind == "delete_topic":
            return {"delete_topic": target or topic}
        if kind == "rolling_restart":
            return {"rolling_restart": {"every": "10s", "down": "3s"}}
        if kind == "coordinator_failover":
            return {"coordinator_failover": {"down": "3s"}}
        if kind == "calm":
            return {"calm": True}
        return {kind: target}

    def _save(self) -> None:
        try:
            Path(self.path.value).write_text(self.document.value, encoding="utf-8")
            self.saved.value = f"saved as {escape(self.path.value)}"
        except OSError as error:
            self.saved.value = alert(f"{self.path.value}: {error.strerror}")


def _as_yaml(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(document), sort_keys=False, default_flow_style=None, width=100)


def _first(options: Sequence[str]) -> str:
    return next(iter(options), "c-0")

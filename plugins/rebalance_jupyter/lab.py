"""The bench: choose strategies, edit the scenario, run, and compare."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from threading import Event, Lock, Thread, main_thread
from time import monotonic
from typing import Any

import ipywidgets as widgets

from coordinator_core.assigning.loading import PROGRAM, of_program
from coordinator_core.errors import InputError, RebalanceLabError
from coordinator_core.reading.checks import number, whole
from coordinator_core.reading.durations import format_duration
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_jupyter.display import alert
from rebalance_jupyter.editing import (
    ListedEvent,
    Versions,
    as_text,
    document_in,
    events_in,
    first_member,
    first_topic,
    new_event,
    with_event,
    without_event,
)
from rebalance_jupyter.fields import NumberField
from rebalance_jupyter.figures import figures_of
from rebalance_jupyter.progress import progress_text
from rebalance_jupyter.running import LIMIT_S, run_each
from rebalance_jupyter.views import RebalanceView
from rebalance_lab.cli.files import write_whole
from rebalance_lab.scenarios.fields import MOST_MEMBERS, MOST_PARTITIONS
from rebalance_lab.scenarios.files import load_scenario_text, read_text
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.scenarios.shipped import scenario_path
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.differences import Owners, differences_of

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
_LISTED_RATES = ("rates", "rates_csv", "rates_rows")
"""Rates of single partitions: the controls cannot change them, nor the number of partitions."""
REPORT_SECONDS = 0.1
"""The time between two reports of progress. Each is a message to the browser."""
MOST_EVENTS = 30
"""The most events that are listed with a button."""
_ROWS = {"flex_flow": "row wrap"}
_SMALL = {"width": "7em"}
_ICON = {"width": "2.5em", "flex": "0 0 auto"}
_AUTO = {"width": "auto"}


class _CancelledError(Exception):
    """The run was cancelled."""


class Lab(widgets.VBox):
    """Controls above, the comparison below.

    ``strategies`` are in any form that `run` accepts. The field has a name in each line; one of a class or
    function of a cell stands for what the cell has defined last. The scenario (YAML, in ``document``) and the
    controls can be set by hand or by code. Errors are shown beside their field. The last good result stays,
    also in ``traces``. After the first run, each change starts another one, unless ``live`` is switched off.
    ``limit_s`` is that of `run`.
    """

    def __init__(
        self,
        scenario: str | Path = EXAMPLE,
        strategies: Sequence[Any] = ("range", "cooperative-sticky"),
        *,
        limit_s: float | None = LIMIT_S,
        registry: Registry | None = None,
    ) -> None:
        self._registry, self._limit_s = registry or default_registry(), limit_s
        self._given: dict[str, Strategy] = {}
        written = "\n" in str(scenario)
        path = Path() if written else scenario_path(str(scenario))
        self._base_dir = path.parent
        self._cancelled = Event()
        self._thread: Thread | None = None
        self._lock = Lock()
        self._runs = self._again = self._following = False
        self._listed: Sequence[ListedEvent] = ()
        self._reported = 0.0
        text = str(scenario) if written else read_text(path)
        self._versions = Versions(text)
        self._owners: list[Owners] | None = None
        self._make_controls(text, "\n".join(map(self._named, strategies)))
        self._follow_document()
        self._connect()
        super().__init__(self._laid_out())

    def _make_controls(self, text: str, names: str) -> None:
        self.strategies = widgets.Textarea(
            names, description="strategies", rows=4, layout=_AUTO, continuous_update=False
        )
        self.assignor = widgets.Combobox(
            options=list(self._registry.assignors()),
            description="add",
            placeholder="a strategy",
            layout=_AUTO,
        )
        self.strategies_error = widgets.HTML()
        self.members = NumberField("members", partial(whole, low=1, high=MOST_MEMBERS))
        self.partitions = NumberField("partitions", partial(whole, low=1, high=MOST_PARTITIONS))
        self.rate = NumberField("records/s", number)
        self.document = widgets.Textarea(
            text, description="scenario", rows=14, layout=_AUTO, continuous_update=False
        )
        self.document_error = widgets.HTML()
        self.undo_button = widgets.Button(description="Undo", icon="undo", disabled=True, layout=_SMALL)
        self.redo_button = widgets.Button(description="Redo", icon="repeat", disabled=True, layout=_SMALL)
        kinds = tuple(self._registry.scenario_events())
        self.kind = widgets.Dropdown(options=kinds, description="event", layout={"width": "19em"})
        self.target = widgets.Combobox(
            description="member", style={"description_width": "initial"}, layout={"width": "13em"}
        )
        self.add_event = widgets.Button(description="add at 0ms")
        self.event_error = widgets.HTML()
        self.events = widgets.VBox(layout={"max_height": "12em", "overflow": "auto"})
        self.run_button = widgets.Button(description="Run", button_style="primary", icon="play")
        self.cancel_button = widgets.Button(description="Cancel", disabled=True)
        self.live = widgets.Checkbox(True, description="run at each change", indent=False, layout=_AUTO)
        self.progress = widgets.IntProgress(min=0, max=100, layout={"width": "12em"})
        self.status = widgets.HTML()
        self.path = widgets.Text(str(self._base_dir / "scenario.yaml"), description="save as")
        self.save_button = widgets.Button(description="Save", layout=_SMALL)
        self.saved = widgets.HTML()
        self.view = RebalanceView()
        self.differences = widgets.Accordion(
            [widgets.HTML()], titles=("different owners at the cursor",), selected_index=None
        )

    def _laid_out(self) -> list[widgets.Widget]:
        """Return the controls in two columns, or in one if there is room for one only, and what is below."""

        def row(*parts: widgets.Widget) -> widgets.Widget:
            return widgets.HBox(parts, layout=_ROWS)

        def column(flex: str, *parts: widgets.Widget) -> widgets.Widget:
            return widgets.VBox(parts, layout={"flex": flex, "min_width": "0"})

        sizes = [self.members, self.partitions, self.rate]
        text = [self.document, self.document_error, widgets.HBox([self.undo_button, self.redo_button])]
        event = [row(self.kind, self.target, self.add_event), self.event_error, self.events]
        columns = row(
            column("2 1 20em", self.strategies, self.assignor, self.strategies_error, *sizes),
            column("3 1 30em", *text, *event, row(self.path, self.save_button, self.saved)),
        )
        running = row(self.run_button, self.cancel_button, self.live, self.progress, self.status)
        return [columns, running, self.view, self.differences]

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The last good result: a trace for each strategy."""
        return self.view.traces

    def _ipython_display_(self) -> None:
        """Display the bench, and below it the picture of its result for places without widgets."""
        self.view.display(super()._repr_mimebundle_())

    def _connect(self) -> None:
        self.run_button.on_click(lambda _: self.run(wait=False))
        self.cancel_button.on_click(lambda _: self.cancel())
        self.add_event.on_click(lambda _: self._add_event())
        self.save_button.on_click(lambda _: self._save())
        self.document.observe(lambda _: self._run_live(self._follow_document()), "value")
        self.strategies.observe(lambda _: self._run_live(bool(self._chosen())), "value")
        self.assignor.observe(lambda _: self._add_strategy(), "value")
        self.members.observe(partial(self._set, first_member, "count", 1), "value")
        self.partitions.observe(partial(self._set, first_topic, "partitions", None), "value")
        self.rate.observe(partial(self._set, first_topic, "rate", 0), "value")
        self.undo_button.on_click(lambda _: self._step(-1))
        self.redo_button.on_click(lambda _: self._step(1))
        self.view.observe(self._follow_cursor, "at")
        self.differences.observe(lambda _: self._show_differences(), "selected_index")

    # --- running

    def run(self, *, wait: bool = True) -> None:
        """Run every strategy on the scenario, or wait for the run under way. Errors are shown, not raised."""
        chosen = self._scenario(), self._chosen()
        with self._lock:
            if not self._runs and all(chosen):
                self._runs, self._again = True, False
                self._cancelled.clear()
                self.cancel_button.disabled = False
                self._thread = Thread(target=self._run_until_current, args=chosen)
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
        """Run, and run again as long as something has changed meanwhile.

        A kernel that ends waits for this thread, which is not a daemon, and only then ends what sends its
        messages: without the collector of pyzmq the rest of a large message is lost, and the next one becomes
        a part of it.
        """
        while True:
            try:
                if scenario is not None and strategies:
                    self._run(scenario, strategies)
            finally:  # also if code of an author ends the thread
                with self._lock:
                    ends, self._again = not self._again, False
                    if ends:
                        self._runs = False
                        self.progress.value, self.cancel_button.disabled = 0, True
                    else:
                        self._cancelled.clear()
            if ends:
                return
            scenario, strategies = self._scenario(), self._chosen()

    def _run(self, scenario: Scenario, strategies: Sequence[Strategy]) -> None:
        report = partial(self._report, scenario, strategies, monotonic())
        try:
            traces, errors = run_each(scenario, strategies, self._registry, report, limit_s=self._limit_s)
            if traces:
                figures = figures_of(traces, self._registry)
                at_ms = min(self.view.at, scenario.duration_ms) if self.view.traces else None
                self.view.show(traces, figures=figures, errors=errors, at_ms=at_ms)
                self._owners = None
                self._show_differences()
            else:
                self.view.errors = errors
            self.status.value = f"{len(traces)} of {len(strategies)} strategies ran" if errors else ""
        except _CancelledError:
            if not self._again:
                self.status.value = "cancelled; this is the result before" if self.traces else "cancelled"
        except Exception as error:
            self.status.value = alert(f"{type(error).__name__}: {error}")

    def _report(
        self, scenario: Scenario, strategies: Sequence[Strategy], began: float, number: int, at_ms: int
    ) -> None:
        if self._cancelled.is_set() or not main_thread().is_alive():
            raise _CancelledError
        if monotonic() - self._reported < REPORT_SECONDS:
            return
        self._reported = monotonic()
        part, names = at_ms / scenario.duration_ms, [strategy.name for strategy in strategies]
        self.status.value = escape(progress_text(names, number, part, monotonic() - began))
        self.progress.value = round(100 * (number + part) / len(strategies))

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

    def _named(self, strategy: Any) -> str:
        """Return the name of a strategy. One that cannot be found again by its name is kept."""
        if isinstance(strategy, str):
            return strategy
        name: str = getattr(strategy, "__name__", "")
        if name and strategy.__module__ == PROGRAM and of_program(name) is not None:
            return name
        known = self._registry.strategy(strategy)
        if not isinstance(strategy, Strategy) and known.factory is None:
            return known.name
        self._given[known.name] = known
        return known.name

    def _chosen(self) -> list[Strategy]:
        """Return the strategies, or none if one of them is invalid."""
        names = list(dict.fromkeys(filter(None, map(str.strip, self.strategies.value.splitlines()))))
        try:
            strategies = [self._given.get(name) or self._registry.strategy(name) for name in names]
        except RebalanceLabError as error:
            self.strategies_error.value = alert(error)
            return []
        self.strategies_error.value = "" if names else alert("no strategy, expected one a line")
        return strategies

    # --- editing

    def _set(
        self, part: Callable[[Mapping[str, Any]], dict[str, Any]], field: str, default: Any, change: Any
    ) -> None:
        """Let a control set a field of the first topic or member. The document may be invalid otherwise."""
        document = None if self._following else document_in(self.document.value)
        described = {} if document is None else part(document)
        if document is not None and described and described.get(field, default) != change.new:
            described[field] = change.new
            self.document.value = as_text(document)

    def _follow_document(self) -> bool:
        """Set the controls to the values of the document. Return whether it is valid."""
        self._versions.add(self.document.value)
        self.undo_button.disabled = not self._versions.can_undo
        self.redo_button.disabled = not self._versions.can_redo
        document, scenario = document_in(self.document.value), self._scenario()
        if document is not None:
            self._list_events(events_in(document))
        if document is None or scenario is None:
            return False
        topic, member = first_topic(document), first_member(document)
        listed = any(key in topic for key in _LISTED_RATES)
        owned = any("owned" in each for each in document["members"])
        counted = listed or owned or "racks" in topic or isinstance(topic.get("backlog"), list)
        joining = [m for event in scenario.events if event.kind == "join" for m in event.arguments.members]
        self._following = True
        try:
            self.members.disabled = not member or "owned" in member
            self.members.value = member.get("count", 1)
            self.partitions.value, self.partitions.disabled = topic["partitions"], counted
            self.rate.value, self.rate.disabled = topic.get("rate", 0), listed
            self.target.options = list(dict.fromkeys(m.id for m in (*scenario.members, *joining)))
        finally:
            self._following = False
        return True

    def _step(self, by: int) -> None:
        self.document.value = self._versions.step(by)

    def _list_events(self, events: Sequence[ListedEvent]) -> None:
        """List the events of the document, each with a button that removes it."""
        if events == self._listed:
            return
        self._listed = events
        rows: list[widgets.Widget] = []
        for event in events[:MOST_EVENTS]:
            button = widgets.Button(icon="trash", tooltip=f"remove the event at {event.at}", layout=_ICON)
            button.on_click(partial(self._remove_event, event.number))
            text = widgets.HTML(f"<b>{escape(event.at)}</b> {escape(event.text)}")
            rows.append(widgets.HBox([button, text]))
        if len(events) > MOST_EVENTS:
            rows.append(widgets.HTML(f"and {len(events) - MOST_EVENTS:,} more in the scenario"))
        self.events.children = rows

    def _remove_event(self, number: int, _button: Any) -> None:
        document = document_in(self.document.value)
        if document is not None:
            self.document.value = as_text(without_event(document, number))

    def _add_strategy(self) -> None:
        if self.assignor.value in self._registry.assignors():
            self.strategies.value = f"{self.strategies.value.rstrip()}\n{self.assignor.value}".lstrip()
            self.assignor.value = ""

    def _follow_cursor(self, _change: Any) -> None:
        self.add_event.description = f"add at {format_duration(self.view.at)}"
        self._show_differences()

    def _show_differences(self) -> None:
        """Show the partitions whose owners differ at the cursor, if the table is open."""
        if self.differences.selected_index is None:
            return
        if self._owners is None:
            self._owners = [Owners(trace, self._registry) for trace in self.traces]
        (table,) = self.differences.children
        if len(self._owners) < 2:
            table.value = "<p>Run two strategies to see where their owners differ.</p>"
            return
        found = differences_of(self._owners, self.view.at).as_html()
        table.value = f'<div class="jp-RenderedHTMLCommon" style="overflow-x: auto">{found}</div>'

    def _add_event(self) -> None:
        document = document_in(self.document.value)
        if document is None or self._scenario() is None:
            return
        try:
            event = new_event(document, self.kind.value, self.target.value.strip(), self.target.options)
            text = as_text(with_event(document, self.view.at, event))
            self._parsed(text)
        except RebalanceLabError as error:
            self.event_error.value = alert(error)
            return
        self.event_error.value = ""
        self.document.value = text

    def _save(self) -> None:
        try:
            write_whole(Path(self.path.value), self.document.value.encode())
            self.saved.value = f"saved as {escape(self.path.value)}"
        except InputError as error:
            self.saved.value = alert(error)

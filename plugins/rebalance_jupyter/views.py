"""The widget: one trace, or several on the same axis and in step."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from coordinator_core.documents.files import load_scenario, load_scenario_text
from coordinator_core.documents.scenario import Scenario
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from coordinator_core.reports.comparison import Comparison
from coordinator_core.reports.tables import as_text
from coordinator_core.scoring.measuring import measure
from coordinator_core.simulation.run import simulate
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.display import picture
from rebalance_jupyter.page import MODULE, STYLE, as_page
from rebalance_jupyter.view_model import ViewModel, view_model


class RebalanceView(anywidget.AnyWidget):
    """Drawn traces. ``at`` (ms) and ``round`` (of the first trace) follow the cursor when it rests.

    ``at`` can be set.

    ``selected`` is the name of the partition that was clicked last. Keys: space plays, left and right step by
    round, up and down choose a partition, Home and End.
    """

    _esm = MODULE
    _css = STYLE
    views = traitlets.List(traitlets.Dict()).tag(sync=True)
    figures = traitlets.Dict().tag(sync=True)
    errors = traitlets.List(traitlets.Unicode()).tag(sync=True)
    at = traitlets.Int(0).tag(sync=True)
    round = traitlets.Int(-1).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)

    def __init__(
        self,
        traces: Sequence[Trace] = (),
        *,
        figures: Mapping[str, Any] | None = None,
        errors: Sequence[str] = (),
        **traits: Any,
    ) -> None:
        super().__init__(**traits)
        self._traces: tuple[Trace, ...] = ()
        self.show(traces, figures=figures, errors=errors)

    @property
    def traces(self) -> tuple[Trace, ...]:
        """What is drawn."""
        return self._traces

    def show(
        self,
        traces: Sequence[Trace],
        *,
        figures: Mapping[str, Any] | None = None,
        errors: Sequence[str] = (),
    ) -> None:
        """Draw other traces in the same place."""
        models = [view_model(trace) for trace in traces]
        self._traces = tuple(traces)
        with self.hold_sync():
            self.figures, self.errors = dict(figures or {}), list(errors)
            self.at, self.round, self.selected = 0, -1, ""
            self.views = [{"document": model.document, "spans": model.spans} for model in models]

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The widget, and for whoever reads the notebook without a kernel the picture."""
        return with_pictures(super()._repr_mimebundle_(**kwargs), self._traces, self.errors)

    def to_html(self) -> str:
        """The same view as a page that needs no kernel and no network."""
        return as_page([_model_of(view) for view in self.views], self.figures, self.errors)


def with_pictures(bundle: Any, traces: Sequence[Trace], errors: Sequence[str] = ()) -> Any:
    """A widget's bundle with what to show where no widget runs."""
    data = dict(bundle[0] if isinstance(bundle, tuple) else bundle or {})
    lines = [*(f"{t.scenario} under {t.strategy}" for t in traces), *errors]
    shown = [*map(picture, traces), *(f"<p>{escape(error)}</p>" for error in errors)]
    data["text/html"] = "\n".join(shown) or "<p>nothing to show</p>"
    data["text/plain"] = "\n".join(lines) or "nothing to show"
    return (data, *bundle[1:]) if isinstance(bundle, tuple) else data


def show(trace: Trace) -> RebalanceView:
    """One trace, to play, scrub and step through."""
    return RebalanceView([trace])


def compare_view(
    traces: Sequence[Trace], *, errors: Sequence[str] = (), registry: Registry | None = None
) -> RebalanceView:
    """Several traces of a scenario one above another on one axis, with their metrics.

    Beside each figure stands its difference to the best. ``errors`` are shown below.
    """
    return RebalanceView(traces, figures=figures_of(traces, registry or default_registry()), errors=errors)


def run(
    scenario: Scenario | str | Path, strategy: str | Strategy, *, registry: Registry | None = None
) -> Trace:
    """The trace of a scenario (parsed, a path, or text in YAML) under a strategy.

    Raises InputError, AssignmentError or PluginError.
    """
    registry = registry or default_registry()
    return simulate(opened(scenario, registry), strategy, registry)


def run_each(
    scenario: Scenario,
    strategies: Sequence[Strategy],
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Trace], list[str]]:
    """The traces of the strategies that ran, and what became of the others, each named.

    ``progress`` is told the number of the strategy that runs, and the virtual time it has reached.
    """
    traces: list[Trace] = []
    errors: list[str] = []
    for number, strategy in enumerate(strategies):
        reached = partial(progress, number) if progress is not None else None
        try:
            traces.append(simulate(scenario, strategy, registry, progress=reached))
        except RebalanceLabError as problem:
            errors.append(f"{strategy.name}: {problem}")
    return traces, errors


def opened(scenario: Scenario | str | Path, registry: Registry) -> Scenario:
    """A scenario from what stands for one: text with a line break is a document, other text a path."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str) and "\n" in scenario:
        return load_scenario_text(scenario, "scenario", base_dir=Path(), registry=registry)
    return load_scenario(scenario, registry=registry)


def to_html(view: RebalanceView | Trace) -> str:
    """A page that needs no kernel and no network."""
    return (show(view) if isinstance(view, Trace) else view).to_html()


def figures_of(traces: Sequence[Trace], registry: Registry) -> dict[str, Any]:
    """The metrics of traces as cells: text, whether it is the best, and the difference to the best."""
    names = _different([trace.strategy for trace in traces])
    measured = {name: measure(trace, registry) for name, trace in zip(names, traces, strict=True)}
    scenario, seed = (traces[0].scenario, traces[0].started.seed) if traces else ("", 0)
    comparison = Comparison(scenario, seed, list(registry.metrics().values()), measured)
    rows = []
    for metric in comparison.shown:
        best = comparison.best(metric)
        values = [measured[name][metric.name] for name in names]
        rows.append({"name": metric.name, "cells": [_cell(value, best) for value in values]})
    return {"strategies": names, "metrics": rows}


def _cell(value: float, best: float | None) -> dict[str, Any]:
    if best is None or value != value:
        return {"text": as_text(value), "best": False, "difference": ""}
    away = 0.0 if value == best else value - best
    sign = "+" if away > 0 else "−"
    return {
        "text": as_text(value),
        "best": not away,
        "difference": f"{sign}{as_text(abs(away))}" if away else "",
    }


def _different(names: Sequence[str]) -> list[str]:
    """Names, numbered where one comes again."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]


def _model_of(view: Mapping[str, Any]) -> ViewModel:
    return ViewModel(view["document"], bytes(view["spans"]))

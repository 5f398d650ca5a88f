"""The widget: one trace, or several on the same axis and in step."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from coordinator_core.documents.files import load_scenario, load_scenario_text
from coordinator_core.documents.scenario import Scenario
from coordinator_core.errors import RebalanceLabError
from coordinator_core.registry.hookspecs import Strategy
from coordinator_core.registry.registry import Registry, default_registry
from coordinator_core.reports.comparison import comparison_of
from coordinator_core.reports.tables import as_text
from coordinator_core.scoring.measuring import measure
from coordinator_core.simulation.run import simulate
from coordinator_core.traces.trace import Trace
from rebalance_jupyter.display import alert, image
from rebalance_jupyter.page import MODULE, STYLE, as_page
from rebalance_jupyter.view_model import ViewModel, view_model


class RebalanceView(anywidget.AnyWidget):
    """A view of traces. ``at`` (ms) and ``round`` (of the first trace) follow the cursor when it rests.

    ``at`` can be set. ``selected`` is the name of the partition that was clicked last. Keys: space plays,
    left and right step by round, up and down choose a partition, Home and End move to the ends.
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
        """The traces that are shown."""
        return self._traces

    def show(
        self,
        traces: Sequence[Trace],
        *,
        figures: Mapping[str, Any] | None = None,
        errors: Sequence[str] = (),
        at_ms: int = 0,
    ) -> None:
        """Show other traces in the same place, with the cursor at a time."""
        models = [view_model(trace) for trace in traces]
        self._traces = tuple(traces)
        with self.hold_sync():
            self.figures, self.errors = dict(figures or {}), list(errors)
            self.at, self.round, self.selected = at_ms, -1, ""
            self.views = [{"document": model.document, "spans": model.spans} for model in models]

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the widget, and the picture for a notebook without a kernel."""
        return with_pictures(super()._repr_mimebundle_(**kwargs), self)

    @property
    def faults(self) -> list[str]:
        """The findings of each trace, with its strategy, and then the errors."""
        documents = [view["document"] for view in self.views]
        return [*(f"{d['strategy']}: {text}" for d in documents for text in d["findings"]), *self.errors]

    def to_html(self) -> str:
        """Return the view as a page that needs no kernel and no network."""
        return as_page([_model_of(view) for view in self.views], self.figures, self.errors)


def with_pictures(bundle: Any, view: RebalanceView) -> Any:
    """Return the bundle of a widget with pictures of a view for places without widgets."""
    data = dict(bundle[0] if isinstance(bundle, tuple) else bundle or {})
    lines = [*(f"{t.scenario} under {t.strategy}" for t in view.traces), *view.faults]
    shown = [*map(image, view.traces), *(f"<p>{alert(fault)}</p>" for fault in view.faults)]
    data["text/html"] = "\n".join(shown) or "<p>nothing to show</p>"
    data["text/plain"] = "\n".join(lines) or "nothing to show"
    return (data, *bundle[1:]) if isinstance(bundle, tuple) else data


def show(trace: Trace) -> RebalanceView:
    """Show one trace, to play, scrub and step through."""
    return RebalanceView([trace])


def compare_view(
    traces: Sequence[Trace], *, errors: Sequence[str] = (), registry: Registry | None = None
) -> RebalanceView:
    """Show several traces of a scenario one above another on one axis, with their metrics.

    Each figure has its difference to the best figure. ``errors`` are shown below.
    """
    return RebalanceView(traces, figures=figures_of(traces, registry or default_registry()), errors=errors)


def run(
    scenario: Scenario | str | Path, strategy: str | Strategy, *, registry: Registry | None = None
) -> Trace:
    """Run a strategy on a scenario: a parsed one, a path, or text in YAML.

    Raises:
        InputError: if the scenario or the strategy is invalid.
        AssignmentError: if the assignor fails.
        PluginError: if other code of a plugin fails.
    """
    registry = registry or default_registry()
    return simulate(opened(scenario, registry), strategy, registry)


def run_each(
    scenario: Scenario,
    strategies: Sequence[Strategy],
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Trace], list[str]]:
    """Run strategies. Return the traces of those that succeeded and the errors of the others.

    ``progress`` receives the number of the running strategy and the virtual time that it has reached.
    """
    traces: list[Trace] = []
    errors: list[str] = []
    for number, strategy in enumerate(strategies):
        reached = partial(progress, number) if progress is not None else None
        try:
            traces.append(simulate(scenario, strategy, registry, progress=reached))
        except RebalanceLabError as error:
            errors.append(f"{strategy.name}: {error}")
    return traces, errors


def opened(scenario: Scenario | str | Path, registry: Registry) -> Scenario:
    """Return a scenario. Text with a line break is a document, other text is a path."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str) and "\n" in scenario:
        return load_scenario_text(scenario, "scenario", base_dir=Path(), registry=registry)
    return load_scenario(scenario, registry=registry)


def to_html(view: RebalanceView | Trace) -> str:
    """Return a page that needs no kernel and no network."""
    return (show(view) if isinstance(view, Trace) else view).to_html()


def figures_of(traces: Sequence[Trace], registry: Registry) -> dict[str, Any]:
    """Return the metrics of traces as cells with the text and the difference to the best."""
    names = _different([trace.strategy for trace in traces])
    measured = {name: measure(trace, registry) for name, trace in zip(names, traces, strict=True)}
    scenario, seed = (traces[0].scenario, traces[0].started.seed) if traces else ("", 0)
    comparison = comparison_of(scenario, seed, list(registry.metrics().values()), measured)
    rows = []
    for metric in comparison.shown:
        best = comparison.best(metric)
        values = [measured[name][metric.name] for name in names]
        least = min(
            (values[i] for i in best), key=lambda v: v if metric.better == "lower" else -v, default=nan
        )
        cells = [_cell(value, least, i in best) for i, value in enumerate(values)]
        rows.append({"name": metric.name, "cells": cells})
    return {"strategies": names, "metrics": rows}


def _cell(value: float, best_value: float, is_best: bool) -> dict[str, Any]:
    away = value - best_value
    known = not is_best and not isnan(away)
    sign = "+" if away > 0 else "−"
    return {
        "text": as_text(value),
        "best": is_best,
        "difference": f"{sign}{as_text(abs(away))}" if known else "",
    }


def _different(names: Sequence[str]) -> list[str]:
    """Return the names, with numbers if a name occurs more than once."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]


def _model_of(view: Mapping[str, Any]) -> ViewModel:
    return ViewModel(view["document"], bytes(view["spans"]))

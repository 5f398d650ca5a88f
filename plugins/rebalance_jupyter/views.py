"""The widget: one trace, or several on the same axis and in step."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from coordinator_core.errors import InputError
from coordinator_core.reading.checks import describe
from coordinator_core.registry.registry import Registry, default_registry
from rebalance_jupyter.display import SEAM, picture, pictured, words
from rebalance_jupyter.figures import figures_of
from rebalance_jupyter.page import STYLE, as_page, packed_module
from rebalance_jupyter.png import png_of
from rebalance_jupyter.progress import shown_progress
from rebalance_jupyter.running import LIMIT_S, run_one
from rebalance_jupyter.view_model import opening_ms, view_model
from rebalance_lab.cli.advise import DEFAULT_STRATEGY, advice_on
from rebalance_lab.cli.files import write_whole
from rebalance_lab.scenarios.files import load_scenario, load_scenario_text
from rebalance_lab.scenarios.scenario import Scenario
from rebalance_lab.traces.history import Mark
from rebalance_lab.traces.trace import Trace
from rebalance_lab.verdicts.looks import looks_of, members_of
from rebalance_lab.verdicts.of_traces import by_candidate
from rebalance_lab.verdicts.screen import Screen

_WHOLE = 1_000
"""The steps of the progress of several runs."""


class RebalanceView(anywidget.AnyWidget):
    """A view of traces. ``at`` (ms) and ``round`` (of the first trace) follow the cursor when it rests.

    ``zoom`` is the stretch of time that is shown, ``[from_ms, to_ms]``, or empty until the view is shown.
    ``selected`` is the name of the selected partition, or "". ``at``, ``zoom``, ``selected`` and ``notes``, a
    list of ``[at_ms, text]``, can be set. The button "?" lists the keys.
    """

    _esm = packed_module()
    _css = STYLE
    views = traitlets.List(traitlets.Dict()).tag(sync=True)
    figures = traitlets.Dict().tag(sync=True)
    errors = traitlets.List(traitlets.Unicode()).tag(sync=True)
    at = traitlets.Int(0).tag(sync=True)
    round = traitlets.Int(-1).tag(sync=True)
    selected = traitlets.Unicode("").tag(sync=True)
    zoom: traitlets.List[float] = traitlets.List().tag(sync=True)
    notes: traitlets.List[list[Any]] = traitlets.List().tag(sync=True)
    own_id = traitlets.Unicode().tag(sync=True)

    def __init__(
        self,
        traces: Sequence[Trace] = (),
        *,
        figures: Mapping[str, Any] | None = None,
        errors: Sequence[str] = (),
        runs: Sequence[Trace] = (),
        **traits: Any,
    ) -> None:
        self._pictures: list[DisplayHandle] = []
        self._traces: tuple[Trace, ...] = ()
        own_id = uuid4().hex
        super().__init__(model_id=own_id, own_id=own_id, **traits)
        at_ms = traits.get("at")
        self._runs: Sequence[Trace] = ()
        self.show(traces, figures=figures, errors=errors, runs=runs, at_ms=at_ms)

    @traitlets.validate("notes")
    def _check_notes(self, proposal: Any) -> list[list[Any]]:
        """Return notes as lists.

        Raises:
            InputError: if a note is not a time in milliseconds and a text.
        """
        found = []
        for number, note in enumerate(proposal["value"]):
            match note:
                case [int() as at_ms, str() as text] if at_ms >= 0:
                    found.append([at_ms, text])
                case _:
                    raise InputError(f"notes[{number}]", describe(note), "[milliseconds, text]")
        return found

    @traitlets.validate("zoom")
    def _check_zoom(self, proposal: Any) -> list[float]:
        """Return a stretch of time.

        Raises:
            InputError: if it is neither empty nor two times of the traces in order.
        """
        value = proposal["value"]
        longest = max((trace.started.duration_ms for trace in self._traces), default=0)
        match list(value):
            case []:
                return []
            case [int() | float() as from_ms, int() | float() as to_ms] if 0 <= from_ms < to_ms <= longest:
                return [from_ms, to_ms]
        raise InputError("zoom", describe(value), f"[from, to] in milliseconds, from 0 to {longest}, or []")

    @traitlets.validate("selected")
    def _check_selected(self, proposal: Any) -> str:
        """Return the name of a partition, or "".

        Raises:
            InputError: if no trace has it.
        """
        name: str = proposal["value"]
        topics = [topic for view in self.views for topic in view["document"]["topics"]]
        if not name or any(name == f"{t['name']}-{n}" for t in topics for n in range(t["partitions"])):
            return name
        known = ", ".join(f"{t['name']}-0 to {t['name']}-{t['partitions'] - 1}" for t in topics)
        raise InputError("selected", repr(name), f"a partition: {known or 'there are none'}; or ''")

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
        runs: Sequence[Trace] = (),
        at_ms: int | None = None,
    ) -> None:
        """Show other traces in the same place.

        ``runs`` are those of all seeds, if ``figures`` are medians of more runs than ``traces``. ``at_ms`` is
        the time of the cursor, by default that of the first round after the group has started.
        """
        looks = looks_of(members_of(traces))
        models = [view_model(trace, looks) for trace in traces]
        documents = [model.document for model in models]
        at_ms = opening_ms(documents) if at_ms is None else at_ms
        self._traces, self._runs = tuple(traces), runs or traces
        with self.hold_sync():
            self.figures, self.errors = dict(figures or {}), list(errors)
            self.at, self.round, self.selected, self.zoom = at_ms, _round_at(documents, at_ms), "", []
            self.views = [{"document": model.document, "spans": model.spans} for model in models]
        self._draw_again()

    @traitlets.observe("notes")
    def _draw_again(self, _change: Any = None) -> None:
        """Draw the displayed pictures again."""
        for shown in self._pictures:
            shown.update(self.pictured(), raw=True)

    @property
    def _flags(self) -> list[Mark]:
        return [Mark(at_ms, text) for at_ms, text in self.notes]

    def _ipython_display_(self) -> None:
        """Display the widget, and below it the picture for places without widgets."""
        self.display(super()._repr_mimebundle_())

    def display(self, bundle: Any) -> None:
        """Display a widget that contains this view, and a picture that follows the view.

        The picture is hidden while the widget runs.
        """
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle or {})
        display({**data, "text/plain": ""}, raw=True)
        display({"text/html": SEAM, "text/plain": ""}, raw=True)
        shown = display(self.pictured(), raw=True, display_id=True)
        if shown is not None:
            self._pictures.append(shown)

    def pictured(self) -> dict[str, Any]:
        """Return the picture of the traces by MIME type, and words with the findings."""
        told = [*map(words, self.traces), *self.faults] or ["nothing to show"]
        return {**pictured(self._runs, self.errors, self._flags), "text/plain": "\n\n".join(told)}

    def to_svg(self, path: str | Path | None = None) -> str:
        """Return the picture of the traces as SVG, and write it to a file if a path is given.

        Raises:
            InputError: if the file cannot be written.
        """
        svg = picture(self._runs, self.errors, self._flags)
        if path is not None:
            write_whole(Path(path), svg.encode())
        return svg

    def to_png(self, path: str | Path | None = None, *, scale: float = 2) -> bytes:
        """Return the picture of the traces as PNG, and write it to a file if a path is given.

        It is 860 pixels wide, times ``scale``.

        Raises:
            InputError: if the package resvg-py is not installed, if there is no font, or if the file cannot
                be written.
        """
        png = png_of(picture(self._runs, self.errors, self._flags), scale=scale)
        if path is not None:
            write_whole(Path(path), png)
        return png

    @property
    def faults(self) -> list[str]:
        """The findings of each trace, with its strategy, and then the errors."""
        documents = [view["document"] for view in self.views]
        return [*(f"{d['strategy']}: {text}" for d in documents for text in d["findings"]), *self.errors]

    def to_html(self) -> str:
        """Return the view as a page that needs no kernel and no network."""
        picture = self.to_svg()
        return as_page(
            self.views, self.figures, self.errors, notes=self.notes, picture=picture, at_ms=self.at
        )


def show(trace: Trace) -> RebalanceView:
    """Show one trace, to play, scrub and step through."""
    return RebalanceView([trace])


def compare_view(
    traces: Sequence[Trace], *, errors: Sequence[str] = (), registry: Registry | None = None
) -> RebalanceView:
    """Show several traces of a scenario on one axis, below an answer and their metrics.

    Of traces that differ only in the seed the first is drawn; the figures are medians of all of them, with
    their spreads. ``errors`` are shown at the top.
    """
    figures = figures_of(traces, registry or default_registry())
    drawn = [runs[0] for runs in by_candidate(traces).values()]
    return RebalanceView(drawn, figures=figures, errors=errors, runs=traces)


def run(
    scenario: Scenario | str | Path,
    strategy: Any,
    *,
    seed: int | None = None,
    limit_s: float | None = LIMIT_S,
    registry: Registry | None = None,
) -> Trace:
    """Run a strategy on a scenario: a parsed one, a path, or text in YAML. ``seed`` replaces its seed.

    ``strategy`` is a text, a `Strategy`, or an assignor: a class, a function of (cluster, group), an object.
    Code of authors, such as a class of a cell, runs in a process, which is ended if its virtual time stands
    still for ``limit_s`` seconds (None: never). A run that takes longer than a second shows its progress.

    Raises:
        InputError: if the scenario, the strategy or the seed is invalid.
        AssignmentError: if the assignor fails, or if the run stands still.
        PluginError: if other code of a plugin fails.
    """
    registry = registry or default_registry()
    known, chosen = opened(scenario, registry), registry.strategy(strategy)
    if seed is not None and (not isinstance(seed, int) or seed < 0):
        raise InputError("seed", repr(seed), "an integer, 0 or greater")
    if seed is not None:
        known = replace(known, seed=seed)
    with shown_progress([chosen.name], known.duration_ms) as move:
        return run_one(known, chosen, registry, partial(move, 0), limit_s=limit_s)


def advise(
    scenario: Scenario | str | Path, strategy: str = DEFAULT_STRATEGY, *, seeds: int | None = None
) -> Screen:
    """Try changes to the strategy of a group on a scenario: a parsed one, a path, or text in YAML.

    ``strategy`` is the one that the group uses now. Without ``seeds`` there are up to ten, the fewer the
    longer the runs are. Processes take part if there is much to do.

    Raises:
        InputError: if the scenario or the strategy is invalid.
        RunError: if a run of the strategy itself fails.
    """
    known = opened(scenario, default_registry())
    with shown_progress([f"changes to {strategy}"], _WHOLE) as move:
        return advice_on(known, strategy, seeds=seeds, progress=lambda part: move(0, round(part * _WHOLE)))


def opened(scenario: Scenario | str | Path, registry: Registry) -> Scenario:
    """Return a scenario. Text with a line break is a document, other text is a path."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str) and "\n" in scenario:
        return load_scenario_text(scenario, "scenario", base_dir=Path(), registry=registry)
    return load_scenario(scenario, registry=registry)


def _round_at(documents: Sequence[Mapping[str, Any]], at_ms: int) -> int:
    """Return the number of the last round of the first document that has begun at a time, or -1."""
    began: list[int] = [entry["began"] for document in documents[:1] for entry in document["rounds"]]
    return sum(each <= at_ms for each in began) - 1

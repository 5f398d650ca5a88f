"""The metrics of a trace, built in and of plugins."""

from math import isnan

import pytest

from coordinator_core.errors import PluginError
from coordinator_core.families import classic
from coordinator_core.registry.hookspecs import MetricSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.verdicts import metrics as builtin_metrics
from rebalance_lab.verdicts.measuring import measure
from tests.places import placeless
from tests.rebalance_lab.traces.traces import trace_of


def registry_with(*specs):
    class Plugin:
        @hookimpl
        def metrics(self):
            return specs

    registry = Registry()
    registry.register(classic, name="classic", distribution="rebalance-lab")
    registry.register(builtin_metrics, name="metrics", distribution="rebalance-lab")
    registry.register(Plugin(), name="mine", distribution="my-metrics")
    return registry


def test_metrics_of_plugins_are_measured_with_the_built_in_ones():
    topics = MetricSpec("topics", "", lambda history: len(history.topics))
    figures = measure(trace_of(topics={"t": 1, "u": 2}), registry_with(topics))
    assert next(iter(figures)) == "stopped_partition_seconds"
    assert figures["topics"] == 2.0
    assert isinstance(figures["topics"], float)


def test_only_the_chosen_metrics_are_computed(monkeypatch):
    monkeypatch.setattr("rebalance_lab.traces.history.StoppedTime", None)
    broken = MetricSpec("broken", "", lambda history: 1 / 0)
    names = ("rounds", "imbalance")
    figures = measure(trace_of(topics={"t": 1}), registry_with(broken), only=names)
    assert sorted(figures) == sorted(names)


def test_a_metric_that_raises_is_named_with_its_plugin():
    broken = MetricSpec("broken", "", lambda history: 1 / 0)
    with pytest.raises(PluginError) as caught:
        measure(trace_of(topics={"t": 1}), registry_with(broken))
    assert (
        placeless(str(caught.value)) == "plugin 'mine', metric 'broken': ZeroDivisionError: division by zero"
    )


def test_with_a_mapping_for_failures_a_metric_that_raises_is_a_missing_figure():
    broken = MetricSpec("broken", "", lambda history: 1 / 0)
    failed = {}
    figures = measure(trace_of(topics={"t": 1}), registry_with(broken), failed=failed)
    assert isnan(figures["broken"])
    assert figures["rounds"] == 0
    assert {name: error.hook for name, error in failed.items()} == {"broken": "metric 'broken'"}


def test_a_metric_that_is_no_number_is_named_with_its_plugin():
    broken = MetricSpec("broken", "", lambda history: None)
    with pytest.raises(PluginError, match="plugin 'mine', metric 'broken': TypeError"):
        measure(trace_of(topics={"t": 1}), registry_with(broken))


def test_every_built_in_metric_can_be_measured_on_a_run_in_which_nothing_happened():
    figures = measure(trace_of(topics={"t": 1}), registry_with())
    assert figures["rounds"] == 0


def test_a_planned_run_has_only_the_metrics_that_are_planned():
    planned = MetricSpec("planned", "", lambda history: 1.0, planned=True)
    unplanned = MetricSpec("unplanned", "", lambda history: 1 / 0)
    registry = registry_with(planned, unplanned)
    figures = measure(trace_of(topics={"t": 1}), registry, planned=True)
    assert list(figures) == [name for name, spec in registry.metrics().items() if spec.planned]
    assert {"rounds", "moved_partitions", "imbalance", "planned"} <= set(figures)
    assert not {"unplanned", "messages", "max_lag", "time_to_stable_seconds"} & set(figures)

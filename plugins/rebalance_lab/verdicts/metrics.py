"""The built-in metrics, in the order in which they are shown.

An entry point of the plugin group ``rebalance_lab``. A metric is a function of a `History`. It returns NaN if
the run has no such figure, for example without a change or without a subscription.
"""

from collections.abc import Iterable

from coordinator_core.registry.hookspecs import METRIC_GROUPS, MetricSpec, hookimpl
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts import balance, lag, scaling, stops  # noqa: F401 - they define metrics
from rebalance_lab.verdicts.measuring import DEFINED, metric


@hookimpl
def metrics() -> Iterable[MetricSpec]:
    """Return the metrics of this package."""
    return sorted(DEFINED, key=lambda each: METRIC_GROUPS.index(each.group))


@metric("cost", "rounds", headline=True, planned=True)
def rounds(history: History) -> float:
    """The number of rebalances that were completed: the times at which the group came to rest."""
    return history.rounds


@metric("cost", "requests")
def messages(history: History) -> float:
    """The number of requests that all consumers sent to brokers and other servers in the whole run."""
    return sum(history.ended.messages.values())

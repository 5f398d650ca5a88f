"""Values of rows and options. Every command imports this module, so that it imports nothing large."""

from enum import StrEnum

DEFAULT_TIMEOUT = 120.0
"""The longest time for one scenario under one strategy, in seconds."""

CHANCE = 5.0
"""The greatest expected share of the switches that are due to chance, in percent."""


MARGIN = 5.0
"""By how much a strategy may be worse in the rest of the metrics that decide, in percent: a stay for the sake
of less is not worth it."""


class Status(StrEnum):
    """The outcome of a scenario under a strategy."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"


class Fidelity(StrEnum):
    """The depth of scoring: all messages of the protocol, or the assignments only."""

    PROTOCOL = "protocol"
    PLAN = "plan"


class Statistic(StrEnum):
    """A statistic of the distribution of a metric."""

    mean = "mean"
    p50 = "p50"
    p95 = "p95"
    p99 = "p99"
    worst = "worst"

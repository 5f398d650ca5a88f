"""What a row or a command can say in a few words. Imports nothing heavy: every command line reads it."""

from enum import StrEnum

DEFAULT_TIMEOUT = 120.0
"""Seconds for a scenario under a strategy."""


class Status(StrEnum):
    """What became of a scenario under a strategy."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"


class Fidelity(StrEnum):
    """How it was scored: every message of the protocol, or the assignments alone."""

    PROTOCOL = "protocol"
    PLAN = "plan"


class Statistic(StrEnum):
    """What of a metric's distribution."""

    mean = "mean"
    p50 = "p50"
    p95 = "p95"
    p99 = "p99"
    worst = "worst"

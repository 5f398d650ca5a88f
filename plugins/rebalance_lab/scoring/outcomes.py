"""Values of rows and options. Every command imports this module, so that it imports nothing large."""

from enum import StrEnum

DEFAULT_TIMEOUT = 120.0
"""The longest time for one scenario under one strategy, in seconds."""


class Status(StrEnum):
    """The outcome of a scenario under a strategy."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"


class Fidelity(StrEnum):
    """The depth of scoring: all messages of the protocol, or the assignments only."""

    PROTOCOL = "protocol"
    PLAN = "plan"

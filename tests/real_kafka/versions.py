"""The versions of other projects that the tests run beside this one. They are written here only."""

import os

NEWEST = "4.4.0"
OLDEST = "4.0.0"
"""Of Kafka: the newest, and one of the oldest line that is supported."""

OLDER = (OLDEST, "4.1.0", "4.2.0", "4.3.0")
"""One of each line before the newest that `serve` can be."""

LOG4J = "2.25.5"
FRANZ_GO = "v1.22.3"
KFAKE = "v0.0.0-20260918054303-01f206a7e32c"

WHICH = "REBALANCE_LAB_KAFKA"
"""An environment variable: ``newest`` (the default), ``oldest`` or a version such as 4.2.0."""


def chosen() -> str:
    """Return the version of Kafka that the tests run."""
    named = os.environ.get(WHICH, "newest")
    return {"newest": NEWEST, "oldest": OLDEST}.get(named, named)


def line() -> str:
    """Return the line of that version, such as 4.4."""
    return ".".join(chosen().split(".")[:2])

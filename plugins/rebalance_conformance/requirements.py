"""The optional dependency of the suite."""

from importlib.util import find_spec

from coordinator_core.errors import InputError


def require_hypothesis() -> None:
    """Check that Hypothesis, which draws the groups, is installed.

    Raises:
        InputError: if it is not. The message says how to install it.
    """
    if find_spec("hypothesis") is None:
        raise InputError(
            "check", "no module hypothesis", 'it installed: pip install "rebalance-lab[conformance]"'
        )

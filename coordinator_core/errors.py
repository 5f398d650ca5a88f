"""The errors of this program: four kinds with one base class.

Kafka's error codes are data of responses, not exceptions (see `protocol.error_codes`). Every class passes its
arguments to `Exception` in order, so that its errors can be pickled.
"""

from collections.abc import Sequence
from types import FrameType


class RebalanceLabError(Exception):
    """Base class of the errors of rebalance-lab."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the lines of cells that were executed, and the message."""
        from linecache import getline
        from traceback import walk_tb

        calls = [(f.f_code.co_filename, n) for f, n in walk_tb(self.__traceback__) if _is_of_cell(f)]
        lines = [f"line {number}: {getline(file, number).strip()}" for file, number in calls]
        return [*lines, f"{type(self).__name__}: {self}"]


class InputError(RebalanceLabError):
    """An invalid document, argument or setting.

    ``where`` names the file and the path inside it (``deploy.yaml: events[3].leave``).
    """

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(where, found, expected)
        self.where, self.found, self.expected = where, found, expected

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}"


class AssignmentError(RebalanceLabError):
    """An assignor raised an exception, or returned an invalid assignment.

    ``group`` names the group, if it is known.
    """

    def __init__(self, assignor: str, violations: Sequence[str], group: str = "") -> None:
        super().__init__(assignor, tuple(violations), group)
        self.assignor, self.violations, self.group = assignor, tuple(violations), group

    def of(self, group: str) -> "AssignmentError":
        """Return the same error for a group."""
        return AssignmentError(self.assignor, self.violations, group)

    def __str__(self) -> str:
        where = f" on {self.group}" if self.group else ""
        return f"assignor {self.assignor!r}{where}: " + "; ".join(self.violations)


class PluginError(RebalanceLabError):
    """A plugin that cannot be loaded, or an invalid contribution of a plugin."""

    def __init__(self, plugin: str, hook: str, reason: str) -> None:
        super().__init__(plugin, hook, reason)
        self.plugin, self.hook, self.reason = plugin, hook, reason

    def __str__(self) -> str:
        return f"plugin {self.plugin!r}, {self.hook}: {self.reason}"


class ProtocolError(RebalanceLabError):
    """A response or request of a peer that violates the protocol. The coordinator never raises it."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(peer, reason)
        self.peer, self.reason = peer, reason

    def __str__(self) -> str:
        return f"{self.peer}: {self.reason}"


def _is_of_cell(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == "__main__"

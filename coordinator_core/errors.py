"""The errors this program raises: four kinds under one root.

Kafka's own error codes are not here: they are data in replies (see ``protocol.error_codes``).
Every exception passes its arguments to ``Exception`` in order, so that it survives pickling.
"""

from collections.abc import Sequence


class RebalanceLabError(Exception):
    """Root of everything that rebalance-lab raises on purpose."""


class InputError(RebalanceLabError):
    """Something a person wrote is not what the program expects.

    ``where`` names the file and the path inside it (``deploy.yaml: events[3].leave``).
    """

    def __init__(self, where: str, found: str, expected: str) -> None:
        super().__init__(where, found, expected)
        self.where, self.found, self.expected = where, found, expected

    def __str__(self) -> str:
        return f"{self.where}: found {self.found}, expected {self.expected}"


class AssignmentError(RebalanceLabError):
    """An assignor returned something that is not an assignment of its group, or nothing at all.

    ``group`` says which group it was, where that is known.
    """

    def __init__(self, assignor: str, violations: Sequence[str], group: str = "") -> None:
        super().__init__(assignor, tuple(violations), group)
        self.assignor, self.violations, self.group = assignor, tuple(violations), group

    def of(self, group: str) -> "AssignmentError":
        """The same, said of a group."""
        return AssignmentError(self.assignor, self.violations, group)

    def __str__(self) -> str:
        where = f" on {self.group}" if self.group else ""
        return f"assignor {self.assignor!r}{where}: " + "; ".join(self.violations)


class PluginError(RebalanceLabError):
    """A plugin could not be loaded, or contributed something unusable."""

    def __init__(self, plugin: str, hook: str, problem: str) -> None:
        super().__init__(plugin, hook, problem)
        self.plugin, self.hook, self.problem = plugin, hook, problem

    def __str__(self) -> str:
        return f"plugin {self.plugin!r}, {self.hook}: {self.problem}"


class ProtocolError(RebalanceLabError):
    """The peer broke the rules of the protocol (a client's or the wire's view; never the coordinator's)."""

    def __init__(self, peer: str, problem: str) -> None:
        super().__init__(peer, problem)
        self.peer, self.problem = peer, problem

    def __str__(self) -> str:
        return f"{self.peer}: {self.problem}"

"""What the records of both families have alike."""

from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_uncoordinated.events import Notified, Rebalanced
from rebalance_uncoordinated.gathering import EMPTY, GROUP_STATES, REBALANCING, SETTLED
from rebalance_uncoordinated.shared_load import SharedLoad

LONGER = "make the duration of the scenario longer"

UNCOORDINATED = ProtocolSpec(
    "uncoordinated",
    states=GROUP_STATES,
    at_rest=frozenset({SETTLED}),
    round_begins=frozenset({REBALANCING}),
    vacant=frozenset({EMPTY}),
    load=SharedLoad,
    events=(Notified, Rebalanced),
    stops={"application": "members ran callbacks or restored state"},
    meaningless={"assignors": "members do not agree on an assignor"},
)
"""No family by itself: it has no servers and no members."""

"""The servers of families without a coordinator on the clock: expiries, and late answers."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.servers import ServerNodes, Site
from rebalance_uncoordinated.watcher import messages as m
from rebalance_uncoordinated.watcher.ensemble import Ensemble


class Nodes:
    """A registry on a clock, without a network."""

    def __init__(self):
        self.clock, self.events, self.replies = VirtualClock(), [], []
        self.nodes = ServerNodes(
            Ensemble(Site(None, "g", "range", {"t": 2}, range(1), lambda _: None)),
            self.clock,
            self.events.append,
            0,
        )

    def send(self, client, request):
        self.nodes.arrived(
            request, 1, client, lambda response: self.replies.append((self.clock.now_ms, client, response))
        )
        return self.replies[-1][2] if self.replies else None


@pytest.fixture
def world():
    return Nodes()


def test_sessions_expire_on_the_clock(world):
    session = world.send("a", m.SessionRequest(timeout_ms=6_000)).session
    world.send("a", m.CreateRequest(session=session, nodes={f"{m.members_path('g')}/m": "t"}, number=1))
    world.events.clear()
    world.clock.run(5_999)
    assert world.events == []
    world.clock.run(6_000)
    assert world.events == [ev.MemberRemoved(group="g", member_id="m", reason="session expired")]


def late_watch(world):
    """A watch of a consumer whose view is 10 s late, and a change at 1 s."""
    session = world.send("late", m.SessionRequest(timeout_ms=60_000)).session
    other = world.send("a", m.SessionRequest(timeout_ms=60_000)).session
    world.nodes.tell(lambda servers: servers.lag_view("late", 10_000))
    world.send("late", m.WatchRequest(session=session, parent=m.members_path("g"), version=0))
    world.clock.run(1_000)
    world.send("a", m.CreateRequest(session=other, nodes={f"{m.members_path('g')}/m": "t"}, number=1))
    world.replies.clear()


def test_a_late_notice_is_sent_on_the_clock(world):
    late_watch(world)
    world.clock.run(30_000)
    assert world.replies == [(11_000, "late", m.WatchResponse(expired=False, version=1))]


def test_a_late_notice_is_sent_as_soon_as_the_lag_ends(world):
    late_watch(world)
    world.clock.run(3_000)
    world.nodes.tell(lambda servers: servers.lag_view("late", 0))
    world.clock.run(30_000)
    assert world.replies == [(3_000, "late", m.WatchResponse(expired=False, version=1))]

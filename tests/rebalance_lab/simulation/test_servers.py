"""The servers of families without a coordinator: errors, and late answers on the clock."""

from dataclasses import replace

import pytest

from coordinator_core.coordinator.peers.member_lists import MemberLists
from coordinator_core.coordinator.servers import Site
from coordinator_core.coordinator.watcher.ensemble import Ensemble
from coordinator_core.families.watcher import WATCHER
from coordinator_core.protocol import events as ev
from coordinator_core.protocol import watcher as m
from coordinator_core.protocol.peers import PeersSettings
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.world.clock import VirtualClock
from rebalance_lab.simulation.world.servers import ServerNodes, make_servers

DOCUMENT = {
    "name": "g",
    "duration": "10s",
    "topics": {"t": {"partitions": 2}},
    "members": [{"id": "a", "topics": ["t"]}],
}


def family_of(strategy):
    registry = default_registry()
    scenario = parse_scenario(DOCUMENT, where="test", registry=registry)
    return family_for(scenario, registry.strategy(strategy), registry)


@pytest.mark.parametrize(("strategy", "kind"), [("watcher", Ensemble), ("rocketmq", MemberLists)])
def test_a_family_has_servers_of_its_own(strategy, kind):
    assert isinstance(make_servers(family_of(strategy), "g", "range", {"t": 2}, 3), kind)


def test_a_family_may_bring_its_own_servers():
    made = []

    def make(site):
        made.append(site)
        return MemberLists(replace(site, settings=PeersSettings()))

    family = family_of("watcher")
    make_servers(replace(family, spec=replace(WATCHER, servers=make)), "g", "range", {"t": 2}, 3)
    assert [(site.group, site.protocol, site.topics, list(site.brokers)) for site in made] == [
        ("g", "range", {"t": 2}, [0, 1, 2])
    ]


class Nodes:
    """A registry on a clock, without a network."""

    def __init__(self):
        self.clock, self.events, self.replies = VirtualClock(), [], []
        self.nodes = ServerNodes(
            Ensemble(Site(None, "g", "range", {"t": 2}, range(1))), self.clock, self.events.append, 0
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
    world.nodes.lag_view("late", 10_000)
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
    world.nodes.lag_view("late", 0)
    world.clock.run(30_000)
    assert world.replies == [(3_000, "late", m.WatchResponse(expired=False, version=1))]

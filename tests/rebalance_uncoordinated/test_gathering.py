"""The states of a group whose members rebalance alone."""

import pytest

from coordinator_core.protocol import events as ev
from rebalance_uncoordinated.gathering import EMPTY, GROUP_STATES, REBALANCING, SETTLED, Gathering


class Group:
    """A `Gathering` of members whose ids are those of their consumers with ``-id``."""

    def __init__(self):
        self.changes = []
        self.gathering = Gathering("g", {"resting"}, self.changes.append)
        self.version = 0

    @property
    def states(self):
        return [change.after for change in self.changes]

    def see(self, *events):
        for event in events:
            self.gathering.observe(0, event)

    def is_here(self, *clients):
        """The servers have these members."""
        ids = [f"{client}-id" for client in clients]
        known = self.gathering.members
        self.version += 1
        self.see(*(ev.MemberAdded(group="g", member_id=i) for i in ids if i not in known))
        gone = [i for i in known if i not in ids]
        self.see(*(ev.MemberRemoved(group="g", member_id=i, reason="left") for i in gone))
        if ids:
            started = ev.GenerationStarted(
                group="g", generation=self.version, protocol="range", leader="", members=ids
            )
            self.see(started)

    def reads(self, *clients, version=None):
        for client in clients:
            number = self.version if version is None else version
            self.see(
                ev.Joined(
                    client=client, member_id=f"{client}-id", generation=number, protocol="p", leader=False
                )
            )

    def moves(self, client, after, before=""):
        self.see(ev.ClientStateChanged(client=client, before=before, after=after))

    def rests(self, *clients):
        for client in clients:
            self.moves(client, "resting")


@pytest.fixture
def group():
    """A group of a and b that rests."""
    group = Group()
    group.is_here("a", "b")
    group.reads("a", "b")
    group.rests("a", "b")
    assert group.states == [REBALANCING, SETTLED]
    group.changes.clear()
    return group


def test_a_group_begins_empty():
    assert Group().gathering.state == EMPTY


def test_a_group_is_settled_when_its_last_member_rests():
    group = Group()
    group.is_here("a", "b")
    group.reads("a", "b")
    group.rests("a")
    assert group.states == [REBALANCING]
    group.rests("b")
    assert group.states == [REBALANCING, SETTLED]
    last = group.changes[-1]
    assert (last.before, last.generation, last.cause) == (REBALANCING, 1, "every member is at rest")


def test_a_member_that_joins_begins_a_round(group):
    group.is_here("a", "b", "c")
    assert group.states == [REBALANCING]
    assert group.changes[0].cause == "c-id joined"
    group.reads("a", "b", "c")
    group.rests("a", "b")
    assert group.states == [REBALANCING]
    group.rests("c")
    assert group.states == [REBALANCING, SETTLED]


def test_members_that_rest_with_an_old_version_are_not_at_rest(group):
    group.is_here("a", "b", "c")
    group.reads("a", "c")
    group.rests("a", "b", "c")
    assert group.states == [REBALANCING]
    group.reads("b")
    group.rests("b")
    assert group.states == [REBALANCING, SETTLED]


def test_a_member_that_rebalances_by_itself_begins_a_round(group):
    group.moves("a", "looking")
    assert group.states == [REBALANCING]
    assert group.changes[0].cause == "a is looking"
    group.rests("a")
    assert group.states == [REBALANCING, SETTLED]


def test_a_process_that_is_not_a_member_begins_no_round(group):
    group.moves("c", "connecting")
    assert group.states == []


def test_the_group_does_not_wait_for_a_process_that_has_ended(group):
    """The servers have the member until its session expires."""
    group.is_here("a", "b", "c")
    group.reads("a", "b", "c")
    group.rests("a", "b")
    group.see(ev.MemberStopped(client="c", how="crashed"))
    assert group.states == [REBALANCING, SETTLED]


def test_a_member_that_the_servers_drop_begins_a_round(group):
    group.is_here("a")
    assert group.states == [REBALANCING]
    assert group.changes[0].cause == "b-id: left"
    group.reads("a")
    group.rests("a")
    assert group.states == [REBALANCING, SETTLED]


def test_a_group_without_members_is_empty(group):
    group.is_here("a")
    group.is_here()
    assert group.states == [REBALANCING, EMPTY]
    group.is_here("a")
    assert group.states == [REBALANCING, EMPTY, REBALANCING]


def test_a_member_id_that_comes_back_is_waited_for():
    """A restarted process has the id of the one that has ended."""
    group = Group()
    group.is_here("a", "b")
    group.reads("a", "b")
    group.rests("a", "b")
    group.see(ev.MemberStopped(client="b", how="crashed"))
    group.is_here("a")
    group.reads("a")
    group.rests("a")
    group.changes.clear()
    group.is_here("a", "b")
    group.reads("a")
    group.rests("a")
    assert group.states == [REBALANCING]
    group.reads("b")
    group.rests("b")
    assert group.states == [REBALANCING, SETTLED]


def test_a_process_that_continues_the_membership_of_one_that_has_ended_is_waited_for(group):
    """The servers have not noticed that another process has the id."""
    group.see(ev.MemberStopped(client="b", how="crashed"))
    group.reads("b")
    group.moves("b", "looking")
    group.moves("a", "looking")
    group.rests("a")
    assert group.states == [REBALANCING]


def test_each_change_is_one_that_the_table_allows(group):
    group.is_here("a")
    group.is_here()
    group.is_here("b")
    assert all(change.after in GROUP_STATES[change.before] for change in group.changes)

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

    def stops(self, client):
        self.see(ev.MemberStopped(client=client, how="crashed"))


STATES = {"E": EMPTY, "R": REBALANCING, "S": SETTLED}
AT_REST = ("is_here a b, reads a b, rests a b", "RS")
"""Steps, and the states up to then. All cases but the first two begin with a and b at rest."""

CASES = {
    "a group begins empty": [("", "")],
    "a group is settled when its last member rests": [
        ("is_here a b, reads a b, rests a", "R"),
        ("rests b", "RS"),
    ],
    "a member that joins begins a round": [
        AT_REST,
        ("is_here a b c, reads a b c, rests a b", "RSR"),
        ("rests c", "RSRS"),
    ],
    "members that rest with an old version are not at rest": [
        AT_REST,
        ("is_here a b c, reads a c, rests a b c", "RSR"),
        ("reads b, rests b", "RSRS"),
    ],
    "a member that rebalances by itself begins a round": [
        AT_REST,
        ("moves a looking", "RSR"),
        ("rests a", "RSRS"),
    ],
    "a process that is not a member begins no round": [AT_REST, ("moves c connecting", "RS")],
    "the group does not wait for a process that has ended, which the servers have still": [
        AT_REST,
        ("is_here a b c, reads a b c, rests a b", "RSR"),
        ("stops c", "RSRS"),
    ],
    "a member that the servers drop begins a round": [
        AT_REST,
        ("is_here a", "RSR"),
        ("reads a, rests a", "RSRS"),
    ],
    "a group without members is empty": [AT_REST, ("is_here a, is_here", "RSRE"), ("is_here a", "RSRER")],
    "a member id that comes back, of a process that is restarted, is waited for": [
        AT_REST,
        ("stops b, is_here a, reads a, rests a", "RSRS"),
        ("is_here a b, reads a, rests a", "RSRSR"),
        ("reads b, rests b", "RSRSRS"),
    ],
    "a process that continues the membership of one that has ended is waited for": [
        AT_REST,
        ("stops b, reads b, moves b looking, moves a looking, rests a", "RSR"),
    ],
}


def after(*steps):
    group = Group()
    for step in filter(None, ", ".join(steps).split(", ")):
        name, *arguments = step.split()
        getattr(group, name)(*arguments)
    return group


@pytest.mark.parametrize("case", CASES)
def test_a_group_rests_when_all_of_its_members_do(case):
    steps = []
    for more, states in CASES[case]:
        steps.append(more)
        group = after(*steps)
        assert group.states == [STATES[letter] for letter in states]
        assert all(change.after in GROUP_STATES[change.before] for change in group.changes)
        assert group.gathering.state == [EMPTY, *group.states][-1]


@pytest.mark.parametrize(
    ("steps", "cause"),
    [
        ("rests b", "every member is at rest"),
        ("is_here a b c", "c-id joined"),
        ("moves a looking", "a is looking"),
        ("is_here a", "b-id: left"),
    ],
)
def test_each_change_has_its_cause_and_the_generation(steps, cause):
    last = after(AT_REST[0], steps).changes[-1]
    assert (last.cause, last.generation) == (cause, 1)

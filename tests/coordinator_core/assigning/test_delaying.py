"""Lost partitions wait for their owner (PROTOCOL 11.6): the assignor of `+delay` alone."""

import pytest

from assignors.cooperative_sticky import CooperativeStickyAssignor
from assignors.range import RangeAssignor
from coordinator_core.assigning.assignor import Assignor
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.delaying import with_delay
from coordinator_core.errors import InputError
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription

DELAY_MS = 300_000


class Member:
    """A consumer: its assignor, its partitions, and the time at which it joins again."""

    def __init__(self, assignor, topics, owned=()):
        self.assignor, self.topics, self.owned = assignor, topics, set(owned)
        self.rejoins_ms = None


class Group:
    """Members that join, lead and take over assignments, in virtual time."""

    def __init__(self, make=CooperativeStickyAssignor, delay_ms=DELAY_MS, **topics):
        self.make, self.delay_ms, self.topics = make, delay_ms, topics or {"P": 6}
        self.members, self.now_ms, self.generation, self.report = {}, 0, 0, {}

    def join(self, *names, topics=None, **owned):
        for name in (*names, *owned):
            assignor = with_delay(self.make(), self.delay_ms, lambda: self.now_ms)
            has = [("P", number) for number in owned.get(name, ())]
            self.members[name] = Member(assignor, tuple(topics or self.topics), has)

    def lose(self, name):
        del self.members[name]

    def compute(self, leader):
        """Let a member compute the assignments of a round."""
        self.generation += 1
        group = GroupSubscription(
            {
                name: Subscription(m.topics, Partitions.of(sorted(m.owned)), self.generation - 1)
                for name, m in self.members.items()
            }
        )
        solved = compute_assignment(self.members[leader].assignor, Cluster(self.topics), group)
        self.report = dict(solved.report)
        return solved

    def round(self, leader="c1", *, absent=()):
        """Carry out a round. ``absent`` members join, but get their assignments too late."""
        solved = self.compute(leader)
        before = {name: set(m.owned) for name, m in self.members.items()}
        for name, member in self.members.items():
            if name not in absent:
                member.owned = {tuple(tp) for tp in solved[name]}
                after_ms = member.assignor.rejoin_after_ms(solved.user_data.get(name))
                member.rejoins_ms = None if after_ms is None else self.now_ms + after_ms
        return {name: before[name] - m.owned for name, m in self.members.items() if before[name] - m.owned}

    def rounds(self, leader="c1"):
        """Carry out rounds until nobody gives anything up."""
        while self.round(leader):
            pass

    def owned(self):
        """Return the partitions of each member, as a text."""
        return {
            name: " ".join(f"{t}{n}" for t, n in sorted(member.owned))
            for name, member in self.members.items()
        }

    def rejoins_ms(self):
        return {member.rejoins_ms for member in self.members.values()}


@pytest.fixture
def example():
    """The group of PROTOCOL 11.6: c1 P0 P1, c2 P3 P4, c3 P2 P5."""
    group = Group()
    group.join(c1=(0, 1), c2=(3, 4), c3=(2, 5))
    assert group.round() == {}
    assert group.owned() == {"c1": "P0 P1", "c2": "P3 P4", "c3": "P2 P5"}
    return group


def test_the_worked_example(example):
    """PROTOCOL 11.6: c2 vanishes. Round 1 changes nothing. It returns: round 2 changes nothing. The delay is
    over: round 3 gives it P3 P4. Nobody revoked anything."""
    example.lose("c2")
    assert example.round() == {}
    assert example.owned() == {"c1": "P0 P1", "c3": "P2 P5"}
    assert example.report == {"delay_ms": DELAY_MS, "delay_left_ms": DELAY_MS, "lost": ["P 3", "P 4"]}
    assert example.rejoins_ms() == {DELAY_MS}
    example.now_ms = 60_000
    example.join("c2")
    assert example.round() == {}
    assert example.owned() == {"c1": "P0 P1", "c3": "P2 P5", "c2": ""}
    assert example.report["delay_left_ms"] == DELAY_MS - 60_000
    assert example.rejoins_ms() == {DELAY_MS}
    example.now_ms = DELAY_MS
    assert example.round() == {}
    assert example.owned() == {"c1": "P0 P1", "c3": "P2 P5", "c2": "P3 P4"}
    assert example.report == {}
    assert example.rejoins_ms() == {None}


def test_whoever_joins_owning_nothing_gets_the_lost_partitions(example):
    """Given the owner does not return, when another member joins, then it gets them. PROTOCOL 11.6."""
    example.lose("c2")
    example.round()
    example.join("c4")
    example.round()
    example.now_ms = DELAY_MS
    assert example.round() == {}
    assert example.owned()["c4"] == "P3 P4"


def test_the_delay_does_not_start_anew_with_the_next_loss(example):
    """Given c2 is lost at 0 and c3 at 100 s, then the partitions of both are assigned at 300 s. 11.6."""
    example.lose("c2")
    example.round()
    example.now_ms = 100_000
    example.lose("c3")
    assert example.round() == {}
    assert example.report["lost"] == ["P 2", "P 3", "P 4", "P 5"]
    assert example.rejoins_ms() == {DELAY_MS}
    example.now_ms = DELAY_MS
    example.round()
    assert example.owned() == {"c1": "P0 P1 P2 P3 P4 P5"}


def test_a_loss_after_a_delay_begins_another_one(example):
    example.lose("c2")
    example.round()
    example.now_ms = DELAY_MS
    example.round()
    example.now_ms = 400_000
    example.lose("c3")
    example.round()
    assert example.rejoins_ms() == {400_000 + DELAY_MS}


def test_new_partitions_are_dealt_out_at_once(example):
    """Given a delay, when partitions are added, then they go to the members that own least. PROTOCOL 11.6."""
    example.lose("c2")
    example.round()
    example.topics["P"] = 9
    example.now_ms = 60_000
    example.join("c2")
    assert example.round() == {}
    assert example.owned() == {"c1": "P0 P1 P8", "c3": "P2 P5", "c2": "P6 P7"}
    assert example.report["lost"] == ["P 3", "P 4"]


def test_new_partitions_without_a_delay_begin_none(example):
    example.topics["P"] = 8
    assert example.round() == {}
    assert example.report == {}
    assert sum(len(member.owned) for member in example.members.values()) == 8


def test_a_new_leader_knows_which_partitions_are_new(example):
    """Given a leader that has never led, when partitions are added, then they are dealt out, not lost."""
    example.topics["P"] = 8
    assert example.round("c3") == {}
    assert example.report == {}


def test_a_new_leader_starts_the_delay_anew_and_says_so(example):
    """Given 100 s of the delay have passed, when the leader vanishes too, then the next leader begins again.
    PROTOCOL 11.6."""
    example.lose("c2")
    example.round()
    assert "delay_starts_anew" not in example.report
    example.now_ms = 100_000
    example.lose("c1")
    example.round("c3")
    assert (example.report["delay_left_ms"], example.report["delay_starts_anew"]) == (DELAY_MS, True)
    assert example.rejoins_ms() == {100_000 + DELAY_MS}
    example.now_ms = 150_000
    example.join("c2")
    example.round("c3")
    assert "delay_starts_anew" not in example.report
    assert example.rejoins_ms() == {100_000 + DELAY_MS}


def test_a_leader_that_led_before_forgets_its_delay(example):
    """Given c1 led when the delay began and c3 leads since, when c1 leads again, then it starts anew."""
    example.lose("c2")
    example.round("c1")
    example.now_ms = 50_000
    example.round("c3")
    example.now_ms = 100_000
    example.round("c1")
    assert example.rejoins_ms() == {100_000 + DELAY_MS}


def test_a_leader_whose_round_failed_keeps_the_delay_only_if_it_leads_the_next(example):
    """Given c1 computes assignments that nobody gets, then its delay has begun if it leads the next round,
    and is forgotten if c3 does."""
    example.lose("c2")
    example.compute("c1")
    example.now_ms = 10_000
    example.round("c1")
    assert example.rejoins_ms() == {DELAY_MS}
    example.now_ms = 20_000
    example.compute("c1")
    example.round("c3")
    assert example.rejoins_ms() == {20_000 + DELAY_MS}
    example.now_ms = 30_000
    example.round("c1")
    assert example.rejoins_ms() == {30_000 + DELAY_MS}


def test_a_group_that_begins_loses_nothing():
    """Given nothing was assigned before, when members join, then everything is assigned at once."""
    group = Group()
    group.join("c1", "c2")
    assert group.round() == {}
    assert group.report == {}
    assert sum(len(member.owned) for member in group.members.values()) == 6


def test_a_share_that_its_member_has_not_taken_over_is_not_lost():
    """Given c2 joins again before it has taken over its share, then it gets it in the next round."""
    group = Group()
    group.join("c1", "c2")
    group.round(absent=("c2",))
    group.round()
    assert group.report == {}
    assert {name: len(member.owned) for name, member in group.members.items()} == {"c1": 3, "c2": 3}


def test_partitions_that_change_hands_are_not_lost():
    """Given a third member joins, then what the others give up goes to it in the second round."""
    group = Group()
    group.join(c1=(0, 1, 2), c2=(3, 4, 5))
    group.round()
    group.join("c3")
    assert sum(map(len, group.round().values())) == 2
    assert group.owned()["c3"] == ""
    assert group.round() == {}
    assert group.report == {}
    assert [len(member.owned) for member in group.members.values()] == [2, 2, 2]


def test_partitions_that_change_hands_when_a_member_vanishes_are_dealt_out():
    """Given c1 and c2 have given up two partitions for c3, when c2 vanishes, then the two are dealt out, and
    only those that c2 still had are lost."""
    group = Group()
    group.join(c1=(0, 1, 2), c2=(3, 4, 5))
    group.round()
    group.join("c3")
    given_up = set().union(*group.round().values())
    kept = set(group.members["c2"].owned)
    group.lose("c2")
    assert group.round() == {}
    assert group.report["lost"] == [f"P {number}" for _, number in sorted(kept)]
    assert group.members["c3"].owned <= given_up
    assert set().union(*(member.owned for member in group.members.values())) | kept == {
        ("P", number) for number in range(6)
    }


def test_nobody_waits_for_topics_without_subscribers():
    """Given nobody is left that subscribes to the topic of lost partitions, then there is no delay."""
    group = Group(P=2, Q=2)
    group.join("c1", topics=("P",))
    group.join("c2", topics=("Q",))
    group.rounds()
    assert group.owned() == {"c1": "P0 P1", "c2": "Q0 Q1"}
    group.lose("c2")
    group.round()
    assert group.report == {}


def test_partitions_that_are_dealt_out_go_to_subscribers():
    """Given members with different topics, when a delay runs, then new partitions go to subscribers only."""
    group = Group(P=2, Q=2)
    group.join("c1", topics=("P",))
    group.join("c2", "c3", topics=("P", "Q"))
    group.rounds()
    group.lose("c3")
    group.topics["Q"] = 8
    group.round()
    assert group.report["lost"]
    assert {number for topic, number in group.members["c2"].owned if topic == "Q"} >= set(range(2, 8))
    assert not [tp for tp in group.members["c1"].owned if tp[0] == "Q"]


def test_user_data_of_the_assignor_reach_it():
    """Given an assignor with user data in its assignments, and a deadline of its own, then the earlier of the
    deadlines counts."""

    seen = []

    class Own(CooperativeStickyAssignor):
        def rejoin_after_ms(self, user_data):
            seen.append(user_data)
            return 1_000

    group = Group(make=Own)
    group.join(c1=(0, 1, 2), c2=(3, 4, 5))
    group.round()
    assert seen == [None, None]
    assert group.rejoins_ms() == {1_000}
    group.lose("c2")
    group.delay_ms = 500
    group.round()
    assert group.rejoins_ms() == {1_000}


def test_an_assignment_without_the_note_is_one_without_a_delay():
    """Given an assignment of a leader without the modifier, then the member joins no second time."""
    assignor = with_delay(CooperativeStickyAssignor(), DELAY_MS, lambda: 0)
    assert assignor.rejoin_after_ms(None) is None
    assert assignor.rejoin_after_ms(b"data of an assignor") is None


def test_an_eager_assignor_cannot_wait():
    with pytest.raises(InputError) as caught:
        with_delay(RangeAssignor(), DELAY_MS, lambda: 0)
    assert str(caught.value) == (
        "delay: found the eager assignor 'range', whose members give up everything before each round,"
        " expected a cooperative assignor"
    )


def test_the_wrapper_has_the_name_and_the_protocols_of_its_assignor():
    assignor = with_delay(CooperativeStickyAssignor(), DELAY_MS, lambda: 0)
    inner = CooperativeStickyAssignor()
    assert isinstance(assignor, Assignor)
    assert (assignor.name, assignor.version) == (inner.name, inner.version)
    assert tuple(assignor.supported_protocols) == tuple(inner.supported_protocols)

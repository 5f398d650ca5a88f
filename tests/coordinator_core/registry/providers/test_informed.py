"""An assignor with a provider around it: two kinds of bytes in one user data, and who is told what."""

import pytest

from coordinator_core.assigning.assignor import Capability
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.envelope import attach, detach
from coordinator_core.assigning.loading import assignor_from
from coordinator_core.errors import AssignmentError
from coordinator_core.model import (
    Cluster,
    GroupAssignment,
    GroupSubscription,
    Partitions,
    RebalanceProtocol,
    Subscription,
    TopicInfo,
    TopicPartition,
)
from coordinator_core.registry.providers.informed import REPORT, Informed

CLUSTER = Cluster({"t": 2})
WEIGHED = Cluster({"t": TopicInfo(2, weights=(1.0, 5.0))})


class Inner:
    """Notes what it is asked with, and gives everything to the first."""

    name, version = "inner", 3
    capabilities = (Capability.WEIGHTED,)
    supported_protocols = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self, own=b"own"):
        self.own, self.asked, self.told = own, [], []

    def subscription_user_data(self, topics):
        return self.own

    def on_assignment(self, partitions, generation):
        self.told.append((sorted(partitions), generation))

    def assign(self, cluster, group):
        self.asked.append((cluster, group))
        everything = Partitions.of([("t", 0), ("t", 1)])
        rest = dict.fromkeys(group, Partitions())
        assignment = GroupAssignment(rest | {min(group): everything})
        assignment.report = {"method": "first"}
        return assignment


class Bare:
    name = "bare"

    def assign(self, cluster, group):
        return {}


class Provider:
    """Says what it is made with, and notes what it is told."""

    def __init__(self, report=b"report", cluster=None):
        self.said, self.cluster, self.got, self.reports = report, cluster, [], None

    def report(self):
        return self.said

    def assigned(self, partitions):
        self.got.append(sorted(partitions))

    def inform(self, cluster, group, reports):
        self.reports = dict(reports)
        return self.cluster or cluster, group


def informed_by(inner, provider, source):
    return Informed(assignor_from(inner), provider, source)


def group_of(**user_data):
    return GroupSubscription({m: Subscription(("t",), user_data=data) for m, data in user_data.items()})


# --- what a member sends and hears


@pytest.mark.parametrize("own", [b"own", None])
def test_a_member_sends_the_report_and_what_the_assignor_sends(own):
    sent = informed_by(Inner(own), Provider(), "source").subscription_user_data(("t",))
    assert detach(sent, REPORT) == (own, b"report")


@pytest.mark.parametrize("own", [b"own", None])
def test_where_there_is_no_report_the_assignors_bytes_are_all(own):
    assert informed_by(Inner(own), Provider(report=None), "source").subscription_user_data(("t",)) == own


def test_both_hear_what_the_member_got():
    inner, provider = Inner(), Provider()
    informed_by(inner, provider, "source").on_assignment(Partitions.of([("t", 1)]), 5)
    assert inner.told == [([TopicPartition("t", 1)], 5)]
    assert provider.got == [[TopicPartition("t", 1)]]


def test_it_stands_under_the_assignors_name_with_all_that_it_declares():
    made = informed_by(Inner(), Provider(), "source")
    assert (made.name, made.version) == ("inner", 3)
    assert tuple(made.supported_protocols) == Inner.supported_protocols
    assert set(made.capabilities) == {Capability.WEIGHTED}


# --- what the leader does


def test_the_provider_gets_the_reports_and_the_assignor_the_rest():
    """Members without a report, or with another assignor's bytes, are in the group as before."""
    inner, provider = Inner(), Provider(cluster=WEIGHED)
    group = group_of(
        a=attach(b"own of a", REPORT, b"of a"), b=attach(None, REPORT, b"of b"), c=b"somebody else's", d=None
    )
    compute_assignment(informed_by(inner, provider, "source"), CLUSTER, group)
    assert provider.reports == {"a": b"of a", "b": b"of b"}
    ((cluster, seen),) = inner.asked
    assert cluster is WEIGHED
    assert {m: s.user_data for m, s in seen.items()} == {
        "a": b"own of a",
        "b": None,
        "c": b"somebody else's",
        "d": None,
    }
    assert seen["c"] is group["c"]


@pytest.mark.parametrize(("cluster", "weights"), [(WEIGHED, "source"), (None, "nothing known yet")])
def test_the_assignment_says_where_its_weights_are_from_beside_what_it_said(cluster, weights):
    informed = informed_by(Inner(), Provider(cluster=cluster), "source")
    assignment = compute_assignment(informed, CLUSTER, group_of(a=None, b=None))
    assert assignment.report == {"method": "first", "weights": weights}
    assert sorted(assignment["a"]) == [("t", 0), ("t", 1)]


def test_a_provider_that_fails_is_told_under_the_assignors_name():
    class Broken(Provider):
        def inform(self, cluster, group, reports):
            raise KeyError("no such partition")

    with pytest.raises(AssignmentError, match="'inner': raised KeyError: 'no such partition'"):
        compute_assignment(informed_by(Inner(), Broken(), "source"), CLUSTER, group_of(a=None))


class Drifting(Provider):
    """The first partition weighs more each time that it is asked, and so does everybody's capacity."""

    def inform(self, cluster, group, reports):
        self.times = getattr(self, "times", 0) + 1
        known = {
            topic: TopicInfo(info.partitions, weights=(float(self.times),) * info.partitions)
            for topic, info in cluster.topics.items()
        }
        members = {m: Subscription(s.topics, capacity=10.0 * self.times) for m, s in group.items()}
        return Cluster(known), GroupSubscription(members)


def heard(inner):
    """The weight and the capacity that the assignor inside went by last."""
    cluster, members = inner.asked[-1]
    return cluster.topics["t"].weights[0], members["a"].capacity


def test_the_rounds_of_one_rebalance_have_one_goal_though_loads_change_meanwhile():
    inner = Inner()
    informed = informed_by(inner, Drifting(), "drifting")
    both = GroupSubscription({"a": Subscription(("t",)), "b": Subscription(("t",))})
    informed.assign(CLUSTER, both)
    informed.assign(CLUSTER, both)
    assert heard(inner) == (1.0, 10.0)
    informed.assign(CLUSTER, GroupSubscription({"a": Subscription(("t",))}))
    assert heard(inner) == (3.0, 30.0)
    informed.assign(Cluster({"t": 3}), GroupSubscription({"a": Subscription(("t",))}))
    assert heard(inner) == (4.0, 40.0)


def test_what_was_not_known_yet_is_asked_for_again():
    inner, provider = Inner(), Provider()
    informed = informed_by(inner, provider, "late")
    alone = GroupSubscription({"a": Subscription(("t",))})
    assert informed.assign(CLUSTER, alone).report["weights"] == "nothing known yet"
    provider.cluster = WEIGHED
    assert informed.assign(CLUSTER, alone).report["weights"] == "late"

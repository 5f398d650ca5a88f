"""The built-in providers: what members measure and report, what a leader makes of it and remembers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.model import (
    Cluster,
    GroupSubscription,
    Partitions,
    Subscription,
    TopicInfo,
    TopicPartition,
)
from coordinator_core.registry.host import Load, Seen
from coordinator_core.registry.providers.builtin import (
    WORK_SECONDS,
    Known,
    Reported,
    by_lag,
    by_rate,
    by_work,
    providers,
    with_capacities,
    with_weights,
)
from coordinator_core.registry.providers.report import Estimate, Report, decode_report, encode_report

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
CLUSTER = Cluster({"t": 2, "u": 1})


class Host:
    """A host whose time and partitions are set by hand."""

    def __init__(self, capacity=None):
        self.ms, self.partitions, self.rates, self.can = 0, {}, {}, capacity

    def at(self, seconds, **ends):
        """It is so late, and partitions (t0, u0 ...) have these ends, or ends and lags."""
        self.ms = int(seconds * 1_000)
        for name, end in ends.items():
            offset, lag = end if isinstance(end, tuple) else (end, 0)
            self.partitions[TopicPartition(name[0], int(name[1:]))] = Seen(offset, lag)

    def now_ms(self):
        return self.ms

    def seen(self, partitions):
        return {tp: self.partitions[tp] for tp in partitions if tp in self.partitions}

    def loads(self):
        return self.rates

    def capacity(self):
        return self.can


@pytest.fixture
def host():
    return Host()


def group_of(*members):
    return GroupSubscription({m: Subscription(("t", "u")) for m in members})


def reporting(estimates, capacity=None):
    return encode_report(Report(capacity, estimates))


def weights(cluster):
    return {
        TopicPartition(topic, n): weight
        for topic, info in cluster.topics.items()
        for n, weight in enumerate(info.weights or ())
    }


# --- what a member measures


def said(reported):
    return decode_report(reported.report()).estimates


def test_a_member_that_has_had_nothing_yet_reports_what_it_can_handle():
    assert decode_report(Reported(Host(capacity=900.0), by_rate).report()) == Report(900.0, {})
    assert decode_report(Reported(Host(), by_rate).report()) == Report(None, {})


def test_a_rate_is_what_came_since_the_member_got_the_partition(host):
    reported = Reported(host, by_rate)
    host.at(100, t0=1_000, t1=5)
    reported.assigned(Partitions.of([T0, T1]))
    host.at(110, t0=(1_200, 30), t1=5)
    assert said(reported) == {T0: Estimate(10, 20, 30), T1: Estimate(10, 0, 0)}


def test_a_report_says_the_same_until_the_next_assignment(host):
    """C-21: a JoinGroup that is sent again is equal, byte for byte."""
    reported = Reported(host, by_rate)
    reported.assigned(Partitions.of([T0]))
    host.at(0, t0=0)
    reported.assigned(Partitions.of([T0]))
    host.at(10, t0=100)
    first = reported.report()
    host.at(20, t0=900)
    assert reported.report() == first
    reported.assigned(Partitions.of([T0]))
    assert reported.report() != first


def test_what_is_kept_is_measured_on_without_a_gap(host):
    """Ten seconds of 30, then until the next report thirty of 10, in which the round lies."""
    reported = Reported(host, by_rate)
    host.at(0, t0=0)
    reported.assigned(Partitions.of([T0]))
    host.at(10, t0=300)
    reported.report()
    host.at(15, t0=350)
    reported.assigned(Partitions.of([T0]))
    host.at(40, t0=600)
    assert said(reported)[T0] == pytest.approx(Estimate(40, 15, 0), rel=0.01)


def test_what_is_given_up_is_not_reported_any_more_and_begins_anew_when_it_comes_back(host):
    reported = Reported(host, by_rate)
    host.at(0, t0=0, t1=0)
    reported.assigned(Partitions.of([T0, T1]))
    host.at(10, t0=100, t1=100)
    assert set(said(reported)) == {T0, T1}
    reported.assigned(Partitions.of([T1]))
    host.at(20, t0=5_000, t1=200)
    assert set(said(reported)) == {T1}
    reported.assigned(Partitions.of([T0, T1]))
    host.at(30, t0=5_010, t1=300)
    assert said(reported)[T0] == Estimate(10, 1, 0)


def test_the_time_until_a_member_gives_a_partition_up_is_reported_once_more(host):
    """It has given up all it had before it joins, and reports what it has just measured."""
    reported = Reported(host, by_rate)
    host.at(0, t0=0)
    reported.assigned(Partitions.of([T0]))
    host.at(10, t0=100)
    assert said(reported) == {T0: Estimate(10, 10, 0)}


def test_a_partition_that_the_host_does_not_know_is_left_out(host):
    reported = Reported(host, by_rate)
    host.at(0, t0=0)
    reported.assigned(Partitions.of([T0, U0]))
    host.at(10, t0=100)
    assert set(said(reported)) == {T0}


def test_no_time_is_no_measurement(host):
    reported = Reported(host, by_rate)
    host.at(5, t0=100)
    reported.assigned(Partitions.of([T0]))
    assert said(reported) == {}


def test_an_end_that_goes_back_is_no_negative_rate(host):
    """A topic that was deleted and made anew."""
    reported = Reported(host, by_rate)
    host.at(0, t0=1_000)
    reported.assigned(Partitions.of([T0]))
    host.at(10, t0=3)
    assert said(reported) == {T0: Estimate(10, 0, 0)}


# --- what a leader makes of it


def informed(provider, reports, cluster=CLUSTER, group=None):
    return provider.inform(cluster, group_of(*reports) if group is None else group, reports)


MEASURED = {T0: Estimate(10, 20.0, 6.0), T1: Estimate(10, 2.0, 600.0), U0: Estimate(10, 0.0, 1.0)}


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        (by_rate, {T0: 20.0, T1: 2.0, U0: 0.0}),
        (by_lag, {T0: 6.0, T1: 600.0, U0: 1.0}),
        (by_work, {T0: 6 + 20 * WORK_SECONDS, T1: 600 + 2 * WORK_SECONDS, U0: 1.0}),
    ],
)
def test_weights_are_rates_lags_or_the_work_ahead(host, measure, expected):
    cluster, _ = informed(Reported(host, measure), {"a": reporting(MEASURED)})
    assert weights(cluster) == expected


def test_where_nobody_knows_anything_the_cluster_stays_as_it_is(host):
    group = group_of("a", "b")
    assert informed(Reported(host, by_rate), {}, group=group) == (CLUSTER, group)
    assert informed(Reported(host, by_rate), {"a": reporting({})})[0] is CLUSTER


def test_bytes_that_are_no_report_say_nothing(host):
    cluster, _ = informed(Reported(host, by_rate), {"a": b"?", "b": reporting({T0: Estimate(1, 4, 0)})})
    assert weights(cluster)[T0] == 4


def test_a_report_of_somebody_who_is_not_in_the_group_does_not_count(host):
    reports = {"gone": reporting({T0: Estimate(1, 4, 0)})}
    assert informed(Reported(host, by_rate), reports, group=group_of("a"))[0] is CLUSTER


def test_a_leader_remembers_partitions_whose_owner_is_gone(host):
    leader = Reported(host, by_rate)
    informed(leader, {"a": reporting({T0: Estimate(60, 20, 0)}), "b": reporting({T1: Estimate(60, 2, 0)})})
    host.at(30)
    cluster, _ = informed(leader, {"b": reporting({T1: Estimate(90, 3, 0)})})
    assert weights(cluster) == {T0: 20, T1: 3, U0: 11.5}


def test_of_two_that_know_a_partition_the_one_that_measured_longer_is_believed(host):
    leader = Reported(host, by_rate)
    reports = {"a": reporting({T0: Estimate(60, 20, 0)}), "b": reporting({T0: Estimate(5, 999, 0)})}
    for order in (reports, dict(reversed(reports.items()))):
        assert weights(informed(leader, order)[0])[T0] == 20


def test_what_a_leader_remembers_grows_old(host):
    """A minute's measurement is worth less than half a minute's, an hour and more later."""
    leader = Reported(host, by_rate)
    informed(leader, {"a": reporting({T0: Estimate(60, 20, 0)})})
    host.at(3_500)
    short = {"b": reporting({T0: Estimate(30, 1, 0)})}
    assert weights(informed(leader, short)[0])[T0] == 20
    host.at(3_700)
    assert weights(informed(leader, short)[0])[T0] == 1


def test_a_lag_is_the_last_one_reported_however_long_the_rate_was_measured(host):
    """A day of keeping up says nothing of the lag that the new owner has let grow since."""
    leader = Reported(host, by_lag)
    informed(leader, {"a": reporting({T0: Estimate(86_400, 20, 0), T1: Estimate(86_400, 2, 0)})})
    host.at(600)
    now = {T0: Estimate(600, 25, 15_000), T1: Estimate(87_000, 2, 0)}
    assert weights(informed(leader, {"b": reporting(now)})[0])[T0] == 15_000


# --- capacities


def capacities(group):
    return {m: s.capacity for m, s in group.items()}


def test_capacities_count_when_all_are_known(host):
    both = {"a": reporting({}, 100.0), "b": reporting({}, 50.0)}
    assert capacities(informed(Reported(host, by_rate), both)[1]) == {"a": 100.0, "b": 50.0}


@pytest.mark.parametrize("other", [reporting({}), b"?"])
def test_where_one_is_unknown_there_are_none(host, other):
    group = group_of("a", "b")
    _, told = informed(Reported(host, by_rate), {"a": reporting({}, 100.0), "b": other}, group=group)
    assert told is group


def test_with_capacities_changes_nothing_else():
    group = GroupSubscription({"a": Subscription(("t",), Partitions.of([T0]), 4, rack="r", user_data=b"x")})
    (told,) = with_capacities(group, {"a": 5.0, "stranger": 1.0}).values()
    (before,) = group.values()
    assert told.capacity == 5.0
    fields = [f for f in before.__struct_fields__ if f != "capacity"]
    assert [getattr(told, f) for f in fields] == [getattr(before, f) for f in fields]
    assert len(with_capacities(GroupSubscription({}), {"a": 5.0})) == 0


# --- weights of what nobody measured


def test_an_unknown_partition_weighs_the_mean_of_its_topic():
    cluster = with_weights(Cluster({"t": 4}), {T0: 10.0, T1: 20.0})
    assert cluster.topics["t"].weights == (10.0, 20.0, 15.0, 15.0)


def test_a_topic_that_nobody_knows_weighs_the_mean_of_all_known_partitions():
    cluster = with_weights(Cluster({"t": 2, "u": 1, "v": 2}), {T0: 10.0, T1: 20.0, U0: 60.0})
    assert cluster.topics["v"].weights == (30.0, 30.0)


def test_what_does_not_exist_here_does_not_count():
    """A partition beyond the topic's, and a topic that is gone."""
    known = {T0: 10.0, TopicPartition("t", 9): 1e9, TopicPartition("gone", 0): 1e9}
    assert weights(with_weights(CLUSTER, known)) == {T0: 10.0, T1: 10.0, U0: 10.0}
    assert with_weights(CLUSTER, {TopicPartition("gone", 0): 1.0}) is CLUSTER


def test_racks_stay():
    racks = (("r1",), ("r2",))
    cluster = with_weights(Cluster({"t": TopicInfo(2, racks=racks)}), {T0: 1.0})
    assert cluster.topics["t"].racks == racks


@given(st.dictionaries(st.sampled_from([T0, T1, U0]), st.floats(0, 1e9), min_size=1))
def test_what_is_known_keeps_its_weight_and_the_rest_lies_among_it(known):
    found = weights(with_weights(CLUSTER, known))
    assert set(found) == {T0, T1, U0}
    assert {tp: found[tp] for tp in known} == known
    low, high = min(known.values()), max(known.values())
    assert all(low * (1 - 1e-9) <= weight <= high * (1 + 1e-9) for weight in found.values())


# --- a host that knows


@pytest.mark.parametrize(("measure", "weight"), [(by_rate, 7.0), (by_lag, 90.0)])
def test_a_host_that_knows_all_loads_need_not_be_told(measure, weight):
    host = Host()
    host.rates = {T0: Load(7.0, 90.0), T1: Load(1.0, 1.0), U0: Load(1.0, 1.0)}
    cluster, _ = informed(Known(host, measure), {"a": b"?"})
    assert weights(cluster) == {T0: weight, T1: 1.0, U0: 1.0}


def test_a_host_that_knows_nothing_leaves_the_cluster_as_it_is():
    assert informed(Known(Host(), by_rate), {})[0] is CLUSTER


def test_capacities_come_from_the_members_even_where_the_host_knows_the_loads():
    assert decode_report(Known(Host(capacity=40.0), by_rate).report()) == Report(40.0, {})
    both = {"a": reporting({}, 100.0), "b": reporting({}, 50.0)}
    assert capacities(informed(Known(Host(), by_rate), both)[1]) == {"a": 100.0, "b": 50.0}


def test_an_assignment_is_no_news_to_a_host_that_knows():
    known = Known(Host(capacity=40.0), by_rate)
    before = known.report()
    known.assigned(Partitions.of([T0]))
    assert known.report() == before


# --- the list


def test_the_built_in_providers_are_these_and_each_says_what_it_is():
    names = ["reported-rates", "reported-lags", "reported-work", "scenario-rates", "scenario-lags"]
    assert [spec.name for spec in providers()] == names
    assert all(spec.doc for spec in providers())


@pytest.mark.parametrize("spec", providers(), ids=lambda spec: spec.name)
def test_every_built_in_provider_weighs_by_what_its_name_says(spec):
    host = Host()
    host.rates = {T0: Load(7.0, 90.0)}
    cluster, _ = informed(spec.factory(host), {"a": reporting({T0: Estimate(10, 7.0, 90.0)})})
    expected = {"rates": 7.0, "lags": 90.0, "work": 90 + 7 * WORK_SECONDS}[spec.name.split("-")[1]]
    assert weights(cluster)[T0] == expected

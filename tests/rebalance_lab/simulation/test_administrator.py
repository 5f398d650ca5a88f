"""An administrator removes members with requests to the coordinator."""

from dataclasses import replace

import pytest

from coordinator_core.errors import InputError
from coordinator_core.families.family import remove_members
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.messages import DescribedMember
from coordinator_core.registry.hookspecs import hookimpl
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_lab.scenarios.families import family_for
from rebalance_lab.simulation.planning.plan import plan
from rebalance_lab.simulation.run import simulate
from tests.coordinator_core.families import toy
from tests.rebalance_lab.simulation.runs import scenario_of, seen, times
from tests.rebalance_lab.simulation.runs import settled as run


def removed(trace):
    found = seen(trace, ev.MemberRemoved, reason="removed by an administrator")
    return [(line.at_ms, line.event.member_id) for line in found]


def rounds(trace, from_ms):
    return seen(trace, ev.GenerationStarted, from_ms=from_ms)


CRASHED = ({"at": "60s", "crash": "c-1"}, {"at": "65s", "remove_member": "c-1"})


@pytest.mark.parametrize("strategy", ["range", "range+static"])
def test_a_crashed_member_is_removed_before_its_session_ends(strategy):
    trace = run(scenario_of(*CRASHED), strategy)
    ((at_ms, member_id),) = removed(trace)
    assert 65_000 < at_ms < 65_100
    assert member_id.startswith("c-1-")
    (after,) = rounds(trace, 60_000)
    assert at_ms < after.at_ms < 70_000
    assert len(after.event.members) == 2
    assert trace.ended.messages["DescribeGroups"] == 1
    assert trace.ended.messages["LeaveGroup"] == 1


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range+static"])
def test_a_process_that_runs_joins_again(strategy):
    trace = run(scenario_of({"at": "60s", "remove_member": "c-1"}), strategy)
    assert [member_id[:4] for _, member_id in removed(trace)] == ["c-1-"]
    (lost,) = times(trace, ev.Lost, client="c-1")
    assert 60_000 < lost < 63_100
    assert len(rounds(trace, 60_000)[-1].event.members) == 3


def test_members_in_a_list_leave_with_a_request_each():
    events = [{"at": "60s", "crash": ["c-0", "c-2"]}, {"at": "61s", "remove_member": ["c-0", "c-2"]}]
    trace = run(scenario_of(*events))
    assert sorted(member_id[:4] for _, member_id in removed(trace)) == ["c-0-", "c-2-"]
    assert trace.ended.messages["LeaveGroup"] == 2
    assert len(rounds(trace, 60_000)[-1].event.members) == 1


def test_a_consumer_that_is_no_member_any_longer_is_not_removed():
    events = [{"at": "60s", "leave": "c-1"}, {"at": "70s", "remove_member": "c-1"}]
    trace = run(scenario_of(*events))
    assert removed(trace) == []
    assert trace.ended.messages["LeaveGroup"] == 1


def test_a_removal_waits_for_a_new_coordinator():
    events = [*CRASHED, {"at": 64_990, "coordinator_failover": {"down": "3s"}}]
    trace = run(scenario_of(*events))
    ((at_ms, _),) = removed(trace)
    assert 68_000 < at_ms < 68_500


@pytest.mark.parametrize("failing_at", range(65_000, 65_007))
def test_a_removal_begins_again_if_the_coordinator_fails_before_its_answer(failing_at):
    """Afterwards it is lost with the coordinator: the log learns who left when the next round is over."""
    events = [*CRASHED, {"at": failing_at, "coordinator_failover": {"down": "3s"}}]
    trace = run(scenario_of(*events, network={"latency": "2ms"}))
    assert 68_000 < removed(trace)[-1][0] < 68_500
    assert len(rounds(trace, 60_000)[0].event.members) == 2


def test_a_removal_gets_through_a_network_that_loses_messages():
    scenario = scenario_of(*CRASHED, network={"loss": 0.2, "duplicate": 0.3}, seed=2, duration="5m")
    config = {**scenario.config, "session.timeout.ms": 1_000_000}
    trace = simulate(replace(scenario, config=config), "cooperative-sticky", default_registry())
    assert [member_id[:4] for _, member_id in removed(trace)] == ["c-1-"]
    assert trace.ended.messages["DescribeGroups"] > 1


def test_a_plan_removes_members():
    trace = plan(scenario_of(*CRASHED), "range+static", default_registry())
    (after,) = rounds(trace, 60_000)
    assert (after.at_ms, after.event.members) == (68_000, ["c-0-", "c-2-"])
    trace = plan(scenario_of({"at": "60s", "remove_member": "c-1"}), "range", default_registry())
    (after,) = rounds(trace, 60_000)
    assert len(after.event.members) == 3


def test_a_member_that_never_joined_is_not_removed():
    with pytest.raises(InputError, match="'x', which never joined"):
        scenario_of({"at": "60s", "remove_member": "x"})


class Deaf:
    """Two protocols without an administrator, one of which says why."""

    @hookimpl
    def protocols(self):
        why = {"remove_member": "it has no members"}
        return [
            replace(toy.TOY, name="deaf", aliases={}),
            replace(toy.TOY, name="mute", aliases={}, meaningless=why),
        ]


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [("deaf", "an administrator cannot remove its members"), ("mute", "it has no members")],
)
def test_a_family_without_administrators_refuses(protocol, reason):
    registry = installed_registry()
    registry.register(Deaf())
    with pytest.raises(
        InputError, match=rf"remove_member at 65s: .* under the protocol '{protocol}' \({reason}\)"
    ):
        family_for(scenario_of(*CRASHED), registry.strategy(f"range+{protocol}"), registry)


def test_a_static_member_is_removed_by_its_instance_id_and_others_by_their_ids():
    """KIP-345: a static member that is back has another id."""
    described = [DescribedMember(*ids, "c", "/h", b"", b"") for ids in (("x-1", None), ("y-1", "y"))]
    request = remove_members("g", described)
    assert [(m.member_id, m.group_instance_id) for m in request.members] == [("x-1", None), ("", "y")]

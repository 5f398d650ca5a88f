"""What holds for a group that the coordinator reconciles, whatever its members send (PROTOCOL 11.8)."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator_core.coordinator.reconcile.state import GroupState, restored_state
from coordinator_core.coordinator.records import GroupTable
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.protocol.events import GenerationStarted
from tests.coordinator_core.coordinator.conftest import as_written
from tests.examples import scaled

MEMBERS = ("a", "b", "c")
OFTEN = ["join", "beat", "report"]
RARELY = ["keep", "leave", "away", "sleep", "topics", "fail over", "error", "stale"]
steps = st.lists(
    st.tuples(st.sampled_from(3 * OFTEN + RARELY), st.sampled_from(MEMBERS)), min_size=10, max_size=50
)


class Members:
    """Members that own what they have last been assigned and have taken over, as real ones do."""

    def __init__(self, bench):
        self.bench, self.epoch, self.assigned, self.owned = bench, {}, {}, {}

    def take(self, member, answer):
        """Take note of a response: a fenced member gives up everything."""
        if answer is None:
            return
        if answer.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
            self.epoch.pop(member, None)
            self.assigned[member] = self.owned[member] = ()
        elif not answer.error:
            assert answer.member_epoch < 0 or answer.member_epoch >= self.epoch.get(member, 0)
            self.epoch[member] = answer.member_epoch
            if answer.assignment is not None:
                self.assigned[member] = answer.assignment

    def do(self, kind, member):
        bench, epoch = self.bench, self.epoch.get(member, 0)
        instance = {"instance_id": "one"} if member == "a" else {}
        if kind == "join" and epoch <= 0:
            self.assigned[member] = self.owned[member] = ()
            self.take(member, bench.join(member, **instance))
        elif kind in ("beat", "keep") and epoch > 0:
            self.take(member, bench.tell(member, epoch))
            if kind == "beat":
                self.owned[member] = self.assigned.get(member, ())
        elif kind == "report" and epoch > 0:
            self.owned[member] = self.assigned.get(member, ())
            self.take(member, bench.tell(member, epoch, self.owned[member]))
        elif kind in ("leave", "away") and epoch > 0 and (kind == "leave" or instance):
            self.assigned[member] = self.owned[member] = ()
            bench.tell(member, -2 if kind == "away" else -1, **instance)
            del self.epoch[member]
        elif kind == "stale" and epoch > 1:
            bench.tell(member, epoch - 1)
        elif kind == "sleep":
            bench.sleep(20_000)
        elif kind == "topics":
            bench.change_topics(t=bench.topics["t"] % 7 + 1, u=2)
        elif kind == "fail over":
            bench.fail_over()
        elif kind == "error":
            bench.append_error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.take(member, bench.join("d", ("u",)))
            bench.append_error = ErrorCode.NONE


def in_log(bench):
    """The state of the group, from the bytes of its records."""
    records = [record for partition in range(50) for record in bench.log.read(partition)]
    table = GroupTable()
    table.apply_all(as_written(records))
    return table.groups.get("g") and restored_state(table.groups["g"], table.parts["g"])


def content(state):
    return state.epoch, state.target, state.members, state.shares, state.currents, state.holders


@settings(
    max_examples=scaled(1_000), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=steps)
def test_no_two_members_of_the_group_own_a_partition_and_the_log_has_the_group(make_reconcile_bench, steps):
    """Given any heartbeats, reports, leaves, expiries, failed writes and failovers. PROTOCOL 11.8, 8.2."""
    bench = make_reconcile_bench()
    members = Members(bench)
    for kind, member in steps:
        members.do(kind, member)
        group = bench.group()
        if group is None:
            continue
        present = [m for m in members.owned if m in group.members and m in members.epoch]
        owned = [tp for m in present for tp in members.owned[m]]
        assert len(owned) == len(set(owned))
        logged = in_log(bench)
        assert content(logged or GroupState()) == content(group.durable)
    started = [event.generation for event in bench.events_of(GenerationStarted)]
    assert started == sorted(set(started))

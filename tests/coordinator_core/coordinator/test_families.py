"""Groups of several protocol families in one coordinator."""

from dataclasses import dataclass

import msgspec
import pytest

from coordinator_core.coordinator import classic
from coordinator_core.coordinator.parts import CoordinatorPart, Row
from coordinator_core.coordinator.records import GroupRecord, StoredGroup, decode_record, encode_record
from coordinator_core.coordinator.shard import EMPTY, Group
from coordinator_core.errors import InputError
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode

ALARM = 0


@dataclass
class Enter:
    """The only request of the toy family: become a member for a second."""

    group_id: str
    name: str


@dataclass
class Entered:
    error: ErrorCode


class Club(Group):
    """A group of the toy family; it has members, and nothing else."""

    family, protocol_type = "toy", "club"
    state = property(lambda self: "Open" if self.members else EMPTY)

    def __init__(self, group_id):
        super().__init__(group_id)
        self.members = {}

    def subscribed_topics(self):
        return None if self.members else ()

    def accept_commit(self, step, request):
        return ErrorCode.NONE if request.member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID


def enter(step, request_id, request):
    club = step.find(request.group_id, Club)
    if club is None:
        club = step.shard.groups[request.group_id] = Club(request.group_id)
    club.members[request.name] = None
    step.schedule(ALARM, club, 1_000, request.name)
    stored = StoredGroup(club.protocol_type, None, 0, None, (), step.now_ms, club.family)

    def written(step, error):
        step.effects.reply(request_id, Entered(error))

    step.append((GroupRecord(club.group_id, stored),), written)


def expire(step, club, key):
    del club.members[key.member_id]
    step.schedule_retention(club)


TOY = CoordinatorPart(
    name="toy",
    requests={Enter: Row(enter, lambda _, error: Entered(error), while_loading=ErrorCode.REQUEST_TIMED_OUT)},
    restore=lambda step, group_id, stored, handed_out: Club(group_id),
    on_timer=expire,
    foreign_group=ErrorCode.GROUP_ID_NOT_FOUND,
)


@pytest.fixture
def both(make_bench):
    return make_bench(parts=(classic.PART, TOY))


def test_groups_of_two_families_live_side_by_side(both):
    """Given a classic group and a toy group, then both go through their lives, and are listed together."""
    both.stable_group(1, group="g")
    assert both.ask(Enter("h", "ann")).error is ErrorCode.NONE
    rows = both.ask(m.ListGroupsRequest()).groups
    assert [(row.group_id, row.protocol_type, row.state) for row in rows] == [
        ("g", "consumer", "Stable"),
        ("h", "club", "Open"),
    ]
    assert both.commit("ann", 0, group="h") is ErrorCode.NONE
    assert both.ask(m.DeleteGroupsRequest(group_ids=("h",))).groups[0].error is ErrorCode.NON_EMPTY_GROUP
    both.sleep(1_000)
    assert both.group("h").state == "Empty"
    both.sleep(8 * 86_400_000)
    assert both.coordinator.group_ids() == []


def test_a_request_of_another_family_is_refused(both):
    """Given a group of one family, when a request of the other comes for it, then that family's error, or the
    one of that request."""
    (member,) = both.stable_group(1, group="g")
    both.send(Enter("h", "ann"))
    assert both.ask(Enter("g", "bob")).error is ErrorCode.GROUP_ID_NOT_FOUND
    foreign = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert both.joined(group="h").error is foreign
    assert both.synced("ann", 0, group="h").error is both.beat("ann", 0, group="h") is unknown
    leaving = m.LeaveGroupRequest(group_id="h", members=(m.MemberIdentity("ann"),))
    assert [member.error for member in both.ask(leaving).members] == [unknown]
    assert both.group("h").members == {"ann": None}
    assert both.beat(member) is ErrorCode.NONE


@pytest.mark.parametrize("family", ["classic", "toy"])
def test_a_group_with_nothing_but_offsets_belongs_to_the_first_family_that_joins(both, family):
    """Given a simple consumer's offsets, when a member of any family joins, then the group is that family's
    and keeps its offsets."""
    both.commit(offset=7)
    assert both.group().family == ""
    if family == "classic":
        both.stable_group(1)
    else:
        both.send(Enter("g", "ann"))
    assert (both.group().family, both.committed()) == (family, 7)


def test_a_group_is_restored_by_its_family(both, make_bench):
    """Given groups of two families in the log, when a broker takes over, then each family has its own."""
    both.stable_group(1, group="g")
    both.send(Enter("h", "ann"))
    other = make_bench(parts=(classic.PART, TOY), log=both.log)
    assert [other.group(name).family for name in "gh"] == ["classic", "toy"]
    other.start()
    for partition in range(50):
        other.coordinator.on_elected(partition)
    assert other.ask(Enter("h", "bob")).error is ErrorCode.REQUEST_TIMED_OUT


def test_a_stored_group_of_a_family_that_is_not_served_is_an_error(both, make_bench):
    both.send(Enter("h", "ann"))
    with pytest.raises(
        InputError, match="stored group 'h': found the family 'toy', expected one of: classic"
    ):
        make_bench(log=both.log)


def test_a_record_without_a_family_is_classic():
    """Given a group written before records had a family, then it is read as classic."""
    value = StoredGroup("consumer", "range", 3, None, (), 9)
    old = msgspec.msgpack.encode(["g", "x", list(msgspec.to_builtins(value))[:-1]])
    assert msgspec.msgpack.decode(old, type=GroupRecord).value == value
    assert decode_record(encode_record(GroupRecord("x", value)), "").value.family == "classic"


def test_a_type_of_request_belongs_to_one_family(make_bench):
    with pytest.raises(InputError, match="requests of 'toy': found Enter, expected no request of another"):
        make_bench(parts=(TOY, TOY))


def test_a_coordinator_of_no_family_keeps_offsets(make_bench):
    bench = make_bench(parts=())
    assert bench.commit() is ErrorCode.NONE
    assert bench.commit("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert bench.committed() == 5
    with pytest.raises(TypeError, match="JoinGroupRequest"):
        bench.join()

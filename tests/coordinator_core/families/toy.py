"""A toy family with one request: a member asks for its share, which is valid until members come or leave."""

from functools import partial

import msgspec

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.client.generation import NO_MEMBERSHIP, Generation
from coordinator_core.client.member import MemberPart, Outlook
from coordinator_core.client.requests import NEVER
from coordinator_core.client.subscription import partition_map
from coordinator_core.coordinator.parts import CoordinatorPart, Row
from coordinator_core.coordinator.shard import Group
from coordinator_core.model import GroupSubscription, Subscription, TopicPartition
from coordinator_core.protocol import events as ev
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl

SESSION = 0


class ToySettings(msgspec.Struct, frozen=True, kw_only=True):
    ask_every_ms: int = msgspec.field(default=1_000, name="toy.ask.every.ms")


class ToyRequest(msgspec.Struct, frozen=True):
    group_id: str
    member_id: str
    topics: tuple[str, ...]


class ToyResponse(msgspec.Struct, frozen=True):
    error: ErrorCode
    epoch: int = -1
    share: tuple[TopicPartition, ...] = ()


class ToyGroup(Group):
    family, state, generation, members = "toy", "Empty", 0, {}
    expects_members, emptied_at_ms, is_empty = False, 0, property(lambda self: not self.members)

    def __init__(self, group_id):
        self.group_id = group_id

    def accept_commit(self, step, request):
        return ErrorCode.NONE if request.member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID


def handle(surroundings, step, request_id, request):
    group = step.shard.groups.setdefault(request.group_id, ToyGroup(request.group_id))
    step.schedule(SESSION, group, 5 * surroundings.settings.ask_every_ms, request.member_id)
    if group.members.get(request.member_id) != request.topics:
        deal(surroundings, step, group, request.member_id, request.topics)
    share = tuple(group.shares[request.member_id]) if request.topics else ()
    step.effects.reply(request_id, ToyResponse(ErrorCode.NONE, group.generation, share))


def deal(surroundings, step, group, member_id, topics):
    def move(state, cause):
        before, group.state = group.state, state
        step.moved(group, before, state, cause)

    move("Dealing", f"{member_id} {'asks' if topics else 'leaves'}")
    if not topics:
        step.cancel(SESSION, group, member_id)
    group.members = {m: ts for m, ts in {**group.members, member_id: topics}.items() if ts}
    group.generation += 1
    assignor, members = surroundings.make_assignor(), list(group.members)
    epoch = {"generation": group.generation, "protocol": assignor.name, "members": members}
    leader = members[0] if members else ""
    step.effects.events += [ev.GenerationStarted(group=group.group_id, leader=leader, **epoch)]
    subscriptions = GroupSubscription({m: Subscription(ts) for m, ts in group.members.items()})
    group.shares = compute_assignment(assignor, surroundings.cluster(), subscriptions)
    move("Dealt" if members else "Empty", "shares are dealt")


class ToyMember(MemberPart):
    is_leader, is_at_rest, may_revoke, may_commit, due_ms = False, True, True, True, 0

    def __init__(self, settings, core, coordinator, offsets, assignors):
        self.settings, self.core, self.coordinator = settings, core, coordinator

    def poll(self, *, now_ms):
        if self.outlook(now_ms=now_ms).poll_ms <= now_ms:
            self.ask(self.core.subscriptions.topics, self.take, now_ms)

    def outlook(self, *, now_ms):
        can_ask = self.coordinator.node is not None and self.core.subscriptions.topics
        return Outlook(True, NEVER, self.due_ms if can_ask else NEVER)

    def ask(self, topics, answered, now_ms):
        due_ms = self.due_ms = now_ms + self.settings.ask_every_ms
        request = ToyRequest(self.core.config.group_id, self.core.config.client_id, tuple(topics))
        node, done = self.coordinator.node, lambda reply, at_ms: answered(reply, due_ms)
        self.core.requests.send(node, request, done, now_ms=now_ms)

    def take(self, reply, due_ms):
        core, client = self.core, self.core.config.client_id
        epoch = reply.epoch if due_ms == self.due_ms and isinstance(reply, ToyResponse) else -1
        if epoch in (-1, core.generation.number):
            return
        owned, share = core.subscriptions.partitions, sorted(reply.share)
        if revoked := [tp for tp in owned if tp not in share]:
            core.give_up(revoked)
        lists = {"added": partition_map(tp for tp in share if tp not in owned), "owned": partition_map(share)}
        core.generation = Generation(epoch, client, "toy")
        core.subscriptions.assign_by_group(share)
        own = {"client": client, "generation": epoch}
        core.effects.events += [ev.Joined(**own, member_id=client, protocol="toy", leader=False)]
        core.effects.events += [ev.Assigned(**own, **lists)]

    def leave(self, reason, left=None, *, now_ms):
        self.core.generation, sends = NO_MEMBERSHIP, self.coordinator.node is not None
        if sends:
            self.ask((), lambda reply, due_ms: left and left(), now_ms)
        return sends


def coordinator_part(surroundings):
    def expire(step, group, key):
        deal(surroundings, step, group, key.member_id, ())

    row = Row(partial(handle, surroundings), lambda request, error: ToyResponse(error))
    return CoordinatorPart("toy", {ToyRequest: row}, restore=None, on_timer=expire)


TOY = ProtocolSpec(
    "toy",
    {"Empty": {"Dealing"}, "Dealing": {"Dealt", "Empty"}, "Dealt": {"Dealing"}},
    at_rest=frozenset({"Dealt"}),
    round_begins=frozenset({"Dealing"}),
    vacant=frozenset({"Empty"}),
    coordinator=coordinator_part,
    member=lambda settings: partial(ToyMember, settings),
    settings=ToySettings,
    meaningless={"coordinator_failover": "its coordinator keeps nothing in the log"},
    aliases={"toyish": "roundrobin+toy"},
)


@hookimpl
def protocols():
    return [TOY]

"""Members that behave as clients do: each reacts to the last response of Kafka that it got."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Literal, TypeAlias

from tests.beside_kafka import steps as s
from tests.beside_kafka.comparing import Body

State: TypeAlias = Literal["out", "join", "sync", "in"]
Offers: TypeAlias = tuple[str, ...]
PROTOCOLS: Sequence[Offers] = (("range",), ("range", "roundrobin"), ("cooperative-sticky", "range"))

_AFTER_JOIN: Mapping[str, State] = {"none": "sync", "unknown_member_id": "out", "fenced_instance_id": "out"}
_AFTER_CLASSIC: Mapping[str, State] = {
    "none": "in",
    "rebalance_in_progress": "join",
    "illegal_generation": "join",
}


class Live:
    """A script that is made while it is played.

    ``styles``: the protocols of its members. ``besides``: returns a step that is none of a member's work, or
    None; it is called before each step with this script.
    """

    def __init__(
        self,
        seed: int,
        styles: Sequence[str],
        steps: int,
        *,
        besides: Callable[["Live"], s.AnyStep | None] = lambda _: None,
        topics: Sequence[str] = tuple(s.SHARED),
        assignors: Sequence[str | None] = (None, None, "range", "uniform"),
        session_ms: int = 30_000,
    ) -> None:
        self.random = random = Random(f"live {styles} {seed}")
        self.seed, self.is_old = seed, random.random() < 0.15
        self.members = s.MEMBERS[: random.choice((1, 2, 3, 3, 4))]
        self.state: dict[str, State] = dict.fromkeys(self.members, "out")
        self.silent: dict[str, int] = {}
        """Members that send nothing, with the number of steps until they do again."""
        self.known = list(topics)
        """The topics that members subscribe to."""
        self.regexes: Sequence[str] = ()
        """Regular expressions that members of the consumer protocol may have in place of names."""
        self._styles, self._left, self._besides, self._session_ms = styles, steps, besides, session_ms
        self._style = {member: random.choice(styles) for member in self.members}
        self._instance = {m: f"i{m}" if random.random() < 0.3 else None for m in self.members}
        self._topics = {member: self.some_topics() for member in self.members}
        self._protocols = random.choice(PROTOCOLS)
        self._assignor = random.choice(assignors)
        self._joined: dict[str, Body] = {}
        self._last: dict[str, Body] = {}

    def some_topics(self) -> tuple[str, ...]:
        """Return some of the topics, or the first two in every other case."""
        if self.random.random() < 0.5:
            return tuple(self.known[:2])
        return tuple(self.random.sample(self.known, self.random.randint(1, len(self.known))))

    # --- responses

    def told(self, step: s.AnyStep, body: Body) -> None:
        member = step.member
        if member not in self.state:
            return
        error = body.get("error_code", "none")
        self._last[member] = body
        if isinstance(step, s.JoinGroup):
            self.state[member] = _AFTER_JOIN.get(error, "join")
            self._joined[member] = body
        elif isinstance(step, s.SyncGroup | s.Heartbeat):
            self.state[member] = _AFTER_CLASSIC.get(error, "out")
        elif isinstance(step, s.ConsumerHeartbeat):
            self.state[member] = "in" if error == "none" and body["member_epoch"] > 0 else "out"
        elif isinstance(step, s.LeaveGroup):
            self.state[member] = "out"

    # --- the next step

    def next(self, waiting: frozenset[str]) -> s.AnyStep | None:
        if self._left <= 0:
            return None
        self._left -= 1
        besides = self._besides(self)
        if besides is not None:
            return besides if besides.member not in waiting else s.DescribeGroup()
        self.silent = {member: left - 1 for member, left in self.silent.items() if left > 1}
        free = [m for m in self.members if m not in waiting and m not in self.silent]
        random = self.random
        if not free or random.random() < 0.04:
            return s.Wait(seconds=random.choice((0.3, 2.2)))
        if random.random() < 0.06:
            return random.choice((s.DescribeGroup(), s.DescribeConsumerGroup(), s.ListGroups()))
        busy = [member for member in free if self.state[member] != "in"]
        return self._work(random.choice([*busy * 3, *free]))

    def _work(self, member: str) -> s.AnyStep:
        if self.state[member] == "out" and self.random.random() < 0.05:
            self._style[member] = self.random.choice(self._styles)
        if self._style[member] == "classic":
            return self._classic(member)
        return self._consumer(member)

    def _classic(self, member: str) -> s.AnyStep:
        chance, state, instance = self.random.random(), self.state[member], self._instance[member]
        if state == "sync":
            return self._sync(member)
        if state == "in":
            if chance < 0.06:
                return s.LeaveGroup(member=member, leaving=(("own", instance),))
            if chance < 0.24:
                return self._commit(member)
            if chance < 0.3:
                self._topics[member] = self.some_topics()
                state = "join"
        if state == "in":
            return s.Heartbeat(member=member, instance=instance)
        return s.JoinGroup(
            member=member,
            id="empty" if state == "out" and not self._has_to_name_itself(member) else "own",
            session_ms=self._session_ms,
            instance=instance,
            protocols=self._protocols,
            topics=self._topics[member],
            owned=state == "join" and self._protocols[0] == "cooperative-sticky",
        )

    def _has_to_name_itself(self, member: str) -> bool:
        return self._last.get(member, {}).get("error_code") == "member_id_required"

    def _sync(self, member: str) -> s.AnyStep:
        joined = self._joined[member]
        shares: dict[str, dict[str, tuple[int, ...]]] = {}
        if joined["leader"] == joined["member_id"]:
            for topic, partitions in s.SHARED.items():
                able = [other for other in self.members if topic in self._topics[other]]
                for nth, other in enumerate(able):
                    shares.setdefault(other, {})[topic] = tuple(range(nth, partitions, len(able)))
        return s.SyncGroup(
            member=member,
            instance=self._instance[member],
            protocol=joined["protocol_name"],
            shares=shares,
        )

    def _consumer(self, member: str) -> s.AnyStep:
        random, instance = self.random, self._instance[member]
        chance = random.random()
        if self.state[member] != "in":
            return self._full(member, id="new", epoch="join", owned="none")
        if chance < 0.05:
            epoch = "pause" if instance and random.random() < 0.6 else "leave"
            return s.ConsumerHeartbeat(member=member, epoch=epoch, instance=instance)
        if chance < 0.19:
            return self._commit(member)
        if chance < 0.24:
            self._topics[member] = self.some_topics()
            return s.ConsumerHeartbeat(member=member, **self._subscription(member))
        was_assigned = self._last.get(member, {}).get("assignment") is not None
        if chance < 0.28:
            return self._full(member, epoch=0, owned="all")
        return s.ConsumerHeartbeat(member=member, owned="all" if was_assigned else None)

    def _full(self, member: str, **fields: Any) -> s.AnyStep:
        """Return a heartbeat with all fields, as the first one is, and one after an error of the network."""
        return s.ConsumerHeartbeat(
            member=member,
            instance=self._instance[member],
            rebalance_ms=1_500,
            assignor=self._assignor,
            **self._subscription(member),
            **fields,
        )

    def _subscription(self, member: str) -> dict[str, Any]:
        if self.regexes and self.random.random() < 0.6:
            return {"topics": (), "regex": self.random.choice(self.regexes)}
        return {"topics": self._topics[member], "regex": "" if self.regexes else None}

    def _commit(self, member: str) -> s.AnyStep:
        instance = self._instance[member] if self._style[member] == "classic" else None
        offsets = tuple((topic, 0, self.random.randrange(100), "") for topic in self._topics[member])
        return s.CommitOffsets(member=member, instance=instance, offsets=offsets)

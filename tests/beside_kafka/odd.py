"""Scripts of random requests: right ones, and ones with wrong ids, epochs, instances and fields."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.beside_kafka import steps as s

T = TypeVar("T")
ODDS = (0.02, 0.1, 0.25)
"""How many of the values of a script are wrong."""

STATES = ("Stable", "Empty", "PreparingRebalance", "Assigning", "Reconciling")
TYPES = ("classic", "consumer", "Consumer", "share")
ASSIGNORS = ("range", "uniform", "unknown")
REGEXES = ("t.*", "t[12]", "(", "")


def odd_script(seed: int, styles: Sequence[str], steps: int) -> s.Script:
    """Return a script of members of these protocols, ``classic`` and ``consumer``."""
    random = Random(f"odd {styles} {seed}")
    made = _Odd(random, styles).script(steps)
    return s.Script(tuple(made[:steps]), seed, is_old=random.random() < 0.25)


class _Odd:
    def __init__(self, random: Random, styles: Sequence[str]) -> None:
        self._random, self._styles = random, styles
        choose, members = random.choice, s.MEMBERS
        self._members = members[: choose((1, 2, 2, 3, 3, 4))]
        self._odds = choose(ODDS)
        self._session_ms, self._rebalance_ms = choose((3_000, 6_000)), choose((900, 1_500))
        offers = (
            ("range",),
            ("range", "roundrobin"),
            ("roundrobin", "range"),
            ("range",),
            ("sticky", "range"),
        )
        self._protocols = {member: choose(offers) for member in members}
        self._instance = {member: f"i{member}" if random.random() < 0.3 else None for member in members}
        self._style = {member: choose(styles) for member in members}
        self._topics = {member: self._some_topics() for member in members}
        self._is_in: set[str] = set()

    def script(self, steps: int) -> list[s.AnyStep]:
        made: list[s.AnyStep] = []
        while len(made) < steps:
            made += self._next()
        return made

    # --- values

    def _or(self, right: T, *wrong: T) -> T:
        return self._random.choice(wrong) if self._random.random() < self._odds else right

    def _some_topics(self) -> tuple[str, ...]:
        topics = (*s.SHARED, s.MISSING)
        return tuple(self._random.sample(topics, self._random.choice((1, 1, 2, 2, 3))))

    def _id(self) -> s.Which:
        return self._or("own", "empty", "unknown", self._random.choice(self._members))

    def _instance_of(self, member: str) -> str | None:
        other = f"i{self._random.choice(self._members)}"
        return self._or(self._instance[member], None, "iX", other)

    def _shift(self) -> int:
        return self._or(0, -1, 1)

    def _offsets(self, member: str) -> tuple[s.Offset, ...]:
        draw = self._random.randrange
        return tuple((topic, draw(7), draw(100), self._or("", None)) for topic in self._topics[member])

    # --- steps

    def _next(self) -> list[s.AnyStep]:
        member, chance = self._random.choice(self._members), self._random.random()
        if chance < 0.21:
            return [self._besides(member, chance)]
        if self._random.random() < 0.04:
            self._topics[member] = self._some_topics()
        if len(self._styles) > 1 and self._random.random() < 0.08:
            self._style[member] = self._random.choice(self._styles)
        if self._style[member] == "classic":
            return self._classic(member, chance)
        return [self._consumer(member, chance)]

    def _besides(self, member: str, chance: float) -> s.AnyStep:
        choose = self._random.choice
        if chance < 0.07:
            return choose(
                (
                    s.DescribeGroup(operations=choose((False, True))),
                    s.DescribeConsumerGroup(operations=choose((False, True))),
                    s.ListGroups(),
                    s.ListGroups(states=(choose(STATES),)),
                    s.ListGroups(types=(choose(TYPES),)),
                )
            )
        if chance < 0.12:
            return s.CommitOffsets(
                member=member,
                id=self._or("own", "empty", "unknown"),
                by=self._or("member", "nobody"),
                shift=self._shift(),
                instance=self._or(self._instance[member], None),
                offsets=self._offsets(member),
            )
        if chance < 0.16:
            return s.FetchOffsets(
                member=member,
                by=choose(("nobody", "member")),
                shift=self._or(0, 1),
                topics=choose((None, {"t1": (0, 1), "t2": (0, 9), s.MISSING: (0,)})),
                stable=choose((False, True)),
            )
        if chance < 0.17:
            return s.DeleteGroup()
        if chance < 0.18:
            return s.DeleteOffsets(topics={"t1": (0, 1), "t2": (0,)})
        session = self._session_ms if self._styles == ("classic",) else 5_300
        return s.Wait(seconds=choose((self._rebalance_ms / 1_000 + 0.5, session / 1_000 + 0.7)))

    def _classic(self, member: str, chance: float) -> list[s.AnyStep]:
        if chance < 0.26:
            self._is_in.discard(member)
            count = self._random.choice((1, 1, 1, min(2, len(self._members))))
            leaving = tuple(
                (self._or(other, "unknown"), self._or(self._instance[other], None))
                for other in self._random.sample(self._members, count)
            )
            return [s.LeaveGroup(member=member, leaving=leaving)]
        if member not in self._is_in or chance < 0.32:
            self._is_in.add(member)
            return [self._join(member), self._join(member)]
        if chance < 0.5:
            joins = [self._join(other) for other in self._members]
            return [*joins, *(self._sync(other) for other in self._members)]
        if chance < 0.75:
            return [self._sync(member)]
        return [
            s.Heartbeat(
                member=member,
                id=self._or("own", "empty", "unknown"),
                shift=self._shift(),
                instance=self._or(self._instance[member], None, "iX"),
            )
        ]

    def _join(self, member: str) -> s.AnyStep:
        return s.JoinGroup(
            member=member,
            id=self._id(),
            session_ms=self._or(self._session_ms, 1, 100, 10_000_000),
            rebalance_ms=self._rebalance_ms,
            instance=self._instance_of(member),
            protocol_type=self._or("consumer", "connect", ""),
            protocols=self._or(self._protocols[member], (), ("odd",), ("range",)),
            topics=self._topics[member],
        )

    def _sync(self, member: str) -> s.AnyStep:
        topics = [topic for topic in self._topics[member] if topic != s.MISSING]
        shares = {
            other: {
                topic: tuple(sorted(self._random.sample(range(6), self._random.choice((1, 2, 3)))))
                for topic in topics
            }
            for other in self._members
            if self._random.random() > self._odds
        }
        return s.SyncGroup(
            member=member,
            id=self._id(),
            shift=self._shift(),
            instance=self._or(self._instance[member], None, "iX"),
            protocol_type=self._or("consumer", None, "connect"),
            protocol=self._or("range", None, "roundrobin"),
            shares=shares,
        )

    def _consumer(self, member: str, chance: float) -> s.AnyStep:
        choose = self._random.choice
        if member not in self._is_in:
            self._is_in.add(member)
            return self._heartbeat(member, "join", "none")
        if chance < 0.28:
            self._is_in.discard(member)
            return self._heartbeat(member, choose(("leave", "leave", "pause")), None)
        if chance < 0.34:
            return self._heartbeat(member, "join", choose(("none", "all")))
        return self._heartbeat(member, 0, choose((None, None, "all", "all")))

    def _heartbeat(self, member: str, epoch: int | str, owned: s.Owned | None) -> s.AnyStep:
        sent = self._or(epoch, "join", 1, 7, "leave", "pause")
        is_full = sent == "join" or self._random.random() < 0.15
        has_topics = is_full or self._random.random() < 0.1
        return s.ConsumerHeartbeat(
            member=member,
            id=self._id(),
            epoch=sent,
            instance=self._instance_of(member),
            rack=self._or(None, "r1"),
            rebalance_ms=self._or(self._rebalance_ms, -1, 0) if is_full else -1,
            topics=self._topics[member] if has_topics else None,
            regex=self._or(None, *REGEXES),
            assignor=self._or(None, *ASSIGNORS),
            owned=self._or(owned, "all", "none", "old", None),
        )

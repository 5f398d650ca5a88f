"""Scripts of offsets: commits with and without members, in transactions, fetches and deletions."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.beside_kafka import steps as s

T = TypeVar("T")
PRODUCERS = ("p", "q")
LONG_METADATA = "x" * 4_097
WIDE_METADATA = "\u00e4" * 4_096
"""As many characters as a broker takes by default, and more bytes."""


def offsets_script(seed: int, steps: int) -> s.Script:
    """Return a script in which one member of either protocol, or none, commits beside producers."""
    random = Random(f"offsets {seed}")
    made = _Offsets(random)
    script = [*made.beginning(), *(made.step() for _ in range(steps))]
    return s.Script(tuple(script), seed, is_old=random.random() < 0.25)


class _Offsets:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._odds = random.choice((0.02, 0.1, 0.25))
        self._style = random.choice(("none", "classic", "consumer"))
        self._member = s.MEMBERS[0]
        self._producers: Sequence[str] = PRODUCERS[: random.choice((1, 2))]

    def beginning(self) -> list[s.AnyStep]:
        """Return the steps that begin a producer, and make the member one."""
        begun: list[s.AnyStep] = [s.InitProducer(producer=self._producers[0])]
        member, topics = self._member, ("t1", "t2")
        if self._style == "classic":
            join = s.JoinGroup(member=member, topics=topics)
            begun += [join, join, s.SyncGroup(member=member, shares={member: {"t1": (0, 1)}})]
        elif self._style == "consumer":
            begun.append(
                s.ConsumerHeartbeat(
                    member=member, id="new", epoch="join", rebalance_ms=1_500, topics=topics, owned="none"
                )
            )
        return begun

    def step(self) -> s.AnyStep:
        random = self._random
        make = random.choices(
            (self._commit, self._fetch, self._delete, self._in_transaction, self._besides),
            weights=(5, 4, 1, 8, 2),
        )[0]
        return make()

    def _or(self, right: T, *wrong: T) -> T:
        return self._random.choice(wrong) if self._random.random() < self._odds else right

    def _by(self) -> s.As:
        return self._or("nobody" if self._style == "none" else "member", "nobody", "member")

    def _some_offsets(self) -> tuple[s.Offset, ...]:
        draw = self._random.randrange
        topic = self._or(self._random.choice(("t1", "t2")), s.MISSING, "t3")
        rows = [
            (
                topic,
                self._or(draw(3), 99, -1),
                self._or(draw(1_000), -1, 2**40),
                self._or("", None, "m", LONG_METADATA, WIDE_METADATA),
            )
            for _ in range(self._random.choice((1, 1, 2)))
        ]
        return tuple(rows)

    def _commit(self) -> s.AnyStep:
        return s.CommitOffsets(
            member=self._member,
            id=self._or("own", "empty", "unknown"),
            by=self._by(),
            shift=self._or(0, -1, 1),
            instance=self._or(None, "iX"),
            offsets=self._some_offsets(),
            retention_ms=self._or(-1, 1, 3_600_000),
        )

    def _fetch(self) -> s.AnyStep:
        choose = self._random.choice
        named = {"t1": (0, 1, 2), "t2": (0, 99), s.MISSING: (0,)}
        return s.FetchOffsets(
            member=self._member,
            id=self._or("own", "unknown"),
            by=self._or("nobody", "member"),
            shift=self._or(0, 1, -1),
            topics=choose((None, named, {"t1": (0,)}, {})),
            stable=choose((False, True)),
        )

    def _delete(self) -> s.AnyStep:
        topics = {self._random.choice(("t1", "t2", s.MISSING)): (0, self._or(1, 99))}
        return self._or(s.DeleteOffsets(topics=topics), s.DeleteGroup())

    def _in_transaction(self) -> s.AnyStep:
        random = self._random
        producer, shift, chance = random.choice(self._producers), self._or(0, -1, 1), random.random()
        if chance < 0.15:
            return s.InitProducer(producer=producer, again=random.random() < 0.3)
        if chance < 0.4:
            return s.AddOffsets(producer=producer, shift=shift)
        if chance < 0.7:
            return s.CommitInTransaction(
                producer=producer,
                shift=shift,
                of=self._member,
                by=self._by() if random.random() < 0.5 else "nobody",
                id=self._or("own", "unknown"),
                instance=self._or(None, "iX"),
                offsets=self._some_offsets(),
            )
        return s.EndTransaction(producer=producer, commits=random.random() < 0.7, shift=shift)

    def _besides(self) -> s.AnyStep:
        member = self._member
        works: list[s.AnyStep] = [s.DescribeGroup(), s.ListGroups()]
        if self._style == "classic":
            works += [s.Heartbeat(member=member), s.LeaveGroup(member=member, leaving=(("own", None),))]
        if self._style == "consumer":
            works += [s.ConsumerHeartbeat(member=member, owned="all")]
            works += [s.ConsumerHeartbeat(member=member, epoch="leave")]
        return self._random.choice(works)

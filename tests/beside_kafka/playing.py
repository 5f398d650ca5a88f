"""Playing a script to two brokers in step."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tests.beside_kafka import steps as s
from tests.beside_kafka.clocks import Clocks
from tests.beside_kafka.comparing import Body, Difference, compared, where
from tests.beside_kafka.gate import Gate
from tests.beside_kafka.known import History, reason_of
from tests.beside_kafka.side import Side
from tests.real_kafka.wire import ClosedError, Key

PATIENCE = 8.0
"""Seconds until a response that only one broker has sent is missing on the other one."""

AFTER_RESTART = 4.0
"""Seconds in which timers of rebalances end that were under way: a coordinator starts them when it loads."""

LOOK = 0.03
ROUNDS = 2
"""How often both brokers are asked something else before a request counts as one that waits."""

BARRIER = {"group_id": "barrier", "generation_id": 1, "member_id": "nobody", "group_instance_id": None}
WAITS = (s.JoinGroup, s.SyncGroup)
"""Requests that the coordinator may answer later."""


class Source(Protocol):
    """Where the steps of a script come from."""

    seed: int
    is_old: bool

    def next(self, waiting: frozenset[str]) -> s.AnyStep | None:
        """Return the next step, None at the end. ``waiting``: members that wait for a response."""

    def told(self, step: s.AnyStep, body: Body) -> None:
        """Take Kafka's response to a step."""


class Fixed:
    """The steps of a script, in their order. Those of members that still wait are left out."""

    def __init__(self, script: s.Script) -> None:
        self.seed, self.is_old = script.seed, script.is_old
        self._rest = list(reversed(script.steps))

    def next(self, waiting: frozenset[str]) -> s.AnyStep | None:
        while self._rest:
            step = self._rest.pop()
            if not step.member or step.member not in waiting:
                return step
        return None

    def told(self, step: s.AnyStep, body: Body) -> None:
        return


@dataclass
class Outcome:
    """What came of a script: the steps that were played, what was the same, and the differences."""

    script: s.Script
    same: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)

    def faults(self) -> list[Difference]:
        """Return the differences without a reason."""
        return [difference for difference in self.differences if difference.reason is None]


class Pending(NamedTuple):
    """A step that was sent to both brokers."""

    number: int
    step: s.AnyStep
    key: Key
    responses: tuple[asyncio.Future[Body], asyncio.Future[Body]]
    arrivals: list[float]
    """When responses came."""

    def is_even(self) -> bool:
        """Return whether both brokers have answered, or none."""
        kafka, other = self.responses
        return kafka.done() == other.done()

    def is_answered(self) -> bool:
        return all(response.done() for response in self.responses)


class Playing:
    """One script on two brokers.

    ``sides``: Kafka's first. ``clocks``: the timers of its group. ``gate``: where scripts wait for a restart.
    """

    def __init__(
        self, source: Source, sides: tuple[Side, Side], clocks: Clocks, gate: Gate | None = None
    ) -> None:
        self._source, self._sides, self._clocks, self._gate = source, sides, clocks, gate
        self._pending: list[Pending] = []
        self._steps: list[s.AnyStep] = []
        self._history = History()
        self._is_over = False
        self.outcome = Outcome(s.Script(()))

    async def play(self) -> Outcome:
        """Play the script until its end, or until the two groups cannot be the same any more."""
        now = asyncio.get_running_loop().time
        async with self._sides[0], self._sides[1]:
            while not self._is_over:
                step = self._source.next(frozenset(pending.step.member for pending in self._pending))
                if step is None:
                    break
                self._steps.append(step)
                await self._take(step, now)
                await self._settle()
                self._read()
        self.outcome.script = s.Script(tuple(self._steps), self._source.seed, self._source.is_old)
        return self.outcome

    async def _take(self, step: s.AnyStep, now: Callable[[], float]) -> None:
        if isinstance(step, s.Wait):
            await asyncio.sleep(step.seconds)
        if isinstance(step, s.Restart):
            await self._restart()
            self._history.add(step, {}, {})
        if isinstance(step, s.Wait | s.Restart):
            return
        while (wait := self._clocks.wait(now())) > 0:
            await asyncio.sleep(wait)
        kafka, other = (side.send(step) for side in self._sides)
        arrivals: list[float] = []
        for response in (kafka[1], other[1]):
            response.add_done_callback(lambda _: arrivals.append(now()))
        pending = Pending(len(self._steps) - 1, step, kafka[0], (kafka[1], other[1]), arrivals)
        self._pending.append(pending)
        self._clocks.sent(step, now())
        if isinstance(step, s.CreateTopic | s.GrowTopic | s.DeleteTopic):
            await self._known(step, [kafka[1], other[1]])

    async def _restart(self) -> None:
        """Close all connections: responses that did not come never will."""
        assert self._gate is not None
        for side in self._sides:
            await side.disconnect()
        for pending in self._pending:
            self._history.lose(pending.step)
        self._pending.clear()
        await self._gate.passed()
        await asyncio.sleep(AFTER_RESTART)
        for side in self._sides:
            await side.connect()

    async def _known(
        self, step: s.CreateTopic | s.GrowTopic | s.DeleteTopic, responses: list[asyncio.Future[Body]]
    ) -> None:
        """Wait until both coordinators know of a change of a topic."""
        await asyncio.wait(responses)
        partitions = 0 if isinstance(step, s.DeleteTopic) else step.partitions
        for side, response in zip(self._sides, responses, strict=True):
            if "'error_code': 'none'" in str(response.result()):
                side.names.learn_topic(step.topic, await side.knows(step.topic, partitions))

    async def _settle(self) -> None:
        """Wait until both brokers have done what the last request led to."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        answered_at_once = [
            response
            for pending in self._pending
            if not isinstance(pending.step, WAITS)
            for response in pending.responses
        ]
        if answered_at_once:
            await asyncio.wait(answered_at_once, timeout=PATIENCE)
        if any(not pending.is_answered() for pending in self._pending):
            for _ in range(ROUNDS):
                await self._barrier()
            while not all(pending.is_even() for pending in self._pending) and loop.time() < end:
                await asyncio.sleep(LOOK)
            await self._barrier()

    async def _barrier(self) -> None:
        """Let the coordinators, which handle one request after the other, answer something else."""
        await asyncio.gather(
            *(side.ask(Key.HEARTBEAT, BARRIER) for side in self._sides),
            return_exceptions=True,
        )

    def _read(self) -> None:
        """Compare the responses that came."""
        pending, self._pending = self._pending, []
        for sent in pending:
            if any(response.done() for response in sent.responses):
                self._compare(sent)
            else:
                self._pending.append(sent)

    def _compare(self, sent: Pending) -> None:
        group = self._sides[0].names.group
        bodies = [_body(response) for response in sent.responses]
        if "answer" not in bodies[0]:
            self._source.told(sent.step, bodies[0])
            self._clocks.answered(sent.step, bodies[0], sent.arrivals)
        for side, body in zip(self._sides, bodies, strict=True):
            if "answer" not in body:
                side.names.learn(sent.step, body)
        kafka, other = (
            body if "answer" in body else compared(sent.key, side.names.normal(body), group)
            for side, body in zip(self._sides, bodies, strict=True)
        )
        name = type(sent.step).__name__
        self.outcome.trace.append(f"{sent.number} {sent.step} {kafka}{'' if kafka == other else f' {other}'}")
        self._history.add(sent.step, *bodies)
        found = where(kafka, other)
        if found is None:
            self.outcome.same[name] += 1
            return
        difference = Difference(sent.number, sent.step, *found, (bodies[0], bodies[1]))
        reason = reason_of(difference, self._history)
        self.outcome.differences.append(difference._replace(reason=reason))
        self._is_over = self._is_over or not isinstance(sent.step, s.READS)


def _body(response: asyncio.Future[Body]) -> Body:
    """Return the fields of a response; of one that did not come or cannot be read, what there is instead."""
    if not response.done():
        return {"answer": "none yet"}
    error = response.exception()
    if error is None:
        return response.result()
    return {"answer": "closed" if isinstance(error, ClosedError) else f"{type(error).__name__}: {error}"}

"""Many scripts of a kind on two brokers, and what came of them."""

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from kio.index import load_request_schema
from msgspec.structs import replace

from tests.beside_kafka.brokers import Broker, versions_of, with_topics
from tests.beside_kafka.clocks import Clocks
from tests.beside_kafka.comparing import Difference
from tests.beside_kafka.gate import Gate
from tests.beside_kafka.kinds import KINDS, RESTARTING, STEPS
from tests.beside_kafka.names import Names
from tests.beside_kafka.playing import Fixed, Outcome, Playing, Source
from tests.beside_kafka.shrinking import shrunk
from tests.beside_kafka.side import Side
from tests.beside_kafka.steps import Script
from tests.real_kafka.wire import Key

WARMING = ("classic", "consumer", "offsets", "both")
WARMING_STEPS = 12
MOST_SHRUNK = 8
"""Signs of faults whose scripts are made shorter, which takes up to a minute each."""


@dataclass
class Fault:
    """A script with a difference that two runs of it showed, and the shortest script that shows it."""

    seed: int
    difference: Difference
    script: Script


@dataclass
class Result:
    """What came of the scripts of a kind. ``once``: scripts whose differences a second run did not show."""

    kind: str
    groups: int = 0
    same: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    once: list[tuple[int, Difference]] = field(default_factory=list)
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def groups_that_differ(self) -> int:
        return len({fault.seed for fault in self.faults})

    def __str__(self) -> str:
        return (
            f"{self.kind:<14} {self.groups:>5} groups {self.same.total():>7} responses the same "
            f"{len(self.faults):>5} not {self.known.total():>5} explained "
            f"{self.groups_that_differ():>5} groups differ {len(self.once):>4} only once"
        )


SETTLED_S = 4.0
"""After this time no round of a script waits any more: it had 1.5 s for joins, and as long for syncs."""


class Pair:
    """Kafka and another broker."""

    def __init__(
        self,
        addresses: tuple[str, str],
        topic_ids: tuple[Mapping[str, str], Mapping[str, str]],
        versions: Mapping[Key, tuple[int, int]],
        consumer_session: float,
        brokers: Sequence[Broker] = (),
    ) -> None:
        self._addresses, self._topic_ids, self._versions = addresses, topic_ids, versions
        self._consumer_session, self._brokers = consumer_session, brokers

    @classmethod
    async def of(
        cls, kafka: str, other: str, settings: Mapping[str, Any], brokers: Sequence[Broker] = ()
    ) -> "Pair":
        """Return a pair of two addresses. ``brokers``: those that may be restarted."""
        ids = await with_topics(kafka), await with_topics(other)
        versions = await versions_of(kafka), await versions_of(other)
        session = settings["group.consumer.session.timeout.ms"] / 1_000
        pair = cls((kafka, other), ids, _common(*versions), session)
        await pair._warm_up()
        pair._brokers = brokers
        return pair

    async def _warm_up(self) -> None:
        """Let both brokers load their code: first requests may take so long that others pass them."""
        for kind in WARMING:
            sources = {seed: KINDS[kind](seed, WARMING_STEPS) for seed in range(4)}
            await self.play_all(sources, len(sources))

    async def play(self, source: Source, gate: Gate | None = None) -> Outcome:
        """Play a script with a new group."""
        group = f"g-{uuid.uuid4().hex[:12]}"
        newest = {key: highest for key, (_, highest) in self._versions.items()}
        versions = _older(self._versions, source.seed) if source.is_old else newest
        kafka, other = (
            Side(address, Names(group, topic_ids, source.seed), versions, newest)
            for address, topic_ids in zip(self._addresses, self._topic_ids, strict=True)
        )
        return await Playing(source, (kafka, other), Clocks(self._consumer_session), gate).play()

    async def restart(self) -> None:
        """Stop both brokers, and start them again, once no timer of a group is near: it would be a race."""
        await asyncio.sleep(SETTLED_S)
        await asyncio.gather(*(asyncio.to_thread(broker.stop) for broker in self._brokers))
        await asyncio.gather(*(asyncio.to_thread(broker.start) for broker in self._brokers))

    async def play_all(self, sources: Mapping[int, Source], at_once: int) -> dict[int, Outcome]:
        """Play several scripts, ``at_once`` at the same time; with restarts all at the same time."""
        gate = Gate(self.restart) if self._brokers else None
        free = asyncio.Semaphore(len(sources) if gate else at_once)

        async def one(source: Source) -> Outcome:
            async with free:
                try:
                    return await self.play(source, gate)
                finally:
                    if gate is not None:
                        await gate.leave()

        if gate is not None:
            for _ in sources:
                gate.enter()
        outcomes = await asyncio.gather(*map(one, sources.values()))
        return dict(zip(sources, outcomes, strict=True))


def _common(
    kafka: Mapping[int, tuple[int, int]], other: Mapping[int, tuple[int, int]]
) -> dict[Key, tuple[int, int]]:
    """Return the lowest and the highest version of each API that both brokers and kio have."""
    return {
        key: (
            max(kafka[key][0], other[key][0]),
            max(
                version
                for version in range(min(kafka[key][1], other[key][1]) + 1)
                if _is_written(key, version)
            ),
        )
        for key in Key
        if key in kafka and key in other
    }


def _is_written(key: Key, version: int) -> bool:
    try:
        load_request_schema(key, version)
    except Exception:  # kio raises errors of many kinds for what it has not
        return False
    return True


def _older(versions: Mapping[Key, tuple[int, int]], seed: int) -> dict[Key, int]:
    """Return a version of each API that a seed draws."""
    return {key: Random(f"{key.name} {seed}").randint(*ends) for key, ends in versions.items()}


async def run(
    pair: Pair,
    kind: str,
    seeds: Iterable[int],
    *,
    steps: int = STEPS,
    at_once: int = 20,
    shrink: bool = True,
) -> Result:
    """Play the scripts of a kind, and those that show a fault once more; then make them shorter."""
    outcomes = await pair.play_all({seed: KINDS[kind](seed, steps) for seed in seeds}, at_once)
    result = Result(kind, groups=len(outcomes), outcomes=outcomes)
    for outcome in outcomes.values():
        result.same += outcome.same
        result.known.update(found.reason for found in outcome.differences if found.reason)
    first = {seed: outcome for seed, outcome in outcomes.items() if outcome.faults()}
    again = await pair.play_all({seed: Fixed(outcome.script) for seed, outcome in first.items()}, at_once)
    for seed, outcome in first.items():
        shown = {found.sign for found in again[seed].faults()}
        for found in outcome.faults():
            if found.sign in shown:
                result.faults.append(Fault(seed, found, outcome.script))
            else:
                result.once.append((seed, found))
    if shrink and kind != RESTARTING:
        await _shrink(pair, result.faults, at_once)
    return result


async def _shrink(pair: Pair, faults: Sequence[Fault], at_once: int) -> None:
    """Make the script of the first fault of each sign shorter."""
    by_sign = {fault.difference.sign: fault for fault in reversed(faults)}
    for sign, fault in islice(by_sign.items(), MOST_SHRUNK):

        async def shows(scripts: Sequence[Script], sign: tuple[str, str] = sign) -> list[bool]:
            played = await pair.play_all(dict(enumerate(map(Fixed, scripts))), at_once)
            return [any(found.sign == sign for found in outcome.faults()) for outcome in played.values()]

        begun = replace(fault.script, steps=fault.script.steps[: fault.difference.number + 1])
        fault.script = await shrunk(begun, shows)

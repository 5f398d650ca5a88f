"""``python -m tests.beside_kafka``: the same requests to a real Kafka and to another broker.

    python -m tests.beside_kafka                              # every kind, 20 seeds each, against `serve`
    python -m tests.beside_kafka live-both offsets --seeds 0:150
    python -m tests.beside_kafka --kafka 127.0.0.1:9092 --other 127.0.0.1:9192 classic
    python -m tests.beside_kafka --twice                      # Kafka against Kafka: what is left is no fault
    python -m tests.beside_kafka --replay script.jsonl        # a script that an earlier run printed

Prints a line for each kind, the reasons of explained differences with their numbers, and for each fault the
shortest script found. The status is 1 if there are faults.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.beside_kafka import steps as s
from tests.beside_kafka.brokers import Broker, started
from tests.beside_kafka.kinds import KINDS, RESTARTING, STEPS
from tests.beside_kafka.playing import Fixed
from tests.beside_kafka.report import described, traced
from tests.beside_kafka.running import Pair, run
from tests.real_kafka.jars import UnavailableError
from tests.real_kafka.settings import LONG, SHORT


def _write(*lines: object) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


async def _run(
    arguments: argparse.Namespace, kinds: list[str], brokers: tuple[str, str, tuple[Broker, ...]]
) -> bool:
    kafka, other, own = brokers
    settings = LONG if kinds == [RESTARTING] else SHORT
    pair = await Pair.of(kafka, other, settings, own if kinds == [RESTARTING] else ())
    if arguments.replay:
        outcome = await pair.play(Fixed(s.read(arguments.replay.read_text())))
        _write(*outcome.trace, *outcome.differences)
        return bool(outcome.faults())
    first, end = map(int, arguments.seeds.split(":"))
    found = False
    for kind in kinds:
        result = await run(
            pair,
            kind,
            range(first, end),
            steps=arguments.steps,
            at_once=arguments.at_once,
            shrink=not arguments.no_shrink,
        )
        _write(*described(result), *(traced(result) if arguments.trace else ()))
        found = found or bool(result.faults)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.beside_kafka", description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--kafka", metavar="HOST:PORT", help="a Kafka that runs already")
    parser.add_argument(
        "--other", metavar="HOST:PORT", help="the other broker; `serve` is started without it"
    )
    parser.add_argument("--twice", action="store_true", help="start Kafka a second time in place of `serve`")
    parser.add_argument("--seeds", default="0:20", metavar="FIRST:END")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--at-once", type=int, default=20, metavar="N", help="scripts at the same time")
    parser.add_argument("--no-shrink", action="store_true", help="print faults with their whole scripts")
    parser.add_argument("--trace", action="store_true", help="print every step with its responses")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="play this script only")
    arguments = parser.parse_args()
    kinds = list(arguments.kinds or KINDS)
    found = False
    try:
        for some, settings in (([kind for kind in kinds if kind != RESTARTING], SHORT), ([RESTARTING], LONG)):
            if not set(some) & set(kinds) or (arguments.replay and settings is LONG):
                continue
            given = {"kafka": arguments.kafka, "other": arguments.other}
            if settings is LONG and any(given.values()):
                _write(f"{RESTARTING}: left out, as brokers that were not started here are not restarted")
                continue
            with (
                tempfile.TemporaryDirectory(prefix="beside-kafka-") as folder,
                started(Path(folder), settings, twice=arguments.twice, **given) as brokers,
            ):
                found = asyncio.run(_run(arguments, some, brokers)) or found
    except UnavailableError as reason:
        sys.exit(str(reason))
    return int(found)


if __name__ == "__main__":
    sys.exit(main())

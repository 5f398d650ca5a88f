"""Live members to whom something happens: topics change, they fall silent, the coordinator restarts."""

from collections.abc import Callable, Iterator

from tests.beside_kafka import steps as s
from tests.beside_kafka.live import Live

STYLES = (("classic",), ("consumer",), ("classic", "consumer"))
SESSION_MS = 3_000
LONG_SESSION_MS = 600_000

EXPRESSIONS = (
    "t.*",
    "t[12]",
    "t1|t3",
    "none.*",
    "",
    r"\Qt1\E",
    "t[[:digit:]]",
    r"t\d",
    "(?i)T2",
    "(?P<name>t)1",
    "(?<name>t)3",
    r"\p{L}1",
    "(?U)t.+",
    r"t[^\x{33}]",
    "(",
    "t**",
    "(?=t)1",
    r"t\Z",
    r"t\z",
    "t{1001}",
    "(?x) t 1",
    "(?#c)t1",
    r"t\u0031",
    "[a-",
    r"\pN",
)
"""Some are right in RE2's syntax and wrong in others, some the other way round."""


def topics_that_change(seed: int, steps: int) -> Live:
    """Return a script whose own topics are created, grow and are deleted while members use them.

    The assignor is range: others depend on the ids of topics, which are random.
    """
    sizes: dict[str, int] = {}

    def besides(live: Live) -> s.AnyStep | None:
        random = live.random
        if sizes and random.random() > 0.12:
            return None
        topic = random.choice(s.OWN)
        if topic not in sizes:
            sizes[topic] = random.randint(1, 3)
            return s.CreateTopic(topic=topic, partitions=sizes[topic])
        if random.random() < 0.3:
            del sizes[topic]
            return s.DeleteTopic(topic=topic)
        sizes[topic] += random.randint(1, 2)
        return s.GrowTopic(topic=topic, partitions=sizes[topic])

    return Live(
        seed,
        STYLES[seed % 3],
        steps,
        besides=besides,
        topics=(*s.OWN, "t1"),
        assignors=("range",),
    )


def expressions(seed: int, steps: int) -> Live:
    """Return a script of the consumer protocol whose members subscribe by regular expressions."""

    def besides(live: Live) -> s.AnyStep | None:
        return s.Wait(seconds=10.5) if live.random.random() < 0.02 else None

    live = Live(seed, ("consumer",), steps, besides=besides)
    live.regexes = tuple(live.random.sample(EXPRESSIONS, 4))
    return live


def falling_silent(seed: int, steps: int) -> Live:
    """Return a script whose members fall silent, some until their sessions have ended."""

    def besides(live: Live) -> s.AnyStep | None:
        random, chance = live.random, live.random.random()
        if chance < 0.06:
            live.silent[random.choice(live.members)] = random.randint(4, 12)
        return s.Wait(seconds=0.8) if 0.06 <= chance < 0.3 else None

    return Live(seed, STYLES[seed % 3], steps, besides=besides, session_ms=SESSION_MS)


def restarts(seed: int, steps: int) -> Live:
    """Return a script with a restart of the broker at half of its length."""
    left: Iterator[s.AnyStep | None] = iter([*[None] * (steps // 2), s.Restart()])
    besides: Callable[[Live], s.AnyStep | None] = lambda _: next(left, None)  # noqa: E731
    return Live(seed, STYLES[seed % 3], steps, besides=besides, session_ms=LONG_SESSION_MS)

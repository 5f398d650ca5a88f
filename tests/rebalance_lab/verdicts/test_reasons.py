"""Why strategies stop partitions: the largest part of the stopped time, and the remedies that were run."""

import re
from dataclasses import replace

import pytest

from coordinator_core.registry.registry import default_registry
from rebalance_lab.traces.causes import PARTS
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.comparison import Comparison, Remedy
from rebalance_lab.verdicts.comparison_tables import tables_of
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.reasons import STOPS, largest_part, parts_under
from tests.approved import approved
from tests.rebalance_lab.verdicts.compared import METRICS, compared, figures


def under(text, **parts):
    """One run of a strategy, with the words of its protocol."""
    strategy = default_registry().strategy(text)
    known = parts_under(default_registry().protocol(strategy.protocol), delayed=strategy.delay_ms is not None)
    own = {name: Figure((value,)) for name, value in figures(**parts).items()}
    return Comparison("day", [1], METRICS, [Candidate(text, own, parts=known)])


def of_seeds(**parts):
    """A strategy with a value of each part for each of six seeds."""
    own = {f"stopped_{part}_partition_seconds": Figure(values) for part, values in parts.items()}
    own |= {STOPS: Figure(tuple(map(sum, zip(*parts.values(), strict=True))))}
    return Comparison("day", range(6), METRICS[:1], [Candidate("a", own)])


def waits(cause):
    return {**dict.fromkeys(("heartbeat", "batch"), 2), cause: 6}


def remedied(*remedies, **others):
    made = compared(a=figures(waits={"heartbeat": 9}), **others)
    return replace(made, remedies={"a": remedies})


UNSURE = Remedy("y", 18.9, 17.0, helps=False, is_known=False)
HELPS = Remedy("x=1s", 18.9, 12.0, helps=True)
B = figures(waits={"heartbeat": 3})
AS_B = Remedy("b", 9.0, 3.0, helps=True)
LESS, SAME = Remedy("x=1s", 9.0, 2.0, helps=True), Remedy("y=1s", 9.0, 9.0, helps=False)
DELAYED = "cooperative-sticky+delay=60s"

CASES = {
    "a reason that both have is named once": compared(
        a=figures(messages=10, waiting=1), b=figures(messages=5)
    ),
    "of one strategy only the reason is named": compared(a=figures(detection=1)),
    "without stops there is no reason": compared(a=figures()),
    **{f"every part can be the largest: {part}": compared(a=figures(**{part: 1})) for part in PARTS},
    "a cause of less than half of the waiting is not named": compared(
        a=figures(waits={"heartbeat": 4, "batch": 3, "session": 2}, messages=1)
    ),
    "no other part is larger than the cause that is named": compared(
        a=figures(detection=30, standing=30, waits={"heartbeat": 35, "callback": 5})
    ),
    "members that stand still are no members that have ended": under("range", standing=9, detection=1),
    "members that have ended": under("range", standing=1, detection=9),
    "a registry has sessions": under("range+watcher", standing=9),
    "partitions that wait for their member are named with the delay": under(
        DELAYED, unassigned=9, detection=1
    ),
    "without a delay": under("cooperative-sticky", unassigned=9),
    "partitions that the group does not know of are not those of members that ended": under(
        "range", unassigned=9, detection=4, standing=2
    ),
    "a member without a coordinator may have no retries left": under("range+watcher", unassigned=9),
    **{
        f"what rounds waited for is named by its largest cause: {cause}": under(
            "range", waits=waits(cause), messages=1
        )
        for cause in ("heartbeat", "batch", "session", "callback", "start", "unknown")
    },
    "a protocol has words of its own for its waits": under("range+peers", waits={"unknown": 9}),
    "the shares of causes are those of all seeds, each of which is 0 in most of them": of_seeds(
        waiting=(0, 0, 0, 0, 90, 90), messages=(80, 0, 0, 0, 0, 0), away=(1, 1, 1, 1, 1, 1)
    ),
    "remedies that helped are named with their effects, the largest first": remedied(
        HELPS, Remedy("y=2", 18.9, 18.8, helps=False), Remedy("z=3", 18.9, 7.65, helps=True)
    ),
    "if no remedy helped, those that were tried are named": remedied(
        Remedy("x=1s", 18.9, 18.9, helps=False), Remedy("y", 18.9, 30.0, helps=False)
    ),
    "a remedy has its price": remedied(replace(HELPS, price=[("max_lag", 10.0, 20.0), ("rounds", 2.0, 3.0)])),
    "of a remedy that may cost more when a member freezes that is said": remedied(
        replace(HELPS, costs_later=True)
    ),
    "a remedy of which it is not known whether it helps is named": remedied(UNSURE),
    "it is named behind those that help": remedied(UNSURE, HELPS),
    "without a trial no remedy is named": remedied(),
    "a remedy that is a candidate is not told again": remedied(AS_B, LESS, b=B),
    "nor with one that does not help": remedied(AS_B, SAME, b=B),
    "nor alone": remedied(AS_B, b=B),
}


def test_the_reasons_are_those_that_were_approved():
    approved("reasons", {title: "\n".join(answers(made)) for title, made in CASES.items()})


@pytest.mark.parametrize("protocol", ["watcher", "peers"])
@pytest.mark.parametrize("part", [*PARTS, "standing"])
def test_members_without_a_coordinator_do_not_wait_for_batches_or_sessions_of_it(protocol, part):
    (text,) = answers(under(f"range+{protocol}", **{part: 9}))
    assert not re.search(r"max\.poll|batches| session\.timeout\.ms", text)


def test_every_part_of_the_stopped_time_can_be_the_largest():
    for part in PARTS:
        assert f"stopped_{part}_partition_seconds" in default_registry().metrics()
        assert largest_part(compared(a=figures(**{part: 1})).candidates[0]) == (part, 1.0)
    assert largest_part(compared(a=figures()).candidates[0]) is None


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"waiting": 90, "messages": 10}, "waiting 90 %"),
        ({"waits": {"heartbeat": 9}, "messages": 1}, "waiting (heartbeat) 90 %"),
        ({"waits": {"heartbeat": 4, "batch": 3, "session": 2}, "messages": 1}, "waiting 90 %"),
        (
            {"detection": 30, "standing": 30, "waits": {"heartbeat": 35, "callback": 5}},
            "waiting (heartbeat) 35 %",
        ),
    ],
)
def test_tables_have_the_largest_part_of_the_stopped_time(parts, text):
    (table,) = tables_of(compared(a=figures(**parts), b=figures()), everything=False, units=False)
    assert [cell.text for cell in table.rows[1]] == ["  mostly", text, ""]


def test_a_column_of_a_grid_has_the_largest_part():
    known = {name: Figure((value,)) for name, value in figures(away=3, messages=1).items()}
    candidates = [Candidate("a", known, {"x.ms": (text, 0)}) for text in ("1s", "2s")]
    (table,) = tables_of(Comparison("day", (1,), METRICS, candidates), everything=False)
    assert table.head[-1] == "mostly"
    assert [row[-1].text for row in table.rows] == ["away 75 %", "away 75 %"]

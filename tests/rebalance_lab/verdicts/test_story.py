"""The story of a run in words: what a round waited for, members that did the same, narrow terminals."""

from io import StringIO

import pytest
from rich.console import Console

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.rounds import rounds
from rebalance_lab.verdicts.story import in_lines, print_lines, reported, story
from rebalance_lab.verdicts.words import waits
from tests.approved import approved
from tests.rebalance_lab.traces.traces import (
    assigned,
    changed,
    generation,
    joined,
    lost,
    revoked,
    round_at,
    started,
    state,
    trace_of,
)

NAMES = [f"m{n}" for n in range(30)]


def told(trace, of=story):
    return [str(prefix + body).rstrip() for prefix, body, *_ in of(trace)]


def preparing(cause, before="Stable"):
    return state("PreparingRebalance", cause=cause, before=before)


def arrives(client):
    return ev.ClientStateChanged(client=client, before="stable", after="preparing-rebalance")


TWO = [
    *[(0, started(name, "t")) for name in ("a", "b")],
    *round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
]

GIVEN_UP = [(7_000, "a", {"t": [0, 1]}), (8_000, "b", {"t": [2, 3]})]


def removed(client, why="session expired"):
    return ev.MemberRemoved(group="g", member_id=client, reason=why)


def added(client):
    return ev.MemberAdded(group="g", member_id=client)


def late(**application):
    """Why a round waited for the last member, in a simulated group."""
    document = {
        "name": "late",
        "duration": "3m",
        "phase": "0s",
        "seed": 3,
        "topics": {"t": {"partitions": 6, "rate": 150}},
        "members": [{"id": "m", "count": 3, "topics": ["t"], **application}],
        "events": [{"at": "60s", "leave": "m-0"}],
        "config": {"heartbeat.interval.ms": "3s"},
    }
    lines = told(simulate(parse_scenario(document, where="late"), "range", default_registry()))
    return "\n".join(line for line in lines if line.strip().startswith("waited") and "was empty" not in line)


@pytest.mark.parametrize(
    ("causes_ms", "text"),
    [
        ({"session": 34_000}, ""),
        ({"unknown": 3_000, "heartbeat": 99}, ""),
        ({"heartbeat": 3_000, "unknown": 99}, "until the next heartbeat"),
        ({"heartbeat": 3_000, "batch": 4_500}, "3 s until the next heartbeat, 4.5 s in a batch"),
        ({"session": 5_000, "start": 15_000}, "5 s absent, 15 s starting"),
        ({}, ""),
    ],
)
def test_a_wait_is_described_by_its_notable_causes_unless_its_end_says_it(causes_ms, text):
    assert waits({f"waiting_{cause}": ms for cause, ms in causes_ms.items()}) == text


def test_a_round_whose_parts_are_not_those_of_its_time_has_none():
    """The group is still in the state in which a round begins when its generation has started."""
    timed = [(5_000, preparing("a changed")), (9_000, generation(2, "a", "b"))]
    (*_, entry) = rounds(trace_of(TWO, timed, topics={"t": 4}))
    assert entry.waits == {}


# --- many members


def big(revoked_by=(), lost_by=(), kept=True):
    owned = {name: {"t": [2 * n, 2 * n + 1]} for n, name in enumerate(NAMES)}
    second = [(5_000, preparing("m0 changed"))]
    second += [(5_000, revoked(name, owned[name])) for name in revoked_by]
    second += [(5_000, lost(name, owned[name])) for name in lost_by]
    second += [(5_500, generation(2, *NAMES, leader="m3"))]
    second += [(5_500, joined(name, 2)) for name in NAMES]
    second += [(5_500, state("Stable", generation=2))]
    added = {name: owned[name] if name in (*revoked_by, *lost_by) else {} for name in NAMES}
    second += [(5_500, assigned(name, 2, owned[name], added=added[name])) for name in NAMES]
    started_all = [(0, started(name, "t")) for name in NAMES]
    return trace_of(started_all, round_at(1_000, 1, owned), second, topics={"t": 60})


DELAYED = {"delay_ms": 60_000, "delay_left_ms": 41_978, "lost": ["t 1", "t 2", "u 0", "u 4"]}


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ({}, ""),
        ({"method": "flow"}, "found by flow"),
        (
            {"method": "solver", "optimality_gap": 0.0123, "weights": "reported-rates", "bound": 4.0},
            "found by solver, gap 1.2 %, weights: reported-rates",
        ),
        ({"optimality_gap": "small", "method": ["a", 1]}, "found by ['a', 1]"),
        ({"optimality_gap": None}, ""),
        (DELAYED, "delay 60 s, 41.978 s left for t 1-2, u 0 4"),
        (
            {**DELAYED, "lost": [*DELAYED["lost"], "u 5", "u 6"]},
            "delay 60 s, 41.978 s left for t 1-2, u 0 4 and 2 more",
        ),
    ],
)
def test_what_an_author_reports_is_a_line(report, text):
    assert reported(report) == text


# --- approved stories


def on_a_terminal(lines, width):
    console = Console(width=width, record=True, highlight=False, file=StringIO())
    print_lines(lines, console)
    return "\n".join(line.rstrip() for line in console.export_text().splitlines())


CHANGED = (5_000, preparing("a changed"))
A_ARRIVES, B_ARRIVES = (7_000, arrives("a")), (8_000, arrives("b"))
BOTH = generation(2, "a", "b")


def two(*timed):
    """A second round of two members."""
    return trace_of(TWO, CHANGED, *timed, topics={"t": 4})


def first(*timed):
    return trace_of((0, started("a", "t")), *timed, topics={"t": 60})


STORIES = {
    "given up in good order, lost, assigned and kept": trace_of(
        (1_000, preparing("x[0] joined")),
        (1_500, generation(7, "a", "b", leader="b", protocol="sticky")),
        (2_000, state("Stable")),
        (2_000, revoked("a", {"t": [9], "u": [1]})),
        (2_000, lost("b", {"t": [3]})),
        (2_000, assigned("a", 7, {"t": [0, 1, 2, 4, 5, 7]}, added={"t": [7]})),
        (2_000, assigned("b", 7, {})),
        (3_661_001, changed("crash", "a")),
        (3_661_500, preparing("session of a expired")),
        topics={"t": 10, "u": 2},
        duration_ms=4_000_000,
    ),
    "the last of two to join": two(A_ARRIVES, B_ARRIVES, (8_000, BOTH)),
    "the last two join at once": two(A_ARRIVES, (7_000, arrives("b")), (7_005, BOTH)),
    "a member whose session expired, and stops meanwhile": two(
        (7_000, revoked("a", {"t": [0, 1]})), A_ARRIVES, (9_000, removed("b")), (9_000, generation(2, "a"))
    ),
    "a member that did not join": two(A_ARRIVES, (9_000, BOTH), (9_000, joined("a", 2))),
    "a member that is back under another id": two(
        (6_000, added("b")), A_ARRIVES, (9_000, removed("b")), (9_000, BOTH)
    ),
    "nobody is named after a minute": two(A_ARRIVES, B_ARRIVES, (65_000, BOTH)),
    "the last to give up partitions": two(
        *[(at_ms, revoked(name, own)) for at_ms, name, own in GIVEN_UP],
        *[(at_ms, arrives(name)) for at_ms, name, _ in GIVEN_UP],
        (65_000, BOTH),
        *[(65_000, joined(name, 2)) for name in "ab"],
    ),
    "a short wait is not told": two((5_050, BOTH)),
    "the assignment of the leader": two(
        (5_050, generation(2, "a", "b", leader="a")), (8_050, state("Stable"))
    ),
    "shares that members reach by themselves": two((5_050, BOTH), (8_050, state("Stable"))),
    "the first members of a group wait for more": first(
        (1_000, preparing("a joined", before="Empty")), (4_000, generation(1, "a"))
    ),
    "members that come and go with the cause are named with it": trace_of(
        TWO,
        (5_000, preparing("c joined")),
        (5_000, added("c")),
        *[(6_000, added(name)) for name in ("d", "e", "f", "g", "h")],
        (7_000, removed("a")),
        (7_000, removed("b", "the consumer is being closed")),
        (7_000, generation(2, *"cdefgh")),
        topics={"t": 60},
    ),
    "a round that never ends": two((6_000, BOTH)),
    "an aborted round has its reason": two((6_000, BOTH), (6_500, preparing("c joined"))),
    "a late take-over is described": first(
        (1_000, preparing("a joined")),
        (1_000, generation(1, "a")),
        (1_000, state("Stable")),
        (5_900, assigned("a", 1, {"t": [0]})),
    ),
    "members that keep all they had share a line": big(lost_by=["m7"]),
    "members that get back all they had share a line of their own": big(revoked_by=NAMES[:20]),
    "of many members with changes the rest is summed": big(lost_by=NAMES),
}
LONG = two((5_000, preparing("a " + "very " * 15 + "long cause")))
IN_LINES = {
    "stops that no round ends are summed below the lines": trace_of(
        TWO,
        (5_000, ev.MemberPaused(client="a")),
        (7_000, ev.MemberResumed(client="a")),
        (99_000, ev.MemberPaused(client="b")),
        topics={"t": 4},
    ),
    "a run without rounds has no table": trace_of(topics={"t": 60}),
}


def test_the_stories_are_those_that_were_approved():
    """Without the first of two rounds, which is alike in all of them."""
    stories = {}
    for title, trace in STORIES.items():
        lines = told(trace)
        begins = [i for i, line in enumerate(lines) if line.startswith(" 0:00:05.000")]
        stories[title] = "\n".join(lines[begins[0] if begins else 2 : -2])
    briefs = {title: "\n".join(told(trace, in_lines)) for title, trace in IN_LINES.items()}
    for of, width in ((story, 60), (in_lines, 70)):
        stories[f"{of.__name__} on {width} columns"] = on_a_terminal(of(LONG), width)
    stories["late: heartbeats"] = late()
    stories["late: batches"] = late(process_rate=100, batch_overhead="20s")
    stories["late: callbacks"] = late(process_rate=100, on_revoked="4s")
    approved("stories", stories | briefs)

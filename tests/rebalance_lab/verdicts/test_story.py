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
from tests.rebalance_lab.traces.traces import (
    assigned,
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


def told(*timed, topics=None, of=story):
    trace = trace_of(*timed, topics=topics or {"t": 60})
    return [str(prefix + body).strip() for prefix, body, *_ in of(trace)]


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


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (
            [(7_000, arrives("a")), (8_000, arrives("b")), (8_000, generation(2, "a", "b"))],
            "waited 3 s for b (the last of 2 to join), while work went on",
        ),
        (
            [(7_000, arrives("a")), (7_000, arrives("b")), (7_005, generation(2, "a", "b"))],
            "waited 2 s for a and b (the last of 2 to join), while work went on",
        ),
        (
            [
                (7_000, revoked("a", {"t": [0, 1]})),
                (7_000, arrives("a")),
                (9_000, removed("b")),
                (9_000, generation(2, "a")),
            ],
            "waited 4 s for b (session expired), while partitions stood still for 4 s in sum",
        ),
        (
            [(7_000, arrives("a")), (9_000, generation(2, "a", "b")), (9_000, joined("a", 2))],
            "waited 4 s for b (did not join), while work went on",
        ),
        (
            [
                (6_000, added("b")),
                (7_000, arrives("a")),
                (9_000, removed("b")),
                (9_000, generation(2, "a", "b")),
            ],
            "waited 4 s for the old b (session expired), while work went on",
        ),
        (
            [(7_000, arrives("a")), (8_000, arrives("b")), (65_000, generation(2, "a", "b"))],
            "waited 60 s, while work went on",
        ),
        (
            [
                *[(at_ms, revoked(name, own)) for at_ms, name, own in GIVEN_UP],
                *[(at_ms, arrives(name)) for at_ms, name, _ in GIVEN_UP],
                (65_000, generation(2, "a", "b")),
                *[(65_000, joined(name, 2)) for name in "ab"],
            ],
            "waited 60 s for b (the last of 2 to give up partitions), while partitions stood still for 230 s"
            " in sum",
        ),
        ([(5_050, generation(2, "a", "b"))], None),
        (
            [(5_050, generation(2, "a", "b", leader="a")), (8_050, state("Stable"))],
            "waited 3 s for the assignment of the leader",
        ),
        (
            [(5_050, generation(2, "a", "b")), (8_050, state("Stable"))],
            "waited 3 s for all members to reach their shares",
        ),
    ],
)
def test_a_round_says_what_it_waited_for(events, expected):
    lines = told(TWO, (5_000, preparing("a changed")), events, topics={"t": 4})
    assert next((line for line in lines[6:] if line.startswith("waited")), None) == expected


@pytest.mark.parametrize(
    ("application", "why"),
    [
        ({}, ": until the next heartbeat, while partitions"),
        ({"process_rate": 100, "batch_overhead": "20s"}, " s in a batch, while partitions"),
        (
            {"process_rate": 100, "on_revoked": "4s"},
            "m-2 (the last of 2 to give up partitions): 0.545 s until the next heartbeat, 4 s in a callback",
        ),
    ],
)
def test_a_round_says_why_the_last_member_was_late(application, why):
    document = {
        "name": "late",
        "duration": "3m",
        "seed": 3,
        "topics": {"t": {"partitions": 6, "rate": 150}},
        "members": [{"id": "m", "count": 3, "topics": ["t"], **application}],
        "events": [{"at": "60s", "leave": "m-0"}],
        "config": {"heartbeat.interval.ms": "3s"},
    }
    trace = simulate(parse_scenario(document, where="late"), "range", default_registry())
    (waited,) = [
        line.body.plain
        for line in story(trace)
        if line.body.plain.startswith("waited") and "was empty" not in line.body.plain
    ]
    assert why in waited


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


def test_the_first_members_of_a_group_wait_for_more():
    lines = told(
        (0, started("a", "t")), (1_000, preparing("a joined", before="Empty")), (4_000, generation(1, "a"))
    )
    assert lines[4] == "waited 3 s for more members, as the group was empty"


def test_members_that_come_and_go_with_the_cause_are_named_with_it():
    lines = told(
        TWO,
        (5_000, preparing("c joined")),
        (5_000, added("c")),
        *[(6_000, added(name)) for name in ("d", "e", "f", "g", "h")],
        (7_000, removed("a")),
        (7_000, removed("b", "the consumer is being closed")),
        (7_000, generation(2, *"cdefgh")),
    )
    assert (
        "because c joined; also joined: d, e, f and 2 more; "
        "also left: a (session expired), b (the consumer is being closed)"
    ) in lines


def test_an_aborted_round_has_its_reason():
    lines = told(TWO, (5_000, preparing("a changed")), (6_000, generation(2, "a", "b")))
    assert "0:00:05.000  generation 2 (range): never Stable" in lines
    lines = told(
        TWO,
        (5_000, preparing("a changed")),
        (6_000, generation(2, "a", "b")),
        (6_500, preparing("c joined")),
    )
    assert "0:00:05.000  generation 2 (range): aborted after 1.5 s: c joined" in lines


def test_a_late_take_over_is_described():
    lines = told(
        (0, started("a", "t")),
        (1_000, preparing("a joined")),
        (1_000, generation(1, "a")),
        (1_000, state("Stable")),
        (5_900, assigned("a", 1, {"t": [0]})),
    )
    assert "a was the last to take over its assignment, 4.9 s later" in lines


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
    lines = told(started_all, round_at(1_000, 1, owned), second)
    return lines[next(i for i, line in enumerate(lines) if "generation 2" in line) :]


def test_partitions_that_wait_for_their_member_are_listed_by_topic():
    report = {"delay_ms": 60_000, "delay_left_ms": 41_978, "lost": ["t 1", "t 2", "u 0", "u 4"]}
    assert reported(report) == "delay 60 s, 41.978 s left for t 1-2, u 0 4"
    report["lost"] += ["u 5", "u 6"]
    assert reported(report) == "delay 60 s, 41.978 s left for t 1-2, u 0 4 and 2 more"


def test_members_that_keep_all_they_had_share_a_line():
    lines = big(lost_by=["m7"])
    assert lines[4:7] == [
        "m3 (leader)  kept t 6-7",
        "m7           lost t 14-15; assigned t 14-15",
        "28 members   kept all of their 56 partitions",
    ]


def test_members_that_get_back_all_they_had_share_a_line_of_their_own():
    lines = big(revoked_by=NAMES[:20])
    assert lines[4:7] == [
        "m3 (leader)  got back t 6-7",
        "19 members   got back all of their 38 partitions",
        "10 members   kept all of their 20 partitions",
    ]


def test_of_many_members_with_changes_the_rest_is_summed():
    lines = big(lost_by=NAMES)
    assert sum("lost t" in line for line in lines) == 20
    (rest,) = [line.split("  ", 1)[1].strip() for line in lines if line.startswith("10 more ")]
    assert rest == "lost 20 partitions; assigned 20 partitions (--format json lists them)"


# --- lines


def test_on_a_narrow_terminal_a_line_goes_on_below_itself():
    console = Console(width=60, record=True, highlight=False, file=StringIO())
    trace = trace_of(TWO, (5_000, preparing("a " + "very " * 15 + "long cause")), topics={"t": 4})
    print_lines(story(trace), console)
    lines = console.export_text().splitlines()
    assert all(len(line.rstrip()) <= 60 for line in lines)
    begins = next(i for i, line in enumerate(lines) if "because a very" in line)
    assert lines[begins + 1].startswith(" " * 14 + "very")


def test_a_line_for_a_round_is_cut_to_a_narrow_terminal():
    console = Console(width=70, record=True, highlight=False, file=StringIO())
    trace = trace_of(TWO, (5_000, preparing("a " + "very " * 15 + "long cause")), topics={"t": 4})
    print_lines(in_lines(trace), console)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert len(lines) == 7
    assert lines[4].endswith("…")


def test_stops_that_no_round_ends_are_summed_below_the_lines():
    lines = told(
        TWO,
        (5_000, ev.MemberPaused(client="a")),
        (7_000, ev.MemberResumed(client="a")),
        (99_000, ev.MemberPaused(client="b")),
        topics={"t": 4},
        of=in_lines,
    )
    assert lines[3].split()[:6] == ["0:00:01.000", "1", "0", "s", "0", "0"]
    assert lines[4] == (
        "partitions stood still for 6 s more in sum in stops that no round ended: "
        "while owners paused or were away, until nobody subscribed any longer, or up to the end"
    )


def test_a_run_without_rounds_has_no_table():
    assert told(of=in_lines)[:2] == ["by-hand under range, seed 1", ""]
    assert len(told(of=in_lines)) == 4

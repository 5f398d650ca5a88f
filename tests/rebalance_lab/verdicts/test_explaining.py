"""Why runs differ, in sentences: stopped time by cause, members that rounds waited for, and moves."""

import pytest

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.traces.rounds import rounds, rounds_and_rest
from rebalance_lab.verdicts.explaining import as_document, explain, where_stopped
from rebalance_lab.verdicts.story import story
from rebalance_lab.verdicts.words import about
from tests.approved import approved
from tests.places import SCENARIOS
from tests.rebalance_lab.traces.traces import (
    assigned,
    generation,
    joined,
    removed,
    revoked,
    round_at,
    started,
    state,
    stopped,
    trace_of,
)

TWO = [
    *[(0, started(name, "t")) for name in ("a", "b")],
    *round_at(1_000, 1, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}),
]

CRASH = [
    (10_000, stopped("b", "crashed")),
    (20_000, removed("b")),
    (20_000, state("PreparingRebalance", before="Stable", cause="session of b expired")),
    (22_000, ev.ClientStateChanged(client="a", before="stable", after="preparing-rebalance")),
    (22_000, generation(2, "a")),
    (22_000, joined("a", 2)),
    (22_000, state("Stable", generation=2)),
    (22_000, assigned("a", 2, {"t": [0, 1, 2, 3]}, added={"t": [2, 3]})),
]
"""A member crashes: the group counts on it for 10 s, and the round waits 2 s for the other one to join."""

BACK = [
    (40_000, started("b", "t")),
    (40_000, state("PreparingRebalance", before="Stable", cause="b joined")),
    (40_000, revoked("a", {"t": [0, 1, 2, 3]}, 2)),
    *round_at(40_000, 3, {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}})[1:],
]


SWAP = round_at(40_000, 2, {"a": {"t": [2, 3]}, "b": {"t": [0, 1]}})
GIVEN_UP = [(40_000, revoked(name, {"t": own})) for name, own in (("a", [0, 1]), ("b", [2, 3]))]
PAUSE = (50_000, ev.MemberPaused(client="a"))


def run(*timed, **options):
    return trace_of(TWO, *timed, topics={"t": 4}, **options)


def run_of(strategy, **document):
    document = {"name": "told", "duration": "5m", "topics": {"t": {"partitions": 6, "rate": 120}}, **document}
    return simulate(parse_scenario(document, where="told"), strategy, default_registry())


MEMBER = {"topics": ["t"], "process_rate": 100, "on_revoked": "4s"}


def cases():
    """Runs that are explained together, by what is told of them."""
    yield "the causes with the members that ended", [run(CRASH)]
    yield "the round that ended the longest stops, and a partition that went back", [run(CRASH, BACK)]
    yield "moves beyond the fewest are avoidable", [run([SWAP[0], *GIVEN_UP, *SWAP[1:]])]
    yield "a run without stops has its costs alone", [run()]
    yield (
        "a run that does not work is not the best",
        [run([(10_000, stopped("b", "crashed"))], duration_ms=15_000, strategy="lame"), run(CRASH)],
    )
    yield "the run that stops least is compared by cause", [run(CRASH), run(strategy="calm")]
    yield "stopped times within 1 % are alike", [run(CRASH), run(CRASH, strategy="other")]
    yield "runs that stop nothing are alike", [run(strategy="calm"), run(strategy="quiet")]
    yield (
        "stops that no round ended come first if they are longer",
        [run(CRASH, [PAUSE, (70_000, ev.MemberResumed(client="a"))])],
    )
    yield "and not if they are shorter", [run(CRASH, [PAUSE, (51_000, ev.MemberResumed(client="a"))])]
    bounce = load_scenario(SCENARIOS / "bounce.yaml")
    yield (
        "the members that all rounds waited for, if the costliest does not name them all",
        [simulate(bounce, "cooperative-sticky", default_registry())],
    )
    yield (
        "members with callbacks that stopped partitions, or for which rounds waited",
        [
            run_of(
                "range",
                members=[{"id": "c", "count": 2, "on_assigned": "8s", **MEMBER}],
                events=[{"at": "2m", "join": {"id": "d", "on_assigned": "30s", **MEMBER}}],
            )
        ],
    )


def test_the_explanations_are_those_that_were_approved():
    approved("explanations", {title: "\n".join(explain(runs).lines) for title, runs in cases()})


@pytest.mark.parametrize(
    ("strategy", "first"),
    [
        ("range", {"leave": "a"}),
        ("range+static", {"rolling_restart": {"every": "40s", "down": "8s"}}),
    ],
)
def test_only_members_on_which_the_group_still_counted_are_named_as_those_that_ended(strategy, first):
    document = {
        "name": "day",
        "duration": "6m",
        "topics": {"t": {"partitions": 8}},
        "members": [{"id": name, "topics": ["t"]} for name in "abcd"],
        "events": [{"at": "30s", **first}, {"at": "4m", "crash": "b"}],
    }
    run = simulate(parse_scenario(document, where="day"), strategy, default_registry())
    assert "while the group still counted on members that had ended (b)" in where_stopped(History(run))


def test_runs_of_one_strategy_are_numbered():
    assert list(explain([run(), run()]).sentences) == ["range (1)", "range (2)"]


@pytest.mark.parametrize("traces", [[], ["bounce", "leave"]], ids=["none", "two scenarios"])
def test_traces_must_be_of_one_scenario(traces):
    registry = default_registry()
    runs = [simulate(load_scenario(SCENARIOS / f"{name}.yaml"), "range", registry) for name in traces]
    with pytest.raises(InputError, match=r"explain: found (no trace|.*'bounce' and 'leave'), expected"):
        explain(runs)


def test_the_document_has_the_figures_behind_the_sentences():
    (told,) = as_document(explain([run(CRASH, BACK)])).strategies
    assert told.stopped_by_cause == {"detection": 20.0, "waiting_heartbeat": 4.0}
    assert (told.avoidable_moves, told.returned_partitions) == (0, {"b": 2})
    assert told.waited_for_seconds["a"] == 2.0


def test_a_wait_is_told_as_in_the_story_with_the_sum_for_which_partitions_stood_still_meanwhile():
    member = {"topics": ["t"], "process_rate": 100}
    run = run_of(
        "range",
        members=[{"id": "c", "count": 3, **member}],
        events=[{"at": "3m", "join": {"id": "d", **member}}],
    )
    (wait,) = [line.body.plain for line in story(run) if " of 4 to join" in line.body.plain]
    assert 0 < rounds(run)[1].idle_meanwhile_ms < rounds(run)[1].waited_ms
    assert wait.endswith(
        f", while partitions stood still for {about(rounds(run)[1].idle_meanwhile_ms)} in sum"
    )
    assert explain([run]).sentences["range"][2].endswith(f" It {wait}.")


def test_the_costliest_round_may_have_begun_before_the_window_and_is_told_with_its_stops_in_it():
    run = run_of(
        "range",
        members=[{"id": "c", "count": 2, "topics": ["t"], "restore": "10s"}],
        events=[{"at": "1m", "join": {"id": "d", "topics": ["t"]}}],
    )
    costs, _, most, *_ = explain([run]).sentences["range"]
    assert most.startswith("Most in stops that generation 1 ended, which began at ")
    in_window, rest_ms = rounds_and_rest(run, from_ms=History(run).from_ms)
    stopped_ms = sum(entry.stopped_ms for entry in in_window) + rest_ms
    assert costs.startswith(f"{stopped_ms / 1_000:.1f} partition seconds stopped")
    later = trace_of(TWO, CRASH, topics={"t": 4}, from_ms=15_000)
    assert " 14 s in sum, 7 s at most." in explain([later]).sentences["range"][2]

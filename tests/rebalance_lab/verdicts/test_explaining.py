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


def explained(*timed, **options):
    return explain([trace_of(*timed, topics={"t": 4}, **options)])


def sentences(*timed, **options):
    (own,) = explained(*timed, **options).sentences.values()
    return own


def test_the_stopped_time_is_named_by_its_causes_with_the_members_that_ended():
    costs, where, *_ = sentences(TWO, CRASH)
    assert costs == "24 partition seconds stopped, 2 partitions moved, 1 round"
    assert where == (
        "Of the stopped time: 20 (83 %) while the group still counted on members that had ended (b);"
        " 4 (17 %) while rounds waited for members that had yet to learn of them in their next heartbeats."
    )


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


def test_the_round_that_ended_the_longest_stops_names_the_member_that_it_waited_for():
    most = sentences(TWO, CRASH, BACK)[2]
    assert most.startswith(
        "Most in stops that generation 2 ended, which began at 0:00:20.000 because session of b expired: "
    )
    assert most.endswith(
        ": 2 partitions stood still, 24 s in sum, 12 s at most."
        " It waited 2 s for a (the only member): until the next heartbeat, while partitions stood still"
        " for 4 s in sum."
    )


def test_the_members_that_all_rounds_waited_for_are_named_if_the_costliest_round_does_not_name_them_all():
    assert not any("All rounds" in sentence for sentence in sentences(TWO, CRASH, BACK))
    run = simulate(load_scenario(SCENARIOS / "bounce.yaml"), "cooperative-sticky", default_registry())
    own = explain([run]).sentences["cooperative-sticky"]
    assert own[3] == "All rounds together waited longest for c2 (2.98 s), c1 (2.11 s) and c3 (2.02 s)."


def test_partitions_that_go_back_to_an_earlier_owner_are_counted():
    assert sentences(TWO, CRASH)[-1] == "Of 2 moves none was avoidable."
    assert sentences(TWO, CRASH, BACK)[-1] == (
        "Of 4 moves none was avoidable; 2 went back to an earlier owner: b (2)."
    )


def test_moves_beyond_the_fewest_are_avoidable():
    swap = round_at(40_000, 2, {"a": {"t": [2, 3]}, "b": {"t": [0, 1]}})
    given_up = [(40_000, revoked(name, {"t": own})) for name, own in (("a", [0, 1]), ("b", [2, 3]))]
    moves = sentences(TWO, [swap[0], *given_up, *swap[1:]])[-1]
    assert moves == "Of 4 moves 4 were avoidable: an assignment as balanced needs 0."


def test_a_run_without_stops_has_its_costs_alone():
    assert sentences(TWO) == ["0 partition seconds stopped, 0 partitions moved, 0 rounds"]


def test_a_run_that_does_not_work_says_so_and_is_not_the_best():
    ended = [(10_000, stopped("b", "crashed"))]
    lame = trace_of(TWO, ended, topics={"t": 4}, duration_ms=15_000, strategy="lame")
    whole = trace_of(TWO, CRASH, topics={"t": 4})
    made = explain([lame, whole])
    assert made.sentences["lame"][-1].startswith("It does not work: 2 partitions have no owner at the end")
    assert made.differences[0] == "lame stops partitions less than range, but does not work."


def test_the_run_that_stops_least_is_compared_with_the_others_by_cause():
    calm = trace_of(TWO, topics={"t": 4}, strategy="calm")
    made = explain([trace_of(TWO, CRASH, topics={"t": 4}), calm])
    stops, moves = made.differences
    assert stops == (
        "calm stops partitions for 24 partition seconds (100 %) less than range in one run:"
        " 20 less while the group still counted on members that had ended,"
        " 4 less while rounds waited for members that had yet to learn of them in their next heartbeats."
        " It has 0 rounds, range 1."
    )
    assert moves == "range moves 2 partitions more than calm: 2 against 0."


def test_stopped_times_within_1_percent_are_alike():
    other = trace_of(TWO, CRASH, topics={"t": 4}, strategy="other")
    made = explain([trace_of(TWO, CRASH, topics={"t": 4}), other])
    assert made.differences == ["range and other stop partitions alike in one run, within 1 %."]


def test_runs_that_stop_nothing_are_alike():
    calm = [trace_of(TWO, topics={"t": 4}, strategy=name) for name in ("calm", "quiet")]
    assert explain(calm).differences == ["calm and quiet stop no partition in one run."]


def test_runs_of_one_strategy_are_numbered():
    run = trace_of(TWO, topics={"t": 4})
    assert list(explain([run, run]).sentences) == ["range (1)", "range (2)"]


@pytest.mark.parametrize("traces", [[], ["bounce", "leave"]], ids=["none", "two scenarios"])
def test_traces_must_be_of_one_scenario(traces):
    registry = default_registry()
    runs = [simulate(load_scenario(SCENARIOS / f"{name}.yaml"), "range", registry) for name in traces]
    with pytest.raises(InputError, match=r"explain: found (no trace|.*'bounce' and 'leave'), expected"):
        explain(runs)


def test_lines_have_the_differences_first_and_the_reasons_indented():
    lines = explained(TWO, CRASH).lines
    assert lines[0] == "range: 24 partition seconds stopped, 2 partitions moved, 1 round"
    assert all(line.startswith("  ") for line in lines[1:])


def test_the_document_has_the_figures_behind_the_sentences():
    (run,) = as_document(explained(TWO, CRASH, BACK))["strategies"]
    assert run["stopped_by_cause"] == {"detection": 20.0, "waiting_heartbeat": 4.0}
    assert (run["avoidable_moves"], run["returned_partitions"]) == (0, {"b": 2})
    assert run["waited_for_seconds"]["a"] == 2.0


def run_of(strategy, **document):
    document = {"name": "told", "duration": "5m", "topics": {"t": {"partitions": 6, "rate": 120}}, **document}
    return simulate(parse_scenario(document, where="told"), strategy, default_registry())


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


def test_members_with_callbacks_are_named_if_these_stopped_partitions_or_rounds_waited_for_them():
    member = {"topics": ["t"], "process_rate": 100, "on_revoked": "4s"}
    run = run_of(
        "range",
        members=[{"id": "c", "count": 2, "on_assigned": "8s", **member}],
        events=[{"at": "2m", "join": {"id": "d", "on_assigned": "30s", **member}}],
    )
    _, where, most, *_ = explain([run]).sentences["range"]
    assert " in callbacks of the application (d, " in where
    assert " s for c-0 (the last of 2 to give up partitions): " in most
    assert ", 4 s in a callback, while partitions stood still for " in most


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


def test_stops_that_no_round_ended_are_told_first_if_they_are_longer_than_those_of_each_round():
    pause = [(50_000, ev.MemberPaused(client="a")), (70_000, ev.MemberResumed(client="a"))]
    most = sentences(TWO, CRASH, pause)[2]
    assert most.startswith(
        "Most in stops that no round ended, 80 s in sum; of the others most in those that generation 2"
    )
    assert sentences(TWO, CRASH, [pause[0], (51_000, pause[1][1])])[2].startswith(
        "Most in stops that generation 2 ended, "
    )

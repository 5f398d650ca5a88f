"""A round in one sentence."""

from dataclasses import replace

import pytest

from rebalance_jupyter.words import sentence, sentences_over_time
from rebalance_lab.traces.entries import MemberRound, Round

KEEPS = MemberRound(kept={"t": [0]})


def gives(count):
    return MemberRound(revoked={"t": list(range(count))}, kept={"t": [9]})


def takes(count):
    return MemberRound(assigned={"t": list(range(count))})


def said(members, *, follows=None, **changes):
    facts = {"generation": 5, "stable_ms": 2_000, **changes}
    return sentence(Round(1_000, ["why"], members=members, **facts), follows)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"a": gives(1)}, "a gives up 1 partition"),
        ({"a": takes(2)}, "a takes over 2 partitions"),
        ({"a": MemberRound(lost={"t": [1, 2]})}, "a loses 2 partitions"),
        (
            {"a": MemberRound(lost={"t": [1]}), "b": MemberRound(lost={"t": [2]})},
            "a and b each lose 1 partition",
        ),
        ({"b": gives(1), "a": gives(1)}, "a and b each give up 1 partition"),
        ({"a": gives(1), "b": gives(1), "c": gives(1)}, "a, b and c each give up 1 partition"),
        ({n: takes(3) for n in "abcde"}, "a, b and 3 more each take over 3 partitions"),
        ({"a": gives(1), "b": gives(4)}, "b gives up 4 partitions, a gives up 1 partition"),
        ({"a": gives(2), "b": takes(2)}, "a gives up 2 partitions, b takes over 2 partitions"),
        ({"a": KEEPS, "b": MemberRound()}, "b waits"),
        ({"a": MemberRound(), "b": MemberRound()}, "a and b wait"),
        ({"a": KEEPS, "b": KEEPS}, "all members keep their partitions"),
        ({}, "no partitions are assigned"),
    ],
)
def test_what_members_do(members, expected):
    assert said(members) == f"generation 5: {expected}"


def test_partitions_of_several_topics_are_counted_together():
    assert "takes over 3 partitions" in said({"a": MemberRound(assigned={"t": [0], "u": [0, 1]})})


def test_a_round_that_follows_at_once_is_announced():
    members = {"a": gives(1)}
    soon, late = Round(6_000, []), Round(60_000, [])
    assert (
        said(members, follows=soon) == "generation 5: a gives up 1 partition; the next round follows at once"
    )
    assert "follows" not in said(members, follows=late)


def test_a_round_that_did_not_end():
    assert said({}, stable_ms=None) == "generation 5 never became Stable"
    assert said({}, stable_ms=None, rest="Settled") == "generation 5 never became Settled"
    assert said({}, stable_ms=None, generation=0) == "a round that did not complete"


def test_a_round_that_was_aborted_has_its_reason():
    aborted = {"stable_ms": None, "aborted": "b joined", "aborted_ms": 1_500}
    assert said({}, **aborted) == "generation 5 was aborted: b joined"
    assert said({"a": gives(1)}, generation=0, **aborted) == "a round was aborted: b joined"


def test_a_round_that_goes_on_has_sentences_of_what_has_happened():
    members = {"a": MemberRound(assigned={"t": (0,)})}
    entry = Round(
        1_000, ["a joined (new)"], 4, waited_ms=500, stable_ms=2_000, taken_over_ms=2_100, members=members
    )
    assert sentences_over_time(entry) == [
        (1_000, "generation 4 is being formed: a joined"),
        (1_500, "generation 4 is formed, and its members wait for their assignments"),
        (2_000, sentence(entry)),
    ]
    late = replace(entry, taken_over_ms=9_000, taken_over_by="a")
    assert sentences_over_time(late)[2:] == [
        (2_000, "generation 4: a has yet to take over its assignment"),
        (9_000, sentence(entry)),
    ]
    never = replace(entry, stable_ms=None)
    assert sentences_over_time(never) == [(1_000, sentence(never))]

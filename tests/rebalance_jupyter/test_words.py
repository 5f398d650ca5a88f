"""Rounds in sentences, and traces in a few lines of text."""

from dataclasses import replace

from rebalance_jupyter.display import words
from rebalance_jupyter.view_model import view_model
from rebalance_jupyter.words import sentence, sentences_over_time
from rebalance_lab.traces.entries import MemberRound, Round
from tests.approved import approved
from tests.rebalance_jupyter.samples import ALONE, LATE_VIEW, NOBODY, TOO_SHORT, ran

KEEPS = MemberRound(kept={"t": [0]})


def gives(count):
    return MemberRound(revoked={"t": list(range(count))}, kept={"t": [9]})


def takes(count):
    return MemberRound(assigned={"t": list(range(count))})


def loses(*partitions):
    return MemberRound(lost={"t": list(partitions)})


def said(members, *, follows=None, **changes):
    facts = {"generation": 5, "stable_ms": 2_000, **changes}
    return sentence(Round(1_000, ["why"], members=members, **facts), follows)


ABORTED = {"stable_ms": None, "aborted": "b joined", "aborted_ms": 1_500}
DONE = {
    "one gives up": [{"a": gives(1)}],
    "one takes over": [{"a": takes(2)}],
    "of two topics": [{"a": MemberRound(assigned={"t": [0], "u": [0, 1]})}],
    "one loses": [{"a": loses(1, 2)}],
    "two lose": [{"a": loses(1), "b": loses(2)}],
    "three give up": [{"b": gives(1), "a": gives(1), "c": gives(1)}],
    "many take over": [{n: takes(3) for n in "abcde"}],
    "the larger count first": [{"a": gives(1), "b": gives(4)}],
    "one gives, one takes": [{"a": gives(2), "b": takes(2)}],
    "one waits": [{"a": KEEPS, "b": MemberRound()}],
    "two wait": [{"a": MemberRound(), "b": MemberRound()}],
    "all keep": [{"a": KEEPS, "b": KEEPS}],
    "nothing": [{}],
}
"""What members do in a round."""
ROUNDS = {
    **{title: said(*members) for title, members in DONE.items()},
    "another follows": said({"a": gives(1)}, follows=Round(7_000, [])),
    "another follows later": said({"a": gives(1)}, follows=Round(60_000, [])),
    "never stable": said({}, stable_ms=None),
    "never settled": said({}, stable_ms=None, rest="Settled"),
    "never formed": said({}, stable_ms=None, generation=0),
    "aborted": said({}, **ABORTED),
    "aborted before it was formed": said({"a": gives(1)}, generation=0, **ABORTED),
}
TRACES = {
    "nobody": (NOBODY, "range"),
    "alone": (ALONE, "range"),
    "too short": (TOO_SHORT, "range"),
    "unsettled": (LATE_VIEW.replace("duration: 1m", "duration: 35s"), "watcher"),
}


def test_rounds_and_traces_have_the_approved_words():
    entry = Round(1_000, ["a joined (new)"], 4, waited_ms=500, stable_ms=2_000, taken_over_ms=2_100)
    entry = replace(entry, members={"a": takes(1)})
    late = replace(entry, taken_over_ms=9_000, taken_over_by="a")
    over_time = {"over time": entry, "late": late, "over time, never stable": replace(entry, stable_ms=None)}
    told = {t: "\n".join(f"{ms} {text}" for ms, text in sentences_over_time(e)) for t, e in over_time.items()}
    approved("rounds", {**ROUNDS, **told, **{title: words(ran(*made)) for title, made in TRACES.items()}})


def test_words_of_a_trace_are_the_sentences_of_its_rounds():
    first, *lines, last = words(ran()).splitlines()
    assert first == "scale-out under cooperative-sticky, seed 0"
    assert [line.strip() for line in lines] == [r["sentence"] for r in view_model(ran()).document["rounds"]]
    assert last == "ended Stable in generation 4"

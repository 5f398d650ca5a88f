"""Findings: what a command says, as data, and the one template of each kind by which it is said."""

from collections.abc import Mapping
from string import Formatter
from typing import Any

import msgspec

from rebalance_lab.verdicts.tables import brief
from rebalance_lab.verdicts.words import counted, duration, listed_names

TEMPLATES: Mapping[str, str] = {
    # verdicts
    "alone": "Nothing to choose from: the stop per partition of {now} is {stops:n} s.",
    "too-few": "Keep {now}: {units:n seed} cannot show which strategy is better, {needed} can.",
    "works": "Choose {choice}: {now} does not work ({fault}).",
    "carries": "Choose {choice} instead of {now}, which carries the load worse: {gains:changes}.",
    "stops": "Choose {choice} instead of {now}: {gains:changes}.",
    "front": "Choose {choice} instead of {now}: {gains:changes}; it stops partitions as long.",
    "keep": "Keep {now}: no other one stops partitions less.",
    "refused": "Keep {now}: {others:names} would stop less, but not carry the load: {price:changes}.",
    "unknown": "Keep {now}: {units:n seed} do not show whether {others:or} stops partitions less.",
    "not-reproduced": "Nothing is chosen: the model misses the real group in {missed:names}.",
    "none-works": "No strategy works: {fault}.",
    "price": "Its price: {price:changes}.",
    "price-stops-count": "Stops count most; its price: {price:changes}.",
    "alike": "{others:or} would do as well.",
    "longer": "{other} would stop partitions {times:n} times as long.",
    "alike-but": "{other} stops them as long: {gains:changes}.",
    "would-change": "{other}: {gains:changes}.",
    "stopped": "Partitions stopped for {stopped:n} s in sum; most of it, {most:n} s, ended with generation"
    " {generation}: {cause}.",
    "no-stop": "No partition stopped in {rounds:n round}.",
    # load
    "add-members": "First add members: {members} cannot carry this load while one is away; {enough} leave"
    " {headroom:%} headroom.",
    "too-few-members": "First add members: {members} cannot carry this load{one_away}.",
    "little-headroom": "First add members: {members} have {headroom:%} headroom, {without_one:%} while one is"
    " away; {enough} leave {enough_headroom:%}.",
    "little-headroom-now": "First add members: {members} have {headroom:%} headroom, {without_one:%} while"
    " one is away.",
    "hot-partitions": "First split {partitions:names}: {rate:n} records/s are more than the {fastest:n} that"
    " a member can handle.",
    "until-then-choose": "Until then choose {choice} over {now}: {gains:changes}.",
    "until-then": "Until then keep {now}: another strategy decides only how large the backlog gets.",
    # why, try, know
    "why": "{share:%} of the stops of {strategy}: {reason}",
    "helps": "{change}: stop per partition {before:n} s -> {after:n} s",
    "helps-at-a-price": "{change}: stop per partition {before:n} s -> {after:n} s; price: {price:changes}",
    "does-not-help": "{change} does not help (stop per partition {before:n} s -> {after:n} s); `advise` tries"
    " more",
    "not-known-to-help": "{change} is not known to help (stop per partition {before:n} s -> {after:n} s);"
    " `advise` tries more",
    "may-help": "{change} may help, not known from {units:n seed} (stop per partition {before:n} s ->"
    " {after:n} s)",
    "fails": "{change} does not work: {fault}",
    "worth": "stops of real runs like this one were in the predicted range in {parts:names}{rest}",
    "no-real-run": "no real run is like this one: {reason}",
    "no-effect": "{setting} makes no difference",
    "backlog": "the backlog of {now} is gone {gone_s:time} after the run",
    "backlog-stays": "the backlog of {now} does not shrink",
    "not-kafka": "{strategies:names}: no Kafka broker runs {them}",
    "not-in-client": "{client} clients have no {assignors:or}",
    "troubles": "crashes and closes were tried on the group at rest, with the owner of most partitions",
    "seen": "{strategy} as seen: {figures:names}",
}
"""What is said for each kind of finding. A field has the form of `_Words`."""


class Changed(msgspec.Struct, frozen=True):
    """A figure that is another one with a candidate: in words and with the unit of both values."""

    metric: str
    words: str
    before: float
    after: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.words} {brief(self.before)}{self.unit} -> {brief(self.after)}{self.unit}"


class Finding(msgspec.Struct, frozen=True):
    """What is found: a kind of `TEMPLATES`, and the numbers and names of which it speaks."""

    kind: str
    facts: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return _Words().vformat(TEMPLATES[self.kind], (), self.facts)


class _Words(Formatter):
    """Writes facts: numbers (``n``, ``n noun``), shares (``%``), times and lists, by the form of a field."""

    def format_field(self, value: Any, spec: str) -> Any:
        if spec == "n":
            return brief(value)
        if spec.startswith("n "):
            return counted(value, spec[2:])
        if spec == "%":
            return f"{100 * value:.0f} %"
        if spec == "time":
            return duration(value)
        if spec == "names":
            return listed_names(list(map(str, value)), 3)
        if spec == "or":
            return listed_names(list(map(str, value)), 3).replace(" and ", " or ")
        if spec == "changes":
            return ", ".join(map(str, value))
        return super().format_field(value, spec)


def found(kind: str, **facts: Any) -> Finding:
    """Return a finding of a kind with its facts."""
    return Finding(kind, facts)

"""Each check finds the assignor that is wrong in just its way, and passes those that are right."""

import os
import random
import socket
import subprocess
import sys
import time
from time import monotonic

import numpy as np
import pytest

from rebalance_conformance.checks import CHECKS
from rebalance_conformance.results import Outcome
from rebalance_conformance.suite import check_assignor
from tests.rebalance_conformance import wrong

BUILT_IN = (
    "range",
    "roundrobin",
    "sticky-balanced",
    "sticky-balanced+cooperative",
    "range+cooperative",
)
"""Those that pass all checks."""

FAULTS_OF_KAFKA = {
    "assigned-to-non-subscriber",
    "topic-without-members",
    "foreign-user-data",
    "not-sticky",
    "invalid-after-rebalances",
    "takes-from-owner",
}
"""What `sticky` and `cooperative-sticky` fail in some groups, as Apache Kafka's do (PITFALLS C-64, C-69)."""
EXAMPLES = 25

VALIDITY = tuple(check.name for check in CHECKS[:7])
ORDINARY = VALIDITY[2:]
MOST = tuple(check.name for check in CHECKS if check.name != "fails-under-faults")
"""All but the one that takes most of the time, and does what ``fuzz`` is tested with."""

TOUCHED = [
    (lambda: time.time(), "time.time"),
    (lambda: monotonic(), "time.monotonic"),  # imported by its name
    (lambda: time.sleep(0), "time.sleep"),
    (lambda: random.choice([1, 2]), "random.choice"),
    (wrong.bears_a_refusal, "random.random"),
    (lambda: np.random.default_rng().integers(3), "numpy.random.default_rng without a seed"),
    (lambda: os.urandom(1), "os.urandom"),
    (lambda: open(os.devnull).close(), "open"),
    (lambda: socket.socket().close(), "socket.socket"),
    (lambda: subprocess.run([sys.executable, "-c", ""], check=True), "subprocess.Popen"),
]
WRONG = [
    (wrong.fails_for_three_members, ["raises", "assigned-twice"], "raised ValueError: three is a crowd"),
    (wrong.leaves_the_program, ["raises", "no-members"], "raised SystemExit: enough"),
    (wrong.returns_nothing, ["malformed-result", *ORDINARY], "returned nothing (None), not a mapping"),
    (wrong.returns_numbers, ["malformed-result", *ORDINARY], "gave 'c1' 0, not a (topic, partition) pair"),
    (wrong.returns_numbers_as_text, ["malformed-result", *ORDINARY], "not a (topic, partition) pair"),
    (wrong.ShortOwnerArray, ["malformed-result", *ORDINARY], "an owner array int32[1], not int32[2]"),
    (wrong.StrangeOwnerNumber, ["malformed-result", *ORDINARY], "member number 1 in its owner array, of 1"),
    (wrong.gives_to_two, ["assigned-twice"], "orders-0 went to 'c1' and to 'c2'"),
    (wrong.lists_twice, ["assigned-twice"], "orders-0 went to 'c1' and to 'c1'"),
    (wrong.gives_to_everybody, ["assigned-to-non-subscriber"], "which does not subscribe to it"),
    (wrong.gives_to_nobody, ["assigned-to-unknown-member"], "'nobody' is no member of the group"),
    (wrong.counts_from_one, ["unknown-partition", "partition-left-out"], "does not exist"),
    (wrong.drops_the_last, ["partition-left-out"], "nobody got orders-0"),
    (
        wrong.HoldsBackWhatIsFree,
        ["partition-left-out", "does-not-converge"],
        "no other member has to give up",
    ),
    (wrong.TakesFromOwner, ["takes-from-owner", "invalid-after-rebalances"], "still owns it"),
    (wrong.goes_by_the_order_of_members, ["depends-on-order"], "its members and topics reversed"),
    (wrong.goes_by_the_order_of_topics, ["depends-on-order"], "its members and topics reversed"),
    (wrong.goes_by_the_order_of_a_set, ["depends-on-hash-seed"], "PYTHONHASHSEED"),
    (wrong.CountsItsObjects, ["not-deterministic"], "another fresh object"),
    (wrong.CountsItsCalls, ["remembers-groups"], "the same object again"),
    (wrong.KeepsTheFirstMember, ["remembers-groups"], "an object that assigned it without"),
    (wrong.empties_the_cluster, ["mutates-input"], "and left member 'c1'"),
    (wrong.writes_into_what_is_owned, ["mutates-input"], "it was lent member 'c1'"),
    *((wrong.touches(touch), ["impure"], f"it used {name} ") for touch, name in TOUCHED),
    (wrong.needs_a_member, ["no-members"], "raised ValueError"),
    (wrong.needs_a_partition, ["no-partitions"], "raised ZeroDivisionError"),
    (wrong.needs_every_topic, ["unknown-topics"], "raised KeyError: 'gone'"),
    (wrong.needs_a_partition_each, ["more-members"], "raised AssertionError"),
    (wrong.needs_a_topic_each, ["member-without-topics"], "raised IndexError"),
    (wrong.needs_a_subscriber_each, ["topic-without-members"], "raised ValueError"),
    (wrong.needs_ascii, ["unicode-names"], "raised UnicodeEncodeError"),
    (wrong.needs_its_own_user_data, ["foreign-user-data"], "all members sent the user data b'\\x"),
    (wrong.forgets_after_generation_three, ["invalid-after-rebalances"], "nobody got"),
    (
        wrong.WantsNoAssignment,
        ["invalid-after-rebalances", "fails-in-a-group"],
        "on_assignment raised RuntimeError: not now",
    ),
    (wrong.HasNoUserData, ["invalid-after-rebalances"], "subscription_user_data raised RuntimeError"),
    (wrong.NeverLetsGo, ["does-not-converge"], "rounds after the last change"),
    (wrong.MovesEveryRound, ["does-not-converge"], "rounds after the last change"),
    (wrong.NotSticky, ["not-sticky"], "nothing changed, and still"),
    (wrong.DealsAnew, ["moves-too-much-on-leave"], "which stays, lost"),
    (wrong.Unbalanced, ["unbalanced", "unbalanced-in-a-group"], "got 2 partitions and"),
    (wrong.TwoMore, ["unbalanced-in-a-group"], "owned 2 partitions and"),
]
FOUND_SLOWLY = [
    (
        wrong.KeepsWhatIsListed,
        ["not-sticky-in-a-group", "not-sticky", "moves-too-much-on-leave"],
        "revokes them before it joins: derive the assignor from coordinator_core.Memory",
    ),
    (wrong.TakesFromOwner, ["fails-in-a-group"], "a rule of the protocol was broken"),
    (wrong.BelievesOldClaims, ["assigned-twice", "invalid-after-rebalances"], "went to "),
    (wrong.takes_members_for_processes, ["fails-under-faults"], "raised ValueError: somebody is there twice"),
]
"""Those that many runs of groups are shrunk for."""


def failures(assignor, checks=None, **options):
    report = check_assignor(assignor, checks=checks, **{"examples": EXAMPLES, **options})
    return {each.check: each for each in report.failures}


@pytest.mark.parametrize(
    ("assignor", "checks", "said"),
    [*WRONG, *(pytest.param(*each, marks=pytest.mark.slow) for each in FOUND_SLOWLY)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_an_assignor_that_is_wrong_in_one_way_is_found_by_the_check_for_it(assignor, checks, said):
    found = failures(assignor, checks)
    assert sorted(found) == sorted(checks)
    assert said in found[checks[0]].reason


NO_ANSWER = {"raises", "malformed-result", "more-members"}
"""The checks that fail without an answer to ordinary groups."""


def test_there_is_a_wrong_assignor_for_each_check():
    shown = {name for _, checks, _ in [*WRONG, *FOUND_SLOWLY] for name in checks} | {"slower-than-linear"}
    assert shown == {check.name for check in CHECKS}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("assignor", "checks"),
    [(wrong, checks) for wrong, checks, _ in WRONG if not NO_ANSWER & set(checks)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_is_wrong_in_an_answer_has_one_name(assignor, checks):
    """Of the checks on a single answer none fails but those of the table."""
    assert set(failures(assignor, VALIDITY, examples=10)) <= set(checks)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_the_built_in_assignors_pass_all_checks(name):
    report = check_assignor(name, checks=MOST, examples=12)
    assert report.failures == ()
    assert not [each for each in report.results if each.outcome is Outcome.NOT_RUN]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_the_sticky_assignors_of_kafka_fail_no_other_checks(name):
    report = check_assignor(name, checks=MOST, examples=30)
    assert {result.check for result in report.failures} <= FAULTS_OF_KAFKA


@pytest.mark.slow
@pytest.mark.parametrize(
    "assignor",
    [wrong.dealt, wrong.Cooperative, wrong.throws_dice_from_a_seed, wrong.KeepsWhatIsRemembered],
)
def test_what_the_wrong_ones_are_made_of_is_right(assignor):
    assert failures(assignor, MOST, examples=10) == {}


# --- growth, by a clock that the assignor moves


def growth(name, steps):
    return failures(lambda: wrong.Slow(name, steps), ["slower-than-linear"], clock=lambda: wrong.Slow.now)


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        ("partitions", lambda partitions, members: partitions**2),
        ("members", lambda partitions, members: members**2),
    ],
)
def test_an_assignor_that_takes_64_times_as_long_for_8_times_as_many_is_found(what, steps):
    reason = growth("quadratic", steps)["slower-than-linear"].reason
    assert f"8 times the {what} took 64 times as long" in reason


@pytest.mark.parametrize(
    "steps",
    [
        lambda partitions, members: partitions * members,
        lambda partitions, members: partitions * (1 + partitions.bit_length()),
        lambda partitions, members: 0,
    ],
    ids=["each member for each partition", "sorted", "no time at all"],
)
def test_growth_with_the_partitions_and_with_the_members_is_let_pass(steps):
    assert growth("linear", steps) == {}


def test_one_slow_moment_is_measured_again():
    calls = iter(range(1_000))
    assert (
        growth("interrupted", lambda partitions, members: 10**9 if 3 <= next(calls) < 6 else partitions) == {}
    )

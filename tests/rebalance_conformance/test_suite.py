"""`check_assignor`: what may be checked, what the report says, and that it says the same every time."""

import json

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.errors import AssignmentError, RebalanceLabError
from coordinator_core.registry.registry import default_registry
from rebalance_conformance.pytest_plugin import Demand
from rebalance_conformance.results import Outcome
from rebalance_conformance.suite import check_assignor
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_lab.scenarios.groups import parse_group
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from tests.places import placeless
from tests.rebalance_conformance import wrong

TWICE = "assigned-twice"
OF_WRONG = wrong.__name__


def only(assignor, check, **options):
    (result,) = check_assignor(assignor, checks=[check], **{"examples": 25, **options}).results
    return result


# --- what may be checked


class Factory:
    def __call__(self):
        return wrong.Cooperative()


@pytest.mark.parametrize(
    ("assignor", "name"),
    [
        ("range", "range"),
        ("range+cooperative", "range+cooperative"),
        (f"{OF_WRONG}:dealt", f"{OF_WRONG}:dealt"),
        (wrong.Cooperative, "wrong.py:Cooperative"),
        (wrong.dealt, "wrong.py:dealt"),
        (Factory(), "right-and-cooperative"),
        (lambda: wrong.Cooperative(), "right-and-cooperative"),
        (wrong.Cooperative(), "right-and-cooperative"),
        (type(default_registry().assignor("sticky")), "sticky"),
    ],
)
def test_an_assignor_is_named_in_any_of_these_ways(assignor, name):
    report = check_assignor(assignor, checks=["raises"], examples=3)
    assert report.passed
    assert report.assignor.endswith(name)


class Boasts(wrong.Cooperative):
    capabilities = ("perfect",)


@pytest.mark.parametrize(
    ("thing", "options", "told"),
    [
        *((thing, {}, r"assignor|assign") for thing in (7, None, object(), dict, lambda one: one)),
        (wrong.Slow, {}, "no arguments needed"),
        (Boasts, {}, "'perfect'"),
        ("range", {"checks": ["asigned-twice"]}, "did you mean 'assigned-twice'"),
        ("range", {"expected_failed_checks": {"asigned-twice": "x"}}, "found 'asigned-twice', expected one"),
    ],
)
def test_what_is_no_assignor_capability_or_check_is_refused(thing, options, told):
    with pytest.raises(RebalanceLabError, match=told):
        check_assignor(thing, **options)


def test_every_check_gets_a_fresh_object_of_a_finished_one():
    assignor = wrong.CountsItsCalls()
    check_assignor(assignor, checks=["raises"], examples=3)
    assert assignor.calls == 0


def test_a_function_of_another_module_is_no_class_that_is_installed():
    class Impostor:
        name = "range"

        def assign(self, cluster, group):
            return wrong.gives_to_two(cluster, group)

    assert check_assignor(Impostor, checks=[TWICE]).failures


# --- the smallest group


def test_a_failure_is_raised_with_the_smallest_group_there_is_whose_line_fails_again():
    report = check_assignor(wrong.gives_to_two, checks=[TWICE, "raises"])
    with pytest.raises(AssertionError) as caught:
        report.raise_for_failures()
    name, problem, _, line = str(caught.value).splitlines()
    assert name.endswith("wrong.py:gives_to_two':")
    assert problem == "assigned-twice: orders-0 went to 'c1' and to 'c2'"
    assert json.loads(line) == {
        "assignor": "tests/rebalance_conformance/wrong.py:gives_to_two",
        "topics": {"orders": {"partitions": 1}},
        "members": [{"id": "c1", "topics": ["orders"]}, {"id": "c2", "topics": ["orders"]}],
    }
    parsed = parse_group(json.loads(line), "line")
    with pytest.raises(AssignmentError, match="orders-0 went to both 'c1' and 'c2'"):
        compute_assignment(default_registry().assignor(parsed.assignor), parsed.cluster, parsed.group)


@pytest.mark.slow
@pytest.mark.parametrize("assignor", [wrong.gives_to_two, wrong.CountsItsCalls, wrong.DealsAnew])
def test_the_report_is_the_same_every_time(assignor):
    names = [TWICE, "remembers-groups", "foreign-user-data", "moves-too-much-on-leave"]
    first, second = (check_assignor(assignor, checks=names, examples=10) for _ in range(2))
    assert first == second


def test_what_fails_only_now_and_then_is_told_to_do_so():
    calls = iter(range(1_000))

    def fails_once(cluster, group):
        if next(calls) == 5:
            raise ValueError("now")
        return wrong.dealt(cluster, group)

    assert placeless(only(fails_once, "raises").reason) == "raised ValueError: now (but not every time)"


# --- what the report says


def test_a_check_that_does_not_apply_says_so():
    assert only("range", "not-sticky").outcome is Outcome.NOT_APPLICABLE
    assert only("range", "not-sticky").reason == "it does not declare 'sticky'"
    assert only("range", "takes-from-owner").reason == "it is not cooperative"


@pytest.mark.parametrize(
    ("is_found", "told"),
    [
        (False, "it cannot be made again in another process: "),
        pytest.param(True, "AttributeError", marks=pytest.mark.slow),
    ],
)
def test_an_assignor_that_no_other_process_can_make_is_not_run_there(monkeypatch, is_found, told):
    monkeypatch.setattr(wrong.dealt, "__module__", "__main__")
    monkeypatch.setattr("__main__.dealt", wrong.dealt, raising=False)
    result = only(wrong.dealt if is_found else lambda: wrong.Cooperative(), "depends-on-hash-seed")
    assert result.outcome is Outcome.NOT_RUN
    assert told in result.reason


def test_user_data_that_the_line_cannot_hold_is_mentioned():
    result = only(wrong.needs_its_own_user_data, "foreign-user-data")
    assert result.reason.endswith("(its members send user data too, which the line below cannot hold)")


def test_an_exception_of_the_author_has_its_line_and_in_pytest_its_traceback():
    line = wrong.fails_for_three_members.__code__.co_firstlineno + 2
    place = f"tests/rebalance_conformance/wrong.py:{line}"
    assert only(wrong.fails_for_three_members, "raises").reason.endswith(f"three is a crowd ({place})")
    with pytest.raises(pytest.fail.Exception) as failed:
        Demand("raises", 25)(wrong.fails_for_three_members)
    said = str(failed.value)
    assert f"three is a crowd ({place})" in said
    assert f'wrong.py", line {line}, in fails_for_three_members' in said
    assert "hypothesis" not in said


def test_a_failure_in_a_running_group_has_its_scenario():
    """In that scenario the assignor moves partitions that the same with a memory does not move."""
    result = only(wrong.KeepsWhatIsListed, "not-sticky-in-a-group")
    assert result.line == ""
    scenario = load_scenario_text(result.scenario, "scenario")
    registry = default_registry()
    listed, remembered = (
        History(simulate(scenario, f"{OF_WRONG}:{name}", registry), registry).moved
        for name in ("KeepsWhatIsListed", "KeepsWhatIsRemembered")
    )
    assert listed > remembered


@pytest.mark.parametrize(
    ("assignor", "outcome", "told"),
    [
        (wrong.gives_to_two, Outcome.EXPECTED, "it is shared (orders-0 went to 'c1' and to 'c2')"),
        (wrong.dealt, Outcome.FAILED, "it passes, and was expected to fail: it is shared"),
    ],
)
def test_what_is_expected_to_fail_is_no_failure_and_what_passes_then_is_one(assignor, outcome, told):
    result = only(assignor, TWICE, expected_failed_checks={TWICE: "it is shared"})
    assert (result.outcome, result.reason) == (outcome, told)

"""`check_assignor`: what may be checked, what the report says, and that it says the same every time."""

import json

import pytest

from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.registry.registry import default_registry
from rebalance_conformance.checks import CHECKS
from rebalance_conformance.pytest_plugin import Demand
from rebalance_conformance.results import SUITE_VERSION, Outcome
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


@pytest.mark.parametrize("thing", [7, None, object(), dict, lambda one: one])
def test_what_is_no_assignor_is_refused(thing):
    with pytest.raises(Exception, match=r"assignor|assign") as caught:
        check_assignor(thing)
    assert type(caught.value).__module__ == "coordinator_core.errors"


def test_a_class_that_needs_arguments_is_refused():
    with pytest.raises(InputError, match="no arguments needed"):
        check_assignor(wrong.Slow)


def test_a_capability_that_there_is_not_is_refused():
    class Boasts(wrong.Cooperative):
        capabilities = ("perfect",)

    with pytest.raises(AssignmentError, match="'perfect'"):
        check_assignor(Boasts)


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


def test_the_group_of_a_failure_is_the_smallest_there_is():
    result = only(wrong.gives_to_two, TWICE)
    assert json.loads(result.line) == {
        "assignor": "tests/rebalance_conformance/wrong.py:gives_to_two",
        "topics": {"orders": {"partitions": 1}},
        "members": [{"id": "c1", "topics": ["orders"]}, {"id": "c2", "topics": ["orders"]}],
    }


def test_the_line_of_a_failure_fails_again():
    result = only(wrong.gives_to_two, TWICE)
    parsed = parse_group(json.loads(result.line), "line")
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


@pytest.mark.slow
def test_the_report_has_a_result_for_each_check_in_order():
    report = check_assignor("range", examples=2)
    assert [each.check for each in report.results] == [check.name for check in CHECKS]
    assert report.suite_version == SUITE_VERSION


def test_a_check_that_does_not_apply_says_so():
    assert only("range", "not-sticky").outcome is Outcome.NOT_APPLICABLE
    assert only("range", "not-sticky").reason == "it does not declare 'sticky'"
    assert only("range", "takes-from-owner").reason == "it is not cooperative"


def test_an_assignor_that_no_other_process_can_make_is_not_run_there():
    result = only(lambda: wrong.Cooperative(), "depends-on-hash-seed")
    assert result.outcome is Outcome.NOT_RUN
    assert result.reason.startswith("it cannot be made again in another process: ")


def test_an_assignor_that_another_process_does_not_find_is_not_run_there(monkeypatch):
    monkeypatch.setattr(wrong.dealt, "__module__", "__main__")
    monkeypatch.setattr("__main__.dealt", wrong.dealt, raising=False)
    result = only(wrong.dealt, "depends-on-hash-seed")
    assert result.outcome is Outcome.NOT_RUN
    assert "AttributeError" in result.reason


def test_a_failure_is_raised_with_its_group():
    report = check_assignor(wrong.gives_to_two, checks=[TWICE, "raises"])
    with pytest.raises(AssertionError) as caught:
        report.raise_for_failures()
    name, problem, _, line = str(caught.value).splitlines()
    assert name.endswith("wrong.py:gives_to_two':")
    assert problem == "assigned-twice: orders-0 went to 'c1' and to 'c2'"
    assert json.loads(line)["topics"] == {"orders": {"partitions": 1}}


def test_nothing_is_raised_where_nothing_failed():
    check_assignor("range", checks=["raises"]).raise_for_failures()


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


# --- expected failures


def test_what_is_expected_to_fail_is_no_failure():
    report = check_assignor(
        wrong.gives_to_two, checks=[TWICE], expected_failed_checks={TWICE: "it is shared"}
    )
    assert report.passed
    assert report.results[0].outcome is Outcome.EXPECTED
    assert report.results[0].reason == "it is shared (orders-0 went to 'c1' and to 'c2')"


def test_what_passes_against_expectation_is_a_failure():
    report = check_assignor(wrong.dealt, checks=[TWICE], expected_failed_checks={TWICE: "it is shared"})
    assert not report.passed
    assert report.failures[0].reason == "it passes, and was expected to fail: it is shared"


@pytest.mark.parametrize(
    "options", [{"checks": ["asigned-twice"]}, {"expected_failed_checks": {"asigned-twice": "x"}}]
)
def test_a_check_that_there_is_not_is_refused(options):
    with pytest.raises(
        InputError, match=r"found 'asigned-twice', expected one of .*did you mean 'assigned-twice'"
    ):
        check_assignor("range", **options)

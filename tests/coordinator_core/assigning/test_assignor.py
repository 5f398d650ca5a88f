"""The door: assignors of both kinds are run, and whatever they return is checked."""

from types import SimpleNamespace

import numpy as np
import pytest

from coordinator_core.assigning import computing
from coordinator_core.assigning.assignor import Assignor, Wrapper
from coordinator_core.assigning.combinators import Pairs, with_budget, with_cooperative, with_deadline
from coordinator_core.assigning.computing import compute_assignment, run, unassigned, user_data_of
from coordinator_core.assigning.loading import assignor_from
from coordinator_core.assigning.problem import build_problem
from coordinator_core.errors import AssignmentError, InputError
from coordinator_core.model import Cluster, GroupAssignment, Partitions, RebalanceProtocol, TopicIndex
from tests.assignors.groups import group, listed, member, partitions, told
from tests.places import placeless

CLUSTER = Cluster({"t": 3, "u": 2})
GROUP = group(a=member("t u"), b=member("t"))


class Returns:
    """An author's assignor that returns what it is told to."""

    name = "author"

    def __init__(self, result):
        self.result = result

    def assign(self, cluster, group):
        return self.result


class Solves:
    """One over arrays."""

    name = "arrays"

    def __init__(self, solve):
        self.solve = solve


def owners(*values, dtype=np.int32):
    """An assignor that returns these owners, in the problem's own numbers."""
    return Solves(lambda p: GroupAssignment.from_owners(p.index, p.members, np.array(values, dtype=dtype)))


def violations(assignor, members=GROUP):
    with pytest.raises(AssignmentError) as told:
        compute_assignment(assignor, CLUSTER, members)
    assert told.value.assignor == assignor.name
    return list(told.value.violations)


# --- what is right


def test_a_plain_mapping_becomes_an_assignment():
    result = {"a": [("u", 1), ("t", 0)], "b": (("t", 2), ("t", 1))}
    assert told(compute_assignment(Returns(result), CLUSTER, GROUP)) == {"a": "u:1 t:0", "b": "t:2,1"}


def test_members_that_were_left_out_get_nothing_and_all_come_in_the_order_of_the_group():
    """C-60."""
    assignment = compute_assignment(Returns({"b": [("t", 0)]}), CLUSTER, GROUP)
    assert listed(assignment) == {"a": [], "b": [("t", 0)]}
    assert list(assignment) == ["a", "b"]


def test_partitions_may_be_of_any_kind_that_can_be_iterated():
    """A generator can be read once only."""
    result = {"a": iter([("t", 0), ("u", np.int64(1))]), "b": {("t", 1): None}}
    assert told(compute_assignment(Returns(result), CLUSTER, GROUP)) == {"a": "t:0 u:1", "b": "t:1"}


def test_an_author_may_return_an_assignment_of_either_form():
    index = TopicIndex({"t": 3})
    array = GroupAssignment.from_owners(index, ("b",), np.array([0, -1, 0], dtype=np.int32))
    mapping = GroupAssignment({"b": partitions("t:0,2")}, user_data={"b": b"x"})
    for result in (array, mapping):
        assignment = compute_assignment(Returns(result), CLUSTER, GROUP)
        assert told(assignment) == {"a": "", "b": "t:0,2"}
    assert assignment.user_data == {"b": b"x"}


def test_an_assignor_over_arrays_is_given_the_problem():
    assignor = owners(0, 1, -1, 0, 0)
    assignor.assign = None  # never called
    assert told(compute_assignment(assignor, CLUSTER, GROUP)) == {"a": "t:0 u:0,1", "b": "t:1"}


def test_an_assignor_over_arrays_may_return_a_mapping():
    assignor = Solves(lambda problem: GroupAssignment({"b": partitions("t:1")}))
    assert told(compute_assignment(assignor, CLUSTER, GROUP)) == {"a": "", "b": "t:1"}


def test_an_assignor_over_arrays_may_replace_the_claims():
    def solve(problem):
        assert problem.owner.tolist() == [-1] * 5
        problem = problem.with_claims(group(a=member("t u", "t:2"), b=member("t", "t:0")))
        return GroupAssignment.from_owners(problem.index, problem.members, problem.owner)

    assert told(compute_assignment(Solves(solve), CLUSTER, GROUP)) == {"a": "t:2", "b": "t:0"}


def test_partitions_that_nobody_got_can_be_asked_for():
    assignment = compute_assignment(Returns({"a": [("t", 1)]}), CLUSTER, GROUP)
    assert list(unassigned(CLUSTER, GROUP, assignment)) == [("t", 0), ("t", 2), ("u", 0), ("u", 1)]
    only_t = group(b=member("t"))
    everything = compute_assignment(Returns({"b": [("t", n) for n in range(3)]}), CLUSTER, only_t)
    assert list(unassigned(CLUSTER, only_t, everything)) == []


# --- what is wrong


def no(result):
    return f"returned {type(result).__name__}, not a mapping of members"


TOO_MANY = [("t", n) for n in range(3, 23)]
NO_LIST = "what 'a' gets is no list of (topic, partition) pairs"
WRONG = {
    "two owners": (Returns({"a": [("t", 0)], "b": [("t", 0)]}), ["t-0 went to both 'a' and 'b'"]),
    "twice to one": (Returns({"a": [("t", 0), ("t", 0)]}), ["t-0 went to both 'a' and 'a'"]),
    "a stranger": (Returns({"x": [("t", 0)]}), ["there is no member 'x'"]),
    "a stranger without partitions": (Returns({3: []}), ["there is no member 3"]),
    **{
        f"no subscriber, {form}": (wrong, ["u-1 went to 'b', which does not subscribe to it"])
        for form, wrong in {
            "mapping": Returns({"b": [("t", 0), ("u", 1)]}),
            "array": owners(1, -1, -1, 0, 1),
        }.items()
    },
    **{
        f"no partition {named}": (Returns({"a": [pair]}), [f"{named} does not exist"])
        for pair, named in [
            (("t", 3), "t-3"),
            (("t", -1), "t--1"),
            (("unknown", 0), "unknown-0"),
            (("t", 0.0), "t-0.0"),
            (("t", "0"), "t-0"),
            ((None, 0), "None-0"),
            ((["t"], 0), "['t']-0"),
        ]
    },
    **{f"no mapping: {r}": (Returns(r), [no(r)]) for r in (None, [("a", [("t", 0)])], "a", 7)},
    **{
        f"no list: {given}": (Returns({"a": given, "b": []}), [NO_LIST])
        for given in (None, 7, ["t-0"], [("t",)], [("t", 0, 1)], [7])
    },
    **{
        f"member {number}": (owners(0, number, -1, -1, -1), [f"t-1 went to member number {number} of 2"])
        for number in (2, -2)
    },
    **{
        f"an array {kind}": (wrong, [f"returned an owner array {kind}, not int32[5]"])
        for kind, wrong in {
            "int32[4]": owners(0, 0, 0, 0),
            "int32[6]": owners(0, 0, 0, 0, 0, 0),
            "float64[5]": owners(0, 0, 0, 0, 0, dtype=float),
        }.items()
    },
    "ten": (Returns({"a": TOO_MANY[:10]}), [f"t-{n} does not exist" for n in range(3, 13)]),
    "more than ten": (
        Returns({"x": [], "a": TOO_MANY}),
        ["there is no member 'x'", *(f"t-{n} does not exist" for n in range(3, 12)), "and more"],
    ),
}


@pytest.mark.parametrize(("assignor", "found"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(assignor, found):
    """C-60: in both forms."""
    assert violations(assignor) == found


def test_an_assignor_that_raises_is_named_with_what_it_raised():
    class Broken:
        name = "broken"

        def assign(self, cluster, group):
            raise KeyError("t")

    with pytest.raises(AssignmentError) as told:
        compute_assignment(Broken(), CLUSTER, GROUP)
    assert placeless(str(told.value)) == "assignor 'broken': raised KeyError: 't'"
    assert isinstance(told.value.__cause__, KeyError)


def test_a_generator_that_raises_half_way_is_named():
    def half():
        yield "t", 0
        raise KeyError("more")

    (violation,) = violations(Returns({"a": half()}))
    assert placeless(violation) == "what 'a' gets raised KeyError: 'more'"


def test_an_error_of_the_program_itself_passes_through():
    with pytest.raises(InputError, match="capacity"):
        compute_assignment(owners(), CLUSTER, group(a=member("t", capacity=-1)))


def test_an_array_wrong_all_over_is_told_of_ten_times():
    wide = Cluster({"t": 50, "u": 1})
    for value, members in ((9, group(a=member("t"))), (0, group(a=member("u")))):
        with pytest.raises(AssignmentError) as told:
            compute_assignment(owners(*[value] * 50, -1), wide, members)
        assert len(told.value.violations) == 10
        assert told.value.violations[9].startswith("t-9 went to")


# --- the base class and what is adapted to it


def test_an_assignor_needs_no_more_than_a_name_and_one_function():
    plain = assignor_from(Returns({}))
    assert isinstance(plain, Assignor)
    assert (plain.name, plain.version, tuple(plain.capabilities)) == ("author", 0, ())
    assert plain.supported_protocols == (RebalanceProtocol.EAGER,)
    assert plain.subscription_user_data(("t",)) is None
    plain.on_assignment(Partitions(), 1)


def test_what_an_assignor_offers_besides_is_used():
    heard = []
    rich = assignor_from(
        SimpleNamespace(
            name="rich",
            version=3,
            assign=lambda cluster, group: {},
            supported_protocols=(RebalanceProtocol.COOPERATIVE,),
            capabilities=["sticky"],
            subscription_user_data=lambda topics: ",".join(topics).encode(),
            on_assignment=lambda partitions, generation: heard.append((list(partitions), generation)),
        )
    )
    assert (rich.version, list(rich.capabilities)) == (3, ["sticky"])
    assert rich.supported_protocols == (RebalanceProtocol.COOPERATIVE,)
    assert rich.subscription_user_data(("t", "u")) == b"t,u"
    rich.on_assignment(partitions("t:1"), 4)
    assert heard == [([("t", 1)], 4)]


class SendsText(Assignor):
    name = "x"

    def assign(self, cluster, group):
        return {}

    def subscription_user_data(self, topics):
        return "text"


@pytest.mark.parametrize(
    "assignor",
    [SendsText(), SimpleNamespace(name="x", assign=print, subscription_user_data=lambda topics: "text")],
)
def test_user_data_that_are_no_bytes_are_refused(assignor):
    with pytest.raises(AssignmentError) as caught:
        user_data_of(assignor_from(assignor), ("t",))
    assert str(caught.value) == (
        "assignor 'x': subscription_user_data returned 'text', expected bytes or None"
    )


class ByMapping(Assignor):
    def assign(self, cluster, group):
        return {"b": [("t", 1)]}


class ByArrays(Assignor):
    name = "arrays"

    def solve(self, problem):
        return GroupAssignment.from_owners(
            problem.index, problem.members, np.array([-1, 1, -1, -1, -1], dtype=np.int32)
        )


@pytest.mark.parametrize("made", [ByMapping(), ByArrays()])
def test_a_subclass_overrides_one_of_two_methods_and_has_both(made):
    assert told(compute_assignment(made, CLUSTER, GROUP)) == {"a": "", "b": "t:1"}
    problem = build_problem(CLUSTER, GROUP)
    for result in (made.assign(CLUSTER, GROUP), made.solve(problem)):
        assert {m: list(p) for m, p in result.items() if list(p)} == {"b": [("t", 1)]}


def test_a_subclass_that_overrides_neither_is_named():
    class Idle(Assignor):
        pass

    assert violations(Idle()) == ["raised NotImplementedError: Idle overrides neither assign nor solve"]


def test_a_subclass_without_a_name_gets_that_of_its_class():
    assert assignor_from(ByMapping).name == assignor_from(ByMapping()).name == "by-mapping"
    assert assignor_from(ByArrays).name == "arrays"


@pytest.mark.parametrize(
    ("declared", "violation"),
    [
        ({"capabilities": ("perfect",)}, "declares the unknown capability 'perfect'; there are sticky, "),
        ({"capabilities": 5}, "declares capabilities 5, not a list of them"),
        ({"supported_protocols": ("eager",)}, "declares supported_protocols ('eager',), not a list of "),
    ],
)
def test_an_invalid_declaration_is_named(declared, violation):
    for kind in (Assignor, object):
        made = type("Declares", (kind,), {"name": "it", "assign": lambda *_: {}, **declared})
        with pytest.raises(AssignmentError) as caught:
            assignor_from(made)
        assert caught.value.violations[0].startswith(violation)


class AroundIt(Wrapper):
    """Takes everything away."""

    def solve(self, problem):
        run(self.inner, problem)
        nobody = np.full(problem.index.size, -1, dtype=np.int32)
        return GroupAssignment.from_owners(problem.index, problem.members, nobody)


def test_a_wrapper_has_the_attributes_of_the_inner_assignor_which_is_validated():
    inner = assignor_from(Returns({"x": []}))
    around = AroundIt(inner)
    assert (around.name, around.version) == ("author", 0)
    assert violations(around) == ["there is no member 'x'"]


def test_all_wrappers_work_on_one_problem(monkeypatch):
    built, validated = [], []
    monkeypatch.setattr(computing, "build_problem", lambda *args: built.append(1) or build_problem(*args))
    validate = computing._validated
    monkeypatch.setattr(computing, "_validated", lambda *args: validated.append(1) or validate(*args))
    strategy = with_deadline(with_budget(with_cooperative(ByArrays()), Pairs(100), ByMapping()), 60)
    assert told(compute_assignment(strategy, CLUSTER, GROUP)) == {"a": "", "b": "t:1"}
    assert (len(built), len(validated)) == (1, 1)

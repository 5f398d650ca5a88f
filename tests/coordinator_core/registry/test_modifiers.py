"""The built-in modifiers: what may stand behind a plus sign, and what it makes of a strategy."""

import pytest

from coordinator_core.assigning.combinators import Pairs
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription
from coordinator_core.registry import modifiers as modifiers_module
from coordinator_core.registry.registry import default_registry
from tests.approved import approved
from tests.coordinator_core.registry.refusals import refusals


@pytest.fixture
def registry():
    return default_registry()


def answer(strategy):
    """What a member that owns everything, and another that has just come, get of three partitions."""
    owning = Subscription(("t",), Partitions.of([("t", n) for n in range(3)]), 1)
    group = GroupSubscription({"a": owning, "b": Subscription(("t",))})
    assignment = compute_assignment(default_registry().assignor(strategy), Cluster({"t": 3}), group)
    return {m: sorted(p.partition for p in assignment[m]) for m in group}


def test_the_built_in_modifiers_are_these_and_each_says_what_it_does():
    built_in = list(modifiers_module.modifiers())
    assert [spec.name for spec in built_in] == ["static", "cooperative", "delay", "budget", "weights"]
    assert all(spec.doc for spec in built_in)


# --- static, cooperative


def test_cooperative_holds_back_what_moves():
    assert answer("range") == {"a": [0, 1], "b": [2]}
    assert answer("range+cooperative") == {"a": [0, 1], "b": []}


# --- budget


@pytest.fixture
def budgets(monkeypatch):
    """The limits and fallbacks that are asked for."""
    asked = []

    def with_budget(inner, limit, fallback):
        asked.append((inner.name, limit, fallback.name))
        return inner

    monkeypatch.setattr(modifiers_module, "with_budget", with_budget)
    return asked


@pytest.mark.parametrize(
    ("value", "limit", "fallback"),
    [
        ("500ms", 0.5, "sticky"),
        ("2s:range", 2.0, "range"),
        ("1.5s", 1.5, "sticky"),
        ("1m", 60.0, "sticky"),
        ("250ms", 0.25, "sticky"),
        ("10000pairs", Pairs(10_000), "sticky"),
        ("1pairs:roundrobin", Pairs(1), "roundrobin"),
        ("2s:", 2.0, "sticky"),
    ],
)
def test_a_budget_is_a_time_or_a_number_of_pairs_and_sticky_is_the_fallback(
    registry, budgets, value, limit, fallback
):
    registry.assignor(f"range+budget={value}")
    assert budgets == [("range", limit, fallback)]


def test_values_of_modifiers_that_are_refused_are_answered_with_what_one_looks_like(registry):
    budgets = ("", "0s", "-1s", "soon", "0pairs", "-3pairs", "1.5pairs", "pairs", ":range", "0.0001ms", "nan")
    delays = ("60", "0", "0s", "60x", "")
    told = refusals(
        registry,
        "range+static=yes range+static= range+cooperative=yes range+cooperative=",
        "range+budget range+budget=2:range range+weights range+weights= optimal+max_moves=x",
        "cooperative-sticky+delay+delay=3s",
        *(f"range+budget={value}" for value in budgets),
        *(f"cooperative-sticky+delay={value}" for value in delays),
    )
    approved("modifiers", told)


def test_a_budget_of_pairs_chooses_by_the_size_of_the_group():
    """Three partitions for two members are six pairs."""
    assert answer("roundrobin+budget=6pairs:range") == answer("roundrobin") == {"a": [0, 2], "b": [1]}
    assert answer("roundrobin+budget=5pairs:range") == answer("range")


def test_what_stands_first_is_innermost(registry, budgets):
    assert registry.assignor("range+budget=1s+cooperative").name == "range-cooperative"
    assert registry.assignor("range+cooperative+budget=1s").name == "range-cooperative"
    assert budgets == [("range", 1.0, "sticky"), ("range-cooperative", 1.0, "sticky")]


def test_a_budget_that_is_made_cooperative_holds_back_in_the_fallback_too():
    assert answer("roundrobin+budget=1pairs:range+cooperative") == answer("range+cooperative")


# --- weights


def test_weights_name_the_provider_and_none_is_nobody(registry):
    assert registry.strategy("range+weights=reported-lags").provider == "reported-lags"
    assert registry.strategy("optimal").provider == "reported-rates"
    assert registry.strategy("optimal+weights=none").provider == ""
    assert registry.strategy("optimal+weights=none+weights=scenario-rates").provider == "scenario-rates"

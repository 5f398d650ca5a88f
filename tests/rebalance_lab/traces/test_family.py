"""States have the meaning that the protocol family of the trace gives them."""

import pytest
from msgspec.structs import replace

from coordinator_core.errors import InputError
from coordinator_core.protocol import events as ev
from coordinator_core.registry.hookspecs import ProtocolSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.traces.history import History
from rebalance_lab.traces.invariants import Invariants
from rebalance_lab.traces.rounds import entries, rounds
from rebalance_lab.traces.trace import Trace
from tests.rebalance_lab.traces.traces import assigned, generation, joined, started, state, trace_of

TOY = ProtocolSpec(
    "toy",
    states={"Moving": ["Calm"], "Calm": ["Moving", "Vacant"], "Vacant": ["Moving"]},
    at_rest=frozenset({"Calm"}),
    round_begins=frozenset({"Moving"}),
    vacant=frozenset({"Vacant"}),
)
RUN = [
    (0, started("a", "t")),
    (1_000, state("Moving", before="Vacant", cause="a joined")),
    (1_000, generation(1, "a", leader="a")),
    (1_000, joined("a", 1)),
    (3_000, state("Calm", before="Moving")),
    (3_000, assigned("a", 1, {"t": [0]})),
]


class Toys:
    @hookimpl
    def protocols(self):
        return [TOY]


@pytest.fixture
def registry():
    made = Registry()
    made.register(Toys(), name="toys")
    return made


def toy_trace(*timed):
    first, *rest = trace_of(*timed, topics={"t": 1}).events
    return Trace((ev.TraceEvent(0, replace(first.event, protocol="toy")), *rest))


def test_a_history_rests_in_the_states_of_the_family(registry):
    history = History(toy_trace(RUN, (9_000, state("Moving", before="Calm", cause="b joined"))), registry)
    assert history.stable_ms == [3_000]
    assert [(settled.from_ms, settled.until_ms) for settled in history.settled] == [(3_000, 9_000)]


def test_a_round_begins_and_ends_in_the_states_of_the_family(registry):
    trace = toy_trace(RUN, (9_000, state("Vacant", before="Calm", cause="a left")))
    (only,) = rounds(trace, registry)
    assert (only.began_ms, only.stable_ms, only.causes) == (1_000, 3_000, ["a joined"])
    assert [getattr(entry, "text", "") for entry in entries(trace, registry)] == [
        "",
        "the group is Vacant: a left",
    ]


def violations(trace, registry):
    watch = Invariants(registry)
    for line in trace.events:
        watch.observe(line.at_ms, line.event)
    return [(violation.rule, violation.detail) for violation in watch.violations], watch.settled()


def test_legal_moves_are_those_of_the_family(registry):
    assert violations(toy_trace(RUN), registry) == ([], [])
    wrong = toy_trace(
        RUN, (9_000, state("Moving", before="Calm", cause="x")), (9_500, state("Vacant", before="Moving"))
    )
    assert violations(wrong, registry) == ([("legal moves", "Moving to Vacant")], ["the group is Vacant"])
    causeless = toy_trace(RUN, (9_000, state("Moving", before="Calm")))
    assert violations(causeless, registry)[0] == [("every rebalance has a cause", "none in generation 1")]


def test_a_trace_of_an_unknown_family_is_an_error():
    with pytest.raises(InputError, match="protocol: found 'toy'"):
        History(toy_trace(RUN))

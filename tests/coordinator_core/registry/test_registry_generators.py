"""Generators of workloads by name: their options, and whose fault it is when they fail."""

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.registry.hookspecs import WorkloadSpec, hookimpl
from coordinator_core.registry.registry import Registry, default_registry
from tests.approved import approved


def even(text):
    if not text.isdecimal() or int(text) % 2:
        raise ValueError("an even number")
    return int(text)


def refusing(text):
    raise InputError("there", repr(text), "something else")


def plain(seed, row, *, pairs=2, share=0.5, count=0):
    return {"name": f"{seed} {row} {pairs} {share} {count}"}


def broken(seed, row):
    return {}[row]


def fussy(seed, row, *, path):
    raise InputError("its place", "something", "something else")


class Workloads:
    @hookimpl
    def workloads(self):
        options = {"pairs": even, "share": float, "count": int, "path": refusing}
        return [
            WorkloadSpec("plain", plain, options=options),
            WorkloadSpec("broken", broken),
            WorkloadSpec("fussy", fussy, options={"path": str}, required=("path",)),
        ]


@pytest.fixture
def registry():
    made = Registry()
    made.register(Workloads(), name="theirs", distribution="their-dist")
    return made


def test_a_generator_takes_a_seed_and_a_row(registry):
    assert registry.generator("plain", {})(3, 4) == {"name": "3 4 2 0.5 0"}


def test_options_are_read_and_go_to_every_row(registry):
    generate = registry.generator("plain", {"pairs": "6", "share": "0.25", "count": "-1"})
    assert generate(0, 0) == {"name": "0 0 6 0.25 -1"}
    assert generate(0, 1) == {"name": "0 1 6 0.25 -1"}


WRONG = {
    "plian": ("plian", {}),
    "plain, pair=6": ("plain", {"pair": "6"}),
    "plain, pairs=7": ("plain", {"pairs": "7"}),
    "plain, share=half": ("plain", {"share": "half"}),
    "plain, count=1.5": ("plain", {"count": "1.5"}),
    "plain, path=x": ("plain", {"path": "x"}),
    "broken, pairs=6": ("broken", {"pairs": "6"}),
    "fussy": ("fussy", {}),
}


def test_profiles_and_options_that_are_refused_are_told_what_there_is(registry):
    told = {}
    for title, (profile, options) in WRONG.items():
        with pytest.raises(InputError) as caught:
            registry.generator(profile, options)
        told[title] = str(caught.value)
    approved("profiles", told)


def test_a_generator_that_fails_is_a_plugin_error_that_names_plugin_and_profile(registry):
    generate = registry.generator("broken", {})
    with pytest.raises(PluginError, match="plugin 'theirs', workload 'broken': KeyError: 5"):
        generate(0, 5)


def test_what_a_generator_refuses_in_our_words_stays(registry):
    with pytest.raises(InputError, match=r"^its place: found something, expected something else$"):
        registry.generator("fussy", {"path": "x"})(0, 0)


def test_the_built_in_profiles_come_in_the_same_way():
    generate = default_registry().generator("skewed", {})
    assert generate(1, 2) == default_registry().workloads()["skewed"].generate(1, 2)

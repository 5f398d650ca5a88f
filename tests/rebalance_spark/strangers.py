"""A plugin of which nothing good is to be expected, and scenarios to try it on."""

import json
import os

from coordinator_core.registry.hookspecs import AssignorSpec, MetricSpec, hookimpl

ME = __name__

SMALL = {
    "name": "small",
    "duration": "20s",
    "seed": 4,
    "topics": {"orders": {"partitions": 4, "rate": 40}},
    "members": [{"id": "a", "topics": ["orders"]}, {"id": "b", "topics": ["orders"]}],
    "events": [{"at": "12s", "leave": "b"}],
}
SMALL_TEXT = json.dumps(SMALL)


def assignor(name):
    """Makes a class for `AssignorSpec` of a function of cluster and group."""

    def made(assign):
        body = {"name": name, "assign": lambda self, cluster, group: assign(cluster, group)}
        return AssignorSpec(name, type("Made", (), body))

    return made


@assignor("first-takes-all")
def first_takes_all(cluster, group):
    owned = {member: [] for member in group}
    owned[min(owned)] = [(t, p) for t, info in cluster.topics.items() for p in range(info.partitions)]
    return owned


@assignor("raising")
def raising(cluster, group):
    raise LookupError("two\n  lines")


@assignor("nonsense")
def nonsense(cluster, group):
    return {"nobody": [("nothing", 99)]}


@assignor("leaving")
def leaving(cluster, group):
    raise SystemExit(3)


@assignor("endless")
def endless(cluster, group):
    while True:
        pass


@assignor("stubborn")
def stubborn(cluster, group):
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue


@assignor("deadly")
def deadly(cluster, group):
    os._exit(7)


@hookimpl
def assignors():
    return [first_takes_all, raising, nonsense, leaving, endless, stubborn, deadly]


@hookimpl
def metrics():
    def nothing(history):
        return float("nan")

    return [
        MetricSpec("strange_figure", "parsec", lambda history: 42.0, planned=True, doc="Always the same."),
        MetricSpec("no_figure", "", nothing, better="higher", doc="Never there."),
    ]

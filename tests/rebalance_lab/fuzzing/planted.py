"""Engines with a fault, of which a run tells: each breaks one rule of those that hold in every run."""

from msgspec.structs import replace

from coordinator_core.coordinator.classic.group import ClassicGroup
from coordinator_core.coordinator.records import CommittedOffsets
from coordinator_core.protocol import events as ev
from rebalance_lab.simulation.simulation import Simulation
from rebalance_lab.simulation.world.brokers import Brokers


def reuses_generations(patch):
    """A coordinator that takes over does not know which generations its predecessor has handed out.

    It shows if the failover comes between the leader's sync and its answer.
    """
    begin = ClassicGroup.__init__
    patch.setattr(ClassicGroup, "__init__", lambda self, group_id, handed_out=0: begin(self, group_id))


def writes_old_commits_again(patch):
    """The log gets the first commit of offsets a second time, in place of the tenth."""
    append = Brokers._append

    def appended(self, coordinator, append_, now_ms):
        if isinstance(append_.records, CommittedOffsets):
            commits = self.__dict__.setdefault("commits", [])
            commits.append(append_)
            if len(commits) == 10:
                self.log.append(append_.partition, commits[0].records)
                for watch in self.replicated:
                    watch(append_.partition, commits[0].records)
        return append(self, coordinator, append_, now_ms)

    patch.setattr(Brokers, "_append", appended)


def emits(change):
    """An engine whose events are not what they should be: ``change`` returns another event, or None."""

    def plant(patch):
        emit = Simulation.emit

        def emitted(self, event):
            changed = change(event)
            if changed is not None:
                emit(self, changed)

        patch.setattr(Simulation, "emit", emitted)

    return plant


def _given_to_everybody(event):
    return replace(event, owned=EVERYTHING) if isinstance(event, ev.Assigned) else event


EVERYTHING = {"t": [0]}

_STRANGE = {"a topic of nobody": [0]}


def _on(kind, **changes):
    return lambda event: replace(event, **changes) if isinstance(event, kind) else event


COMPLETING = "CompletingRebalance"


def _begins(event):
    return isinstance(event, ev.GroupStateChanged) and event.after == "PreparingRebalance"


def _without_completing(event):
    """The group goes from PreparingRebalance to Stable at once."""
    if not isinstance(event, ev.GroupStateChanged) or COMPLETING not in (event.before, event.after):
        return event
    return None if event.after == COMPLETING else replace(event, before="PreparingRebalance")


PLANTED = {
    "generations only grow": reuses_generations,
    "committed offsets never go back": writes_old_commits_again,
    "one owner per partition": emits(_given_to_everybody),
    "what goes is revoked or lost": emits(lambda event: None if isinstance(event, ev.Revoked) else event),
    "assigned within the subscription": emits(_on(ev.Assigned, owned=_STRANGE)),
    "one leader, who is a member": emits(_on(ev.GenerationStarted, leader="nobody")),
    "every rebalance has a cause": emits(_on(ev.GroupStateChanged, cause="")),
    "one state": emits(lambda event: replace(event, before=COMPLETING) if _begins(event) else event),
    "legal moves": emits(_without_completing),
}
"""The faults by the rules that they break."""

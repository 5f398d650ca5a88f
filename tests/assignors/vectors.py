"""Groups with the assignments that Apache Kafka's own assignors gave, and how ours is held against them."""

import gzip
import json
from functools import cache

import numpy as np

from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import NO_OWNER, GroupAssignment, Partitions
from rebalance_lab.scenarios.groups import parse_group
from tests.places import DATA, ROOT

KEPT = DATA / "vectors"
ALL = ROOT.parent / "shared" / "vectors"


@cache
def vectors(assignor, folder=KEPT):
    """Return the lines for an assignor, those of the sample kept here unless another folder is named."""
    lines = []
    for path in sorted(folder.glob(f"*-{assignor}.jsonl.gz")):
        if path.name.partition("-")[2] != f"{assignor}.jsonl.gz":
            continue  # the name of another assignor ends with this one's
        with gzip.open(path, "rt") as file:
            lines += [json.loads(line) for line in file]
    assert lines, f"no vectors for {assignor} in {folder}"
    return lines


def expected(document):
    return {m: [tuple(pair) for pair in pairs] for m, pairs in document["expected"].items()}


class Judge:
    """Measures assignments of one document in the order of PROTOCOL 10.3."""

    def __init__(self, document):
        self.parsed = parse_group(document, "vector")
        self.problem = build_problem(self.parsed.cluster, self.parsed.group)

    def owners(self, assignment):
        made = GroupAssignment({m: Partitions.of(assignment.get(m, ())) for m in self.problem.members})
        return made.owners(self.problem.index, self.problem.members)

    def invalid(self, assignment):
        """What is wrong with an assignment, or None."""
        seen = set()
        for member, pairs in assignment.items():
            for topic, number in pairs:
                if topic not in self.parsed.group[member].topics:
                    return f"{member} does not subscribe to {topic}"
                if not 0 <= number < self.parsed.cluster.partition_count(topic):
                    return f"{topic}-{number} does not exist"
                if (topic, number) in seen:
                    return f"{topic}-{number} twice"
                seen.add((topic, number))
        return None

    def cost(self, assignment):
        """(sum of squares, owners across racks, moves) of what an assignment makes of the group."""
        problem, owner = self.problem, self.owners(assignment)
        held = np.flatnonzero(owner != NO_OWNER)
        loads = np.bincount(owner[held], minlength=len(problem.members))
        crossing = 0
        if problem.racks is not None:
            racks = problem.racks
            crossing = int(racks.crossing[racks.partition_set[held], racks.member[owner[held]]].sum())
        moves = int(((owner != problem.owner) & (problem.owner != NO_OWNER) & (owner != NO_OWNER)).sum())
        return int((loads.astype(np.int64) ** 2).sum()), crossing, moves

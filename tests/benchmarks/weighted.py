"""How near its bound `optimal` gets, and how fast: ``python -m tests.benchmarks.weighted``, a Markdown table.

Groups of equal subscriptions with lognormal weights (sigma 1). *fresh* and *limited* use the strict order.
*limited*: at most 5 % of the weight may move away from an ownership that is even by number. *one leaves*: the
default order, after the first of the members of a balanced group has left; the moves and their bound are sums
over the seeds. The last rows have no weights: the flow, from objects to an
assignment. The gap is the largest over the seeds, of the largest load over the bound that the report names.
"""

import sys
from itertools import chain
from time import perf_counter

import numpy as np

from assignors.optimal import OptimalAssignor
from assignors.weighted.greedy import largest_first, stay_home
from assignors.weighted.instance import build_instance
from assignors.weighted.options import MoveLimit
from coordinator_core.assigning.computing import compute_assignment
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import Cluster, GroupSubscription, Partitions, Subscription, TopicInfo
from tests.benchmarks.workloads import cluster, fresh

SEEDS = range(3)
LIMIT = MoveLimit(share=0.05)
HEAD = [
    "members x partitions",
    "",
    "time limit",
    "gap",
    "greedy gap",
    "proven",
    "moved",
    "found by",
    "wall s",
]

CASES = [
    (10, 100, None, 1.0),
    (50, 500, None, 10.0),
    (100, 2_000, None, 10.0),
    (500, 10_000, None, 10.0),
    (10, 100, LIMIT, 1.0),
    (50, 500, LIMIT, 10.0),
    (100, 2_000, LIMIT, 10.0),
    (500, 10_000, LIMIT, 10.0),
]


def weighted_group(members, partitions, seed, *, owned):
    """One topic of lognormal weights; the partitions dealt at random and even by number if they are owned."""
    random = np.random.default_rng(seed)
    weights = tuple(random.lognormal(0, 1, partitions).tolist())
    dealt = random.permutation(partitions) % members
    numbers = [np.flatnonzero(dealt == m).tolist() if owned else [] for m in range(members)]
    group = {
        f"m-{m:04}": Subscription(("t",), Partitions({"t": numbers[m]}), 1 if owned else -1)
        for m in range(members)
    }
    return Cluster({"t": TopicInfo(partitions, weights=weights)}), GroupSubscription(group)


def greedy_gap(topics, group, bound):
    """How far the better greedy answer is from the bound; where moves are limited, the one of no moves."""
    problem = build_problem(topics, group)
    everybody = np.arange(len(problem.members), dtype=np.int32)
    instance = build_instance(
        problem, everybody, list(problem.subscribed[:, None]), problem.weights, racks=False
    )
    starts = [stay_home(instance)] + ([] if len(problem.claim_partition) else [largest_first(instance)])
    return min(instance.worth(start).largest for start in starts) / bound - 1


def weighted_row(members, partitions, limit, seconds):
    """One row, over the seeds."""
    reports, walls, greedy = [], [], []
    for seed in SEEDS:
        topics, group = weighted_group(members, partitions, seed, owned=limit is not None)
        assignor = OptimalAssignor(max_moves=limit, time_limit=seconds, strict=True)
        began = perf_counter()
        report = compute_assignment(assignor, topics, group).report
        walls.append(perf_counter() - began)
        reports.append(report)
        greedy.append(greedy_gap(topics, group, report["bound"]))
    total = sum(topics.topics["t"].weights)
    return [
        f"{members:,} x {partitions:,}",
        "limited" if limit else "fresh",
        f"{seconds:g}",
        f"{100 * max(r['optimality_gap'] for r in reports):.3f} %",
        f"{100 * max(greedy):.2f} %",
        f"{sum(r['optimality_gap'] == 0.0 for r in reports)} of {len(reports)}",
        f"{100 * reports[-1]['moved_weight'] / total:.1f} %",
        ", ".join(sorted({r["method"] for r in reports})),
        f"{max(walls):.1f}",
    ]


def leaving_row(members, partitions):
    """One row, over the seeds: the default order after a member of a balanced group has left."""
    reports, spent = [], []
    for seed in SEEDS:
        topics, group = weighted_group(members, partitions, seed, owned=False)
        before = compute_assignment(OptimalAssignor(strict=True), topics, group)
        left = {m: Subscription(("t",), before[m], 1) for m in sorted(group)[1:]}
        began = perf_counter()
        reports.append(compute_assignment(OptimalAssignor(), topics, GroupSubscription(left)).report)
        spent.append(perf_counter() - began)
    above = max(r["largest_load"] / r["bound"] - 1 for r in reports)
    moved, bound = (sum(r[key] for r in reports) for key in ("moved_partitions", "moves_bound"))
    return [
        f"{members:,} x {partitions:,}",
        "one leaves",
        "1",
        f"{100 * above:.3f} %",
        "-",
        f"{sum(r['moves_gap'] == 0.0 for r in reports)} of {len(reports)}",
        f"{moved}, at least {bound}",
        ", ".join(sorted({r["method"] for r in reports})),
        f"{max(spent):.2f}",
    ]


def unweighted_row(size, shape):
    """One row: best of three."""
    assignor, topics, walls = OptimalAssignor(), cluster(size), []
    for _ in range(3):
        group = fresh(size, shape)
        began = perf_counter()
        report = compute_assignment(assignor, topics, group).report
        walls.append(perf_counter() - began)
    exact = f"{100 * report['optimality_gap']:.3f} %"
    return [
        size,
        f"unweighted, {shape}",
        "-",
        exact,
        "-",
        "1 of 1",
        "-",
        report["method"],
        f"{min(walls):.3f}",
    ]


def main():
    """Print the table, a row as soon as it is measured."""
    rows = chain(
        [HEAD, ["---"] * len(HEAD)],
        (weighted_row(*case) for case in CASES),
        (leaving_row(*case[:2]) for case in CASES[:4]),
        (unweighted_row(*case) for case in (("1kx50k", "half"), ("2kx1m", "equal"))),
    )
    for row in rows:
        sys.stdout.write(f"| {' | '.join(row)} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

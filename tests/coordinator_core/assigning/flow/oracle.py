"""The best that can be had, found in ways that have nothing in common with the program's.

Both give the cost in the order of PROTOCOL 10.3: (sum of squares, owners across racks, moves).
"""

from itertools import product

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from coordinator_core.assigning.flow import balanced_owners
from coordinator_core.assigning.problem import build_problem
from coordinator_core.model import GroupAssignment
from tests.assignors.groups import cost, counted_owners, crosses, wanted


def solved(cluster, group):
    """What the program makes of a group."""
    problem = build_problem(cluster, group)
    return GroupAssignment.from_owners(problem.index, problem.members, balanced_owners(problem))


def may_own(cluster, group):
    """Each partition with its subscribers."""
    return {
        tp: [m for m, s in group.items() if tp.topic in s.topics] for tp in sorted(wanted(cluster, group))
    }


def best_by_trying(cluster, group):
    """Every assignment there is."""
    choices = may_own(cluster, group)

    def assignments():
        for owners in product(*choices.values()):
            given = {m: [] for m in group}
            for tp, m in zip(choices, owners, strict=True):
                given[m].append(tp)
            yield given

    return min(cost(cluster, group, given) for given in assignments())


def ways(cluster, group):
    """How many assignments there are."""
    count = 1
    for subscribers in may_own(cluster, group).values():
        count *= len(subscribers)
    return count


def best_by_one_flow(cluster, group):
    """One min-cost flow: every partition is a node; a member's k-th costs 2k + 1 units of balance."""
    choices, owners = may_own(cluster, group), counted_owners(cluster, group)
    partitions, members = list(choices), list(group)
    count = len(partitions)
    if not count:
        return 0, 0, 0
    crossing = count + 1
    balance = crossing * crossing
    node = {m: count + i for i, m in enumerate(members)}
    sink = count + len(members)
    arcs = []
    for p, tp in enumerate(partitions):
        for m in choices[tp]:
            price = crosses(cluster, group[m], tp) * crossing + (owners.get(tp, m) != m)
            arcs.append((p, node[m], price))
    for m in members:
        eligible = sum(m in subscribers for subscribers in choices.values())
        arcs += [(node[m], sink, (2 * k + 1) * balance) for k in range(eligible)]
    tails, heads, costs = (np.array(column) for column in zip(*arcs, strict=True))
    graph = SimpleMinCostFlow()
    graph.add_arcs_with_capacity_and_unit_cost(tails, heads, np.ones_like(tails), costs)
    graph.set_nodes_supplies(np.arange(count), np.ones(count, dtype=np.int64))
    graph.set_node_supply(sink, -count)
    assert graph.solve() == graph.OPTIMAL
    total, moves = divmod(graph.optimal_cost(), crossing)
    return *divmod(total, crossing), moves

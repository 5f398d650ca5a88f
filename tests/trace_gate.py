"""Digests of the traces of all scenarios: the gate of changes that must leave every run as it was.

python -m tests.trace_gate             # compare with tests/data/traces.sha256, and list what differs
python -m tests.trace_gate --every 7   # compare one run in seven
python -m tests.trace_gate --write     # write them anew; the commit says why
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from hashlib import sha256
from itertools import product

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.files import load_scenario
from rebalance_lab.simulation.run import simulate
from tests.places import DATA, SCENARIOS

DIGESTS = DATA / "traces.sha256"

STRATEGIES = (
    "range",
    "roundrobin",
    "sticky",
    "cooperative-sticky",
    "cooperative-sticky+static",
    "range+static",
    "cooperative-sticky+delay=30s",
    "lag-aware",
    "range+server-side",
    "uniform-848+reconcile",
    "sticky+reconcile+static",
    "watcher",
    "range+peers",
    "rocketmq",
)
LONG_MS = 40 * 60_000
"""Longer scenarios run once under the first strategies, with skipping only: single messages take minutes."""

Case = tuple[str, str, int, bool]


def cases() -> Iterator[Case]:
    """Yield each scenario with each strategy, seed and speed."""
    for path in sorted(SCENARIOS.glob("*.yaml")):
        if load_scenario(path).duration_ms > LONG_MS:
            yield from product([path.stem], STRATEGIES[:4], [0], [False])
        else:
            yield from product([path.stem], STRATEGIES, range(2), [False, True])


def digest(case: Case) -> str:
    """Return the line of a case: its digest, or the error with which it is refused."""
    name, strategy, seed, every_message = case
    scenario = replace(load_scenario(SCENARIOS / f"{name}.yaml"), seed=seed)
    try:
        trace = simulate(scenario, strategy, default_registry(), every_message=every_message)
        found = sha256(trace.encode()).hexdigest()
    except InputError as error:
        found = sha256(str(error).encode()).hexdigest()
    return f"{found}  {name} {strategy} seed={seed} {'every-message' if every_message else 'skipped'}"


def main(arguments: list[str]) -> int:
    """Compare the digests, or write them. Return the status."""
    every = int(arguments[1]) if arguments[:1] == ["--every"] else 1
    with ProcessPoolExecutor() as pool:
        lines = list(pool.map(digest, list(cases())[::every]))
    if arguments == ["--write"]:
        DIGESTS.write_text("\n".join(lines) + "\n")
        return 0
    known = DIGESTS.read_text().splitlines()[::every]
    different = sorted(set(lines) ^ set(known))
    sys.stdout.write("\n".join([*different, f"{len(lines)} traces, {len(different)} lines differ"]) + "\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

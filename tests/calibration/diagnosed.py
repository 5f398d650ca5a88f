"""What `diagnose` says of the logs of real clients: ``python -m tests.calibration.diagnosed``.

Each scenario is run with the clients' own logs, and the first cause that is named is held against what was
done. The stopped time is held against that of the members' own lines. With ``--other``, the logs of a run
under ``range`` become a scenario, which predicts the stopped time of a real one under ``cooperative-sticky``.
"""

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.traces.history import History
from rebalance_lab.verdicts.as_seen import MARGIN
from rebalance_logs.causes import Diagnosis, diagnosed
from rebalance_logs.clocks import shifts_of
from rebalance_logs.findings import Cause
from rebalance_logs.groups import groups_of
from rebalance_logs.incident import as_yaml
from rebalance_logs.reading import read_logs
from tests.calibration.cells import document_of
from tests.calibration.figures import stops_of
from tests.calibration.observed import trace_of
from tests.calibration.real import run

DONE = {
    "leave": {Cause.MEMBER_LEFT},
    "crash": {Cause.SESSION_EXPIRED},
    "freeze": {Cause.STOOD_STILL},
    "rolling": {Cause.ROLLING_RESTART},
    "join": {Cause.MEMBER_JOINED},
    "comeback": {Cause.SESSION_EXPIRED},
}
CLIENTS = ("kafka-python", "aiokafka", "librdkafka")
COOPERATIVE = ("kafka-python", "librdkafka")
"""Clients that have a cooperative assignor."""

SEEDS = 10


def of_logs(folder: Path) -> Diagnosis:
    """Return the diagnosis of the clients' own logs in a folder."""
    logs = read_logs(sorted(map(str, folder.glob("*.stderr"))))
    (group,) = groups_of(logs, shifts_of(logs))
    return diagnosed(group)


def line(scenario: str, client: str, strategy: str = "range") -> str:
    """Run a scenario on a client, and return what was done, what was found, and the stopped times."""
    with TemporaryDirectory() as folder:
        observed = run(document_of(scenario), client, strategy, Path(folder), verbose=True)
        found = of_logs(Path(folder))
        true_s = sum(stop.seconds for stop in stops_of(trace_of(observed, scenario, strategy)))
    causes = [
        f"{c.cause} {','.join(c.members)} ({c.confidence})" for c in found.causes if c.stopped_ms is not None
    ]
    is_right = bool(found.causes) and found.causes[0].cause in DONE[scenario]
    verdict = "right" if is_right else "wrong"
    stopped = f"{found.stopped_ms / 1_000:6.1f} of {true_s:6.1f} s"
    return f"{verdict:5} {scenario:9} {client:15} {stopped}  {'; '.join(causes)}"


def counterfactual(scenario: str, client: str, ran: str = "range", other: str = "cooperative-sticky") -> str:
    """Predict the stopped time of one strategy from the logs of a run under another one, and run it."""
    document = document_of(scenario)
    with TemporaryDirectory() as folder:
        run(document, client, ran, Path(folder), verbose=True)
        incident = parse_scenario(
            yaml.safe_load(as_yaml(of_logs(Path(folder)))), where="incident", registry=default_registry()
        )
    with TemporaryDirectory() as folder:
        observed = run(document, client, other, Path(folder), verbose=True)
        seen = stops_of(trace_of(observed, scenario, other))
        true_s = sum(stop.seconds for stop in seen)
    runs = [simulate(replace(incident, seed=seed), other, default_registry()) for seed in range(SEEDS)]
    stopped = sorted(History(trace).stops.stopped_ms / 1_000 for trace in runs)
    low, high = stopped[0] * (1 - MARGIN), stopped[-1] * (1 + MARGIN)
    verdict = "in" if low <= true_s <= high else "out"
    predicted = f"{stopped[len(stopped) // 2]:6.1f} ({low:.1f} to {high:.1f})"
    return f"{verdict:5} {scenario:9} {client:15} {other} predicted {predicted}, ran {true_s:6.1f} s"


def main(arguments: list[str]) -> None:
    """Print a line for each scenario and client. ``--other``: what another strategy would have cost."""
    default_registry()
    others = "--other" in arguments
    clients = [name for name in arguments if name != "--other"] or (COOPERATIVE if others else CLIENTS)
    for client in clients:
        for scenario in DONE:
            sys.stdout.write(f"{(counterfactual if others else line)(scenario, client)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])

"""What `compare`, `explain` and `advise` print: approved texts, warnings first."""

import shlex

from tests.approved import approved
from tests.places import SCENARIOS

SESSIONS = "zookeeper.session.timeout.ms=10s,30s"
POLICY = "group.consumer.migration.policy"
COMMANDS = (
    "compare small.yaml --seed 4 -s sticky -s range -s range",
    "compare small.yaml --seed 4",
    "compare far.yaml --seeds 3 -s range",
    "compare far.yaml --seeds 3 -s range --spread",
    "compare racks.yaml --seed 4 -s range",
    "compare small.yaml --seed 4 -s range --set session.timeout.ms=6s,30s --set retry.backoff.ms=50",
    f"compare small.yaml --seed 4 -s range -s watcher --set {SESSIONS}",
    "compare small.yaml --seed 4 -s range --set heartbeat.interval.ms=1s,3s",
    f"compare migrating.yaml --seed 4 -s range --set {POLICY}=upgrade,bidirectional",
    "compare idle.yaml --seed 4 -s range",
    "compare invalid.yaml --seeds 1 -s range -s sticky",
    "explain bounce.yaml -s range -s cooperative-sticky",
    "advise small.yaml --seeds 1 --all",
)
CHANGES = {
    "idle": ("events:", f"config: {{{POLICY}: upgrade}}\nevents:"),
    "migrating": (
        "{at: 12s, leave: b}",
        "{at: 5s, rolling_restart: {every: 5s, down: 1s, protocol: consumer}}",
    ),
    "far": ("events:", "network: {latency: [1ms, 80ms]}\nevents:"),
    "invalid": ("events:", "config: {session.timeout.ms: 1000, heartbeat.interval.ms: 300}\nevents:"),
    "racks": ("topics: [orders]", "topics: [orders], rack: west"),
}


def test_what_is_printed_was_approved(lab, small, tmp_path, monkeypatch):
    for name, (before, after) in CHANGES.items():
        (tmp_path / f"{name}.yaml").write_text(small.read_text().replace(before, after))
    racks = tmp_path / "racks.yaml"
    racks.write_text(
        racks.read_text().replace("rate: 40", "rate: 40, racks: [[east], [east], [east], [west]]")
    )
    (tmp_path / "bounce.yaml").write_text((SCENARIOS / "bounce.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    answers = {}
    for command in COMMANDS:
        jobs = () if command.startswith("explain") else ("-j", "1")
        answer = lab(*shlex.split(command), *jobs)
        assert answer.status == int("invalid" in command), command
        assert [line for line in answer.out.splitlines() if line != line.rstrip()] == []
        answers[command] = f"{answer.err}{answer.out}".rstrip("\n")
    approved("answers", answers)

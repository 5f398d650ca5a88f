"""Lines that are missing, cut off, out of order or of other groups: an answer, and never an error."""

from datetime import UTC
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.files import load_scenario_text
from rebalance_logs.causes import diagnosed
from rebalance_logs.clocks import shifts_of
from rebalance_logs.document import as_document
from rebalance_logs.findings import Confidence
from rebalance_logs.groups import groups_of
from rebalance_logs.incident import as_yaml
from rebalance_logs.page import as_html
from rebalance_logs.reading import read_logs
from tests.places import DATA

FILES = sorted((DATA / "logs").rglob("*.log"))


def damage(folder, random):
    """Write some of the files, each with a share of its lines."""
    for number, file in enumerate(random.sample(FILES, random.randint(1, 5))):
        share = random.choice([0.02, 0.1, 0.3, 0.6, 0.9, 0.98, 1])
        lines = [line for line in file.read_text().split("\n") if random.random() < share]
        lines = [line[: random.randint(0, len(line))] if random.random() < 0.05 else line for line in lines]
        if random.random() < 0.3:
            random.shuffle(lines)
        (folder / f"{number}-{file.name}").write_text("\n".join(lines))


@given(st.integers(0, 2**32))
def test_damaged_logs_have_an_answer(seed):
    with TemporaryDirectory() as folder:
        damage(Path(folder), Random(seed))
        logs = read_logs([folder])
        shifts = shifts_of(logs)
        found = [diagnosed(group) for group in groups_of(logs, shifts)]
    for group in as_document(logs, shifts, found, UTC).groups:
        for cause in group.causes:
            assert cause.confidence in list(Confidence)
            assert 0 < len(cause.evidence) <= 3
            assert cause.stopped_partition_seconds is None or cause.stopped_partition_seconds >= 0
    assert as_html(logs, shifts, found, UTC).startswith("<!doctype html>")
    for each in found:
        try:
            load_scenario_text(as_yaml(each), where="incident")
        except InputError as error:
            allowed = error
        else:
            continue
        assert allowed.where == "-o" or "config" in allowed.where

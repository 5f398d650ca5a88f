"""The command with a server of Spark Connect."""

import os
import subprocess
import sys

import pytest

from rebalance_lab.scoring.outcomes import Fidelity
from rebalance_lab.scoring.rows import Job
from tests.places import ROOT
from tests.rebalance_spark.workloads import (
    FOR_FEW_ROWS,
    fresh_environment,
    read_scores,
    scenario,
    scored_here,
    write_parquet,
)

pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
pytestmark = [pytest.mark.slow, pytest.mark.weekly]


def test_scores_are_those_of_this_process_also_of_a_strategy_whose_file_workers_do_not_have(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("from assignors.sticky import StickyAssignor as Mine\n")
    strategies = ("range", "mine.py:Mine")
    texts = {"x": scenario(), "y": scenario(partitions=6), "wrong": ""}
    source, out = write_parquet(tmp_path / "workload.parquet", texts), tmp_path / "out"
    command = [sys.executable, "-m", "rebalance_spark", "score", source]
    command += [part for name in strategies for part in ("-s", name)]
    conf = [part for name, value in FOR_FEW_ROWS.items() for part in ("--conf", f"{name}={value}")]
    runs = [
        subprocess.run(
            [*command, "--fidelity", "plan", "--out", out, *conf],
            env={
                **fresh_environment(),
                "PYTHONPATH": os.pathsep.join([f"{ROOT}", f"{ROOT / 'plugins'}", *sys.path]),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_REMOTE": "local[2]",
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [1, 1], runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert read_scores(out) == scored_here(Job(strategies, Fidelity.PLAN), texts)

"""A standalone cluster on this machine: a package that is sent to workers, killed processes, one result."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

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

pytestmark = [pytest.mark.slow, pytest.mark.killed]

TEXTS = {f"s-{n}": scenario(partitions=5 + n, seed=n) for n in range(6)}

WAITING = '''
"""Range, which waits from the first rows that are written on, as long as there is a file beside it."""

import time
from pathlib import Path

import pyarrow.parquet as pq

from assignors.range import RangeAssignor

HERE = Path(__file__).parent


def waits():
    parts = [part for done in HERE.rglob("_SUCCESS") for part in done.parent.glob("*.parquet")]
    return (HERE / "hold").exists() and any(pq.read_metadata(part).num_rows for part in parts)


class Waiting(RangeAssignor):
    name = "waiting"

    def solve(self, problem):
        while waits():
            (HERE / "begun").touch()
            time.sleep(0.05)
        return super().solve(problem)
'''

DRIVER = """
import sys
from rebalance_lab.cli.main import run
from rebalance_spark import storage

storage.PART_MS = 2
run()
"""

PATHS = f"{ROOT}:{ROOT / 'plugins'}"
PATIENCE = 600.0
"""Seconds after which a wait fails."""


def environment(**more):
    """The environment of a process without the packages of this one."""
    return {**fresh_environment(), "PATH": "/usr/local/bin:/usr/bin:/bin", **more}


def until(condition):
    """Wait for a condition."""
    end = monotonic() + PATIENCE
    while not (found := condition()):
        assert monotonic() < end
        sleep(0.05)
    return found


def children(process):
    """The processes that a process has started and that have not ended."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                found.append(int(status.parent.name))
    return found


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master with two workers: its address, and the processes of the workers."""
    import pyspark

    folder = tmp_path_factory.mktemp("cluster")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(pyspark.__file__).parent / "bin" / "spark-class"]
    room = "org.apache.spark.deploy"
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    url = f"spark://127.0.0.1:{port}"
    size = ["--cores", "1", "--memory", "1g"]
    started = []

    def start(*arguments):
        with (folder / f"{len(started)}.log").open("w") as log:
            process = subprocess.Popen(
                [*command, *arguments], env=environment(SPARK_LOCAL_IP="127.0.0.1"), stdout=log, stderr=log
            )
        started.append(process)

    try:
        start(f"{room}.master.Master", *here, "--port", str(port))
        until(lambda: answers(port))
        for number in range(2):
            start(f"{room}.worker.Worker", *here, *size, "--work-dir", folder / f"work-{number}", url)
        yield url, [process.pid for process in started[1:]]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


@pytest.fixture
def driver(cluster, tmp_path):
    """Start the command on the cluster, with a strategy that waits while there is a file ``hold``."""
    started = []
    (tmp_path / "waiting.py").write_text(WAITING)
    (tmp_path / "driver.py").write_text(DRIVER)
    settings = {
        **FOR_FEW_ROWS,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]

    def start(*arguments, python):
        command = [sys.executable, tmp_path / "driver.py", "score", *arguments, "--fidelity", "plan"]
        strategies = ["-s", f"{tmp_path}/waiting.py:Waiting", "-s", "sticky", "--master", cluster[0]]
        process = subprocess.Popen(
            [*command, *strategies, *conf],
            env={**environment(PYTHONPATH=PATHS, PYSPARK_PYTHON=str(python)), "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_workers_without_the_package_are_named_before_anything_is_computed(driver, tmp_path):
    python = shutil.which(f"python3.{sys.version_info.minor}", path=environment()["PATH"])
    if python is None:
        pytest.skip("no Python of this version without the package")
    source = write_parquet(tmp_path / "workload.parquet", TEXTS)
    out, err = (run := driver(source, "--out", tmp_path / "out", python=python)).communicate(timeout=PATIENCE)
    assert (run.returncode, out) == (2, "")
    assert "error: workers: found ModuleNotFoundError: No module named " in err
    assert "--ship sends it" in err
    assert "\tat " not in err
    assert not (tmp_path / "out").exists()


@pytest.mark.weekly
def test_scores_are_those_of_one_machine_although_driver_and_executor_are_killed(cluster, driver, tmp_path):
    source, out = write_parquet(tmp_path / "workload.parquet", TEXTS), tmp_path / "out"
    (tmp_path / "hold").touch()
    shared = ("--conf", f"spark.executorEnv.PYTHONPATH={PATHS}")
    first = driver(source, "--out", out, *shared, python=sys.executable)
    until(lambda: first.poll() is not None or (tmp_path / "begun").exists())
    assert first.poll() is None, first.stderr.read()
    first.kill()
    first.wait()
    until(lambda: not any(children(worker) for worker in cluster[1]))
    written = read_scores(out)
    assert 0 < len(written) < 2 * len(TEXTS)

    (tmp_path / "begun").unlink()
    second = driver(source, "--out", out, "--ship", python="ignored")
    until(lambda: second.poll() is not None or (tmp_path / "begun").exists())
    assert second.poll() is None, second.stderr.read()
    os.kill(until(lambda: [p for worker in cluster[1] for p in children(worker)])[0], signal.SIGKILL)
    (tmp_path / "hold").unlink()
    answer, err = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, err
    assert [line.split()[1:] for line in answer.splitlines()[1:]] == [["6", "0", "0"]] * 2
    expected = scored_here(Job((f"{tmp_path}/waiting.py:Waiting", "sticky"), Fidelity.PLAN), TEXTS)
    assert json.dumps(read_scores(out)) == json.dumps(expected)

"""A standalone cluster on this machine whose workers do not have the package."""

import os
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from tests.places import ROOT
from tests.rebalance_spark.workloads import FOR_FEW_ROWS, scenario, write_parquet

pytestmark = pytest.mark.slow

TEXTS = {f"s-{n}": scenario(partitions=5 + n, seed=n) for n in range(6)}

PATHS = f"{ROOT}:{ROOT / 'plugins'}"
PATIENCE = 600.0
"""Seconds after which a wait fails."""


def environment(**more):
    """The environment of a process without the packages of this one."""
    dropped = ("SPARK", "PYSPARK", "PYTHON", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "PATH": "/usr/local/bin:/usr/bin:/bin", **more}


def until(condition):
    """Wait for a condition."""
    end = monotonic() + PATIENCE
    while not (found := condition()):
        assert monotonic() < end
        sleep(0.05)
    return found


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The address of a master with two workers."""
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
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


@pytest.fixture
def driver(cluster):
    """Start the command on the cluster."""
    started = []
    settings = {
        **FOR_FEW_ROWS,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
    }
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]

    def start(*arguments, python):
        command = [sys.executable, "-m", "rebalance_spark", "score", *arguments, "--fidelity", "plan"]
        process = subprocess.Popen(
            [*command, "-s", "sticky", "--master", cluster, *conf],
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

"""The jars of Apache Kafka, fetched by Maven once.

`jars` is all that a test needs which starts a JVM of its own:

    subprocess.run(["java", "-cp", classpath(), "org.example.Main"])
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.real_kafka.versions import LOG4J, chosen

HERE = Path(__file__).parent
GIVEN = "REBALANCE_LAB_KAFKA_JARS"
"""An environment variable: a folder with the jars, which is used as it is."""

SECONDS = 900.0
"""How long Maven may take. Without a cache of its own it fetches 120 MB."""


class UnavailableError(Exception):
    """A tool is missing, or the jars cannot be fetched: a reason to skip a test."""


@cache
def tool(name: str) -> str:
    """Return the path of a command.

    Raises:
        UnavailableError: if there is none.
    """
    found = shutil.which(name)
    if found is None:
        raise UnavailableError(f"no {name} here")
    return found


def cache_folder() -> Path:
    """Return the folder for what is fetched and built once for all checkouts."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "rebalance-lab")


@cache
def jars() -> Path:
    """Return the folder of the jars of the chosen version, and fetch them if they are not there yet.

    Raises:
        UnavailableError: if Java or Maven is missing, or Maven fails.
    """
    tool("java")
    if given := os.environ.get(GIVEN):
        if not any(Path(given).glob("kafka-clients-*.jar")):
            raise UnavailableError(f"{GIVEN}={given} has no kafka-clients")
        return Path(given)
    folder = cache_folder() / f"kafka-{chosen()}"
    if not folder.is_dir():
        _fetch(folder, tool("mvn"))
    return folder


def _fetch(folder: Path, mvn: str) -> None:
    """Fetch into a folder of this process, and rename it: several processes may fetch."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as own:
        command = [
            *(mvn, "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"),
            *(f"-Dkafka.version={chosen()}", f"-Dlog4j.version={LOG4J}", f"-DoutputDirectory={own}/jars"),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise UnavailableError(f"mvn took longer than {SECONDS:.0f} s") from None
        if done.returncode != 0:
            raise UnavailableError(f"mvn cannot fetch Kafka {chosen()}: {_first_error(done.stdout)}")
        if not folder.is_dir():
            os.rename(f"{own}/jars", folder)


def _first_error(out: str) -> str:
    return next((line for line in out.splitlines() if "ERROR" in line), out[-200:].strip())


def classpath(*before: Path) -> str:
    """Return a class path of folders or jars, and of Kafka's jars.

    Raises:
        UnavailableError: as `jars`.
    """
    return os.pathsep.join([*map(str, before), f"{jars()}/*"])


def jars_or_skip() -> Path:
    """Return the folder of the jars, or skip the test with the reason why there are none."""
    return or_skip(jars)


def or_skip(get: Callable[[], Path]) -> Path:
    """Return what a function returns, or skip the test with the reason why it is unavailable."""
    import pytest  # .ci/run fetches the jars before it is installed

    try:
        return get()
    except UnavailableError as reason:
        pytest.skip(str(reason))


if __name__ == "__main__":  # fetches them before the tests, as .ci/run does
    try:
        print(jars())  # noqa: T201
    except UnavailableError as reason:
        sys.exit(str(reason))

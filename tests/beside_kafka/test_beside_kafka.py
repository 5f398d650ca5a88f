"""`serve` answers as a real Kafka does: each difference in 150 scripts of each kind has a reason."""

import asyncio
import os
import subprocess
import sys

import pytest

from tests.beside_kafka.brokers import started
from tests.beside_kafka.kinds import KINDS, RESTARTING
from tests.beside_kafka.report import described
from tests.beside_kafka.running import Pair, run
from tests.places import ROOT
from tests.real_kafka.jars import GIVEN, jars_or_skip
from tests.real_kafka.settings import LONG, SHORT
from tests.real_kafka.versions import OLDER, WHICH

pytestmark = pytest.mark.kafka

SEEDS = 150
CHUNK = 50
CHUNKS = [pytest.param(range(first, first + CHUNK), id=str(first)) for first in range(0, SEEDS, CHUNK)]


@pytest.fixture(scope="module")
def pair(kafka, tmp_path_factory):
    """The shared Kafka, and `serve` with its topics."""
    folder = tmp_path_factory.mktemp("beside")
    with started(folder, SHORT, twice=False, kafka=kafka.address) as (address, serve, _):
        yield asyncio.run(Pair.of(address, serve, SHORT))


@pytest.fixture(scope="module")
def own_pair(tmp_path_factory):
    """A Kafka and `serve` that can be restarted."""
    jars_or_skip()
    with started(tmp_path_factory.mktemp("restarted"), LONG, twice=False) as (kafka, serve, brokers):
        yield asyncio.run(Pair.of(kafka, serve, LONG, brokers))


def assert_no_faults(pair, kind, seeds):
    result = asyncio.run(run(pair, kind, seeds))
    assert result.faults == [], "\n".join(described(result))
    assert result.same.total() > CHUNK


@pytest.mark.parametrize("seeds", CHUNKS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != RESTARTING])
def test_the_responses_are_those_of_kafka(pair, kind, seeds):
    assert_no_faults(pair, kind, seeds)


@pytest.mark.parametrize("seeds", CHUNKS)
def test_the_responses_after_a_restart_are_those_of_kafka(own_pair, seeds):
    assert_no_faults(own_pair, RESTARTING, seeds)


@pytest.mark.parametrize("version", OLDER)
def test_the_responses_of_the_coordinator_are_those_of_an_older_kafka(version):
    """Of groups: the transactions and the regular expressions of 4.0 are others."""
    environment = {name: value for name, value in os.environ.items() if name != GIVEN} | {WHICH: version}

    def run(*command):
        given = [sys.executable, "-m", *command]
        return subprocess.run(given, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    if (fetched := run("tests.real_kafka.jars")).returncode:
        pytest.skip(fetched.stderr.strip()[-500:])
    played = run("tests.beside_kafka", "classic", "consumer", "both", "live-both", "--seeds", "0:15")
    assert played.returncode == 0, played.stdout + played.stderr
    assert "  0 groups differ" in played.stdout

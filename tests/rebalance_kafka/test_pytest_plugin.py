"""The fixtures in the pytest of a user: a broker of one test, and brokers of wider scopes."""

import os
import subprocess
import sys

import pytest

from tests.rebalance_lab.cli.commands import PATHS

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def shared(kafka_broker_factory):
    return kafka_broker_factory(topics={"orders": 2})

@pytest.fixture(scope="module")
def of_module(kafka_broker_factory):
    broker = kafka_broker_factory(topics={"modules": 1})
    yield broker
    broker.stop()

@pytest.fixture(scope="session", autouse=True)
def started():
    brokers = []
    yield brokers
    print("running after the session:", [broker._thread.is_alive() for broker in brokers])
"""
FIRST = """
def test_of_the_session(shared, started):
    shared.create_topics({"created": 1})
    started.append(shared)

def test_of_the_module(shared, of_module, started):
    assert shared.topics == {"orders": 2, "created": 1}
    assert of_module.topics == {"modules": 1}
    assert of_module.address != shared.address
    started.append(of_module)

def test_of_one_test(kafka_broker, shared, started):
    started.append(kafka_broker(topics={"t": 1}))
    assert started[-1]._broker.configs["group.initial.rebalance.delay.ms"] == "0"
"""
SECOND = """
def test_in_another_module(shared, of_module, started):
    assert shared.topics == {"orders": 2, "created": 1}
    assert of_module is not started[1]
    assert [broker._thread.is_alive() for broker in started] == [True, False, False]
    started.append(of_module)
"""


@pytest.mark.slow
def test_brokers_of_any_scope_stop_at_its_end(tmp_path):
    for name, text in {"conftest": CONFTEST, "test_first": FIRST, "test_second": SECOND}.items():
        (tmp_path / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PATHS, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout
    assert "running after the session: [False, False, False, False]" in done.stdout

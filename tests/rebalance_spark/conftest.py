"""One Spark session in a process of the tests; commands called in the process get the same."""

import sys

import pytest

from rebalance_spark import scoring, spark_session
from rebalance_spark.stored import stored_scores
from tests.rebalance_spark.score_files import write
from tests.rebalance_spark.workloads import FOR_FEW_ROWS


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    tables = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("tables"))}
    session = spark_session("local[2]", {**FOR_FEW_ROWS, **tables}, name="tests")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def few_tasks():
    """Two tasks in place of eight: the rows of a test are soon done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "FEWEST_TASKS", 2)
        yield


@pytest.fixture
def search_path(monkeypatch):
    """Where this process imports from; what a test adds, and Spark with the files it is given, goes again."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    return sys.path


@pytest.fixture
def stored(tmp_path):
    """The scores of rows, as they are read from a file."""

    def store(rows, more=()):
        write(tmp_path / "scores", rows, more=more)
        return stored_scores(tmp_path / "scores")

    return store

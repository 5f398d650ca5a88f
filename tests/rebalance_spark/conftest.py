"""One Spark session in a process of the tests; commands called in the process get the same."""

import pytest

from rebalance_spark import spark_session
from tests.rebalance_spark.workloads import FOR_FEW_ROWS


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    tables = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("tables"))}
    session = spark_session("local[2]", {**FOR_FEW_ROWS, **tables}, name="tests")
    yield session
    session.stop()

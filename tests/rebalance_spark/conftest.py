"""One Spark session for the run; commands called in the process get the same."""

import pytest

from rebalance_spark import spark_session


@pytest.fixture(scope="session")
def spark():
    session = spark_session("local[2]", name="tests")
    yield session
    session.stop()

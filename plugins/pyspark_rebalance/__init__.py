"""Lets Spark find the data source ``rebalance_workload`` where rebalance-lab is installed.

Spark imports every module whose name begins with ``pyspark_`` and registers its ``DefaultSource``. It finds
no functions of SQL in this way: ``register`` adds them to a session.
"""

from contextlib import suppress

with suppress(ImportError):  # one module that cannot be imported would hide the data sources of all others
    from rebalance_spark.assigning import register_functions as register
    from rebalance_spark.generator import WorkloadSource as DefaultSource

__all__ = ["DefaultSource", "register"]

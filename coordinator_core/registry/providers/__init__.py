"""Providers: the sources of weights, lags and capacities for assignors.

Assignors are pure. A provider reads these values from the host of a consumer and passes them to the assignor
of that consumer. The same assignor thus runs in the simulator, on Spark and in production.
"""

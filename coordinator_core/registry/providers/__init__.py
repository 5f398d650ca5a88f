"""Providers: what an assignor needs beyond the group - weights, lags, capacities - and who tells it.

Assignors are pure. A provider stands between the host, which knows what a consumer sees, and the assignor
of that consumer, so that one assignor runs in the simulator, on Spark and in production.
"""

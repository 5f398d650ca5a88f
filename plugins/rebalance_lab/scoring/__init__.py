"""Scores of scenarios as plain rows, without Spark: in time limits, and with errors as rows."""

"""Traces of runs, and what is computed from them by one fold."""

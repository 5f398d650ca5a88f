"""Requests, responses, error codes and events, as immutable values."""

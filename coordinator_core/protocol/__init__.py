"""Requests, responses and error codes of the classic group protocol, as plain immutable values."""

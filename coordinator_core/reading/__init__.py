"""Checks of documents that people write: places, durations and suggestions."""

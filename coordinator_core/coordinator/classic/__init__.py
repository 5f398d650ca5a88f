"""The coordinator's part of the classic group protocol."""

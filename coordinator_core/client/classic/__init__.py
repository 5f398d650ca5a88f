"""The consumer's part of the classic group protocol."""

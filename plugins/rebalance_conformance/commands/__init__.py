"""Subcommands for authors of assignors."""

"""The subcommands ``generate``, ``score`` and ``report``."""

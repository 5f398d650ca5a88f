"""The subcommands ``generate``, ``score`` and ``report``, one file each."""

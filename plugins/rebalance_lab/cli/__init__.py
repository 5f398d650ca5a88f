"""The ``rebalance-lab`` command, one file per subcommand."""

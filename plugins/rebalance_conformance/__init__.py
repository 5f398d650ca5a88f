"""The conformance suite: what is demanded of every assignor, and ways to demand it.

`suite.check_assignor` for programs, `pytest_plugin` for tests, ``rebalance-lab check`` for the shell.
This file imports nothing, because pytest loads the plugin in every run beside which it is installed.
"""

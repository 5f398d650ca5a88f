"""``rebalance-lab diagnose`` and ``watch``."""

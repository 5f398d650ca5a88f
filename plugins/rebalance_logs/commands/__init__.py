"""``rebalance-lab serve``, ``consume`` and ``snapshot``."""

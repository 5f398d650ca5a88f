"""The domain of rebalance-lab: no sockets, no threads, no wall clock below its command line."""

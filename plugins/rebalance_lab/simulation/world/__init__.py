"""The simulated world: clock, network, dice, brokers, the registry of the watcher and the member lists of peers."""

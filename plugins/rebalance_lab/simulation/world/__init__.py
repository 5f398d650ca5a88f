"""The simulated world: clock, network, dice and brokers."""

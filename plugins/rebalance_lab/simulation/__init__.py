"""The simulator: a consumer group under a virtual clock, with real messages and faults from a seed."""

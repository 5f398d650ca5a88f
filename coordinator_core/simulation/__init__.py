"""The simulator: a consumer group under a virtual clock, with every message real and every fault seeded."""

"""The group coordinator: a pure state machine for the groups of any protocol family.

A family contributes a `parts.CoordinatorPart`. The rest of this package knows groups only as `shard.Group`.
"""

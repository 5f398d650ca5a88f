"""What an eager sticky member remembers of its last assignment, and sends along when it joins."""

from operator import attrgetter

import msgspec

from assignors.user_data import decode_ownership, encode_ownership
from coordinator_core.model import NO_GENERATION, NO_PARTITIONS, GroupSubscription, Partitions, Subscription

_USER_DATA = attrgetter("user_data")


class Memory:
    """One for each consumer: an eager member has given everything up before it joins."""

    def __init__(self) -> None:
        self._owned = NO_PARTITIONS
        self._generation = NO_GENERATION

    def remember(self, partitions: Partitions, generation: int) -> None:
        """The member got these."""
        self._owned, self._generation = partitions, generation

    def user_data(self) -> bytes:
        """What the member got last, and when."""
        return encode_ownership(self._owned, self._generation)


def as_owners(group: GroupSubscription) -> GroupSubscription:
    """The group with what its members say in their user data that they owned."""
    if not any(map(_USER_DATA, group.values())):
        return group
    return GroupSubscription({m: _as_owner(s) for m, s in group.items()})


def _as_owner(subscription: Subscription) -> Subscription:
    said = None if subscription.user_data is None else decode_ownership(subscription.user_data)
    if said is None:
        return subscription
    owned, generation = said
    return msgspec.structs.replace(subscription, owned=owned, generation=generation)

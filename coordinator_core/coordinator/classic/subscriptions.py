"""The only thing that a coordinator reads in a member's metadata: its topics."""

from collections.abc import Iterable, Sequence

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.consumer_protocol import decode_subscription
from coordinator_core.protocol.messages import JoinGroupProtocol


def topics_of(protocols: Sequence[JoinGroupProtocol]) -> dict[str, None]:
    """Return the topics in the metadata for any assignor. Unreadable metadata has none."""
    topics: dict[str, None] = {}
    for protocol in protocols:
        try:
            topics.update(dict.fromkeys(decode_subscription(protocol.metadata).topics))
        except ProtocolError:
            continue
    return topics


def read_topics(subscriptions: Iterable[bytes]) -> dict[str, None] | None:
    """Return the topics of encoded subscriptions; None if one is unreadable."""
    try:
        return {topic: None for data in subscriptions for topic in decode_subscription(data).topics}
    except ProtocolError:
        return None

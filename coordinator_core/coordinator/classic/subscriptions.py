"""The one thing a coordinator reads in a member's metadata: which topics it subscribes to."""

from collections.abc import Sequence

from coordinator_core.errors import ProtocolError
from coordinator_core.protocol.consumer_protocol import decode_subscription
from coordinator_core.protocol.messages import JoinGroupProtocol


def topics_of(protocols: Sequence[JoinGroupProtocol]) -> dict[str, None]:
    """The topics in any of the assignors' metadata; metadata that cannot be read has none."""
    topics: dict[str, None] = {}
    for protocol in protocols:
        try:
            topics.update(dict.fromkeys(decode_subscription(protocol.metadata).topics))
        except ProtocolError:
            continue
    return topics

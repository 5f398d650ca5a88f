"""Frames as kafka-python, an independent client, writes and reads them."""

import warnings
from typing import Any

import pytest

from rebalance_kafka.broker.data import Data
from rebalance_kafka.broker.data_requests import HANDLERS as OF_DATA
from rebalance_kafka.broker.fetching import Fetch
from rebalance_kafka.broker.producing import produce
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.topics import Topics
from rebalance_kafka.broker.transaction_requests import HANDLERS as OF_TRANSACTIONS
from rebalance_kafka.wire.apis import VERSIONS, Api
from rebalance_kafka.wire.frames import Request, decode_request, encode_response, head_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    from kafka.protocol import admin, consumer, metadata, producer, sasl

PLENTY = 1_000_000
EVERY_VERSION = [(api, version) for api, (low, high) in VERSIONS.items() for version in range(low, high + 1)]


def versions(api: Api) -> pytest.MarkDecorator:
    """Parametrize a test with every version of an API."""
    return pytest.mark.parametrize("version", [version for each, version in EVERY_VERSION if each is api])


def their_class(api: Api, kind: str) -> Any:
    """Return kafka-python's class of a Request or a Response."""
    name = api.name.title().replace("_", "") + kind
    return next(getattr(m, name) for m in (admin, consumer, metadata, producer, sasl) if hasattr(m, name))


def their_frame(api: Api, version: int, **values: Any) -> bytes:
    """Return a request as kafka-python sends it, without its length."""
    message = their_class(api, "Request")(version=version, **values)
    message.with_header(correlation_id=7, client_id="them")
    return bytes(message.encode(header=True))


def their_request(api: Api, version: int, **values: Any) -> Request:
    """Return a request of kafka-python as the broker decodes it."""
    frame = their_frame(api, version, **values)
    return decode_request(frame, head_of(frame))


def read_by_them(api: Api, version: int, kind: str, frame: bytes) -> Any:
    """Return a frame as kafka-python reads it. Check that kafka-python writes the same bytes."""
    message = their_class(api, kind).decode(frame, version=version, header=True, framed=True)
    assert bytes(message.encode(header=True, framed=True)) == frame
    return message


def their_answer(request: Request, values: Any) -> Any:
    """Return our response as kafka-python reads it."""
    frame = encode_response(request.api, request.version, request.correlation_id, values)
    return read_by_them(request.api, request.version, "Response", frame)


class Desk:
    """The topics of a broker without a network, for requests of kafka-python."""

    def __init__(
        self, topics: dict[str, int] | None = None, *, auto_create: int = 0, most_bytes: int = PLENTY
    ) -> None:
        self.store = Store()
        self.topics = Topics(self.store, most_bytes=most_bytes)
        if topics:
            self.topics.create(topics)
        self.data = Data(self.topics, self.store, node=1, cluster_id="c", partitions=auto_create)
        self.now_ms = 0

    def ask(self, api: Api, version: int | None = None, **values: Any) -> Any:
        request = their_request(api, VERSIONS[api][1] if version is None else version, **values)
        if api in OF_TRANSACTIONS:
            return their_answer(request, OF_TRANSACTIONS[api](self.data, request, self.now_ms))
        if api is Api.PRODUCE:
            produced = produce(self.data, request, self.now_ms)
            return None if produced is None else their_answer(request, produced)
        if api is Api.FETCH:
            fetch = Fetch(self.data, request)
            return their_answer(request, fetch.response(fetch.read()[0]))
        return their_answer(request, OF_DATA[api](self.data, request))

    def write(self, topic: str, partition: int, records: bytes) -> int:
        """Write records and return the offset of the first one."""
        (appended,) = self.topics.append([(topic, partition, records)])
        assert not int(appended.error), appended
        return appended.base_offset

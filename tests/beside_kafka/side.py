"""A script on one broker: its connections and the names that the broker gave."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, Self

from tests.beside_kafka import steps as s
from tests.beside_kafka.names import Body, Names
from tests.beside_kafka.requests import request_of
from tests.real_kafka.wire import Key, Line

TRIES = 200
PAUSE = 0.03
OF_TRANSACTIONS = (s.InitProducer, s.AddOffsets, s.CommitInTransaction, s.EndTransaction)


class Side:
    """The connections of a script's members and of an administrator.

    ``versions``: of each API for the steps of the script. ``newest``: for questions besides.
    """

    def __init__(
        self, address: str, names: Names, versions: Mapping[Key, int], newest: Mapping[Key, int]
    ) -> None:
        self.names = names
        self._address, self._versions, self._newest = address, versions, newest
        self._lines: dict[str, Line] = {}

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect()

    async def connect(self) -> None:
        for name in ("", *s.MEMBERS):
            self._lines[name] = await Line.to(self._address, f"client-{name}")

    async def disconnect(self) -> None:
        await asyncio.gather(*(line.close() for line in self._lines.values()))

    def send(self, step: s.AnyStep) -> tuple[Key, asyncio.Future[Body]]:
        """Send the request of a step; again if a client would at once send it again."""
        key, values = request_of(step, self.names)
        if not isinstance(step, OF_TRANSACTIONS):
            return key, self._lines[step.member].send(key, self._versions[key], values)
        return key, asyncio.ensure_future(self._send_again(key, values))

    async def _send_again(self, key: Key, values: Mapping[str, Any]) -> Body:
        """Send until the transaction before has ended, which Kafka does after its response to EndTxn.

        A broker that has no number for a new producer yet is also asked again.
        """
        for _ in range(TRIES):
            body = await self._lines[""].send(key, self._versions[key], values)
            if body.get("error_code") not in ("concurrent_transactions", "coordinator_load_in_progress"):
                break
            await asyncio.sleep(PAUSE)
        if key is Key.END_TXN and body["error_code"] == "none":
            await self._ended(values["transactional_id"])
        return body

    async def _ended(self, transactional_id: str) -> None:
        """Wait until the markers of a transaction are written."""
        asked = {"transactional_ids": [transactional_id]}
        for _ in range(TRIES):
            body = await self.ask(Key.DESCRIBE_TRANSACTIONS, asked)
            if not body["transaction_states"][0]["transaction_state"].startswith("Prepare"):
                break
            await asyncio.sleep(PAUSE)

    async def knows(self, topic: str, partitions: int) -> str | None:
        """Wait until the coordinator knows a topic with this number of partitions, and return its id.

        The coordinator gets to know of changes after clients do. A member of a new group gets what it knows.
        """
        name, names = self.names.topic(topic), {"allow_auto_topic_creation": False}
        number = None
        for _ in range(TRIES):
            probe = {"group_id": f"probe-{uuid.uuid4().hex}", "member_id": "probe", "instance_id": None}
            joining = {"member_epoch": 0, "rebalance_timeout": 1_000, "subscribed_topic_names": (name,)}
            joined = await self.ask(
                Key.CONSUMER_GROUP_HEARTBEAT, {**probe, **joining, "topic_partitions": ()}
            )
            leaving = {"member_epoch": -1, "topic_partitions": None}
            await self.ask(Key.CONSUMER_GROUP_HEARTBEAT, {**probe, **leaving})
            rows = (joined["assignment"] or {}).get("topic_partitions", [])
            asked = {**names, "topics": [{"topic_id": None, "name": name}]}
            metadata = await self.ask(Key.METADATA, {**asked, "include_topic_authorized_operations": False})
            (found,) = metadata["topics"]
            number = found["topic_id"]
            if partitions == sum(len(row["partitions"]) for row in rows) == len(found["partitions"]):
                break
            await asyncio.sleep(PAUSE)
        return number if partitions else None

    def ask(self, key: Key, values: Mapping[str, Any]) -> asyncio.Future[Body]:
        """Send a request that is no step, as an administrator."""
        return self._lines[""].send(key, self._newest[key], values)

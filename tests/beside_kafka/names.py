"""The names that one broker gave to what a script names by symbols."""

import json
import re
import uuid
from collections.abc import Mapping
from functools import singledispatchmethod
from typing import Any

from tests.beside_kafka import steps as s
from tests.beside_kafka.subscribed import share_of

NOBODY = "nobody-known"
NO_TOPIC = "00000000-0000-0000-0000-00000000dead"
Body = dict[str, Any]
Shares = Mapping[str, tuple[int, ...]]
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Names:
    """The state of a script on one broker.

    ``group``: the name of the group on both brokers. ``topic_ids``: of the shared topics of this broker.
    ``seed``: of the ids that members make.
    """

    def __init__(self, group: str, topic_ids: Mapping[str, str], seed: int) -> None:
        self.group, self._seed = group, seed
        self.prefix = f"of-{group}-"
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self.epochs: dict[str, int] = {}
        self.shares: dict[str, Shares] = {}
        """Partitions of a member of the classic protocol by topic, as the last SyncGroup said."""
        self.producers: dict[str, tuple[int, int]] = {}
        self._assigned: dict[str, list[list[Body]]] = {}
        self._of_generation: dict[str, bool] = {}
        self._topic_ids = dict(topic_ids)
        self._names = {number: topic for topic, number in topic_ids.items()}
        self._made = 0

    # --- names for requests

    def topic(self, name: str) -> str:
        """Return the broker's name of a topic of the script."""
        return f"{self.prefix}{name}" if name in s.OWN else name

    def own_topics(self, share: Shares) -> Shares:
        return {self.topic(topic): numbers for topic, numbers in share.items()}

    def topic_id(self, name: str) -> str:
        """Return the id of a topic; of one that does not exist one that no topic has."""
        return self._topic_ids.get(name, NO_TOPIC)

    def transactional_id(self, producer: str) -> str:
        return f"{self.group}-{producer}"

    def member_id(self, step: Any) -> str:
        """Return the id that a step sends."""
        return self.named(step.id, step.member)

    def named(self, which: s.Which, member: str) -> str:
        """Return a member id: its own, none, one that nobody has, or another member's."""
        if which == "own":
            return self.ids.get(member, "")
        if which == "empty":
            return ""
        return self.ids.get(which, NOBODY)

    def made_id(self, step: s.ConsumerHeartbeat) -> str:
        """Return the id that a step of the consumer protocol sends, whose members make their ids themselves.

        Each new id is the same on both sides, and in a second run of the script.
        """
        if step.id == "new" or (step.id == "own" and step.member not in self.ids):
            self._made += 1
            name = f"{self._seed} {step.member} {self._made}"
            self.ids[step.member] = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
        return self.ids[step.member] if step.id == "new" else self.named(step.id, step.member)

    def epoch(self, member: str) -> int:
        """Return the member's generation or epoch, whichever it had last."""
        known = self.generations if self._of_generation.get(member, True) else self.epochs
        return known.get(member, -1)

    def owned(self, member: str, which: s.Owned) -> list[Body]:
        assigned = self._assigned.get(member, [])
        if which == "none":
            return []
        nth = -1 if which == "all" else -2
        return assigned[nth] if len(assigned) >= -nth else []

    # --- what responses say

    def learn(self, step: s.AnyStep, body: Body) -> None:
        """Take ids, generations, epochs and assignments from a response."""
        self._learn(step, body)

    @singledispatchmethod
    def _learn(self, step: s.Step, body: Body) -> None:
        return

    @_learn.register
    def _(self, step: s.JoinGroup, body: Body) -> None:
        error, member_id = body["error_code"], body["member_id"]
        if member_id and error in ("none", "member_id_required"):
            self.ids[step.member] = member_id
            self._names[member_id] = f"member {step.member}"
        if error == "none":
            self.generations[step.member] = body["generation_id"]
            self._of_generation[step.member] = True

    @_learn.register
    def _(self, step: s.SyncGroup, body: Body) -> None:
        if body["error_code"] == "none" and body["assignment"]:
            self.shares[step.member] = share_of(bytes.fromhex(body["assignment"]))

    @_learn.register
    def _(self, step: s.ConsumerHeartbeat, body: Body) -> None:
        if body["error_code"] != "none":
            return
        if body["member_id"]:
            self.ids[step.member] = body["member_id"]
            self._names.setdefault(body["member_id"], f"member {step.member}")
        self.epochs[step.member] = body["member_epoch"]
        self._of_generation[step.member] = False
        if body["assignment"] is not None:
            self._assigned.setdefault(step.member, []).append(body["assignment"]["topic_partitions"])

    @_learn.register
    def _(self, step: s.InitProducer, body: Body) -> None:
        if body["error_code"] == "none":
            self.producers[step.producer] = body["producer_id"], body["producer_epoch"]

    @_learn.register
    def _(self, step: s.EndTransaction, body: Body) -> None:
        if body["error_code"] == "none" and body.get("producer_id", -1) >= 0:  # since version 5 (KIP-890)
            self.producers[step.producer] = body["producer_id"], body["producer_epoch"]

    def learn_topic(self, topic: str, number: str | None) -> None:
        """Take the id of one of the script's own topics, None if it is deleted."""
        if number is not None:
            self._topic_ids[topic] = number
            self._names[number] = topic

    def normal(self, body: Body) -> Body:
        """Return a response with the names of the script in place of the broker's."""
        text = json.dumps(body)
        for given in sorted(self._names, key=len, reverse=True):
            text = text.replace(given, self._names[given])
        numbers = {number for number, _ in self.producers.values()}
        named: Body = json.loads(_UUID.sub("(id)", text), object_hook=lambda fields: _named(fields, numbers))
        return named


def _named(fields: Body, producers: set[int]) -> Body:
    return {**fields, "producer_id": "known"} if fields.get("producer_id") in producers else fields

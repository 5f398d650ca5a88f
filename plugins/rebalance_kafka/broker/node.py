"""One broker without its sockets: requests go in, each is answered once, at once or later."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from random import Random
from time import time
from typing import Any, TypeAlias

import msgspec
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.coordinator import classic
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from rebalance_kafka.broker.data import Data, places_of, wait_ms
from rebalance_kafka.broker.recorder import Recorder
from rebalance_kafka.broker.room import LONGEST_NAME, Room
from rebalance_kafka.broker.store import Store
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import Request, Values
from rebalance_kafka.wire.requests import request_message
from rebalance_kafka.wire.responses import response_entity

NODE = 1
GROUP_KEY = 0
MOST_GROUP_BYTES = 256 * 1024 * 1024
LONGEST_WAIT_MS = 300_000
"""Of a Fetch; then it is answered with what there is."""

LOG = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[Any], None]
"""Takes the body of the response, an entity or its values, or None for no response. Called once."""


class Node:
    """The coordinator of all groups, and the topics. Lives on one event loop; `stop` it at the end.

    What a client said before it went away still counts; its answer goes nowhere. Replies are given once the
    coordinator's state and its log are in order, so that they may lead to the next request at once.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        store: Store,
        data: Data,
        config: CoordinatorConfig,
        recorder: Recorder,
        random: Random,
        most_group_bytes: int = MOST_GROUP_BYTES,
    ) -> None:
        self._loop, self._store, self._recorder = loop, store, recorder
        self.data = data
        self._begun_ms = round(time() * 1_000) - round(loop.time() * 1_000)
        self._parked: dict[int, tuple[m.Request, Callable[[m.Response], None]]] = {}
        self._requests = 0
        self._timer: TimerHandle | None = None
        self._timer_ms: int | None = None
        data.topics.grown = lambda topics: recorder.grown(topics, self.now_ms())
        self.coordinator = Coordinator(NODE, config, random, (classic.PART,))
        self._room = Room(self.coordinator, most_group_bytes)
        partitions = range(config.offsets_topic_partitions)
        self._carry_out(self.coordinator.on_cluster_change(dict.fromkeys(partitions, NODE), 1))
        for partition in partitions:
            self._carry_out(self.coordinator.on_elected(partition))
            records = store.read(partition)
            self._carry_out(self.coordinator.on_loaded(partition, records, now_ms=self.now_ms()))

    def now_ms(self) -> int:
        """The time of day, which does not jump while the broker runs."""
        return self._begun_ms + int(self._loop.time() * 1_000)

    def stop(self) -> None:
        """No timer fires any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def receive(self, request: Request, host: str, reply: Reply) -> Callable[[], None] | None:
        """Take in a request. What comes back, if anything, stops waiting for records."""
        api = request.api
        if api is Api.FETCH:
            return self._fetch(request, reply)
        if self.data.answers(api):
            reply(self.data.answer(request))
        elif api is Api.FIND_COORDINATOR:
            reply(self._find(request))
        else:
            self._ask_coordinator(request, host, reply)
        return None

    # --- groups

    def _ask_coordinator(self, request: Request, host: str, reply: Reply) -> None:
        said = asked = request_message(request)
        now_ms = self.now_ms()
        refused = self._room.refused(asked)
        if isinstance(asked, m.OffsetCommitRequest) and refused is None:
            known = tuple(each for each in asked.offsets if self.data.topics.has(each.topic, each.partition))
            if asked.offsets and not known:
                refused = _committed(asked, m.OffsetCommitResponse())
            asked = msgspec.structs.replace(asked, offsets=known)
        if refused is not None:
            reply(response_entity(request, refused))
            return
        self._recorder.requested(asked, request.client_id, now_ms)

        def answered(response: m.Response) -> None:
            self._recorder.answered(asked, response, request.client_id, self.now_ms())
            if isinstance(said, m.OffsetCommitRequest) and isinstance(response, m.OffsetCommitResponse):
                response = _committed(said, response)
            reply(response_entity(request, response))

        self._requests += 1
        self._parked[self._requests] = asked, answered
        client_id = request.client_id[:LONGEST_NAME]
        outcome = self.coordinator.receive(
            self._requests, asked, client_id=client_id, client_host=host, now_ms=now_ms
        )
        self._carry_out(outcome)

    def _give(self, request_id: int, response: m.Response) -> None:
        """Answer a request; where that fails, it is the trouble of one client only."""
        if request_id not in self._parked:
            return
        _, answered = self._parked.pop(request_id)
        try:
            answered(response)
        except Exception:
            LOG.exception("%s cannot be given", type(response).__name__)

    def _find(self, request: Request) -> Values:
        body = request.body
        if request.version >= 4:
            found = tuple({"key": key, **self._found(key, body.key_type)} for key in body.coordinator_keys)
            return {"coordinators": found}
        return self._found(body.key, body.key_type if request.version >= 1 else GROUP_KEY)

    def _found(self, key: str, key_type: int) -> Values:
        nowhere = {"node_id": -1, "host": "", "port": -1}
        if key_type != GROUP_KEY:
            said = "there are no transactions here"
            return {**nowhere, "error_code": Wire.coordinator_not_available, "error_message": said}
        answer = m.FindCoordinatorResponse(error=ErrorCode.UNKNOWN_SERVER_ERROR)
        outcome = self.coordinator.receive(0, m.FindCoordinatorRequest(key=key), now_ms=self.now_ms())
        for owed in outcome.replies:
            assert isinstance(owed.response, m.FindCoordinatorResponse)
            answer = owed.response
        if answer.error is not ErrorCode.NONE:
            return {**nowhere, "error_code": Wire(int(answer.error)), "error_message": None}
        host, port = self.data.address
        return {
            "error_code": Wire.none,
            "error_message": None,
            "node_id": answer.node,
            "host": host,
            "port": port,
        }

    def _carry_out(self, outcome: Outcome) -> None:
        """What the coordinator wants done: first what it appends, then what waits for that."""
        waiting = deque([outcome])
        while waiting:
            step = waiting.popleft()
            for event in step.events:
                self._recorder.happened(event, self.now_ms())
            for append in step.appends:
                error = self._store.append(append.partition, append.records)
                now_ms = self.now_ms()
                waiting.append(self.coordinator.on_appended(append.append_id, error, now_ms=now_ms))
            for request_id in step.superseded:
                earlier, _ = self._parked[request_id]
                self._give(request_id, self.coordinator.refusal(earlier, ErrorCode.REBALANCE_IN_PROGRESS))
            for owed in step.replies:
                self._give(owed.request_id, owed.response)
        self._set_timer()

    def _set_timer(self) -> None:
        due_ms = self.coordinator.next_deadline_ms()
        if due_ms == self._timer_ms and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = due_ms
        if due_ms is not None:
            self._timer = self._loop.call_later(max(0, due_ms - self.now_ms()) / 1_000, self._on_deadline)

    def _on_deadline(self) -> None:
        self._timer = None
        self._carry_out(self.coordinator.on_deadline(now_ms=self.now_ms()))

    # --- Fetch

    def _fetch(self, request: Request, reply: Reply) -> Callable[[], None] | None:
        """Answer when there is enough, or when the client has waited as long as it wants to."""
        values, enough = self.data.fetch(request)
        waits_ms = min(wait_ms(request), LONGEST_WAIT_MS)
        if enough or not waits_ms:
            reply(values)
            return None

        def give_up() -> None:
            stop()
            timer.cancel()

        def look(late: bool) -> None:
            values, enough = self.data.fetch(request)
            if enough or late:
                give_up()
                reply(values)

        stop = self.data.topics.wait(places_of(request), lambda: look(False))
        timer = self._loop.call_later(waits_ms / 1_000, look, True)
        return give_up


def _committed(request: m.OffsetCommitRequest, response: m.OffsetCommitResponse) -> m.OffsetCommitResponse:
    """What is said of every partition that a client commits: those there are not are unknown (KafkaApis)."""
    errors = {(each.topic, each.partition): each.error for each in response.partitions}
    return m.OffsetCommitResponse(
        partitions=tuple(
            m.PartitionError(
                each.topic,
                each.partition,
                errors.get((each.topic, each.partition), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            )
            for each in request.offsets
        )
    )

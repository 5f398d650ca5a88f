"""One broker without its sockets. A request gets one response, at once or later, or none as in Kafka."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from time import time
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode as Wire

from coordinator_core.assigning.assignor import Assignor
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.facade import Coordinator
from coordinator_core.coordinator.find_coordinator import home_partition
from coordinator_core.coordinator.outcome import Outcome
from coordinator_core.coordinator.parts import CoordinatorPart
from coordinator_core.coordinator.reconcile.settings import ReconcileSettings
from coordinator_core.coordinator.records import Record
from coordinator_core.errors import AssignmentError, InputError, PluginError
from coordinator_core.families.classic import CLASSIC
from coordinator_core.families.family import Surroundings
from coordinator_core.families.reconcile import RECONCILE
from coordinator_core.model import Cluster
from coordinator_core.protocol import messages as m
from coordinator_core.protocol.error_codes import ErrorCode
from coordinator_core.registry.hookspecs import ProtocolSpec
from rebalance_kafka.broker.assignors import GroupAssignors
from rebalance_kafka.broker.data import NODE, Data
from rebalance_kafka.broker.data_requests import HANDLERS as OF_DATA
from rebalance_kafka.broker.fetching import Fetch
from rebalance_kafka.broker.offset_rows import OF_OFFSETS, Part, known_rows
from rebalance_kafka.broker.operations import with_operations
from rebalance_kafka.broker.producing import produce
from rebalance_kafka.broker.recorder import Recorder
from rebalance_kafka.broker.store import Store
from rebalance_kafka.broker.transaction_requests import HANDLERS as OF_TRANSACTIONS
from rebalance_kafka.broker.transaction_states import Producer
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import Request, heartbeat_frame
from rebalance_kafka.wire.messages import Values, of_several, response_body

GROUP_KEY, TRANSACTION_KEY = 0, 1
LONGEST_NAME = 249
"""Characters that are kept of a client id."""

LONGEST_WAIT_MS = 300_000
"""The longest time that a Fetch waits for records, whatever the client asks for."""

KNOWS_ABORTABLE, ADDS_GROUPS = 4, 5
"""The first versions of TxnOffsetCommit with TRANSACTION_ABORTABLE, and which add groups to transactions."""

NAMED_SINCE = 5
"""The version from which on a SyncGroup names the protocol type and the protocol."""

LOG = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[Any], None]
"""Takes the response, once: its body, as an entity or its values, or its frame. None: there is none."""


class Served(NamedTuple):
    """The protocol families that the broker serves, with their settings or None, and the assignors that its
    coordinator can run, the default first.
    """

    families: Sequence[tuple[ProtocolSpec, Any]]
    assignors: Mapping[str, Callable[[], Assignor]]


DEFAULT_SERVED = Served([(CLASSIC, None), (RECONCILE, ReconcileSettings())], GroupAssignors().factories())


class Node:
    """The coordinator of all groups, and the topics, on one event loop. `stop` it at the end.

    The requests of a client that has disconnected still count: their responses are dropped. A response is
    given after the coordinator has changed its state and the log is written. It may lead to the next request
    at once.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        store: Store,
        data: Data,
        config: CoordinatorConfig,
        recorder: Recorder,
        random: Random,
        served: Served = DEFAULT_SERVED,
    ) -> None:
        self._loop, self._store, self.recorder = loop, store, recorder
        self.data = data
        self._begun_ms = round(time() * 1_000) - round(loop.time() * 1_000)
        self._parked: dict[int, tuple[m.Request, Callable[[m.Response], None]]] = {}
        self._requests = 0
        self._timer: TimerHandle | None = None
        self._timer_ms: int | None = None
        data.topics.grown = self._topics_grown
        data.topics.deleted = self._topics_deleted
        parts = list[CoordinatorPart]()
        for spec, settings in served.families:
            if spec.coordinator is None:
                raise PluginError(spec.name, "protocols", "the protocol has no part for the coordinator")
            surroundings = Surroundings(
                settings,
                next(iter(served.assignors.values())),
                lambda: Cluster(data.topics.partitions, data.topics.ids),
                served.assignors,
                own_settings=data.group_configs.own_settings,
            )
            parts.append(spec.coordinator(surroundings))
            recorder.families |= {kind: (spec, row) for kind, row in parts[-1].requests.items()}
        self.coordinator = Coordinator(NODE, config, random, parts)
        partitions = range(config.offsets_topic_partitions)
        now_ms = self.now_ms()
        self._carry_out(self.coordinator.on_cluster_change(dict.fromkeys(partitions, NODE), 1), now_ms)
        for partition in dict.fromkeys((*partitions, *store.logged())):
            records = store.read(partition)
            _check_home(store, partition, records, len(partitions))
            now_ms = self.now_ms()
            self._carry_out(self.coordinator.on_elected(partition), now_ms)
            self._carry_out(self.coordinator.on_loaded(partition, records, now_ms=now_ms), now_ms)
        now_ms = self.now_ms()
        self._carry_out(self.coordinator.on_topics_changed(now_ms=now_ms), now_ms)
        data.transactions.end_on_group = self._end_on_group
        data.transactions.resume(self.now_ms())
        self._set_timer()

    def now_ms(self) -> int:
        """Return the time of day. It does not jump while the broker runs."""
        return self._begun_ms + int(self._loop.time() * 1_000)

    def stop(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def receive(self, request: Request, host: str, reply: Reply) -> Callable[[], None] | None:
        """Handle a request. Return a function that stops the wait for records, if there is one."""
        api = request.api
        if api is Api.HEARTBEAT:
            self._beat(request, reply)
            return None
        if api is Api.FETCH:
            return self._fetch(request, reply)
        if api is Api.PRODUCE:
            reply(produce(self.data, request, self.now_ms()))
            self._set_timer()
        elif api in OF_DATA:
            reply(OF_DATA[api](self.data, request))
        elif api in OF_TRANSACTIONS:
            reply(OF_TRANSACTIONS[api](self.data, request, self.now_ms()))
            self._set_timer()
        elif api is Api.FIND_COORDINATOR:
            reply(self._find(request))
        elif isinstance(request.body, list):
            reply(self._of_several(request))
        else:
            self._coordinate(request, host, reply)
        return None

    # --- groups

    def _beat(self, request: Request, reply: Reply) -> None:
        """Pass a heartbeat, as most requests are, to the coordinator. Its response is the whole outcome."""
        message, now_ms = request.body, self.now_ms()
        self.recorder.requested(message, request.client_id, now_ms)
        outcome = self.coordinator.receive(0, message, now_ms=now_ms)
        assert not outcome.appends
        assert not outcome.events
        (answer,) = outcome.replies
        assert isinstance(answer.response, m.HeartbeatResponse)
        self._set_timer()
        reply(heartbeat_frame(request, answer.response))

    def _coordinate(self, request: Request, host: str, reply: Reply) -> None:
        """Pass a request to the coordinator, unless it is refused before."""
        part, now_ms = self._known(request.body), self.now_ms()
        message = part.message
        refusal = (
            _refused_sync(request) or part.refusal or self._refused_commit(message, request.version, now_ms)
        )
        if refusal is not None:
            reply(response_body(request.body, request.version, part.complete(refusal)))
            return
        self.recorder.requested(message, request.client_id, now_ms)

        def respond(response: m.Response) -> None:
            self.recorder.answered(message, response, request.client_id, self.now_ms())
            reply(response_body(request.body, request.version, part.complete(response)))

        self._requests += 1
        self._parked[self._requests] = message, respond
        client_id = request.client_id[:LONGEST_NAME]
        try:
            outcome = self.coordinator.receive(
                self._requests, message, client_id=client_id, client_host=host, now_ms=now_ms
            )
        except (AssignmentError, PluginError) as error:  # of an assignor that the broker runs
            LOG.warning("group %s: %s", getattr(message, "group_id", ""), error)
            self._give(self._requests, self.coordinator.refusal(message, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        self._carry_out(outcome, now_ms)

    def _known(self, message: m.Request) -> Part:
        """Return the part of a request whose partitions exist."""
        if getattr(message, "include_authorized_operations", False):
            return Part(message, complete=with_operations)
        return (
            known_rows(message, self.data.can_be_committed) if type(message) in OF_OFFSETS else Part(message)
        )

    def _refused_commit(self, message: m.Request, version: int, now_ms: int) -> m.Response | None:
        """Return the response to a commit that is not in the current transaction of its producer.

        From version 5 on the commit adds its group to the transaction (KIP-890).
        """
        if not isinstance(message, m.TxnOffsetCommitRequest) or not message.group_id:
            return None
        transactions, producer = self.data.transactions, Producer(message.producer_id, message.producer_epoch)
        name, group_id = message.transactional_id, message.group_id
        if version >= ADDS_GROUPS:
            error = transactions.add(name, producer, now_ms, groups=(group_id,))
        else:
            error = transactions.verify(name, producer, group=group_id)
        if error is Wire.none or self._is_beside(name, producer, group_id, now_ms):
            return None
        if error is Wire.producer_fenced:
            error = Wire.invalid_producer_epoch
        elif error is Wire.transaction_abortable and version < KNOWS_ABORTABLE:
            error = Wire.invalid_txn_state
        return self.coordinator.refusal(message, ErrorCode(error))

    def _is_beside(self, name: str, producer: Producer, group_id: str, now_ms: int) -> bool:
        """Return whether the transaction of a producer has another group in the log partition of a group.

        Kafka's transactions have log partitions, not groups. With offsets in the partition, Kafka does not
        compare the transactional id, either. The group is added, so that it gets the outcome.
        """
        home, transactions = self.data.home, self.data.transactions
        for record in transactions.ongoing(producer):
            for other in record.groups:
                pending = self.coordinator.pending_offsets(other).get(producer.producer_id)
                has_offsets = pending is not None and pending.epoch == producer.epoch
                if home(other) == home(group_id) and (has_offsets or record.name == name):
                    return transactions.add(record.name, producer, now_ms, groups=(group_id,)) is Wire.none
        return False

    def _end_on_group(self, group_id: str, producer_id: int, committed: bool, now_ms: int) -> bool:
        """End a transaction on a group. Return False if the store does not accept it."""
        outcome = self.coordinator.end_transaction(group_id, producer_id, committed=committed, now_ms=now_ms)
        self._carry_out(outcome, now_ms)
        return producer_id not in self.coordinator.pending_offsets(group_id)

    def _topics_grown(self, topics: Mapping[str, int]) -> None:
        """Pass new partitions to the groups of the consumer protocol, too."""
        now_ms = self.now_ms()
        self.recorder.grown(topics, now_ms)
        self._carry_out(self.coordinator.on_topics_changed(now_ms=now_ms), now_ms)

    def _topics_deleted(self, topics: Mapping[str, UUID]) -> None:
        """Delete the committed offsets of topics, too."""
        now_ms = self.now_ms()
        self.recorder.deleted(topics, now_ms)
        ids = {topic: str(topic_id) for topic, topic_id in topics.items()}
        self._carry_out(self.coordinator.on_topics_deleted(ids, now_ms=now_ms), now_ms)
        self._carry_out(self.coordinator.on_topics_changed(now_ms=now_ms), now_ms)

    def _give(self, request_id: int, response: m.Response) -> None:
        """Answer a request. An error in that is logged, as it concerns one client only."""
        if request_id not in self._parked:
            return
        _, respond = self._parked.pop(request_id)
        try:
            respond(response)
        except Exception:
            LOG.exception("%s cannot be given", type(response).__name__)

    def _of_several(self, request: Request) -> Any:
        """Return the response to a request about several groups, which is answered at once."""
        now_ms = self.now_ms()
        responses: list[tuple[str, m.Response]] = []
        for message in request.body:
            part = self._known(message)
            if request.api is Api.OFFSET_FETCH:
                self.recorder.requested(part.message, request.client_id, now_ms)
            (answer,) = self.coordinator.receive(0, part.message, now_ms=now_ms).replies
            responses.append((message.group_id, part.complete(answer.response)))
        return of_several(responses)

    def _find(self, request: Request) -> Values:
        body = request.body
        if request.version >= 4:
            keys, key_type = body.coordinator_keys, body.key_type
            found = tuple({"key": key, **self._found(key, key_type, without_error="")} for key in keys)
            return {"coordinators": found}
        key_type = body.key_type if request.version >= 1 else GROUP_KEY
        return self._found(body.key, key_type, without_error="NONE")

    def _found(self, key: str, key_type: int, *, without_error: str) -> Values:
        """Return the coordinator of a key. ``without_error``: the message of a response without an error."""
        error, message = self._not_found(key, key_type)
        message = message or without_error
        node, (host, port) = (-1, ("", -1)) if error else (NODE, self.data.address)
        return {"error_code": error, "error_message": message, "node_id": node, "host": host, "port": port}

    def _not_found(self, key: str, key_type: int) -> tuple[int, str | None]:
        """Return why a client does not find a coordinator, with a message: no error if this is the one."""
        if key_type == TRANSACTION_KEY:
            return Wire.none, None
        if key_type != GROUP_KEY:
            expected = f"{GROUP_KEY} (a group) or {TRANSACTION_KEY} (a transaction)"
            return Wire.invalid_request, f"key type {key_type}, expected {expected}"
        request = m.FindCoordinatorRequest(key=key)
        (reply,) = self.coordinator.receive(0, request, now_ms=self.now_ms()).replies
        assert isinstance(reply.response, m.FindCoordinatorResponse)
        return reply.response.error, None

    def _carry_out(self, outcome: Outcome, now_ms: int) -> ErrorCode:
        """Carry out an outcome of the coordinator: record events, write the log, send responses.

        ``now_ms``: the time of the call that returned the outcome, which all its events have. They are
        recorded before any response, which may lead to the next request. Return the last error of the log.
        """
        self._record(outcome, now_ms)
        waiting, failed = deque([outcome]), ErrorCode.NONE
        while waiting:
            step = waiting.popleft()
            for append in step.appends:
                error = self._store.append(append.partition, append.records)
                failed = error or failed
                now_ms = self.now_ms()
                written = self.coordinator.on_appended(append.append_id, error, now_ms=now_ms)
                self._record(written, now_ms)
                waiting.append(written)
            for request_id in step.superseded:
                del self._parked[request_id]  # Kafka never answers it
            for reply in step.replies:
                self._give(reply.request_id, reply.response)
        self._set_timer()
        return failed

    def _record(self, outcome: Outcome, now_ms: int) -> None:
        for event in outcome.events:
            self.recorder.happened(event, now_ms)

    def _set_timer(self) -> None:
        due_ms = _earlier(self.coordinator.not_before_ms(), self.data.transactions.not_before_ms())
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
        self.data.transactions.on_deadline(self.now_ms())
        now_ms = self.now_ms()
        self._carry_out(self.coordinator.on_deadline(now_ms=now_ms), now_ms)

    # --- Fetch

    def _fetch(self, request: Request, reply: Reply) -> Callable[[], None] | None:
        """Answer when there are enough records, or when the client's waiting time is over."""
        fetch = Fetch(self.data, request)
        rows, enough = fetch.read()
        waits_ms = min(fetch.wait_ms, LONGEST_WAIT_MS)
        if enough or not waits_ms:
            reply(fetch.response(rows))
            return None

        def give_up() -> None:
            stop()
            timer.cancel()

        def try_again(is_over: bool) -> None:
            rows, enough = fetch.read()
            if enough or is_over:
                give_up()
                reply(fetch.response(rows))

        stop = self.data.topics.wait(fetch.places, lambda: try_again(False))
        timer = self._loop.call_later(waits_ms / 1_000, try_again, True)
        return give_up


def _check_home(store: Store, partition: int, records: Iterable[Record], partitions: int) -> None:
    """Raise an error if a group has records in a partition of the log in which nothing looks for them."""
    for group_id in dict.fromkeys(record.group_id for record in records):
        home = home_partition(group_id, partitions)
        if home != partition:
            where = f"{store.path}, records of group {group_id!r}"
            expected = f"partition {home} (offsets.topic.num.partitions={partitions})"
            advice = "use the setting of the broker that wrote them, or restore the folder from a copy"
            raise InputError(where, f"partition {partition} of the log", f"{expected}; {advice}")


def _earlier(first_ms: int | None, second_ms: int | None) -> int | None:
    if first_ms is None or second_ms is None:
        return second_ms if first_ms is None else first_ms
    return min(first_ms, second_ms)


def _refused_sync(request: Request) -> m.Response | None:
    """Return the response to a SyncGroup without the protocol type or name that its version has (KIP-559)."""
    body = request.body
    if request.api is not Api.SYNC_GROUP or request.version < NAMED_SINCE:
        return None
    if body.protocol_type is not None and body.protocol_name is not None:
        return None
    return m.SyncGroupResponse(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

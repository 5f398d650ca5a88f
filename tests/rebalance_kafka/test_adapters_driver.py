"""Groups of real clients' coordinators without a socket: they send their own requests to one group here.

The clients do all that they do in a group, from preparing to the application's callback; what is made up is
the coordinator behind the connection, which waits until all have joined and passes the leader's answer on.
"""

import asyncio
import warnings
from types import SimpleNamespace

import pytest

from coordinator_core.model import TopicPartition

pytestmark = pytest.mark.peer

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    pytest.importorskip("kafka", reason="kafka-python is not installed")
    pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    import aiokafka.protocol.group as aio
    from aiokafka.abc import ConsumerRebalanceListener
    from aiokafka.cluster import ClusterMetadata as AiokafkaCluster
    from aiokafka.consumer.group_coordinator import GroupCoordinator
    from aiokafka.consumer.subscription_state import SubscriptionState as AiokafkaSubscriptionState
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
    from aiokafka.protocol.metadata import MetadataResponse_v1
    from kafka.cluster import ClusterMetadata as KafkaPythonCluster
    from kafka.consumer.subscription_state import SubscriptionState as KafkaPythonSubscriptionState
    from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
    from kafka.coordinator.consumer import ConsumerCoordinator
    from kafka.protocol.consumer import JoinGroupRequest, JoinGroupResponse, SyncGroupResponse
    from kafka.protocol.metadata import MetadataResponse

MOST_ROUNDS = 10


class Brokers:
    """Topics by the racks of each partition's replicas: one broker for each rack, and one without."""

    def __init__(self, topics):
        self.topics = {
            name: [()] * each if isinstance(each, int) else list(each) for name, each in topics.items()
        }

    def __call__(self):
        racks = sorted({rack for partitions in self.topics.values() for each in partitions for rack in each})
        brokers = {None: 0, **{rack: number for number, rack in enumerate(racks, 1)}}
        described = {
            topic: [[brokers[rack] for rack in each] or [0] for each in partitions]
            for topic, partitions in self.topics.items()
        }
        return brokers, described


def kafka_python_cluster(topics):
    """kafka-python's metadata, from a response of its own."""
    cluster = KafkaPythonCluster(bootstrap_servers="localhost")
    update_kafka_python(cluster, topics)
    return cluster


def update_kafka_python(cluster, topics):
    brokers, described = Brokers(topics)()
    parts = MetadataResponse.MetadataResponseTopic
    response = MetadataResponse(
        version=5,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=n, host="h", port=9092, rack=r)
            for r, n in brokers.items()
        ],
        cluster_id="c",
        controller_id=0,
        topics=[
            parts(
                error_code=0,
                name=topic,
                is_internal=False,
                partitions=[
                    parts.MetadataResponsePartition(
                        error_code=0,
                        partition_index=number,
                        leader_id=nodes[0],
                        replica_nodes=nodes,
                        isr_nodes=nodes,
                        offline_replicas=[],
                    )
                    for number, nodes in enumerate(partitions)
                ],
            )
            for topic, partitions in described.items()
        ],
    )
    encoded = response.encode(version=5)
    cluster.update_metadata(MetadataResponse.decode(encoded, version=5))


def aiokafka_cluster(topics):
    """aiokafka's metadata, from a response of its own."""
    cluster = AiokafkaCluster(bootstrap_servers="localhost")
    update_aiokafka(cluster, topics)
    return cluster


def update_aiokafka(cluster, topics):
    brokers, described = Brokers(topics)()
    cluster.update_metadata(
        MetadataResponse_v1(
            [(n, "h", 9092, r) for r, n in brokers.items()],
            0,
            [
                (0, topic, False, [(0, number, nodes[0], nodes, nodes) for number, nodes in enumerate(each)])
                for topic, each in described.items()
            ],
        )
    )


class Group:
    """The coordinator of one group, and the clients in it."""

    def __init__(self, topics):
        self.topics, self.peers, self.generation = dict(topics), {}, 0
        self._ids = 0
        self._leader = None

    async def add(self, kind, name, *args, **kwargs):
        """Start a client; it joins in the next rebalance."""
        self.peers[name] = kind(self, name, *args, **kwargs)
        return self.peers[name]

    async def remove(self, name):
        await self.peers.pop(name).close()

    async def rebalance(self, leader=None):
        """Rounds until nobody asks for another; how many they were."""
        for rounds in range(1, MOST_ROUNDS):
            await self.round(leader)
            if not any(peer.wants_rejoin() for peer in self.peers.values()):
                return rounds
        raise AssertionError("the group does not come to rest")

    async def round(self, leader=None):
        """Everybody joins, the leader's client assigns, everybody takes it over."""
        self._leader = leader or next(iter(self.peers))
        self.generation += 1
        self._joined, self._all_joined = {}, asyncio.Event()
        self._synced = asyncio.get_running_loop().create_future()
        await asyncio.wait_for(asyncio.gather(*(p.rejoin() for p in self.peers.values())), 60)

    async def join(self, peer, member_id, instance_id, protocols):
        if not member_id:
            self._ids += 1
            member_id = f"{peer.name}-{self._ids}"
        peer.member_id = member_id
        self._joined[peer.name] = (member_id, instance_id, dict(protocols))
        if len(self._joined) == len(self.peers):
            self._all_joined.set()
        await self._all_joined.wait()
        offered = [set(named) for _, _, named in self._joined.values()]
        (protocol,) = set.intersection(*offered)
        members = [(m, i, named[protocol]) for m, i, named in self._joined.values()]
        leader = self._joined[self._leader][0]
        return member_id, protocol, leader, members if member_id == leader else []

    async def sync(self, member_id, assignments):
        if assignments:
            self._synced.set_result(dict(assignments))
        return (await self._synced)[member_id]

    def fail(self, error):
        self._synced.set_exception(error)
        self._synced.exception()  # a leader that is alone does not wait for it

    def owned(self):
        """Client -> what it works on."""
        return {name: peer.owned() for name, peer in self.peers.items()}

    def set_topics(self, topics):
        """The cluster changes, and every client's metadata are updated."""
        self.topics = dict(topics)
        for peer in self.peers.values():
            peer.update_metadata(topics)


class KafkaPythonPeer:
    """kafka-python's ConsumerCoordinator."""

    def __init__(self, group, name, topics, strategy, *, instance_id=None):
        self.name, self._group, self.member_id = name, group, None
        self.cluster = kafka_python_cluster(group.topics)
        self.state = KafkaPythonSubscriptionState()
        self.state.subscribe(topics.split())
        self.net = _Net()
        client = SimpleNamespace(
            _manager=SimpleNamespace(
                cluster=self.cluster,
                _net=self.net,
                send=self._send,
                call_soon=_Task,
                wait_for=lambda task, timeout_ms: task.finished(),
            ),
            is_disconnected=lambda node: False,
        )
        self.coordinator = ConsumerCoordinator(
            client,
            self.state,
            group_id="g",
            group_instance_id=instance_id,
            enable_auto_commit=False,
            api_version=(3, 9),
            metrics=None,
            assignors=[strategy],
        )
        self.coordinator.coordinator_id = 0

    async def _send(self, request, node_id, request_timeout_ms=None):
        if isinstance(request, JoinGroupRequest):
            protocols = [(name, said.encode()) for name, said in request.protocols]
            joined = await self._group.join(self, request.member_id, request.group_instance_id, protocols)
            member_id, protocol, leader, members = joined
            member = JoinGroupResponse.JoinGroupResponseMember
            return JoinGroupResponse(
                version=7,
                error_code=0,
                generation_id=self._group.generation,
                protocol_type="consumer",
                protocol_name=protocol,
                leader=leader,
                member_id=member_id,
                members=[member(member_id=m, group_instance_id=i, metadata=said) for m, i, said in members],
            )
        assignments = [(m, given.encode()) for m, given in request.assignments]
        assignment = await self._group.sync(request.member_id, assignments)
        return SyncGroupResponse(version=5, error_code=0, assignment=assignment)

    async def rejoin(self):
        self.coordinator.request_rejoin()
        try:
            await self.coordinator.join_group_async()
        except Exception as error:
            if not self._group._synced.done():
                self._group.fail(error)
            raise

    def wants_rejoin(self):
        return self.coordinator.need_rejoin()

    def owned(self):
        return {TopicPartition(*tp) for tp in self.state.assigned_partitions()}

    def lose_membership(self):
        """What a heartbeat answered with UNKNOWN_MEMBER_ID does."""
        self.coordinator.reset_generation()

    def subscribe(self, topics):
        self.state.change_subscription(topics.split())

    def update_metadata(self, topics):
        update_kafka_python(self.cluster, topics)

    async def close(self):
        pass


class _Net:
    """A loop that nothing is left to."""

    def call_soon_threadsafe(self, *args):
        pass

    call_soon = call_soon_threadsafe


class _Task:
    """kafka-python's handle of a coroutine that runs, over asyncio."""

    def __init__(self, function, *args):
        self._task = asyncio.ensure_future(function(*args))

    @property
    def is_done(self):
        return self._task.done()

    async def finished(self):
        return await self._task


class AiokafkaPeer(ConsumerRebalanceListener):
    """aiokafka's GroupCoordinator, with the task that it runs in."""

    def __init__(self, group, name, topics, strategy, *, instance_id=None):
        self.name, self._group, self.member_id = name, group, None
        self.cluster = aiokafka_cluster(group.topics)
        self.state = AiokafkaSubscriptionState()
        self.state.register_fetch_waiters(set())
        self._assigned = asyncio.Event()
        client = SimpleNamespace(
            cluster=self.cluster,
            coordinator_lookup=_answering(0),
            ready=_answering(True),
            send=self._send,
            set_topics=lambda topics: None,
            _maybe_wait_metadata=_answering(None),
        )
        self.coordinator = GroupCoordinator(
            client,
            self.state,
            group_id="g",
            group_instance_id=instance_id,
            enable_auto_commit=False,
            assignors=[strategy],
        )
        self._topics = topics

    async def _send(self, node, request, group=None):
        if isinstance(request, aio.JoinGroupRequest):
            said = request.build(aio.JoinGroupRequest_v5)
            joined = await self._group.join(
                self, said.member_id, said.group_instance_id, said.group_protocols
            )
            member_id, protocol, leader, members = joined
            generation = self._group.generation
            response = aio.JoinGroupResponse_v5(0, 0, generation, protocol, leader, member_id, members)
            return aio.JoinGroupResponse_v5.decode(response.encode())
        if isinstance(request, aio.SyncGroupRequest):
            said = request.build(aio.SyncGroupRequest_v3)
            assignment = await self._group.sync(said.member_id, said.group_assignment)
            return aio.SyncGroupResponse_v3(0, 0, assignment)
        return SimpleNamespace(error_code=0)

    async def rejoin(self):
        self._assigned.clear()
        if self.state.subscription is None:
            self.state.subscribe(set(self._topics.split()), listener=self)
        else:
            self.coordinator.request_rejoin()
        assigned = asyncio.ensure_future(self._assigned.wait())
        failed = asyncio.ensure_future(self._failed())
        done, left = await asyncio.wait({assigned, failed}, return_when=asyncio.FIRST_COMPLETED)
        for each in left:
            each.cancel()
        for each in done:
            each.result()

    async def _failed(self):
        while self.coordinator._pending_exception is None and not self.coordinator._coordination_task.done():
            await asyncio.sleep(0.005)
        try:
            self.coordinator.check_errors()
        except Exception as error:
            if not self._group._synced.done():
                self._group.fail(error)
            raise

    def on_partitions_revoked(self, revoked):
        pass

    def on_partitions_assigned(self, assigned):
        self._assigned.set()

    def wants_rejoin(self):
        return self.coordinator.need_rejoin(self.state.subscription)

    def owned(self):
        return {TopicPartition(*tp) for tp in self.state.assigned_partitions()}

    def lose_membership(self):
        """What a heartbeat answered with UNKNOWN_MEMBER_ID does."""
        self.coordinator.reset_generation()

    def update_metadata(self, topics):
        update_aiokafka(self.cluster, topics)

    async def close(self):
        await self.coordinator.close()


def _answering(answer):
    async def answering(*args, **kwargs):
        return answer

    return answering


PEERS = {"kafka-python": (KafkaPythonPeer, KafkaPythonRange), "aiokafka": (AiokafkaPeer, AiokafkaRange)}


@pytest.mark.parametrize("client", PEERS)
def test_clients_take_over_what_their_own_assignors_say(client):
    kind, own = PEERS[client]

    async def run():
        group = Group({"t": 3, "u": 2})
        await group.add(kind, "a", "t", own)
        await group.add(kind, "b", "t u", own)
        assert await group.rebalance(leader="b") == 1
        owned = group.owned()
        await group.remove("a")
        await group.remove("b")
        return owned

    assert asyncio.run(run()) == {"a": {("t", 0), ("t", 1)}, "b": {("t", 2), ("u", 0), ("u", 1)}}


def test_a_rebalance_that_fails_in_one_client_fails():
    class Broken(KafkaPythonRange):
        def assign(self, cluster, members):
            raise ValueError("broken")

    async def run():
        group = Group({"t": 3})
        await group.add(KafkaPythonPeer, "a", "t", Broken)
        await group.rebalance()

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(run())

"""Metadata of kafka-python and of aiokafka, each from a response as a broker sends it."""

import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in an old way
    pytest.importorskip("kafka", reason="kafka-python is not installed")
    pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    from aiokafka.cluster import ClusterMetadata as AiokafkaCluster
    from aiokafka.protocol.metadata import MetadataResponse_v1
    from kafka.cluster import ClusterMetadata as KafkaPythonCluster
    from kafka.protocol.metadata import MetadataResponse


def brokers_of(topics):
    """Return a broker for each rack and one without, and the brokers of each partition by the racks of it."""
    racks = sorted({rack for partitions in topics.values() for each in partitions for rack in each})
    brokers = {None: 0, **{rack: number for number, rack in enumerate(racks, 1)}}
    described = {
        topic: [[brokers[rack] for rack in each] or [0] for each in partitions]
        for topic, partitions in topics.items()
    }
    return brokers, described


def kafka_python_cluster(topics):
    """kafka-python's metadata, from a response of its own."""
    brokers, described = brokers_of(topics)
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
    cluster = KafkaPythonCluster(bootstrap_servers="localhost")
    cluster.update_metadata(MetadataResponse.decode(response.encode(version=5), version=5))
    return cluster


def aiokafka_cluster(topics):
    """aiokafka's metadata, from a response of its own."""
    brokers, described = brokers_of(topics)
    cluster = AiokafkaCluster(bootstrap_servers="localhost")
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
    return cluster

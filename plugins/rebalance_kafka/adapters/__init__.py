"""Assignors in running consumer groups: in kafka-python (3.0 or newer) and in aiokafka (0.13 or newer).

    KafkaConsumer(..., partition_assignment_strategy=[as_kafka_python("cooperative-sticky")])
    AIOKafkaConsumer(..., partition_assignment_strategy=[as_aiokafka("sticky")])

The assignor is a name of the registry with options and modifiers (``optimal+max_moves=5%``), a reference
(``file.py:Name``), a class, a plain function ``assign(cluster, group)``, a function without arguments that
makes an assignor, or a finished object, which serves one consumer. Every consumer has its own. Results are
validated as in our own client, every member has an entry, topics that nobody described count as empty, and
whatever goes wrong in an assignor is one AssignmentError with its name and the cause; aiokafka wraps that
in its KafkaError.

Members of both libraries may share a group, and either may lead it. What a member owns, since when, its rack
and its instance id travel at the end of its user data (`claims`), behind what the assignor itself says there,
which Apache Kafka's own assignors therefore still read; kafka-python's members also say it in the fields of
their subscription (v3), for leaders of other kinds. Of a member without a claim only what its subscription
says counts, and its user data go to the assignor as they are. A leader whose members are eager plays the
rounds of a cooperative assignor through in one (`leading`).

What the clients cannot do, from the code of kafka-python 3.0.12 and aiokafka 0.14.0:

kafka-python
    - It takes no two assignors of which one is cooperative and one eager; ``protocol=EAGER`` makes of a
      cooperative one an eager one, for the time of a migration.
    - It tells an assignor neither ``client_rack`` nor ``group_instance_id`` of its own consumer: name them
      here. Leaders see the instance ids of all members by themselves.
    - It does not tell that a membership was lost. Claims from an earlier membership are known by the member
      id, where an adapter led before; where something else did, they hold a partition back that nobody will
      give up, until the next rebalance.
    - A leader does not wait for the metadata of topics that only others subscribe to: in its first round they
      are as empty, and a second round follows when they are known.
    - Its own ``sticky`` puts two bytes in front of the user data of Apache Kafka's: none of the others, ours
      included, read it, nor it them.
    - Before 3.0 there is no generation, no instance id and no object per consumer: not supported.

aiokafka
    - It is eager, whatever the assignor is; one that is cooperative only is refused.
    - It shows a leader of every member's subscription the topics and the user data, nothing else: what
      members without a claim own is unknown to it, so that it must not lead a cooperative group with such.
    - It tells no generation: members count, and leaders tell them their count, one more than the newest they
      heard of. With members of kafka-python it is Kafka's own, less the rounds that came to nothing since.
    - It hides the instance ids of all members and ``client_rack``: name your own here.
    - Of several strategies it offers one more with each JoinGroup, and joins as often: hand it one.
    - It never makes assignors of classes. An object of ours knows consumers apart by the task that runs
      their rebalances, so that it may be handed to several.
    - Its own ``sticky`` is a class with one memory for all consumers of a process, without generations.

Neither client gives an assignor loads: those come from a host (`coordinator_core.registry.host`), one for
each consumer; without it ``optimal`` and ``lag-aware`` count partitions.
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
    """An assignor as a class for ``KafkaConsumer(partition_assignment_strategy=[...])``.

    The client makes an object of it for each consumer. ``rack`` and ``instance_id`` are those of the
    consumer; ``protocol`` is cooperative where the assignor can be, unless said otherwise; ``host`` makes
    what tells a consumer's assignor of loads, where the assignor is a strategy's name.

    Raises InputError where kafka-python is not installed or the assignor is none, and PluginError for what an
    assignor raises while it is made.
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
    """An assignor as an object for ``AIOKafkaConsumer(partition_assignment_strategy=[...])``.

    ``rack`` and ``instance_id`` are those of the consumer; ``host`` makes what tells a consumer's assignor of
    loads, where the assignor is a strategy's name.

    Raises InputError where aiokafka is not installed, or the assignor is none or cannot be eager, and
    PluginError for what an assignor raises while it is made.
    """
    try:
        from rebalance_kafka.adapters.aiokafka import adapted
    except ImportError as missing:
        raise _not_installed("as_aiokafka", "aiokafka>=0.13", missing) from missing
    return adapted(assignor, rack=rack, instance_id=instance_id, host=host)


def _not_installed(where: str, requirement: str, missing: ImportError) -> InputError:
    return InputError(where, str(missing), f"{requirement}: pip install '{requirement}'")

"""Who may do what with topics, groups and transactional ids: a simple form of Kafka's access control."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple, Self

from coordinator_core.errors import InputError

ANONYMOUS = "ANONYMOUS"
"""The user of a connection without authentication, as in Kafka."""

ANY = "*"


class Operation(StrEnum):
    """What a user does with a resource, by Kafka's names."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    DESCRIBE_CONFIGS = "describe_configs"
    ALTER_CONFIGS = "alter_configs"
    ALL = "all"


class Kind(StrEnum):
    """What is protected."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional_id"


_IMPLIED_BY = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operation -> the operations that include it, as in Kafka."""

_EXPECTED = f"USER:OPERATION:{'|'.join(Kind)}:NAME, such as ada:read:topic:orders"


_BITS = {
    Operation.READ: 1 << 3,
    Operation.WRITE: 1 << 4,
    Operation.CREATE: 1 << 5,
    Operation.DELETE: 1 << 6,
    Operation.ALTER: 1 << 7,
    Operation.DESCRIBE: 1 << 8,
    Operation.DESCRIBE_CONFIGS: 1 << 10,
    Operation.ALTER_CONFIGS: 1 << 11,
}
"""Operation -> its bit in a response with authorized operations (KIP-430)."""

_OPERATIONS = {
    Kind.TOPIC: tuple(_BITS),
    Kind.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
}
"""Kind -> the operations that a response reports for it."""

ON_CLUSTER = 8_096
"""All operations on a cluster: create, alter, describe, cluster_action, describe_configs, alter_configs,
idempotent_write."""


class Acl(NamedTuple):
    """Allow a user an operation. ``user`` may be `ANY`. A ``name`` may end in `ANY`, for every ending."""

    user: str
    operation: Operation
    kind: Kind
    name: str

    @classmethod
    def of(cls, text: str, where: str) -> Self:
        """Return what a text USER:OPERATION:KIND:NAME allows.

        Raises:
            InputError: if the text has another form.
        """
        user, operation, kind, name, *_ = (*text.split(":", 3), "", "", "")
        if not user or not name:
            raise InputError(where, repr(text), _EXPECTED)
        if operation not in [*Operation]:
            raise InputError(where, repr(text), f"an operation of {', '.join(Operation)}")
        if kind not in [*Kind]:
            raise InputError(where, repr(text), _EXPECTED)
        return cls(user, Operation(operation), Kind(kind), name)

    def allows(self, operation: Operation, kind: Kind, name: str) -> bool:
        """Return whether this allows the operation on what has the name."""
        if kind is not self.kind or not self._is_about(name):
            return False
        allowed = self.operation
        return allowed in (Operation.ALL, operation) or allowed in _IMPLIED_BY.get(operation, ())

    def _is_about(self, name: str) -> bool:
        if self.name.endswith(ANY):
            return name.startswith(self.name.removesuffix(ANY))
        return name == self.name


class Access:
    """What one user may do. ``acls`` None: everything, and there are no users."""

    def __init__(self, acls: Iterable[Acl] | None = None, user: str = "") -> None:
        self.user = user
        self._acls = None if acls is None else tuple(acls)

    def topic(self, operation: Operation, name: str) -> bool:
        """Return whether the user may do this with the topic."""
        return self._may(operation, Kind.TOPIC, name)

    def group(self, operation: Operation, name: str) -> bool:
        """Return whether the user may do this with the group."""
        return self._may(operation, Kind.GROUP, name)

    def transactional_id(self, operation: Operation, name: str) -> bool:
        """Return whether the user may do this with the transactional id."""
        return self._may(operation, Kind.TRANSACTIONAL_ID, name)

    def some_topic(self, operation: Operation) -> bool:
        """Return whether there may be a topic with which the user may do this."""
        return self._acls is None or any(
            acl.allows(operation, Kind.TOPIC, acl.name.removesuffix(ANY)) for acl in self._acls
        )

    def operations(self, kind: Kind, name: str) -> int:
        """Return what the user may do with a topic or a group, as the bits of a response."""
        return sum(_BITS[operation] for operation in _OPERATIONS[kind] if self._may(operation, kind, name))

    def cluster_operations(self) -> int:
        """Return what the user may do with the cluster: all, or nothing if there are users."""
        return ON_CLUSTER if self._acls is None else 0

    def _may(self, operation: Operation, kind: Kind, name: str) -> bool:
        return self._acls is None or any(acl.allows(operation, kind, name) for acl in self._acls)


EVERYTHING = Access()


def access_of(user: str, acls: Iterable[Acl]) -> Access:
    """Return what the lists allow a user."""
    return Access((acl for acl in acls if acl.user in (user, ANY)), user)

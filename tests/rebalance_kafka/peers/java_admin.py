"""``python -m tests.rebalance_kafka.peers.java_admin ADDRESS GROUP NAME=VALUE...``: Java's Admin and a group.

Sets configurations of the group one after the other, and prints the errors and what the group is described
with, as JSON. A value of "" deletes.
"""

import json
import sys
from typing import Any

from tests.rebalance_kafka.peers.jvm import properties, start_jvm

ADMIN, CONFIG = "org.apache.kafka.clients.admin", "org.apache.kafka.common.config"


def main(address: str, group: str, *changes: str) -> None:
    """Print what Java's Admin says."""
    start_jvm()
    from jpype import JClass, JException

    admin = JClass(f"{ADMIN}.Admin").create(properties({"bootstrap.servers": address}))
    resource = JClass(f"{CONFIG}.ConfigResource")(JClass(f"{CONFIG}.ConfigResource$Type").GROUP, group)
    kinds = JClass(f"{ADMIN}.AlterConfigOp$OpType")
    errors: list[Any] = []
    for change in changes:
        name, _, value = change.partition("=")
        entry = JClass(f"{ADMIN}.ConfigEntry")(name, value)
        operation = JClass(f"{ADMIN}.AlterConfigOp")(entry, kinds.SET if value else kinds.DELETE)
        asked = JClass("java.util.HashMap")()
        asked.put(resource, JClass("java.util.ArrayList")([operation]))
        try:
            admin.incrementalAlterConfigs(asked).all().get()
        except JException as error:
            errors.append(str(error.getMessage()))
        else:
            errors.append(None)
    described = admin.describeConfigs(JClass("java.util.ArrayList")([resource])).all().get().get(resource)
    values = {str(e.name()): [str(e.value()), str(e.source())] for e in described.entries()}
    admin.close()
    print(json.dumps({"errors": errors, "configs": values}))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])

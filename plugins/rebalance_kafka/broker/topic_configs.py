"""Configurations of topics: Kafka's names, types and defaults. The broker acts on those with a name here."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

MAX_MESSAGE_BYTES = "max.message.bytes"
TIMESTAMP_TYPE, LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"
LONGEST = 2**63 - 1
_UNLIMITED = str(LONGEST)
_WEEK_MS = "604800000"


class ConfigType(IntEnum):
    """Types of configurations, as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


_LARGEST = {ConfigType.INT: 2**31 - 1, ConfigType.LONG: LONGEST, ConfigType.DOUBLE: 1}


class Config(NamedTuple):
    """A configuration. ``choices``: the allowed strings, or elements of a list.

    ``lowest`` and ``highest``: of a number. ``highest`` None: what its type can have.
    """

    type: ConfigType
    default: str
    lowest: int = 0
    choices: tuple[str, ...] = ()
    highest: int | None = None


_COMPRESSIONS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

CONFIGS: Mapping[str, Config] = {
    "cleanup.policy": Config(ConfigType.LIST, "delete", choices=("compact", "delete")),
    "compression.gzip.level": Config(ConfigType.INT, "-1", -1, highest=9),
    "compression.lz4.level": Config(ConfigType.INT, "9", 1, highest=17),
    "compression.type": Config(ConfigType.STRING, "producer", choices=_COMPRESSIONS),
    "compression.zstd.level": Config(ConfigType.INT, "3", -131_072, highest=22),
    "delete.retention.ms": Config(ConfigType.LONG, "86400000"),
    "errors.deadletterqueue.group.enable": Config(ConfigType.BOOLEAN, "false"),
    "file.delete.delay.ms": Config(ConfigType.LONG, "60000"),
    "flush.messages": Config(ConfigType.LONG, _UNLIMITED, 1),
    "flush.ms": Config(ConfigType.LONG, _UNLIMITED),
    "follower.replication.throttled.replicas": Config(ConfigType.LIST, ""),
    "index.interval.bytes": Config(ConfigType.INT, "4096"),
    "leader.replication.throttled.replicas": Config(ConfigType.LIST, ""),
    "local.retention.bytes": Config(ConfigType.LONG, "-2", -2),
    "local.retention.ms": Config(ConfigType.LONG, "-2", -2),
    "max.compaction.lag.ms": Config(ConfigType.LONG, _UNLIMITED, 1),
    "max.decompressed.message.bytes": Config(ConfigType.INT, "2147483639", 1),
    MAX_MESSAGE_BYTES: Config(ConfigType.INT, "1048588"),
    "message.timestamp.after.max.ms": Config(ConfigType.LONG, "3600000"),
    "message.timestamp.before.max.ms": Config(ConfigType.LONG, _UNLIMITED),
    TIMESTAMP_TYPE: Config(ConfigType.STRING, "CreateTime", choices=("CreateTime", LOG_APPEND_TIME)),
    "min.cleanable.dirty.ratio": Config(ConfigType.DOUBLE, "0.5"),
    "min.compaction.lag.ms": Config(ConfigType.LONG, "0"),
    "min.insync.replicas": Config(ConfigType.INT, "1", 1),
    "preallocate": Config(ConfigType.BOOLEAN, "false"),
    "remote.copy.lag.bytes": Config(ConfigType.LONG, "-1", -1),
    "remote.copy.lag.ms": Config(ConfigType.LONG, "0", -1),
    "remote.log.copy.disable": Config(ConfigType.BOOLEAN, "false"),
    "remote.log.delete.on.disable": Config(ConfigType.BOOLEAN, "false"),
    "remote.storage.enable": Config(ConfigType.BOOLEAN, "false", choices=("false",)),
    "retention.bytes": Config(ConfigType.LONG, "-1", -1),
    "retention.ms": Config(ConfigType.LONG, _WEEK_MS, -1),
    "segment.bytes": Config(ConfigType.INT, "1073741824", 14),
    "segment.index.bytes": Config(ConfigType.INT, "10485760", 4),
    "segment.jitter.ms": Config(ConfigType.LONG, "0"),
    "segment.ms": Config(ConfigType.LONG, _WEEK_MS, 1),
    "unclean.leader.election.enable": Config(ConfigType.BOOLEAN, "false"),
}


def invalid(configs: Mapping[str, str | None]) -> str | None:
    """Return what is wrong with the first invalid configuration, None if all are valid."""
    return next((found for name, value in configs.items() if (found := _invalid(name, value))), None)


def _invalid(name: str, value: str | None) -> str | None:
    config = CONFIGS.get(name)
    if config is None:
        return f"{name[:100]!r} is not a configuration of topics"
    if value is None:
        return f"{name} without a value"
    if config.type is ConfigType.BOOLEAN:
        allowed = config.choices or ("true", "false")
        expected = " or ".join(allowed)
        is_valid = value.lower() in allowed
    elif config.type in (ConfigType.STRING, ConfigType.LIST):
        elements = [value] if config.type is ConfigType.STRING else [e.strip() for e in value.split(",")]
        expected = ("a list of " if config.type is ConfigType.LIST else "one of ") + ", ".join(config.choices)
        is_valid = not config.choices or set(elements) <= set(config.choices)
    else:
        largest = _LARGEST[config.type] if config.highest is None else config.highest
        expected = f"{config.lowest} to {largest}"
        try:
            number = float(value) if config.type is ConfigType.DOUBLE else int(value)
        except ValueError:
            return f"{name}={value[:100]!r}, expected a number from {expected}"
        is_valid = config.lowest <= number <= largest
    return None if is_valid else f"{name}={value[:100]!r}, expected {expected}"

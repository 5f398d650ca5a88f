"""What the commands read from their options."""

from collections.abc import Sequence
from pathlib import Path

from coordinator_core.cli.output import stderr
from coordinator_core.errors import InputError

BOOTSTRAP_HELP = "A broker, or several with commas."
CONFIG_HELP = (
    "Properties for TLS and SASL, as Kafka's commands take them: security.protocol, sasl.mechanism (PLAIN,"
    " SCRAM-SHA-256, SCRAM-SHA-512), sasl.username and sasl.password or sasl.jaas.config, ssl.ca.location."
)


def security_settings(path: Path | None) -> dict[str, str]:
    """Those settings of a properties file that are about TLS and SASL; others are said to be left out.

    Raises InputError for what cannot be used.
    """
    from rebalance_kafka.consumer.security import is_security, read_properties, security_of

    if path is None:
        return {}
    properties = read_properties(path)
    settings = {name: value for name, value in properties.items() if is_security(name)}
    security_of(settings, str(path))
    others = [name for name in properties if name not in settings]
    if others:
        stderr().print(f"{path}: left out, as not about TLS or SASL: {', '.join(others)}", markup=False)
    return settings


def topics_of(texts: Sequence[str], where: str) -> dict[str, int]:
    """NAME=PARTITIONS of each; a name alone has one partition. Raises InputError."""
    topics: dict[str, int] = {}
    for text in texts:
        name, equals, count = text.partition("=")
        if not name or (equals and not (count.isdecimal() and int(count) > 0)):
            raise InputError(where, repr(text), "NAME=PARTITIONS, such as orders=12")
        if name in topics:
            raise InputError(where, f"{name} twice", "each topic once")
        topics[name] = int(count) if equals else 1
    return topics


def settings_of(texts: Sequence[str], where: str, example: str) -> dict[str, str]:
    """NAME=VALUE of each. Raises InputError."""
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(where, repr(text), f"NAME=VALUE, such as {example}")
        settings[name] = value
    return settings

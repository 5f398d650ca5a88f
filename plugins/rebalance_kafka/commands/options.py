"""Values of options that several commands have."""

from collections.abc import Sequence
from pathlib import Path

from coordinator_core.errors import InputError
from rebalance_lab.cli.output import stderr

BOOTSTRAP_HELP = "A broker, or several with commas."
CONFIG_HELP = (
    "Properties for TLS and SASL, as Kafka's commands take them: security.protocol, sasl.mechanism (PLAIN,"
    " SCRAM-SHA-256, SCRAM-SHA-512), sasl.username and sasl.password or sasl.jaas.config, ssl.ca.location."
)


def security_settings(path: Path | None) -> dict[str, str]:
    """Return the settings of a properties file for TLS and SASL. Report other settings on stderr.

    Raises:
        InputError: if the file cannot be read or a setting cannot be used.
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
    """Return topics from texts NAME=PARTITIONS. A name alone has one partition.

    Raises:
        InputError: if a text has another form, or a topic comes twice.
    """
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
    """Return settings from texts NAME=VALUE.

    Raises:
        InputError: if a text has another form.
    """
    settings: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(where, repr(text), f"NAME=VALUE, such as {example}")
        settings[name] = value
    return settings


def passwords_of(texts: Sequence[str], where: str) -> dict[str, str]:
    """Return users from texts NAME=PASSWORD.

    Raises:
        InputError: if a text has another form, or a user comes twice. The message contains no password.
    """
    passwords: dict[str, str] = {}
    for text in texts:
        name, equals, password = text.partition("=")
        if not equals:
            raise InputError(where, "a text without '='", "NAME=PASSWORD")
        if name in passwords:
            raise InputError(where, f"{name!r} twice", "each user once")
        passwords[name] = password
    return passwords

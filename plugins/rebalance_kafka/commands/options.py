"""What the commands read from their options."""

from collections.abc import Sequence

from coordinator_core.errors import InputError

BOOTSTRAP_HELP = "A broker, or several with commas."


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


def settings_of(texts: Sequence[str], where: str) -> dict[str, int | bool]:
    """NAME=NUMBER, or true and false, of each. Raises InputError."""
    settings: dict[str, int | bool] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if value in ("true", "false"):
            settings[name] = value == "true"
        elif name and value.removeprefix("-").isdecimal():
            settings[name] = int(value)
        else:
            raise InputError(where, repr(text), "NAME=NUMBER, such as group.initial.rebalance.delay.ms=0")
    return settings

"""Addresses of brokers."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_core.errors import InputError


class Place(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def place_of(text: str, where: str) -> Place:
    """Return an address from a text HOST:PORT. An IPv6 address has brackets.

    Raises:
        InputError: if the text has another form.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) <= 65_535
    if not colon or not is_port or not _can_be_a_name(host):
        raise InputError(where, repr(text), "HOST:PORT, such as 127.0.0.1:9092")
    return Place(host, int(port))


def _can_be_a_name(host: str) -> bool:
    """Return whether no label of the name is empty or longer than 63 characters."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:
        return False


def places_of(servers: str | Sequence[str], where: str) -> list[Place]:
    """Return several addresses from a list, or from a text with commas.

    Raises:
        InputError: if there is none, or one has another form.
    """
    listed = servers.split(",") if isinstance(servers, str) else list(servers)
    if not listed:
        raise InputError(where, "none", "HOST:PORT, such as 127.0.0.1:9092")
    return [place_of(text.strip(), where) for text in listed]

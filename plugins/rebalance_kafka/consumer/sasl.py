"""The client's part of the SASL mechanisms PLAIN (RFC 4616) and SCRAM (RFC 5802), as exchanges of bytes."""

import hmac
from base64 import b64encode
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import TypeAlias

from coordinator_core.errors import ProtocolError
from rebalance_kafka.scram import HASHES, LEAST_ITERATIONS, Keys, decoded, escaped, fields_of

Steps: TypeAlias = Generator[bytes, bytes, None]
"""Yields the messages to send and receives the broker's; returns when both sides are authenticated."""

MOST_ITERATIONS = 10_000_000
"""It bounds the time that a broker can cost this client."""


@dataclass(frozen=True)
class Login:
    """The credentials of a client. ``mechanism`` is one of `rebalance_kafka.scram.MECHANISMS`."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    def steps(self, make_nonce: Callable[[], str] = lambda: token_urlsafe(24)) -> Steps:
        """Start a new exchange.

        Raises:
            ProtocolError: while running, if the broker cannot prove that it knows the password.
        """
        if self.mechanism == "PLAIN":
            return _plain(self)
        return _scram(self, HASHES[self.mechanism], make_nonce())


def _plain(login: Login) -> Steps:
    yield f"\0{login.username}\0{login.password}".encode()


def _scram(login: Login, hash_name: str, nonce: str) -> Steps:
    first = f"n={escaped(login.username)},r={nonce}"
    challenge = yield f"n,,{first}".encode()
    fields = _fields(challenge)
    salt, iterations = decoded(fields.get("s", "")), fields.get("i", "")
    if not fields.get("r", "").startswith(nonce) or not salt or not iterations.isdecimal():
        raise ProtocolError("broker", "a SCRAM challenge without nonce, salt or iterations")
    if not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        expected = f"{LEAST_ITERATIONS:,} to {MOST_ITERATIONS:,}"
        raise ProtocolError("broker", f"a SCRAM challenge of {iterations} iterations, expected {expected}")
    keys = Keys.of(hash_name, login.password, salt, int(iterations))
    last = f"c={b64encode(b'n,,').decode()},r={fields['r']}"
    signed = ",".join((first, challenge.decode(), last)).encode()
    verdict = yield f"{last},p={b64encode(keys.proof(signed)).decode()}".encode()
    fields = _fields(verdict)
    if "e" in fields:
        raise ProtocolError("broker", f"SCRAM: {fields['e']}")
    if not hmac.compare_digest(decoded(fields.get("v", "")), keys.signature(signed)):
        raise ProtocolError("broker", "its SCRAM signature is wrong, so it does not know the password")


def _fields(message: bytes) -> dict[str, str]:
    try:
        return fields_of(message.decode())
    except UnicodeDecodeError:
        raise ProtocolError("broker", "a SCRAM message that is not UTF-8") from None

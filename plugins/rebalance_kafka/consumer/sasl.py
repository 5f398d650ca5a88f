"""The SASL mechanisms PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677), as exchanges of bytes."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import TypeAlias

from coordinator_core.errors import ProtocolError

Steps: TypeAlias = Generator[bytes, bytes, None]
"""Yields the messages to send and receives the broker's; returns when both sides are authenticated."""

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_HASHES)
LEAST_ITERATIONS, MOST_ITERATIONS = 4_096, 10_000_000
"""The minimum is SCRAM's. The maximum bounds the time that a broker can cost this client."""


@dataclass(frozen=True)
class Login:
    """The credentials of a client. ``mechanism`` is one of MECHANISMS."""

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
        return _scram(self, _HASHES[self.mechanism], make_nonce())


def _plain(login: Login) -> Steps:
    yield f"\0{login.username}\0{login.password}".encode()


def _scram(login: Login, hash_name: str, nonce: str) -> Steps:
    def keyed(key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, hash_name).digest()

    name = login.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = yield f"n,,{first}".encode()
    fields = _fields(challenge)
    salt, iterations = _decoded(fields.get("s", "")), fields.get("i", "")
    if not fields.get("r", "").startswith(nonce) or not salt or not iterations.isdecimal():
        raise ProtocolError("broker", "a SCRAM challenge without nonce, salt or iterations")
    if not LEAST_ITERATIONS <= int(iterations) <= MOST_ITERATIONS:
        expected = f"{LEAST_ITERATIONS:,} to {MOST_ITERATIONS:,}"
        raise ProtocolError("broker", f"a SCRAM challenge of {iterations} iterations, expected {expected}")
    salted = hashlib.pbkdf2_hmac(hash_name, login.password.encode(), salt, int(iterations))
    last = f"c={b64encode(b'n,,').decode()},r={fields['r']}"
    signed = ",".join((first, challenge.decode(), last)).encode()
    client_key = keyed(salted, b"Client Key")
    signature = keyed(hashlib.new(hash_name, client_key).digest(), signed)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verdict = yield f"{last},p={b64encode(proof).decode()}".encode()
    fields = _fields(verdict)
    if "e" in fields:
        raise ProtocolError("broker", f"SCRAM: {fields['e']}")
    expected_proof = keyed(keyed(salted, b"Server Key"), signed)
    if not hmac.compare_digest(_decoded(fields.get("v", "")), expected_proof):
        raise ProtocolError("broker", "its SCRAM signature is wrong, so it does not know the password")


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise ProtocolError("broker", "a SCRAM message that is not UTF-8") from None
    return {part[0]: part[2:] for part in parts if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""

"""The formulas of SCRAM (RFC 5802, RFC 7677), which both sides of an exchange use."""

import hashlib
import hmac
from base64 import b64decode
from typing import NamedTuple, Self

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Mechanism -> the name of its hash."""

MECHANISMS = ("PLAIN", *HASHES)
"""The mechanisms of SASL that are spoken here."""

LEAST_ITERATIONS = 4_096


class Keys(NamedTuple):
    """The keys of a user, from a password. A server needs ``stored`` and ``server`` only."""

    hash: str
    client: bytes
    stored: bytes
    server: bytes

    @classmethod
    def of(cls, hash_name: str, password: str, salt: bytes, iterations: int) -> Self:
        """Derive the keys. This takes about a millisecond for a thousand iterations."""
        salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
        client = hmac.digest(salted, b"Client Key", hash_name)
        return cls(
            hash_name,
            client,
            hashlib.new(hash_name, client).digest(),
            hmac.digest(salted, b"Server Key", hash_name),
        )

    def proof(self, signed: bytes) -> bytes:
        """Return the proof that a client knows the password."""
        return self._masked(self.client, signed)

    def is_proof(self, proof: bytes, signed: bytes) -> bool:
        """Return whether a client has proved that it knows the password."""
        if len(proof) != len(self.stored):
            return False
        client = self._masked(proof, signed)
        return hmac.compare_digest(hashlib.new(self.hash, client).digest(), self.stored)

    def signature(self, signed: bytes) -> bytes:
        """Return the proof that a server knows the keys."""
        return hmac.digest(self.server, signed, self.hash)

    def _masked(self, key: bytes, signed: bytes) -> bytes:
        mask = hmac.digest(self.stored, signed, self.hash)
        return bytes(a ^ b for a, b in zip(key, mask, strict=True))


def fields_of(message: str) -> dict[str, str]:
    """Return the attributes of a message by their letters."""
    return {part[0]: part[2:] for part in message.split(",") if part[1:2] == "="}


def decoded(text: str) -> bytes:
    """Return the bytes of a text in base64, none if it is not base64."""
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""


def escaped(name: str) -> str:
    """Return a user name as messages have it."""
    return name.replace("=", "=3D").replace(",", "=2C")


def unescaped(name: str) -> str:
    """Return the user name of a message."""
    return name.replace("=2C", ",").replace("=3D", "=")

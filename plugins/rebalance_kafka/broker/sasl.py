"""The broker's part of SASL: the mechanisms PLAIN (RFC 4616) and SCRAM (RFC 5802), as exchanges of bytes."""

import hmac
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping
from secrets import token_bytes, token_urlsafe
from typing import NamedTuple, TypeAlias

from coordinator_core.errors import RebalanceLabError
from rebalance_kafka.scram import HASHES, LEAST_ITERATIONS, Keys, decoded, fields_of, unescaped

SALT_BYTES = 16
_FLAGS = ("n", "y")
"""The first letters of a client that does not bind the exchange to TLS."""


class LoginError(RebalanceLabError):
    """A client is not authenticated. The text is for the log of the broker and contains no password."""


class Step(NamedTuple):
    """A response to a client. ``user``: the name of the user, at the end."""

    reply: bytes
    user: str | None = None


Exchange: TypeAlias = Generator[Step, bytes, None]
"""Receives the messages of the client and yields the responses, after an empty first one.

Raises LoginError.
"""


class Credential(NamedTuple):
    """The keys of a user for one mechanism, with the parameters that they were derived with."""

    keys: Keys
    salt: bytes
    iterations: int


class Users:
    """The users of a broker, with their passwords."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = dict(passwords)
        self._credentials: dict[tuple[str, str], Credential] = {}

    def password(self, user: str) -> str | None:
        """Return the password of a user, None if there is no such user."""
        return self._passwords.get(user)

    def credential(self, user: str, hash_name: str) -> Credential | None:
        """Return the keys of a user, None if there is no such user."""
        password = self._passwords.get(user)
        if password is None:
            return None
        key = user, hash_name
        if key not in self._credentials:
            salt = token_bytes(SALT_BYTES)
            keys = Keys.of(hash_name, password, salt, LEAST_ITERATIONS)
            self._credentials[key] = Credential(keys, salt, LEAST_ITERATIONS)
        return self._credentials[key]

    def exchange(self, mechanism: str, make_nonce: Callable[[], str] = lambda: token_urlsafe(24)) -> Exchange:
        """Start an exchange with one of `rebalance_kafka.scram.MECHANISMS`."""
        exchange = _plain(self) if mechanism == "PLAIN" else _scram(self, HASHES[mechanism], make_nonce())
        next(exchange)
        return exchange


def _plain(users: Users) -> Exchange:
    message = yield Step(b"")
    parts = _text(message).split("\0")
    if len(parts) != 3:
        raise LoginError(f"{len(parts)} fields, expected 3")
    acting_as, user, password = parts
    known = users.password(user)
    if known is None:
        raise LoginError("an unknown user")
    if not hmac.compare_digest(known.encode(), password.encode()):
        raise LoginError(f"a wrong password of user {user!r}")
    if acting_as not in ("", user):
        raise LoginError(f"user {user!r} acts as another one")
    yield Step(b"", user)


def _scram(users: Users, hash_name: str, nonce: str) -> Exchange:
    first = _text((yield Step(b"")))
    flag, acting_as, bare = (*first.split(",", 2), "", "")[:3]
    fields = fields_of(bare)
    if flag not in _FLAGS or not fields.get("n") or not fields.get("r"):
        raise LoginError("a first message without user or nonce")
    user = unescaped(fields["n"])
    if unescaped(acting_as.removeprefix("a=")) not in ("", user):
        raise LoginError("a user acts as another one")
    credential = users.credential(user, hash_name)
    if credential is None:
        raise LoginError("an unknown user")
    both = fields["r"] + nonce
    challenge = f"r={both},s={b64encode(credential.salt).decode()},i={credential.iterations}"
    last = _text((yield Step(challenge.encode())))
    without, _, proof = last.rpartition(",p=")
    fields = fields_of(without)
    if fields.get("r") != both or decoded(fields.get("c", "")) != f"{flag},{acting_as},".encode():
        raise LoginError("a last message that does not belong to the first one")
    signed = ",".join((bare, challenge, without)).encode()
    if not credential.keys.is_proof(decoded(proof), signed):
        raise LoginError(f"a wrong password of user {user!r}")
    yield Step(f"v={b64encode(credential.keys.signature(signed)).decode()}".encode(), user)


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise LoginError("a message that is not UTF-8") from None

"""Settings of TLS and SASL, by Kafka's names.

``security.protocol``: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL; ``sasl.mechanism``: PLAIN, SCRAM-SHA-256 or
SCRAM-SHA-512, with ``sasl.username`` and ``sasl.password``, or both in a ``sasl.jaas.config``.
``ssl.ca.location``, ``ssl.certificate.location`` and ``ssl.key.location`` are PEM files, as in librdkafka.
``ssl.endpoint.identification.algorithm`` is https, or none for brokers whose certificate has another name.
"""

import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordinator_core.errors import InputError
from coordinator_core.reading.suggestions import close_to
from rebalance_kafka.consumer.sasl import Login
from rebalance_kafka.scram import MECHANISMS

PREFIXES = ("security.", "sasl.", "ssl.")
PROTOCOLS = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""Whether a protocol uses TLS, and whether it uses SASL."""

_TLS_NAMES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)
_LOGIN_NAMES = ("sasl.mechanism", "sasl.username", "sasl.password", "sasl.jaas.config")
NAMES = ("security.protocol", *_LOGIN_NAMES, *_TLS_NAMES)
_OTHER_NAMES = {"sasl.mechanisms": "sasl.mechanism"}
"""The names of librdkafka."""

_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_IN_JAAS = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Security:
    """The security of connections: ``tls`` or None, ``login`` or None."""

    tls: ssl.SSLContext | None = None
    login: Login | None = field(default=None, repr=False)


OPEN = Security()
"""Neither TLS nor SASL."""


def is_security(name: str) -> bool:
    """Return whether a setting belongs to TLS or SASL."""
    return name.startswith(PREFIXES)


def security_of(settings: Mapping[str, Any], where: str) -> Security:
    """Return the security that settings describe.

    Raises:
        InputError: if a setting is unknown, unused, missing or invalid. The message contains no password.
    """
    given = {_OTHER_NAMES.get(name, name): str(value) for name, value in settings.items()}
    for name in given:
        if name not in NAMES:
            hint = close_to(name, NAMES) or f": {', '.join(NAMES)}"
            raise InputError(where, repr(name), f"a setting of TLS or SASL that is known here{hint}")
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise InputError(f"{where}: security.protocol", repr(protocol), f"one of {', '.join(PROTOCOLS)}")
    has_tls, has_login = PROTOCOLS[protocol]
    unused = [] if has_tls else [name for name in _TLS_NAMES if name in given]
    unused += [] if has_login else [name for name in _LOGIN_NAMES if name in given]
    if unused:
        found = f"{unused[0]} with security.protocol {protocol}"
        raise InputError(where, found, "a security.protocol that has a place for it, such as SASL_SSL")
    return Security(
        _context(given, where) if has_tls else None,
        _login(given, where) if has_login else None,
    )


def read_properties(path: Path) -> dict[str, str]:
    """Read NAME=VALUE lines, as in Java's properties.

    Lines that begin with # or ! are comments. A \\ at the end of a line continues it on the next; elsewhere
    it escapes the next character.

    Raises:
        InputError: if the file cannot be read, or if a line is not NAME=VALUE.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(str(path), f"a file that cannot be read ({reason})", "lines NAME=VALUE") from None
    properties: dict[str, str] = {}
    for number, line in _whole_lines(text):
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise InputError(f"{path}: line {number}", "no NAME=VALUE", "such as security.protocol=SASL_SSL")
        properties[name.strip()] = _ESCAPED.sub(_unescaped, value.strip())
    return properties


def _whole_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines joined with their continuations, and the number of the first of them."""
    begun, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        stripped = line.strip()
        continues = (len(stripped) - len(stripped.rstrip("\\"))) % 2
        begun, first = begun + stripped[: len(stripped) - continues], first or number
        if not continues:
            yield first, begun
            begun, first = "", 0


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _CONTROLS.get(escape, escape)


def _login(given: Mapping[str, str], where: str) -> Login:
    mechanism = given.get("sasl.mechanism", "").upper()
    if mechanism not in MECHANISMS:
        found = repr(mechanism) if mechanism else "none"
        raise InputError(f"{where}: sasl.mechanism", found, f"one of {', '.join(MECHANISMS)}")
    in_jaas = {
        name: re.sub(r"\\(.)", r"\1", value)
        for name, value in _IN_JAAS.findall(given.get("sasl.jaas.config", ""))
    }
    credentials = {}
    for name in ("username", "password"):
        value = given.get(f"sasl.{name}", in_jaas.get(name, ""))
        if not value:
            expected = f"sasl.{name}, or {name}=... in sasl.jaas.config"
            raise InputError(where, f"no {name}", expected)
        credentials[name] = value
    return Login(mechanism, **credentials)


def _context(given: Mapping[str, str], where: str) -> ssl.SSLContext:
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("https", "none", ""):
        at = f"{where}: ssl.endpoint.identification.algorithm"
        raise InputError(at, repr(algorithm), "https or none")
    authority = given.get("ssl.ca.location")
    try:
        context = ssl.create_default_context(cafile=authority)
    except OSError as error:  # ssl.SSLError is one
        raise _unreadable(where, "ssl.ca.location", authority or "", error) from None
    context.check_hostname = algorithm == "https"
    certificate, key = given.get("ssl.certificate.location"), given.get("ssl.key.location")
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key, given.get("ssl.key.password", ""))
        except OSError as error:
            raise _unreadable(where, "ssl.certificate.location", certificate, error) from None
    elif key is not None:
        raise InputError(where, "ssl.key.location alone", "ssl.certificate.location with it")
    return context


def _unreadable(where: str, name: str, path: str, error: OSError) -> InputError:
    return InputError(f"{where}: {name}", f"{path} ({error.strerror or error})", "a readable PEM file")

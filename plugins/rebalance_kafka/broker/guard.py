"""The security of a broker: TLS, its users, and the settings of their clients."""

import logging
import ssl
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from coordinator_core.errors import InputError
from rebalance_kafka.broker.login import Login
from rebalance_kafka.broker.sasl import Users
from rebalance_kafka.scram import MECHANISMS

Tls: TypeAlias = bool | tuple[Path | str, Path | str]
"""Whether there is TLS, with a certificate made for the broker; or the PEM files of certificate and key."""

_LOCAL = ("localhost", "127.0.0.1", "::1")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
LOG = logging.getLogger(__name__)


class Guard:
    """What a client needs to be let in.

    - ``tls``: True makes a certificate, which needs the package trustme.
    - ``tls_client_ca``: a PEM file. Clients need a certificate of one of its authorities.
    - ``users``: name to password. Without users, there is no authentication.
    - ``mechanisms``: of SASL. The first is the one of `settings`.

    Raises:
        InputError: if one of them cannot be used. The message contains no password.
    """

    def __init__(
        self,
        *,
        tls: Tls,
        tls_client_ca: Path | str | None,
        users: Mapping[str, str] | None,
        mechanisms: Sequence[str],
    ) -> None:
        self._tls, self._tls_client_ca = tls, tls_client_ca
        if tls_client_ca is not None and not tls:
            raise InputError("tls_client_ca", "no TLS", "a certificate of the broker with it")
        for name, password in (users or {}).items():
            if not name or not password or "\0" in name + password:
                raise InputError("users", f"user {name!r}", "a name and a password, not empty, without NUL")
        unknown = [mechanism for mechanism in mechanisms if mechanism not in MECHANISMS]
        if unknown or not mechanisms:
            found = repr(unknown[0]) if unknown else "none"
            raise InputError("mechanisms", found, f"one of {', '.join(MECHANISMS)}")
        self._passwords = dict(users or {})
        self._users, self._mechanisms = Users(self._passwords), tuple(mechanisms)
        self._folder: TemporaryDirectory[str] | None = None
        self._authority: str | None = None
        self._context = None if isinstance(tls, bool) else _context(*tls, tls_client_ca)

    def open(self, hosts: Iterable[str]) -> ssl.SSLContext | None:
        """Return the context for connections, None without TLS. A certificate is made for these hosts.

        Raises:
            InputError: if a certificate is wanted and trustme is not installed.
        """
        if isinstance(self._tls, tuple):
            self._authority = str(self._tls[0])
        elif self._tls:
            self._folder = TemporaryDirectory(prefix="rebalance-lab-")
            folder = Path(self._folder.name)
            self._authority = str(folder / "ca.pem")
            certificate = _made(folder, hosts)
            self._context = _context(certificate, certificate, self._tls_client_ca)
        return self._context

    def close(self) -> None:
        """Delete the certificate that was made."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def login(self) -> Login | None:
        """Return the authentication of a new connection, None without users."""
        return Login(self._users, self._mechanisms) if self._passwords else None

    def settings(self, user: str | None) -> dict[str, str]:
        """Return the settings of a client by Kafka's names. ``user`` None: the first user.

        Raises:
            InputError: if there is no such user.
        """
        protocol = f"{'SASL_' if self._passwords else ''}{'SSL' if self._tls else 'PLAINTEXT'}"
        settings = {"security.protocol": protocol}
        if self._authority is not None:
            settings["ssl.ca.location"] = self._authority
        if user is not None and user not in self._passwords:
            known = ", ".join(self._passwords) or "none"
            raise InputError("user", repr(user), f"a user of the broker ({known})")
        if self._passwords:
            name = next(iter(self._passwords)) if user is None else user
            settings |= {"sasl.mechanism": self._mechanisms[0]}
            settings |= {"sasl.username": name, "sasl.password": self._passwords[name]}
        return settings

    def arguments(self, user: str | None) -> dict[str, Any]:
        """Return the settings of a client as arguments of kafka-python and aiokafka.

        Raises:
            InputError: if there is no such user.
        """
        settings = self.settings(user)
        arguments: dict[str, Any] = {"security_protocol": settings["security.protocol"]}
        if "ssl.ca.location" in settings:
            arguments["ssl_context"] = ssl.create_default_context(cafile=settings["ssl.ca.location"])
        if "sasl.mechanism" in settings:
            arguments["sasl_mechanism"] = settings["sasl.mechanism"]
            arguments["sasl_plain_username"] = settings["sasl.username"]
            arguments["sasl_plain_password"] = settings["sasl.password"]
        return arguments


def _made(folder: Path, hosts: Iterable[str]) -> Path:
    """Make an authority and a certificate. Return the file of the certificate and its key."""
    try:
        import trustme
    except ImportError:
        expected = "the package trustme, or the files of a certificate and its key"
        raise InputError("tls", "no package that makes a certificate", expected) from None
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    path = folder / "broker.pem"
    certificate = authority.issue_cert(*dict.fromkeys((*_LOCAL, *hosts)))
    certificate.private_key_and_cert_chain_pem.write_to_path(str(path))
    return path


class _Connection(ssl.SSLObject):
    """TLS of one connection. It logs a failure of the handshake, which asyncio does not."""

    def do_handshake(self) -> None:
        """Negotiate with the client, as far as its bytes allow."""
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            hint = ", expected security.protocol=SSL or SASL_SSL" if error.reason in _NO_TLS else ""
            LOG.warning("a connection is closed: TLS: %s%s", error.reason or error, hint)
            raise


def _context(certificate: Path | str, key: Path | str, authority: Path | str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sslobject_class = _Connection
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        files = ", ".join(dict.fromkeys((str(certificate), str(key))))
        found, expected = f"{files} ({error.strerror or error})", "a certificate and its key as PEM files"
        raise InputError("tls", found, expected) from None
    if authority is not None:
        try:
            context.load_verify_locations(authority)
        except OSError as error:
            found = f"{authority} ({error.strerror or error})"
            raise InputError("tls_client_ca", found, "certificates as a PEM file") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context

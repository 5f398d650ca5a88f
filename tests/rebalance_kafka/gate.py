"""A proxy before a broker that authenticates clients by TLS, SASL or both, and then forwards their bytes."""

import asyncio
import hashlib
import hmac
import ssl
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from kio.schema.errors import ErrorCode as Wire

from rebalance_kafka.wire.apis import ROWS, Api, LoginApi
from rebalance_kafka.wire.frames import _request_reader, encode_response, head_of
from tests.rebalance_kafka.live import broker

USER, PASSWORD = "ada, of = fame", "lace\u2019s secret"
ITERATIONS, SALT, NONCE = 4_096, b"pepper", "of-the-broker"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class Gate:
    """The proxy. ``mechanisms`` are accepted. ``broker`` is the address of the broker, once it is known."""

    def __init__(self, *mechanisms: str, tls: ssl.SSLContext | None = None, forged: bool = False) -> None:
        self.mechanisms, self.broker, self._tls, self._forged = mechanisms, "", tls, forged
        self.address, self.let_in, self.seen = "", 0, list[bytes]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._come, "127.0.0.1", 0, ssl=self._tls)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    async def _come(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.mechanisms:
                await self._authenticate(reader, writer)
            if not self.broker:
                return
            self.let_in += 1
            host, port = self.broker.split(":")
            there, back = await asyncio.open_connection(host, int(port))
            both = asyncio.gather(_pipe(reader, back), _pipe(there, writer))
            await both
        except (ConnectionError, asyncio.IncompleteReadError, PermissionError):
            pass
        finally:
            writer.close()

    async def _authenticate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests until the client is authenticated.

        Raises:
            PermissionError: if authentication fails.
        """
        talk: Any = None
        while True:
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            self.seen.append(frame)
            head = head_of(frame)
            if head.key == Api.API_VERSIONS:
                keys = tuple(
                    {"api_key": int(api), "min_version": row.versions[0], "max_version": row.versions[1]}
                    for api, row in ROWS.items()
                )
                answer = {"error_code": Wire.none, "api_keys": keys}
                writer.write(encode_response(Api.API_VERSIONS, head.version, head.correlation_id, answer))
                continue
            api = LoginApi(head.key)
            _, body = _request_reader(api, head.version)(frame)
            if api is LoginApi.SASL_HANDSHAKE:
                known = body.mechanism in self.mechanisms
                error = Wire.none if known else Wire.unsupported_sasl_mechanism
                answer = {"error_code": error, "mechanisms": self.mechanisms}
                writer.write(encode_response(api, head.version, head.correlation_id, answer))
                if not known:
                    raise PermissionError
                talk = _plain() if body.mechanism == "PLAIN" else self._scram(HASHES[body.mechanism])
                next(talk)
                continue
            reply, done = talk.send(body.auth_bytes)
            error = Wire.sasl_authentication_failed if reply is None else Wire.none
            message = None if reply is not None else "nobody of that name and password"
            answer = {"error_code": error, "error_message": message, "auth_bytes": reply or b""}
            writer.write(encode_response(api, head.version, head.correlation_id, answer))
            if reply is None:
                raise PermissionError
            if done:
                return

    def _scram(self, name: str) -> Any:
        """The server's part of SCRAM (RFC 5802). The server stores keys that come from the password."""

        def keyed(key: bytes, message: bytes) -> bytes:
            return hmac.digest(key, message, name)

        password = "something else" if self._forged else PASSWORD
        salted = hashlib.pbkdf2_hmac(name, password.encode(), SALT, ITERATIONS)
        stored = hashlib.new(name, keyed(salted, b"Client Key")).digest()
        first = (yield).decode()
        assert first.startswith("n,,n=")
        user, nonce = first.removeprefix("n,,n=").split(",r=")
        known = user.replace("=2C", ",").replace("=3D", "=") == USER
        challenge = f"r={nonce}{NONCE},s={b64encode(SALT).decode()},i={ITERATIONS}"
        last = (yield (challenge.encode() if known else None), False).decode()
        without, proof = last.rsplit(",p=", 1)
        message = ",".join((first.removeprefix("n,,"), challenge, without)).encode()
        signature = keyed(stored, message)
        key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        good = self._forged or hashlib.new(name, key).digest() == stored
        verified = b64encode(keyed(keyed(salted, b"Server Key"), message)).decode()
        yield (f"v={verified}".encode() if good else None), True


@asynccontextmanager
async def guarded(*mechanisms: str, tls: ssl.SSLContext | None = None) -> AsyncIterator[Any]:
    """A proxy and the broker behind it, which advertises the address of the proxy."""
    async with Gate(*mechanisms, tls=tls) as gate, broker({"t": 1}, advertise=gate.address) as kafka:
        gate.broker = kafka.address
        yield gate, kafka


def _plain() -> Any:
    reply = yield
    yield (b"" if reply == f"\0{USER}\0{PASSWORD}".encode() else None), True


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()

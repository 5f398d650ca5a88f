"""The broker's side of SASL, frame by frame, and TLS and SASL with clients of other projects."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as Wire

from coordinator_core.errors import InputError, ProtocolError
from rebalance_kafka import EmbeddedBroker
from rebalance_kafka.broker.login import MOST_FRAME_BYTES, Login
from rebalance_kafka.broker.sasl import LoginError, Users
from rebalance_kafka.consumer import sasl
from rebalance_kafka.scram import MECHANISMS
from rebalance_kafka.wire.apis import Api
from rebalance_kafka.wire.frames import decode_response
from tests.examples import scaled
from tests.rebalance_kafka.damage import damaged, request
from tests.rebalance_kafka.live import ask, broker, run
from tests.rebalance_kafka.served import Served
from tests.rebalance_kafka.stand import Line, within
from tests.rebalance_lab.cli.commands import the_error

USER, PASSWORD = "ada", "lace's secret"
USERS = Users({USER: PASSWORD, "bob": "other"})


class Client:
    """Requests of a client that is not authenticated, without a network."""

    def __init__(self, *mechanisms):
        self.login = Login(USERS, mechanisms or MECHANISMS)
        self.fault = None

    def ask(self, api, version, **values):
        """Return the response, None if there is none. Keep the fault."""
        answer = self.login.receive(request(api, version, **values)[4:])
        self.fault = answer.fault
        if answer.frame is None:
            return None
        read_as = 0 if answer.frame[8:10] == b"\0\x23" and api is Api.API_VERSIONS else version
        return decode_response(api, read_as, answer.frame[4:])[1]

    def handshake(self, mechanism="PLAIN", version=1):
        return self.ask(Api.SASL_HANDSHAKE, version, mechanism=mechanism)

    def authenticate(self, message, version=2):
        return self.ask(Api.SASL_AUTHENTICATE, version, auth_bytes=message)


def plain(user=USER, password=PASSWORD, acting_as=""):
    return "\0".join((acting_as, user, password)).encode()


# --- states


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_asks_for_versions_and_authenticates(version):
    client = Client()
    assert client.ask(Api.API_VERSIONS, 3).error_code == 0
    assert client.handshake().mechanisms == MECHANISMS
    response = client.authenticate(plain(), version)
    assert (response.error_code, response.auth_bytes) == (0, b"")
    assert (client.login.user, client.fault) == (USER, None)


def test_an_unknown_version_of_api_versions_may_be_asked_for_first():
    client = Client()
    frame = request(Api.API_VERSIONS, 3)
    answer = client.login.receive(frame[4:6] + b"\0\x63" + frame[8:])
    assert decode_response(Api.API_VERSIONS, 0, answer.frame[4:])[1].error_code is Wire.unsupported_version
    assert client.ask(Api.API_VERSIONS, 3).error_code == 0


@pytest.mark.parametrize(
    ("before", "api"),
    [
        ([], Api.METADATA),
        ([], Api.SASL_AUTHENTICATE),
        ([Api.API_VERSIONS], Api.API_VERSIONS),
        ([Api.API_VERSIONS], Api.JOIN_GROUP),
        ([Api.SASL_HANDSHAKE], Api.API_VERSIONS),
        ([Api.SASL_HANDSHAKE], Api.PRODUCE),
    ],
)
def test_another_request_before_authentication_ends_the_connection(before, api):
    client = Client()
    for earlier in before:
        client.ask(earlier, 1)
        assert client.fault is None
    assert client.ask(api, 3 if api is Api.PRODUCE else 1) is None
    assert f"API {int(api)} in version" in client.fault
    assert client.login.user is None


def test_a_second_handshake_is_an_illegal_state():
    client = Client()
    client.handshake()
    assert client.handshake().error_code is Wire.illegal_sasl_state
    assert "before authentication" in client.fault


def test_an_unsupported_mechanism_is_answered_with_the_supported_ones():
    client = Client("SCRAM-SHA-512")
    response = client.handshake("PLAIN")
    assert (response.error_code, response.mechanisms) == (
        Wire.unsupported_sasl_mechanism,
        ("SCRAM-SHA-512",),
    )
    assert client.fault == "SASL 'PLAIN', expected one of SCRAM-SHA-512"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_messages_without_headers_follow_version_0_of_the_handshake(mechanism):
    client = Client()
    client.handshake(mechanism, version=0)
    steps = sasl.Login(mechanism, USER, PASSWORD).steps()
    message = next(steps)
    while client.login.user is None:
        answer = client.login.receive(message)
        assert int.from_bytes(answer.frame[:4], "big") == len(answer.frame) - 4
        try:
            message = steps.send(answer.frame[4:])
        except StopIteration:
            break
    assert client.login.user == USER


def test_a_wrong_password_without_headers_ends_the_connection():
    client = Client()
    client.handshake(version=0)
    answer = client.login.receive(plain(password="wrong"))
    assert answer == (None, f"SASL PLAIN: a wrong password of user {USER!r}")


def test_a_broken_request_is_no_answer():
    with pytest.raises(ProtocolError):
        Client().login.receive(b"\0\x11\0\1")


@settings(max_examples=scaled(100))
@given(random=st.randoms(use_true_random=False), mechanism=st.sampled_from(MECHANISMS), at=st.integers(0, 99))
def test_damaged_frames_authenticate_nobody(random, mechanism, at):
    """Each is answered, or ends the connection."""
    client = Client()
    client.handshake(mechanism, version=random.randrange(2))
    message = bytearray(plain() if mechanism == "PLAIN" else b"n,,n=ada,r=nonce")
    message[at % len(message)] ^= 1 + random.randrange(255)
    exchanged = request(Api.SASL_AUTHENTICATE, random.randrange(3), auth_bytes=bytes(message))[4:]
    for frame in (exchanged, bytes(message), damaged(random)[4:]):
        try:
            fault = client.login.receive(frame).fault
        except ProtocolError:
            break
        if fault is not None:
            break
    assert client.login.user is None


# --- mechanisms


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (plain(password="wrong"), "a wrong password of user 'ada'"),
        (plain(password=""), "a wrong password of user 'ada'"),
        (plain(user="wrong"), "an unknown user"),
        (plain(acting_as="bob"), "user 'ada' acts as another one"),
        (b"ada\0secret", "2 fields, expected 3"),
        (b"\xff", "a message that is not UTF-8"),
    ],
)
def test_a_client_that_is_not_authenticated_learns_no_reason(message, found):
    client = Client()
    client.handshake()
    response = client.authenticate(message)
    assert (response.error_code, response.auth_bytes) == (Wire.sasl_authentication_failed, b"")
    assert response.error_message == "there is no user of that name and password"
    assert client.fault == f"SASL PLAIN: {found}"
    assert client.login.user is None


def test_a_user_may_act_as_himself():
    exchange = USERS.exchange("PLAIN")
    assert exchange.send(plain(acting_as=USER)).user == USER


def scram(change):
    """Send the messages of our client, the last one changed."""
    exchange = USERS.exchange("SCRAM-SHA-256")
    steps = sasl.Login("SCRAM-SHA-256", USER, PASSWORD).steps()
    last = steps.send(exchange.send(next(steps)).reply).decode()
    return exchange.send(change(last).encode())


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda last: last[:-4] + "AAA=", "a wrong password"),
        (lambda last: last.split(",p=")[0], "does not belong to the first"),
        (lambda last: last.split(",p=")[0] + ",p=", "a wrong password"),
        (lambda last: last.replace("c=biws", "c=eSws"), "does not belong to the first"),
        (lambda last: last.replace(",r=", ",r=x"), "does not belong to the first"),
    ],
)
def test_a_changed_scram_exchange_fails(change, found):
    with pytest.raises(LoginError, match=found):
        scram(change)


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("p=tls-unique,,n=ada,r=x", "without user or nonce"),
        ("n,,n=,r=x", "without user or nonce"),
        ("n,,n=ada", "without user or nonce"),
        ("", "without user or nonce"),
        ("n,a=bob,n=ada,r=x", "acts as another"),
        ("n,,n=eve,r=x", "an unknown user"),
    ],
)
def test_a_wrong_first_message_of_scram_fails(first, found):
    with pytest.raises(LoginError, match=found):
        USERS.exchange("SCRAM-SHA-256").send(first.encode())


# --- a broker


def test_a_broker_without_sasl_refuses_an_authentication():
    async def work():
        async with broker() as kafka:
            handshake = await ask(kafka.address, Api.SASL_HANDSHAKE, 1, mechanism="PLAIN")
            assert (handshake.error_code, handshake.mechanisms) == (Wire.illegal_sasl_state, [])
            refused = await ask(kafka.address, Api.SASL_AUTHENTICATE, 2, auth_bytes=plain())
            assert (refused.error_code, refused.auth_bytes) == (Wire.illegal_sasl_state, b"")

    run(work())


def test_a_large_request_before_authentication_ends_the_connection(caplog):
    async def work():
        async with broker(users={USER: PASSWORD}) as kafka:
            line = await Line.to(kafka.address)
            line.writer.write((MOST_FRAME_BYTES + 1).to_bytes(4, "big"))
            assert await line.rest() == b""
            await line.close()

    run(work())
    assert f"expected {MOST_FRAME_BYTES:,} at most" in caplog.text


@pytest.mark.parametrize("tls", [False, True])
def test_a_pipelined_request_after_the_exchange_is_answered(tls):
    """The last frame of the exchange and the first request may arrive together."""

    async def work():
        async with broker(users={USER: PASSWORD}, tls=tls) as kafka:
            host, port = kafka.address.split(":")
            context = kafka.client_arguments().get("ssl_context")
            line = Line(*await asyncio.open_connection(host, int(port), ssl=context))
            frames = [
                request(Api.SASL_HANDSHAKE, 1, mechanism="PLAIN"),
                request(Api.SASL_AUTHENTICATE, 2, auth_bytes=plain()),
                request(Api.METADATA, 9, topics=None),
            ]
            line.writer.write(b"".join(frames))
            *_, answer = [await within(line.frame()) for _ in frames]
            _, metadata = decode_response(Api.METADATA, 9, answer)
            assert [topic.name for topic in metadata.topics] == ["t"]
            await line.close()

    run(work())


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"users": {"": "secret"}}, "users: found user ''"),
        ({"users": {"ada": ""}}, "users: found user 'ada'"),
        ({"users": {"ada": "secret\0"}}, "users: found user 'ada'"),
        ({"mechanisms": ("GSSAPI",)}, "mechanisms: found 'GSSAPI', expected one of PLAIN"),
        ({"mechanisms": ()}, "mechanisms: found none"),
        ({"tls": ("no.pem", "no.key")}, "tls: found no.pem, no.key (No such file"),
        ({"tls": ("no.pem", "no.pem")}, "tls: found no.pem (No such file"),
        ({"tls_client_ca": "ca.pem"}, "tls_client_ca: found no TLS"),
    ],
)
def test_options_that_cannot_be_used_are_an_error(options, found):
    with pytest.raises(InputError) as refused:
        EmbeddedBroker(**options)
    assert found in str(refused.value)
    assert "secret" not in str(refused.value)


def test_settings_of_an_unknown_user_are_an_error():
    async def work():
        async with broker(users={USER: PASSWORD}) as kafka:
            with pytest.raises(InputError, match=r"'eve', expected a user of the broker \(ada\)"):
                kafka.client_settings("eve")

    run(work())


# --- the command


@pytest.mark.slow
def test_serve_takes_a_certificate_and_users(tmp_path):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    issued = authority.issue_cert("127.0.0.1")
    (certificate,) = issued.cert_chain_pems
    certificate.write_to_path(tmp_path / "broker.pem")
    issued.private_key_pem.write_to_path(tmp_path / "broker.key")
    options = ("--tls-certificate", tmp_path / "broker.pem", "--tls-key", tmp_path / "broker.key")
    settings = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": "a=b",
    }
    with Served("--topic", "orders=3", "--user", f"{USER}=a=b", *options) as served:
        confluent_kafka = pytest.importorskip("confluent_kafka")
        client = confluent_kafka.Producer({"bootstrap.servers": served.address(), **settings})
        assert len(client.list_topics(timeout=60).topics["orders"].partitions) == 3
        served.terminate()
        assert served.ended() == (0, "", "stopping ...\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--user", "secret"), "--user: found a text without '=', expected NAME=PASSWORD"),
        (("--user", "ada=secret", "--user", "ada=x"), "--user: found 'ada' twice"),
        (("--user", "ada="), "users: found user 'ada'"),
        (("--user", "ada=secret", "--mechanism", "OAUTHBEARER"), "mechanisms: found 'OAUTHBEARER'"),
        (("--tls-key", "key.pem"), "--tls-key: found no certificate"),
        (("--tls-certificate", "no.pem"), "tls: found no.pem"),
    ],
)
def test_wrong_options_of_serve_are_one_error(lab, options, message):
    error = the_error(lab("serve", "--listen", "127.0.0.1:0", *options))
    assert message in error
    assert "secret" not in error

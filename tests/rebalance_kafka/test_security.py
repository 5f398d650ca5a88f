"""TLS and SASL of clients: settings, messages, and consumers and snapshots on a broker that requires them."""

import asyncio
from contextlib import nullcontext, suppress

import pytest
import trustme
from aiokafka import AIOKafkaProducer

from coordinator_core.client.config import ClientConfig
from coordinator_core.errors import InputError, ProtocolError, RebalanceLabError
from rebalance_kafka.addresses import places_of
from rebalance_kafka.consumer.admin_client import AdminClient
from rebalance_kafka.consumer.sasl import Login
from rebalance_kafka.consumer.security import NAMES, is_security, read_properties, security_of
from rebalance_kafka.scram import MECHANISMS, Keys
from rebalance_kafka.snapshot import snapshot
from tests.rebalance_kafka.live import broker, member, polled, run, settled, values
from tests.rebalance_lab.cli.commands import in_a_process

USER, PASSWORD = "ada, of = fame", "lace\u2019s secret"
REFUSED = "there is no user of that name and password"


def guarded(*mechanisms, **options):
    """A broker that authenticates with SASL if there are mechanisms."""
    if mechanisms:
        options |= {"users": {USER: PASSWORD}, "mechanisms": mechanisms}
    return broker({"t": 1}, **options)


async def wrote(kafka, *values):
    """Write records with aiokafka."""
    producer = AIOKafkaProducer(bootstrap_servers=kafka.address, **kafka.client_arguments())
    await producer.start()
    for value in values:
        await producer.send_and_wait("t", value, partition=0)
    await producer.stop()


def login(mechanism, protocol="SASL_PLAINTEXT", **other):
    settings = {"sasl.username": USER, "sasl.password": PASSWORD} | other
    return {"security.protocol": protocol, "sasl.mechanism": mechanism, **settings}


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority, tmp_path_factory):
    file = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(file)
    return str(file)


@pytest.fixture(scope="module")
def certified(authority, tmp_path_factory):
    """Return a function that makes a certificate, as the argument ``tls`` of a broker."""

    def make(name="127.0.0.1"):
        file = tmp_path_factory.mktemp("tls") / "broker.pem"
        authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(file)
        return file, file

    return make


# --- SCRAM, against the example of its RFC


def test_scram_sends_the_messages_of_rfc_7677():
    steps = Login("SCRAM-SHA-256", "user", "pencil").steps(lambda: "rOprNGfwEbeRWgbNEkqO")
    assert next(steps) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = steps.send(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert said == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    with pytest.raises(StopIteration):
        steps.send(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


CHALLENGE = {"r": "mine+yours", "s": "c2FsdA==", "i": "4096"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"r": "yours"},
        {"s": ""},
        {"s": "not base64!"},
        {"i": "4095"},
        {"i": "many"},
        {"i": "100000000"},
    ],
)
def test_an_invalid_challenge_is_refused(wrong):
    steps = Login("SCRAM-SHA-512", "u", "p").steps(lambda: "mine")
    next(steps)
    with pytest.raises(ProtocolError, match="SCRAM challenge"):
        steps.send(",".join(f"{k}={v}" for k, v in {**CHALLENGE, **wrong}.items()).encode())


@pytest.mark.parametrize("last", [b"v=AAAA", b"v=?", b"e=other-error", b"", b"\xff"])
def test_a_broker_without_proof_of_the_password_is_refused(last):
    steps = Login("SCRAM-SHA-256", "u", "p").steps(lambda: "mine")
    next(steps)
    steps.send(",".join(f"{k}={v}" for k, v in CHALLENGE.items()).encode())
    with pytest.raises(ProtocolError):
        steps.send(last)


# --- on a broker that requires them


@pytest.mark.parametrize("tls", [False, True], ids=["bare", "tls"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_authenticated_consumer_reads_and_commits(mechanism, tls):
    async def work():
        async with guarded(mechanism, tls=tls) as kafka:
            await wrote(kafka, b"0")
            settings = kafka.client_settings()
            async with member(kafka, settings=settings) as consumer:
                assert await values(consumer, 1) == [b"0"]
                await consumer.commit()
                places = places_of(kafka.address, "broker")
                async with AdminClient(places, security=security_of(settings, "here")) as admin:
                    assert (await snapshot(admin, "g")).strategy == "cooperative-sticky"

    run(work())


def test_a_broker_can_require_a_client_certificate(authority, certified, ca_file, tmp_path):
    file = tmp_path / "client.pem"
    authority.issue_cert("ada@example.org").private_key_and_cert_chain_pem.write_to_path(file)

    async def work():
        async with guarded(tls=certified(), tls_client_ca=ca_file) as kafka:
            settings = {"security.protocol": "SSL", "ssl.ca.location": ca_file}
            async with member(kafka, settings=settings) as nobody:
                with suppress(RebalanceLabError):  # or the connection is reset before the alert is read
                    await polled(nobody, until=lambda _: nobody.last_disconnect)
                assert nobody.assignment == ()
            shown = settings | {"ssl.certificate.location": str(file)}
            async with member(kafka, settings=shown) as consumer:
                await settled(consumer, partitions=1)

    run(work())


@pytest.mark.parametrize(("algorithm", "let_in"), [("https", False), ("none", True)])
def test_another_name_is_accepted_only_without_identification(algorithm, let_in, certified, ca_file):
    async def work():
        async with guarded(tls=certified("elsewhere.example.org")) as kafka:
            settings = {
                "security.protocol": "SSL",
                "ssl.ca.location": ca_file,
                "ssl.endpoint.identification.algorithm": algorithm,
            }
            async with member(kafka, settings=settings) as consumer:
                with nullcontext() if let_in else pytest.raises(RebalanceLabError, match="certificate"):
                    await polled(consumer, until=lambda _: consumer.assignment)
                assert bool(consumer.assignment) == let_in

    run(work())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("wrong", ["sasl.username", "sasl.password"])
def test_a_refused_consumer_raises_once_and_does_not_retry(mechanism, wrong, caplog):
    async def work():
        async with guarded(mechanism) as kafka:
            async with member(kafka, settings=login(mechanism, **{wrong: "nonsense"})) as consumer:
                with pytest.raises(RebalanceLabError, match=REFUSED):
                    await polled(consumer, until=lambda _: False)
                refusals = len(caplog.messages)
                await asyncio.sleep(0.1)
                with pytest.raises(RebalanceLabError, match=REFUSED):
                    await consumer.poll(0)
            assert len(caplog.messages) == refusals

    run(work())
    found = "an unknown user" if wrong == "sasl.username" else f"a wrong password of user {USER!r}"
    assert set(caplog.messages) == {f"a connection is closed: SASL {mechanism}: {found}"}


def test_the_error_of_an_unsupported_mechanism_lists_the_supported_ones():
    async def work():
        async with guarded("SCRAM-SHA-256", "SCRAM-SHA-512") as kafka:
            with pytest.raises(
                ProtocolError, match="does not support PLAIN, but SCRAM-SHA-256, SCRAM-SHA-512"
            ):
                await error_at(kafka.address, login("PLAIN"))

    run(work())


def test_a_broker_with_a_forged_proof_is_refused(monkeypatch):
    monkeypatch.setattr(Keys, "is_proof", lambda *_: True)

    async def work():
        async with guarded("SCRAM-SHA-256") as kafka:
            with pytest.raises(ProtocolError, match="does not know the password"):
                await error_at(kafka.address, login("SCRAM-SHA-256", **{"sasl.password": "another"}))

    run(work())


def test_an_authentication_failure_is_raised_at_once_even_with_several_brokers():
    async def work():
        async with guarded("PLAIN") as kafka, guarded("PLAIN") as other:
            places = places_of(f"{kafka.address},{other.address}", "brokers")
            settings = login("PLAIN", **{"sasl.password": "x"})
            async with AdminClient(places, security=security_of(settings, "here")) as admin:
                with pytest.raises(ProtocolError, match=REFUSED):
                    async with asyncio.timeout(10):
                        await admin.metadata()
            assert other.connections == 0

    run(work())


# --- settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"security.protocol": "TLS"},
            "found 'TLS', expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ({"sasl.mechanism": "PLAIN"}, "sasl.mechanism with security.protocol PLAINTEXT"),
        ({"ssl.ca.location": "x", "security.protocol": "SASL_PLAINTEXT"}, "ssl.ca.location with"),
        (login("GSSAPI"), "found 'GSSAPI', expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism: found none"),
        (login("PLAIN", **{"sasl.username": ""}), "no username"),
        (login("PLAIN", **{"sasl.password": ""}), "no password"),
        ({"security.protcol": "SSL"}, "did you mean 'security.protocol'?"),
        ({"ssl.truststore.location": "x.jks"}, "'ssl.truststore.location'"),
        ({"security.protocol": "SSL", "ssl.ca.location": "no.pem"}, "ssl.ca.location: found no.pem"),
        ({"security.protocol": "SSL", "ssl.key.location": "x"}, "ssl.key.location alone"),
        (
            {"security.protocol": "SSL", "ssl.certificate.location": "no.pem"},
            "ssl.certificate.location: found no.pem",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "some"},
            "found 'some', expected https or none",
        ),
    ],
)
def test_invalid_settings_are_refused(settings, said):
    with pytest.raises(InputError) as refused:
        security_of(settings, "here")
    assert said in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_an_invalid_ca_file_is_refused(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("not a certificate")
    with pytest.raises(InputError, match="readable PEM file"):
        security_of({"security.protocol": "SSL", "ssl.ca.location": str(file)}, "here")


def test_no_settings_are_no_security():
    found = security_of({}, "here")
    assert (found.tls, found.login) == (None, None)


def test_librdkafkas_name_and_javas_jaas_are_equal():
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="a\\"b";'
    settings = {"security.protocol": "sasl_plaintext", "sasl.mechanisms": "plain", "sasl.jaas.config": jaas}
    assert security_of(settings, "here").login == Login("PLAIN", "ada", 'a"b')


def test_a_password_is_not_shown():
    assert PASSWORD not in repr(security_of(login("PLAIN"), "here"))


def test_properties_are_read_as_java_reads_them(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text(
        "# ours\n\n! and this\nsecurity.protocol = SASL_SSL\nsasl.jaas.config=a \\\n   b=c;\nacks=all\n"
        r"sasl.password=a\=b\\c\u00e9\td"
    )
    assert read_properties(file) == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "a b=c;",
        "acks": "all",
        "sasl.password": "a=b\\c\u00e9\td",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol\n", "line 1: found no NAME=VALUE"),
        ("a=1\n=2\n", "line 2"),
        ("a=\\\n1\nb\n", "line 3"),
        (None, "cannot be read"),
    ],
)
def test_invalid_properties_are_refused(tmp_path, text, said):
    file = tmp_path / "client.properties"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_properties(file)
    assert said in str(refused.value)


def error_at(address, settings):
    """Return what an administration client reports that cannot connect."""

    async def ask():
        async with AdminClient(
            places_of(address, "here"), security=security_of(settings, "settings")
        ) as admin:
            await admin.groups()

    return ask()


@pytest.mark.parametrize(
    ("options", "settings", "found", "logged"),
    [
        ({"tls": True}, {}, r"security\.protocol", "expected security.protocol=SSL or SASL_SSL"),
        (
            {"users": {USER: PASSWORD}, "mechanisms": ("PLAIN",)},
            {},
            r"security\.protocol",
            "(security.protocol=SASL_PLAINTEXT or SASL_SSL)",
        ),
        ({}, login("PLAIN"), "it has no authentication, expected security", ""),
        (
            {},
            {"security.protocol": "SSL"},
            r"security\.protocol",
            "a TLS handshake, expected security.protocol=PLAINTEXT",
        ),
    ],
    ids=["plaintext to TLS", "none to SASL", "SASL to none", "TLS to plaintext"],
)
def test_another_protocol_than_the_brokers_is_reported_with_the_setting(
    options, settings, found, logged, ca_file, caplog
):
    async def work():
        async with broker({"t": 1}, **options) as kafka:
            own = {"ssl.ca.location": ca_file} if settings.get("security.protocol") == "SSL" else {}
            with pytest.raises(ProtocolError, match=found):
                await error_at(kafka.address, settings | own)

    run(work())
    assert logged in caplog.text


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (b"\x15\x03\x03\0\2\2\x46", "it speaks TLS, expected security.protocol=SSL or SASL_SSL"),
        (b"", "closed the connection before its first response: does it expect another security.protocol"),
    ],
)
def test_a_broker_that_does_not_answer_in_plaintext_is_reported_with_the_setting(start, found):
    async def refuse(reader, writer):
        await reader.read(1)
        writer.write(start)
        writer.close()

    async def work():
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ProtocolError, match=found):
                await error_at(f"127.0.0.1:{port}", {})

    run(work())


def test_other_settings_do_not_belong_to_security():
    assert all(map(is_security, NAMES))
    assert not any(map(is_security, ClientConfig.__struct_encode_fields__))


# --- the commands


@pytest.mark.slow
def test_the_commands_take_a_file_of_properties(lab, tmp_path):
    file = tmp_path / "client.properties"
    lines = [f"{name}={value}" for name, value in login("PLAIN").items()]
    file.write_text("\n".join([*lines, "acks=all"]), encoding="utf-8")

    async def work():
        async with guarded("PLAIN") as kafka:
            await wrote(kafka, b"first")
            common = ("--bootstrap-server", kafka.address, "--group", "g", "--command-config", file)
            read = await asyncio.to_thread(
                in_a_process, "consume", *common, "--topic", "t", "--from-beginning", "--max-records", "1"
            )
            assert (read.returncode, read.stdout) == (0, b"t\t0\t0\tfirst\n")
            assert b"left out, as not about TLS or SASL: acks" in read.stderr
            async with member(kafka, settings=login("PLAIN")) as consumer:
                await settled(consumer, partitions=1)
                taken = await asyncio.to_thread(lab, "snapshot", *common)
            assert taken.status == 0
            assert "# Group g, which runs cooperative-sticky." in taken.out

    run(work())


@pytest.mark.parametrize("command", ["consume", "snapshot"])
def test_the_commands_report_invalid_properties(lab, command, tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SASL_SSL\n")
    options = ["--bootstrap-server", "127.0.0.1:1", "--group", "g", "--command-config", file]
    answer = lab(command, *options, *(["--topic", "t"] if command == "consume" else []))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {file}: sasl.mechanism: found none, expected one of PLAIN")

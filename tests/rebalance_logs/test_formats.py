"""Every wording is found in its example, and by no other before it."""

import pytest

from coordinator_core.errors import InputError, PluginError
from coordinator_core.registry.hookspecs import LogFormatSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_logs import NAME, Kind, LogFormat, wording
from rebalance_logs.formats import read_format
from rebalance_logs.partitions import assignments_of, partitions_of
from rebalance_logs.reading import NEEDLES, _needles, facts_of, known_formats, read_logs

WORDINGS = [(of, wording) for of in known_formats() for wording in of.wordings]


@pytest.mark.parametrize(
    ("of", "wording"), WORDINGS, ids=[f"{of.name}: {wording.words}" for of, wording in WORDINGS]
)
def test_an_example_is_read_as_what_it_says(of, wording, tmp_path):
    prefix = "[Consumer clientId=c-1, groupId=pay] " if of.library == "java" else ""
    (tmp_path / "x.log").write_text(f"[2026-01-31 12:34:56,789] INFO {prefix}{wording.example}\n")
    (fact,) = read_logs([str(tmp_path)]).facts
    assert fact.kind is wording.kind
    assert fact.library == ("aiokafka" if "aiokafka" in wording.example else of.library)
    assert wording.words in wording.example


@pytest.mark.parametrize(
    "text",
    [
        "orders-0, orders-1, big-topic-3",
        "[orders-0, orders-1, big-topic-3]",
        '{"orders":[0,1],"big-topic":[3]}',
        "orders[0 1] big-topic[3]",
        "{TopicPartition(topic='orders', partition=0), TopicPartition(topic='orders', partition=1),"
        " TopicPartition(topic='big-topic', partition=3)}",
        "set([TopicPartition(topic=u'orders', partition=0), TopicPartition(topic=u'orders', partition=1),"
        " TopicPartition(topic=u'big-topic', partition=3)])",
    ],
)
def test_partitions_are_read_in_the_form_of_every_client(text):
    assert partitions_of(text) == {"orders": [0, 1], "big-topic": [3]}


def test_an_assignment_of_the_leader_is_read_although_it_is_cut_off():
    text = "{c-2-x=Assignment(partitions=[orders-2, orders-5]), c-0-y=Assignment(partitions=[orders-0, ord"
    assert assignments_of(text) == {"c-2-x": {"orders": [2, 5]}, "c-0-y": {"orders": [0]}}


ACME = LogFormat(
    "acme streams",
    "acme",
    (
        wording(
            Kind.JOINED,
            "got its share",
            rf"got its share: (?P<group>{NAME}) (?P<client>{NAME}) #(?P<generation>\d+)",
            "got its share: pay c-1 #4",
        ),
    ),
)


def registry_with(record):
    registry = Registry()
    registry.register(type("Acme", (), {"log_formats": hookimpl(lambda self: [record])})(), name="acme")
    return registry


FILE = """
name = "acme streams"
library = "acme"
context = ['client=%{NAME:client} ']

[patterns]
COUNT = '#%{NUMBER:generation}'

[[wordings]]
kind = "joined"
words = "got its share"
form = 'got its share: %{NAME:group} %{NAME:client} %{COUNT}'
example = "got its share: pay c-1 #4"
"""


def file_in(folder, text=FILE):
    path = folder / "acme.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("given", [ACME, f"{__name__}:ACME", file_in], ids=["object", "reference", "file"])
def test_a_format_of_a_plugin_is_read_also_in_lines_without_the_usual_words(given, tmp_path):
    given = given(tmp_path) if given is file_in else given
    formats = known_formats(registry_with(LogFormatSpec("acme", given)))
    line = "2026-01-31 12:34:56 got its share: pay c-1 #4\n"
    (tmp_path / "x.log").write_text(line)
    facts = [*read_logs([str(tmp_path)], formats=formats).facts, *facts_of([line], formats=formats)]
    assert [(f.kind, f.group, f.client, f.generation) for f in facts] == [(Kind.JOINED, "pay", "c-1", 4)] * 2
    assert read_logs([str(tmp_path)]).facts == []  # without the plugin


def test_formats_of_this_package_are_searched_for_by_few_words():
    assert _needles(known_formats()) == list(NEEDLES)


@pytest.mark.parametrize("wrong", ["no_such_module:X", f"{__name__}:WORDINGS", 7])
def test_a_plugin_whose_format_is_none_is_named(wrong):
    with pytest.raises(PluginError, match="acme"):
        known_formats(registry_with(LogFormatSpec("acme", wrong)))


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        (FILE, "name = ", "Invalid value"),
        ("name =", "nmae =", "unknown field `nmae`"),
        ('"joined"', '"joining in"', r"Invalid enum value 'joining in' - at `\$.wordings\[0\].kind`"),
        ("words =", "word =", r"unknown field `word` - at `\$.wordings\[0\]`"),
        ('library = "acme"', "library = 3", r"Expected `str`, got `int` - at `\$.library`"),
        (
            "%{COUNT}",
            "%{CUONT}",
            "got its share: found the pattern CUONT, expected one of NAME, NUMBER, REST, COUNT",
        ),
        ("#%{NUMBER", "#%{DIGITS", "COUNT: found the pattern DIGITS"),
        ("share: %{", "share: (%{", r"got its share: found .*missing \)"),
        ("client=%{", "client(%{", r"context: found .*missing \)"),
    ],
)
def test_what_is_wrong_with_a_file_of_wordings_is_said(right, wrong, found, tmp_path):
    with pytest.raises(InputError, match=found) as error:
        read_format(file_in(tmp_path, FILE.replace(right, wrong, 1)))
    assert error.value.where.startswith(str(tmp_path / "acme.toml"))

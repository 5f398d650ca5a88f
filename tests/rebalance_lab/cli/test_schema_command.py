"""What commands print with ``--format json`` is what their schema says."""

import json

import pytest
from jsonschema import Draft202012Validator

from tests.places import ROOT

LEAVE = ROOT / "tests" / "data" / "scenarios" / "leave.yaml"
LOG = ROOT / "tests" / "data" / "logs"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("compare", (LEAVE, "-s", "range", "-s", "sticky", "--seeds", "1")),
        ("explain", (LEAVE, "-s", "range", "-s", "sticky")),
        ("simulate", (LEAVE, "-s", "range")),
        ("diagnose", (LOG,)),
        pytest.param("check", ("range", "-n", "1"), marks=pytest.mark.slow),
        ("plugins", ()),
    ],
)
def test_the_document_of_a_command_is_valid_by_its_schema(lab, command, arguments):
    schema = json.loads(lab("schema", command).out)
    document = json.loads(lab(command, *arguments, "--format", "json").out)
    assert document
    Draft202012Validator(schema).validate(document)


def test_a_command_without_a_document_is_named(lab):
    answer = lab("schema", "serve")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("error: schema: found 'serve', expected one of advise, compare")

"""The JSON schema of scenarios: it is the file in the repository, and it knows what the parsers know."""

import json
import re

import pytest
import yaml

from coordinator_core.errors import InputError
from coordinator_core.registry.hookspecs import ScenarioEventSpec, hookimpl
from coordinator_core.registry.registry import default_registry, installed_registry
from rebalance_lab.scenarios import scenario
from rebalance_lab.scenarios.fields import ScenarioFields
from rebalance_lab.scenarios.schema import scenario_schema
from rebalance_lab.scenarios.workloads import churny, microservices, pipeline, skewed
from tests.approved import approved
from tests.places import ROOT, SCENARIOS
from tests.rebalance_lab.scenarios.wrong import wrong_scenarios

FILE = ROOT / "plugins/rebalance_lab/scenarios/scenario.schema.json"
BLOCK = re.compile(r"```yaml\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def draft():
    """The class that checks documents, imported only where it is used: the import takes seconds."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator


@pytest.fixture(scope="module")
def validator(draft):
    schema = json.loads(FILE.read_text())
    draft.check_schema(schema)
    return draft(schema)


def problems(validator, document):
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def test_the_file_is_what_the_command_writes(lab):
    answer = lab("schema")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == FILE.read_text()


def scenarios():
    """The scenarios of the repository: files, documents, and rows of workloads."""
    for path in sorted(SCENARIOS.glob("*.yaml")):
        yield path.name, yaml.safe_load(path.read_text())
    for path in [ROOT / "README.md", *sorted(ROOT.glob("*/*/README.md"))]:
        for i, block in enumerate(BLOCK.findall(path.read_text())):
            document = yaml.safe_load(block)
            if isinstance(document, dict) and {"name", "duration"} <= document.keys():
                yield f"{path.relative_to(ROOT)} {i}", document
    for generate in (microservices, pipeline, skewed, churny):
        for row in range(3):
            yield f"{generate.__name__} {row}", json.loads(json.dumps(generate(0, row)))


@pytest.mark.parametrize("document", [pytest.param(d, id=name) for name, d in scenarios()])
def test_every_scenario_of_the_repository_is_valid(validator, document):
    assert problems(validator, document) == []


BASE = {
    "name": "x",
    "duration": "10m",
    "topics": {"t": {"partitions": 3}},
    "members": [{"id": "c", "count": 2, "topics": ["t"]}],
}
RIGHT_EVENTS = [
    {"join": {"id": "x", "topics": ["t"], "restore": ["1s", "2s"], "assignors": ["range"]}},
    {"join": [{"id": "x", "topics_pattern": ".*"}, {"id": "y", "topics": ["t"], "client": "aiokafka"}]},
    {"leave": ["c-0", "c-1"]},
    {"crash": "c-0"},
    {"pause": "c-0", "for": "70s"},
    {"cut": "c-0", "for": "70s", "way": "requests", "broker": 0},
    {"slow": {"member": "c-0", "by": "1s", "for": "70s"}},
    {"slow": {"broker": 0, "by": "1s", "for": "70s"}},
    {"log_fault": {"for": "70s"}},
    {"coordinator_failover": {"after": "append"}},
    {"freeze": ["c-0"], "for": 70_000},
    {"subscribe": "c-0", "topics": ["t"]},
    {"subscribe": "c-0", "topics_pattern": "t"},
    {"remove_member": "c-0"},
    {"lag_view": {"member": "c-0", "by": "10s"}},
    {"add_partitions": {"t": 9}},
    {"create_topic": {"u": {"partitions": 1, "rates": [0.5]}}},
    {"delete_topic": ["t"]},
    {"rolling_restart": {"every": "20s", "down": "5s", "kill": True, "batch": 10, "surge": 2}},
    {"rolling_restart": {"every": "20s", "down": "5s", "protocol": "consumer"}},
    {"rolling_restart": {"every": "20s", "down": 0, "assignors": ["cooperative-sticky", "range"]}},
    {"coordinator_failover": None},
    {"coordinator_failover": {"down": "1s"}},
    {"calm": True},
]


@pytest.mark.parametrize("event", RIGHT_EVENTS)
def test_every_kind_of_event_is_valid(validator, event):
    document = BASE | {"events": [{"at": "1s"} | event]}
    assert problems(validator, document) == []
    scenario.parse_scenario(document, where="x")


def test_every_kind_of_event_is_among_them():
    kinds = {key for event in RIGHT_EVENTS for key in event}
    assert set(default_registry().scenario_events()) - kinds == {"restart"}


FIELDS = [
    {"description": None, "seed": 2**63 - 1, "brokers": 1, "config": None, "events": None, "network": None},
    {"config": {"session.timeout.ms": "6s", "heartbeat.interval.ms": 500, "enable.auto.commit": False}},
    {"network": {"latency": ["1ms", "5ms"], "loss": 0.1}},
    {"network": {"latency": "1.5s"}},
    {"measure": {"from": "0s"}},
    {"measure": None},
    {"topics": {"t": {"partitions": 1, "backlog": 7, "racks": [["a", "b"]]}}},
    {"topics": {"t": {"partitions": 1, "rates_rows": [[1], [2]], "interval": "5m", "backlog": [3]}}},
    {"members": [{"id": "c", "topics": ["t"], "owned": {"t": [0, 1]}, "generation": 7, "rack": None}]},
    {"members": [{"id": "c", "topics": ["t"], "config": {"max.poll.records": 50}, "on_revoked": "300 ms"}]},
]


@pytest.mark.parametrize("fields", FIELDS)
def test_a_document_that_the_parser_accepts_is_valid(validator, fields):
    scenario.parse_scenario(BASE | fields, where="x")
    assert problems(validator, BASE | fields) == []


def test_what_a_schema_can_see_is_refused(validator):
    """The others depend on other parts of the document: members at that time, topics, sums, files."""
    unseen = [name for name, document in wrong_scenarios().items() if not problems(validator, document)]
    approved("errors_without_schema", {"errors that the schema does not see": "\n".join(sorted(unseen))})


def test_settings_have_their_types_and_defaults():
    settings = scenario_schema(default_registry())["$defs"]["settings"]["properties"]
    assert settings["session.timeout.ms"] == {"$ref": "#/$defs/duration", "default": 45_000}
    assert settings["enable.auto.commit"] == {"type": "boolean", "default": True}
    assert settings["auto.offset.reset"] == {"enum": ["earliest", "latest", "none"], "default": "earliest"}
    assert settings["group.max.size"]["type"] == "integer"
    assert "group.id" not in settings
    of_consumers = scenario_schema(default_registry())["$defs"]["consumer_settings"]["properties"]
    assert "max.poll.records" in of_consumers
    assert "group.max.size" not in of_consumers


def test_every_field_is_described():
    schema = scenario_schema(default_registry())
    tables = [
        schema["properties"],
        *(schema["$defs"][name]["properties"] for name in ("MemberFields", "TopicFields", "NetworkFields")),
    ]
    events = schema["$defs"]["event"]["properties"]
    tables += [events, events["rolling_restart"]["properties"], events["lag_view"]["properties"]]
    assert [name for table in tables for name, value in table.items() if not value.get("description")] == []


def test_the_fields_beside_an_event_are_those_that_its_parser_knows():
    expected = re.compile(r"only (.*) beside it|no further fields")
    for name, spec in default_registry().scenario_events().items():
        with pytest.raises(InputError) as caught:
            spec.parse("x", {"unknown": 1}, "x")
        known = expected.search(caught.value.expected)
        listed = known[1].split(" and ") if known[1] else []
        assert {*listed, name} == set(spec.fields), name


def test_a_field_without_a_description_of_its_values_is_no_field(validator):
    assert set(ScenarioFields.__struct_fields__) == set(validator.schema["properties"])
    for name in ScenarioFields.__struct_fields__:
        assert problems(validator, BASE | {name: {"no": object}})


class Quake:
    """A plugin with an event that says nothing about its fields, and one that does."""

    @hookimpl
    def scenario_events(self):
        def parse(value, extra, where):
            return value, extra

        whole = {"type": "integer"}
        return [
            ScenarioEventSpec("quake", parse, lambda stage, arguments: None, "The earth moves: quake: 7."),
            ScenarioEventSpec(
                "flood",
                parse,
                lambda stage, arguments: None,
                "Water: flood: 2, depth: 1.",
                fields={"flood": whole, "depth": whole},
                required=("depth",),
            ),
        ]


@pytest.mark.parametrize(
    ("event", "right"),
    [
        ({"quake": {"any": "thing"}, "magnitude": "unknown"}, True),
        ({"flood": 2, "depth": 1}, True),
        ({"flood": 2}, False),
        ({"flood": "2", "depth": 1}, False),
        ({"flood": 2, "depth": 1, "for": "3s"}, False),
        ({"quake": 2, "flood": 2, "depth": 1}, False),
    ],
)
def test_events_of_plugins_are_in_the_schema(draft, event, right):
    registry = installed_registry()
    registry.register(Quake())
    validator = draft(scenario_schema(registry))
    document = BASE | {"events": [{"at": 1} | event]}
    assert (problems(validator, document) == []) is right

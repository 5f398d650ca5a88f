"""A scenario with its files in it is the same scenario."""

import json

import pytest

from coordinator_core.errors import InputError
from coordinator_core.registry.hookspecs import ScenarioEventSpec, hookimpl
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.files import load_scenario, load_scenario_text
from rebalance_lab.scenarios.portable import portable_scenario
from tests.places import SCENARIOS


def error_of(load, path):
    with pytest.raises(InputError) as caught:
        load(path)
    return str(caught.value)


@pytest.fixture
def scenario(tmp_path):
    """Writes one with a topic that has rates from a file."""

    def write(rows="600,0\n0,300\n9,9\n", **topic):
        (tmp_path / "rates").mkdir(exist_ok=True)
        (tmp_path / "rates" / "day.csv").write_text(rows)
        from_file = {"partitions": 2, "rates_csv": "rates/day.csv", "interval": "4m", **topic}
        document = {
            "name": "n",
            "duration": "10m",
            "topics": {"z": from_file, "plain": {"partitions": 3, "rate": 5}},
            "members": [{"id": "c", "topics": ["z"]}],
        }
        (tmp_path / "scenario.yaml").write_text(json.dumps(document))
        return tmp_path / "scenario.yaml"

    return write


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_it_is_the_same_scenario(path):
    assert load_scenario_text(portable_scenario(path), "x") == load_scenario(path)


def test_rates_from_a_file_stand_in_it_as_rows():
    document = json.loads(portable_scenario(SCENARIOS / "mentions-day.yaml"))
    topic = document["topics"]["mentions"]
    assert set(topic) == {"partitions", "rates_rows", "interval"}
    assert len(topic["rates_rows"]) == 288
    assert topic["rates_rows"][0] == [104, 57, 11, 0, 53, 35, 7, 8, 3, 2]


@pytest.mark.parametrize("duration", ["3m", "4m", "10m", "12m", "1h"])
@pytest.mark.parametrize("rows", ["600,0\n0,300\n9,9\n", "time,a,b\n0,1,2\n1,3,4\n", "7,8\n"])
def test_it_is_the_same_however_long_the_file_is(scenario, rows, duration):
    path = scenario(rows)
    path.write_text(path.read_text().replace("10m", duration))
    made = portable_scenario(path)
    assert load_scenario_text(made, "x") == load_scenario(path)


@pytest.mark.parametrize(("duration", "count"), [("4m", 1), ("241s", 2), ("8m", 2), ("1h", 3)])
def test_rows_after_the_end_are_left_out(scenario, duration, count):
    path = scenario()
    path.write_text(path.read_text().replace("10m", duration))
    assert len(json.loads(portable_scenario(path))["topics"]["z"]["rates_rows"]) == count


def test_it_needs_no_folder(scenario, monkeypatch, tmp_path_factory):
    path = scenario()
    before = load_scenario(path)
    made = portable_scenario(path)
    (path.parent / "rates" / "day.csv").unlink()
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert load_scenario_text(made, "x") == before
    assert "day.csv" not in made


def test_topics_keep_their_order_and_everything_else_stays_as_written(scenario):
    path = scenario()
    written, made = json.loads(path.read_text()), json.loads(portable_scenario(path))
    assert list(made["topics"]) == ["z", "plain"]
    assert made["topics"]["plain"] == written["topics"]["plain"]
    assert {k: v for k, v in made.items() if k != "topics"} == {
        k: v for k, v in written.items() if k != "topics"
    }


def test_it_is_one_line_and_the_same_every_time(scenario):
    made = portable_scenario(scenario())
    assert "\n" not in made
    assert made == portable_scenario(scenario())


def test_text_in_any_script_stays_what_it_is(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("name: tägliche Übung 昨日\nduration: 1m\ntopics: {t: {partitions: 1}}\nmembers: []\n")
    assert load_scenario_text(portable_scenario(path), "x") == load_scenario(path)


def test_numbers_keep_every_digit(scenario):
    made = portable_scenario(scenario("0.1,123456789.123456\n1e-9,3\n"))
    assert json.loads(made)["topics"]["z"]["rates_rows"] == [[0.1, 123456789.123456], [1e-9, 3]]


@pytest.mark.parametrize(
    ("rows", "topic"),
    [
        ("1,2,3,4\n", {}),
        ("1,x\n2,-3\n", {}),
        ("a,b\n", {}),
        ("1,2\n", {"rates_csv": "no/such.csv"}),
        ("1,2\n", {"interval": "soon"}),
        ("1,2\n", {"interval": None}),
        ("1,2\n", {"partitions": 0}),
        ("1,2\n", {"rate": 5}),
    ],
)
def test_it_refuses_what_a_scenario_from_a_file_is_refused_for(scenario, rows, topic):
    path = scenario(rows, **topic)
    assert error_of(portable_scenario, path) == error_of(load_scenario, path)


@pytest.mark.parametrize("text", ["", "members: [", "[1]", "name: x", "topics: {t: {partitions: !!int ''}}"])
def test_it_refuses_what_is_no_scenario(tmp_path, text):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert error_of(portable_scenario, path) == error_of(load_scenario, path)
    missing = tmp_path / "missing.yaml"
    assert error_of(portable_scenario, missing) == error_of(load_scenario, missing)


def test_events_of_a_plugin_are_those_of_the_registry(scenario):
    class Plugin:
        @hookimpl
        def scenario_events(self):
            def parsed(value, extra, where):
                return value

            return [ScenarioEventSpec("earthquake", parsed, lambda run, arguments: None)]

    registry = Registry()
    registry.register(Plugin())
    path = scenario()
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "events": [{"at": "1m", "earthquake": 8.5}]}))
    made = portable_scenario(path, registry=registry)
    assert load_scenario_text(made, "x", registry=registry) == load_scenario(path, registry=registry)
    with pytest.raises(InputError, match="earthquake"):
        portable_scenario(path)


def test_what_members_own_and_what_waits_stays_in_it(tmp_path):
    document = {
        "name": "live",
        "duration": "10m",
        "topics": {"t": {"partitions": 2, "backlog": [7, 0]}, "u": {"partitions": 1, "backlog": 5}},
        "members": [{"id": "c", "topics": ["t", "u"], "owned": {"t": [1], "u": [0]}, "generation": 4}],
    }
    (tmp_path / "live.yaml").write_text(json.dumps(document))
    assert json.loads(portable_scenario(tmp_path / "live.yaml")) == document

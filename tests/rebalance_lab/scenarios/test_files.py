"""Scenarios from files and streams."""

import io
import json
import subprocess
import sys

import pytest

from coordinator_core.errors import InputError
from rebalance_lab.scenarios import files as scenario_files
from rebalance_lab.scenarios.files import load_scenario, load_scenario_stream, load_scenario_text
from rebalance_lab.scenarios.scenario import Member

YAML = """\
name: deploy
duration: 10m
topics:
  orders: {partitions: 2, rate: 1000}
members:
  - {id: c, topics: [orders]}
"""
DOCUMENT = {
    "name": "deploy",
    "duration": "10m",
    "topics": {"orders": {"partitions": 2, "rate": 1000}},
    "members": [{"id": "c", "topics": ["orders"]}],
}
EMPTY = "a scenario with name, duration, topics and members"


def error_of(load, *arguments):
    with pytest.raises(InputError) as caught:
        load(*arguments)
    return caught.value


def told(wrong):
    return wrong.where, wrong.found, wrong.expected


@pytest.mark.parametrize("value", ["!!int ''", "!!int _", "!!float ''", "!!bool x", "!!timestamp x"])
def test_a_tag_on_what_it_does_not_fit_is_refused(value):
    wrong = error_of(load_scenario_text, YAML.replace("10m", value), "x.yaml")
    assert (wrong.where, wrong.expected) == ("x.yaml", "a scenario in YAML or JSON")
    assert wrong.found.startswith("what cannot be read (")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DOCUMENT),
        json.dumps(DOCUMENT, indent=2),
        json.dumps(DOCUMENT, indent="\t"),
        "\n" + json.dumps(DOCUMENT),
        json.dumps(DOCUMENT).replace("1000", "1e3"),
        json.dumps(DOCUMENT, indent=2).replace("1000", "1e3"),
        "# a comment\n" + YAML,
        "---\n" + YAML,
        YAML.replace("\n", "\r\n"),
    ],
)
@pytest.mark.parametrize("name", ["x.yaml", "standard input"])
def test_yaml_and_json_say_the_same(text, name):
    assert load_scenario_text(text, name) == load_scenario_text(YAML, name)


def test_json_is_told_by_the_name_of_the_file():
    assert load_scenario_text(json.dumps(DOCUMENT), "x.json").name == "deploy"
    assert error_of(load_scenario_text, YAML, "x.json").expected == "a scenario in JSON"


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
def test_a_scenario_is_read_from_a_file(tmp_path, as_text, mark):
    path = tmp_path / "deploy.yaml"
    path.write_bytes(mark + YAML.encode())
    scenario = load_scenario(str(path) if as_text else path)
    assert scenario == load_scenario_text(YAML, "x")
    assert scenario.members == (Member("c", ("orders",)),)
    as_json = tmp_path / "deploy.json"
    as_json.write_bytes(mark + json.dumps(DOCUMENT).encode())
    assert load_scenario(as_json) == scenario


def test_names_are_read_as_utf_8(tmp_path):
    path = tmp_path / "deploy.yaml"
    path.write_text(YAML.replace("deploy", "Größe"), encoding="utf-8")
    assert load_scenario(path).name == "Größe"


def test_a_file_of_rates_is_found_beside_the_scenario(tmp_path):
    path = tmp_path / "deploy.yaml"
    path.write_text(YAML.replace("rate: 1000", "rates_csv: day.csv, interval: 10m"))
    (tmp_path / "day.csv").write_text("600,1200\n")
    assert load_scenario(path).topics["orders"].rates.steps == ((0, (1.0, 2.0)),)


def test_a_wrong_field_is_named_with_its_file(tmp_path):
    path = tmp_path / "deploy.yaml"
    path.write_text(YAML.replace("1000", "-1"))
    assert error_of(load_scenario, path).where == f"{path}: topics.orders.rate"


def test_a_set_in_yaml_is_refused_as_it_has_no_order():
    text = YAML.replace("[orders]", "!!set {orders, refunds}")
    assert text != YAML
    where = error_of(load_scenario_text, text, "x.yaml").where
    assert where.startswith("x.yaml: line "), where


def test_a_scenario_is_read_from_a_stream():
    assert load_scenario_stream(io.StringIO(YAML)) == load_scenario_text(YAML, "x")


def test_a_stream_has_a_name_in_errors():
    assert error_of(load_scenario_stream, io.StringIO("name: 5")).where == "standard input: name"
    assert error_of(load_scenario_stream, io.StringIO("name: 5"), "cell").where == "cell: name"


def test_a_stream_that_is_not_utf_8_is_refused():
    stream = io.TextIOWrapper(io.BytesIO(b"name: \xff"), encoding="utf-8")
    assert told(error_of(load_scenario_stream, stream)) == (
        "standard input",
        "bytes that are not UTF-8 (invalid start byte)",
        "text in UTF-8",
    )


@pytest.mark.parametrize("text", ["", "  \n\n\t"])
def test_a_scenario_that_is_empty_is_refused(text):
    assert told(error_of(load_scenario_text, text, "x.yaml")) == ("x.yaml", "nothing (it is empty)", EMPTY)


@pytest.mark.parametrize("text", ["# nothing yet\n", "---\n# nothing yet\n", "null"])
def test_a_scenario_of_comments_only_is_refused(text):
    assert told(error_of(load_scenario_text, text, "x.yaml")) == ("x.yaml", "nothing (only comments)", EMPTY)


def test_a_file_that_is_empty_is_refused(tmp_path):
    (tmp_path / "x.yaml").touch()
    assert error_of(load_scenario, tmp_path / "x.yaml").found == "nothing (it is empty)"


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "x.yaml"
    assert told(error_of(load_scenario, path)) == (
        str(path),
        "a file that cannot be read (No such file or directory)",
        "a scenario in YAML or JSON",
    )


def test_a_folder_is_no_scenario(tmp_path):
    assert error_of(load_scenario, tmp_path).found == "a file that cannot be read (Is a directory)"


def test_a_file_that_is_not_utf_8_is_named_with_its_line(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(YAML.encode() + b"# \xe9t\xe9\n")
    assert told(error_of(load_scenario, path)) == (
        f"{path}: line 7",
        "bytes that are not UTF-8",
        "text in UTF-8",
    )


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(scenario_files, "LARGEST", len(YAML))
    path = tmp_path / "x.yaml"
    path.write_text(YAML)
    assert load_scenario(path).name == "deploy"
    path.write_text(YAML + "\n")
    found, expected = f"a file of {len(YAML) + 1} bytes", "a scenario of at most 4 MB"
    assert told(error_of(load_scenario, path)) == (str(path), found, expected)


def test_what_has_no_size_is_refused_when_it_is_too_large(monkeypatch):
    monkeypatch.setattr(scenario_files, "LARGEST", 1_000)
    assert error_of(load_scenario, "/dev/zero").found == "more than 1,000 bytes"


@pytest.mark.parametrize(
    "load", [load_scenario_text, lambda text, name: load_scenario_stream(io.StringIO(text), name)]
)
def test_a_text_that_is_too_large_is_refused(load, monkeypatch):
    monkeypatch.setattr(scenario_files, "LARGEST", len(YAML))
    assert load(YAML, "x").name == "deploy"
    assert error_of(load, YAML + "\n", "x").found == f"more than {len(YAML)} characters"


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        (YAML + "name: twice\n", "line 7, column 1", "the key 'name' twice"),
        (YAML.replace("rate", "partitions"), "line 4, column 27", "the key 'partitions' twice"),
        ("name: [a\nduration: 1m\n", "line 2, column 9", "did not find expected ',' or ']'"),
        ("name: a\n\tduration: 1m\n", "line 2, column 1", "a tab character"),
        ("name: 'a\n", "line 2, column 1", "unexpected end of stream"),
        ("name: *a\n", "line 1, column 7", "found undefined alias"),
        ("name: a\n? [b]\n: 3\n", "line 2, column 3", "a key that is not text"),
        ("name: a\n---\nname: b\n", "line 2, column 1", "another document"),
        ("name: !!python/name:os.system x\n", "line 1, column 7", "could not determine a constructor"),
    ],
)
def test_yaml_that_is_broken_is_named_with_line_and_column(text, place, found):
    wrong = error_of(load_scenario_text, text, "x.yaml")
    assert (wrong.where, wrong.expected) == (f"x.yaml: {place}", "a scenario in YAML or JSON")
    assert found in wrong.found
    assert "\n" not in wrong.found


@pytest.mark.parametrize("text", ["name: \0", "name: " + "9" * 5_000, "name: 2024-13-99"])
def test_yaml_that_is_broken_without_a_place_is_refused(text):
    wrong = error_of(load_scenario_text, text, "x.yaml")
    assert (wrong.where, wrong.expected) == ("x.yaml", "a scenario in YAML or JSON")
    assert wrong.found.startswith("what cannot be read (")


@pytest.mark.parametrize(
    ("text", "place", "found"),
    [
        (
            '{"name": "a",\n "duration"}',
            "x.json: line 2, column 12",
            "what cannot be read (Expecting ':' delimiter)",
        ),
        ('{"name": "a"} b', "x.json: line 1, column 15", "what cannot be read (Extra data)"),
        ('{"name": "a", "name": "b"}', "x.json", "the key 'name' twice in one object"),
        ('{"network": {"loss": 0, "loss": 1}}', "x.json", "the key 'loss' twice in one object"),
        ('{"duration": NaN}', "x.json", "NaN"),
        ('{"duration": -Infinity}', "x.json", "-Infinity"),
    ],
)
def test_json_that_is_broken_is_named_with_its_place(text, place, found):
    wrong = error_of(load_scenario_text, text, "x.json")
    assert (wrong.where, wrong.found) == (place, found)


@pytest.mark.parametrize("text", ["[1, 2]", "deploy", "5", "true"])
def test_a_document_that_is_no_mapping_is_refused(text):
    assert error_of(load_scenario_text, text, "x.yaml").where == "x.yaml"


def test_an_anchor_may_be_merged_and_its_fields_overwritten():
    text = YAML + "  - &d {id: d, topics: [orders], rack: a}\n  - {<<: *d, id: e}\n"
    members = load_scenario_text(text, "x").members
    assert members[1:] == (
        Member("d", ("orders",), None, None, None, "a"),
        Member("e", ("orders",), None, None, None, "a"),
    )


def test_an_anchor_that_merges_may_be_merged_before_it_is_made():
    """What is deeper is made later: by then the merged anchor has the keys of both."""
    text = """
name: deploy
duration: 10m
topics:
  a: {partitions: 1}
members:
  - &base {id: m, topics: [a]}
events:
  - at: 1s
    join: &deep {<<: *base, id: n}
  - {at: 2s, join: {<<: *deep, id: o}}
network: {<<: [{loss: 0.5}]}
"""
    scenario = load_scenario_text(text, "x")
    assert [e.arguments.members[0].id for e in scenario.events] == ["n", "o"]
    assert scenario.network.loss == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", '{"a": '])
def test_what_is_nested_beyond_all_measure_is_refused(opening):
    """libyaml would overflow the stack, and so end the process: hence in another one."""
    code = (
        "from coordinator_core.errors import InputError\n"
        "from rebalance_lab.scenarios.files import load_scenario_text\n"
        "try:\n"
        f"    load_scenario_text({opening!r} * 400_000, 'x')\n"
        "except InputError as wrong:\n"
        "    print(wrong.where, wrong.found)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    reasons = ("more than 50 levels", "(maximum recursion depth", "(exceeded maximum nesting depth")
    assert done.stdout.startswith("x")
    assert any(reason in done.stdout for reason in reasons)  # the last one is of newer releases of libyaml


def test_a_long_scenario_that_is_not_deep_is_read():
    members = "".join(f"  - {{id: m{n}, topics: [orders]}}\n" for n in range(200))
    assert len(load_scenario_text(YAML + members, "x").members) == 201


def test_a_document_is_read_to_its_deepest_level_and_no_further():
    def nested(levels):
        return "x: " + "[" * levels + "]" * levels + " " * 2_000

    too_deep = "more than 50 levels of nesting"
    assert told(error_of(load_scenario_text, nested(50), "x.yaml"))[1] == too_deep
    assert told(error_of(load_scenario_text, nested(49), "x.yaml"))[1] != too_deep

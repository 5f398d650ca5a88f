"""The events of a table: refused in the file, before the scenarios are made."""

import pytest

from coordinator_core.errors import InputError
from rebalance_spark.applications import read_events


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[{at: 2m, leave: a}, {at: 20m, leave: b}]", r"\[1\].at: found '20m', expected at most 10m"),
        ("[{at: soon, leave: a}]", r"\[0\].at: found 'soon'"),
        ("{at: 2m}", "found no list of events"),
    ],
)
def test_events_that_no_scenario_could_have_are_refused_by_their_place(tmp_path, text, error):
    path = tmp_path / "events.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=f"events.yaml: {error}"):
        read_events(path)


def test_events_up_to_the_end_of_the_scenarios_are_returned(tmp_path):
    path = tmp_path / "events.yaml"
    path.write_text("[{at: 10m, leave: a}, {leave: b}]")
    assert read_events(path) == [{"at": "10m", "leave": "a"}, {"leave": "b"}]

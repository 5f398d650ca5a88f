"""The command ``snapshot``: what it writes, and where."""

import asyncio
import json

import pytest
import yaml

from rebalance_kafka import snapshot as snapshots
from rebalance_kafka.commands import snapshot as snapshot_command
from rebalance_kafka.commands.snapshot import _row, _yaml
from tests.rebalance_kafka.live import broker, member, run, settled
from tests.written import DEVICE, PLACES, check_written


def test_the_head_names_the_group_and_its_strategy():
    shot = snapshots.Snapshot("g", "range", {"name": "g"})
    assert _yaml(shot) == "# Group g, which runs range.\n{name: g}\n"
    assert yaml.safe_load(_yaml(shot)) == {"name": "g"}
    assert _row(shot) == {"scenario_id": "g", "strategy": "range", "scenario": '{"name": "g"}'}


def test_the_head_says_what_brokers_do_not_tell():
    shot = snapshots.Snapshot("g", "range", {"name": "g"}, unseen=["client of a", "batch\nname: b"])
    assert _yaml(shot).splitlines()[1:4] == [
        "# Brokers do not tell these, so that the defaults hold:",
        "# - client of a",
        '# - "batch\\nname: b"',
    ]
    assert yaml.safe_load(_yaml(shot)) == {"name": "g"}


def test_a_question_that_a_snapshot_cannot_ask_is_an_error(lab):
    answer = lab("snapshot", "--bootstrap-server", "localhost:1", "--group", "g", "--ask", "leave,jion")
    assert answer.status == 2
    assert "--ask: found 'jion', expected one of crash, join, leave, rolling_restart" in answer.err


@pytest.mark.parametrize("name", ["a\nname: b", "a\x85b: c: d", "a\u2028b", "\0", "\ud800", "a\r\tb"])
def test_a_name_of_any_kind_stays_in_the_head(name):
    shot = snapshots.Snapshot(name, name, {"name": "g"})
    assert yaml.safe_load(_yaml(shot)) == {"name": "g"}
    assert len(_yaml(shot).splitlines()) == 2


@pytest.mark.parametrize("kind", PLACES)
def test_a_snapshot_leaves_its_place_what_it_is(lab, tmp_path, monkeypatch, kind):
    async def taken(*_):
        return [snapshots.Snapshot("g", "range", {"name": "g"})], 0

    monkeypatch.setattr(snapshot_command, "_taken", taken)

    def write(path):
        answer = lab("snapshot", "--bootstrap-server", "localhost:1", "--group", "g", "-o", path)
        assert (answer.status, answer.err) == (0, "")

    written = check_written(write, tmp_path / "place" / "g.yaml", kind)
    assert kind == DEVICE or yaml.safe_load(written) == {"name": "g"}


def test_all_groups_leaves_out_groups_without_members(lab, tmp_path):
    async def work():
        def rows(name):
            options = ("--bootstrap-server", kafka.address, "--all-groups", "-o", tmp_path / name)
            return asyncio.to_thread(lab, "snapshot", *options)

        async with broker() as kafka:
            async with member(kafka, group_id="gone") as a:
                await settled(a)
            answer = await rows("none.jsonl")
            assert (answer.status, answer.out) == (2, "")
            assert "error: --all-groups: found none with members" in answer.err
            async with member(kafka, group_id="here") as b:
                await settled(b)
                answer = await rows("some.jsonl")
        assert (answer.status, answer.err) == (0, "")

    run(work())
    (row,) = (tmp_path / "some.jsonl").read_text().splitlines()
    assert json.loads(row)["scenario_id"] == "here"
    assert [each.name for each in tmp_path.iterdir()] == ["some.jsonl"]

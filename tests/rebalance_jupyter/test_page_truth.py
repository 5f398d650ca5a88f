"""What a page draws is what the trace says: random runs with faults, at random times, column by column.

The trace is read by the helpers of these tests, and not by the ledger that the page is made from.
"""

import json
import math
import re
from random import Random

import pytest

from coordinator_core.protocol import events as ev
from coordinator_core.registry.registry import default_registry
from rebalance_jupyter import compare_view, run
from rebalance_jupyter.view_model import view_model
from rebalance_lab.fuzzing.campaign import Campaign
from tests.rebalance_jupyter.browser import PIXEL, all_texts, go_to, rgb
from tests.rebalance_jupyter.samples import owned_at
from tests.rebalance_jupyter.test_page_lanes import generation_at, lag_at

pytestmark = pytest.mark.slow

STRATEGIES = ("range", "cooperative-sticky", "sticky+static")
TIMES = 8
COLUMNS = 60
MOST_LANES = 30


def drawn_run(number):
    """The trace of a random run."""
    campaign, registry = Campaign(STRATEGIES, seed=7), default_registry()
    document = campaign.document_of(number, registry, aimed=False)
    return run(json.dumps(document) + "\n", campaign.strategy_of(number))


def members_of(trace):
    return list(
        dict.fromkeys(line.event.client for line in trace.events if isinstance(line.event, ev.MemberStarted))
    )


def running_at(trace, client, at_ms):
    """Whether a consumer runs: it was started, and has neither ended nor failed."""
    state = None
    for line in trace.events:
        if line.at_ms > at_ms:
            break
        if getattr(line.event, "client", None) != client:
            continue
        if isinstance(line.event, ev.MemberStarted):
            state = "runs"
        elif isinstance(line.event, (ev.MemberStopped, ev.ConsumerFailed)):
            state = "ended"
    return state


def stands_still(trace, client, at_ms):
    """Whether a member is paused or cut off, so that its lanes are striped."""
    held = set()
    for line in trace.events:
        event = line.event
        if line.at_ms > at_ms:
            break
        if getattr(event, "client", None) == client:
            if isinstance(event, (ev.MemberPaused, ev.MemberCutOff)):
                held.add(type(event))
            elif isinstance(event, ev.MemberResumed):
                held.discard(ev.MemberPaused)
            elif isinstance(event, ev.MemberReconnected):
                held.discard(ev.MemberCutOff)
            elif isinstance(event, (ev.MemberStarted, ev.MemberStopped)):
                held.clear()
    return bool(held)


def changes_of(trace):
    """The times at which anything about owners changes."""
    kinds = (
        ev.Assigned,
        ev.Revoked,
        ev.Lost,
        ev.MemberStarted,
        ev.MemberStopped,
        ev.ConsumerFailed,
        ev.MemberPaused,
        ev.MemberResumed,
        ev.MemberCutOff,
        ev.MemberReconnected,
        ev.PartitionsAdded,
        ev.TopicDeleted,
    )
    return [line.at_ms for line in trace.events if isinstance(line.event, kinds)]


def times_of(trace, number):
    """Some times between changes, and some at the moments of changes."""
    random = Random(number)
    end_ms, changes = trace.started.duration_ms, changes_of(trace)
    return sorted(
        {random.randrange(end_ms) for _ in range(TIMES)} | {*random.sample(changes, min(TIMES, len(changes)))}
    )


@pytest.mark.parametrize("number", range(10))
def test_members_have_the_figures_of_the_trace_at_any_time(number, opened):
    trace = drawn_run(number)
    page = opened(compare_view([trace]))
    names = members_of(trace)
    for at_ms in times_of(trace, number):
        go_to(page, at_ms)
        labels = page.locator(".rbl-row").evaluate_all(
            "(rows) => rows.map((row) => row.getAttribute('aria-label'))"
        )
        for name, label in zip(names, labels, strict=True):
            where = f"{label} at {at_ms}"
            assert label.startswith(f"{name}: "), where
            if running_at(trace, name, at_ms) != "runs":
                assert "·" not in label, where
                continue
            found = re.search(r" g(\d+) · (\d+)(?: · lag ([\d,]+))?", label)
            owned = owned_at(trace, name, at_ms)
            if found is None:
                assert not owned, where
                continue
            assert int(found[2]) == len(owned), where
            assert int(found[1]) == generation_at(trace, name, at_ms), where
            if found[3]:
                assert int(found[3].replace(",", "")) == math.floor(
                    round(lag_at(trace, name, at_ms), 1) + 0.5
                ), where


@pytest.mark.parametrize("number", range(10))
def test_lanes_have_the_colour_of_the_owner_in_every_column(number, opened):
    trace = drawn_run(number)
    model = view_model(trace).document
    colours = {member["name"]: rgb(member["colour"]) for member in model["members"]}
    lanes = [(topic["name"], n) for topic in model["topics"] for n in range(topic["partitions"])]
    page = opened(compare_view([trace]))
    end_ms, changes = trace.started.duration_ms, changes_of(trace)
    width = page.evaluate("document.querySelector('canvas').clientWidth")
    times = [
        at_ms
        for at_ms in (round((n + 0.5) * end_ms / COLUMNS) for n in range(COLUMNS))
        if not any(abs(at_ms - change) <= 2 * end_ms / width for change in changes)
    ]
    height = page.evaluate("document.querySelector('canvas').clientHeight") / len(lanes)
    seen = 0
    for lane, partition in enumerate(lanes[:MOST_LANES]):
        # the upper part of a lane, where no letter is
        found = page.evaluate(PIXEL, [0, [at_ms / end_ms for at_ms in times], round(lane * height) + 1])
        for at_ms, pixel in zip(times, found, strict=True):
            owners = [name for name in colours if partition in owned_at(trace, name, at_ms)]
            shown = tuple(pixel[:3]) if pixel[3] else None
            where = f"{partition} at {at_ms}: {owners}"
            if not owners:
                assert shown not in colours.values(), where
            elif len(owners) == 1 and not stands_still(trace, owners[0], at_ms):
                assert shown == colours[owners[0]], where
                seen += 1
    assert seen or all(not owned_at(trace, name, end_ms // 2) for name in colours)


@pytest.mark.parametrize("number", range(10))
def test_the_headings_have_the_lag_and_the_partitions_that_nobody_works_on(number, opened):
    trace = drawn_run(number)
    page = opened(compare_view([trace]))
    for at_ms in times_of(trace, number):
        go_to(page, at_ms)
        lag, idle = (
            amount_of(text.strip().removeprefix(trace.strategy))
            for text in all_texts(page, ".rbl-key > span")
            if text.strip().startswith(trace.strategy)
        )
        assert lag == pytest.approx(lag_of_the_group(trace, at_ms), rel=0.005, abs=0.56), at_ms
        assert idle == idle_at(trace, at_ms), at_ms


def amount_of(text):
    """The number that a text such as ``1,234`` or ``12.3 k`` stands for."""
    number, unit = re.fullmatch(r" ([\d,.]+)(?: ([kMG]))?", text).groups()
    return float(number.replace(",", "")) * {None: 1, "k": 1e3, "M": 1e6, "G": 1e9}[unit]


def lag_of_the_group(trace, at_ms):
    """The height at a time of the line through the measures."""
    measured = [
        (line.at_ms, line.event.lag) for line in trace.events if isinstance(line.event, ev.LagMeasured)
    ]
    before = [pair for pair in measured if pair[0] <= at_ms][-1]
    after = next((pair for pair in measured if pair[0] > at_ms), before)
    if after[0] == before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * (at_ms - before[0]) / (after[0] - before[0])


def idle_at(trace, at_ms):
    """How many partitions are not worked on, of topics that a member wants or wanted when it ended.

    One that was closed for good wants nothing any more.
    """
    counts, stopped, wanted = dict(trace.started.topics), {}, {}
    starts = [
        (line.at_ms, line.event.client) for line in trace.events if isinstance(line.event, ev.MemberStarted)
    ]
    for line in trace.events:
        event = line.event
        if line.at_ms > at_ms:
            break
        if isinstance(event, ev.PartitionsAdded):
            counts[event.topic] = event.partitions
        elif isinstance(event, ev.TopicDeleted):
            counts.pop(event.topic, None)
        elif isinstance(event, (ev.WorkStopped, ev.WorkStarted)):
            named = {(topic, n) for topic, numbers in event.partitions.items() for n in numbers}
            held = stopped.setdefault(event.client, set())
            stopped[event.client] = held | named if isinstance(event, ev.WorkStopped) else held - named
        elif isinstance(event, ev.MemberStarted):
            stopped.pop(event.client, None)
            wanted[event.client] = set(event.topics)
        elif isinstance(event, ev.SubscriptionChanged):
            wanted[event.client] = set(event.topics)
        elif isinstance(event, ev.MemberStopped) and event.how == "closed":
            starts_again = any(when > line.at_ms and name == event.client for when, name in starts)
            wanted[event.client] = wanted[event.client] if starts_again else set()
    worked = set()
    for name in members_of(trace):
        if running_at(trace, name, at_ms) == "runs" and not stands_still(trace, name, at_ms):
            worked |= owned_at(trace, name, at_ms) - stopped.get(name, set())
    topics = set().union(*wanted.values())
    existing = {(topic, n) for topic, count in counts.items() if topic in topics for n in range(count)}
    return len(existing - worked)

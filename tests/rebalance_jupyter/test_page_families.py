"""Protocols without a coordinator in the page: overlapping claims, lanes of nobody, states and events."""

import pytest

from rebalance_jupyter import show
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    ARROWS_IN_BOXES,
    HATCH,
    LANES,
    MEMBER,
    all_texts,
    click_lane,
    go_to,
    pixels,
    rgb,
    svg_texts,
    wait_until,
)
from tests.rebalance_jupyter.samples import BACK, LATE_VIEW, TWO_TOPICS, clock, ran, spans_of
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

MINUTE = 60_000
LATE = 38_000
"""A time at which c2 has yet to see that c4 has joined: c2 and c3 own partitions 4 and 5, nobody owns 2."""

COLUMN = """([x, top, height]) => {
  const element = document.querySelector("canvas");
  const column = element.getContext("2d").getImageData(Math.floor(x * element.width), top, 1, height).data;
  return Array.from({ length: height }, (_, y) => [...column.slice(4 * y, 4 * y + 3)]);
}"""
ROW = """([from, to, y]) => {
  const element = document.querySelector("canvas");
  const width = Math.floor((to - from) * element.width);
  const row = element.getContext("2d").getImageData(Math.ceil(from * element.width), y, width, 1).data;
  return Array.from({ length: width }, (_, x) => [...row.slice(4 * x, 4 * x + 3)]);
}"""


def column(page, partition, at_ms, *, lane=18, duration=MINUTE):
    """The colours of a lane from top to bottom, without the line below it."""
    found = page.evaluate(COLUMN, [at_ms / duration, partition * lane, lane - 1])
    return [tuple(colour) for colour in found]


def runs(colours):
    """Equal neighbours as one."""
    return [colour for i, colour in enumerate(colours) if not i or colour != colours[i - 1]]


@pytest.fixture
def late(opened):
    return opened(show(ran(LATE_VIEW, "rocketmq")))


def test_claims_that_overlap_are_both_visible_in_the_lane(late):
    names = ["c1", "c2", "c3", "c4"]
    b, c = rgb(PALETTE[1]), rgb(PALETTE[2])
    assert [owner for p, owner, since, until in spans_of(ran(LATE_VIEW, "rocketmq")) if p == 4] == [
        "c3",
        "c2",
        "c3",
    ]
    for partition in (4, 5):
        shown = column(late, partition, LATE)
        assert runs(shown) == [b, c]
        assert abs(shown.count(b) - shown.count(c)) <= 1
        assert set(column(late, partition, 20_000)) == {b}
        assert set(column(late, partition, 50_000)) == {c}
    assert set(column(late, 2, LATE)) <= HATCH
    assert all_texts(late, ".rbl-legend >> nth=0 >> span") == [
        *(f"{letter} {name}" for letter, name in zip("ABCD", names, strict=True)),
        "nobody",
        "several owners",
    ]
    assert svg_texts(late, ".rbl-several") == ["B C"] * 2


@pytest.mark.slow
def test_without_overlaps_no_legend_names_them(page):
    assert "several owners" not in all_texts(page, ".rbl-legend >> nth=0 >> span")


@pytest.mark.slow
def test_a_member_that_was_cut_off_shares_the_lane_in_the_order_of_taking_over(opened):
    two = {"t": [0]}
    trace = trace_of(
        [(0, started(name, "t")) for name in ("old", "new", "third")],
        round_at(1_000, 1, {"old": two, "new": {}, "third": {}}),
        round_at(50_000, 2, {"new": two}),
        round_at(70_000, 3, {"third": two}),
        topics={"t": 1},
    )
    page = opened(show(trace))
    colours = [rgb(colour) for colour in PALETTE[:3]]
    for at_ms, owners in ((20_000, 1), (60_000, 2), (90_000, 3)):
        assert runs(column(page, 0, at_ms, duration=100_000)) == colours[:owners]


@pytest.mark.slow
@pytest.mark.parametrize(("partitions", "lane"), [(150, 4), (600, 1)])
def test_in_low_lanes_owners_alternate(opened, partitions, lane):
    every = {"t": list(range(partitions))}
    trace = trace_of(
        (0, started("old", "t")),
        (0, started("new", "t")),
        round_at(1_000, 1, {"old": every, "new": {}}),
        round_at(50_000, 2, {"new": every}),
        topics={"t": partitions},
    )
    page = opened(show(trace))
    shown = page.evaluate(ROW, [0.6, 0.9, 7 * lane])
    counts = [sum(tuple(colour) == rgb(each) for colour in shown) for each in PALETTE[:2]]
    assert sum(counts) == len(shown)
    assert min(counts) > len(shown) / 3


@pytest.mark.slow
def test_of_many_partitions_the_colours_of_overlapping_claims_are_mixed(opened):
    every = {"t": list(range(1_200))}
    trace = trace_of(
        (0, started("old", "t")),
        (0, started("new", "t")),
        round_at(1_000, 1, {"old": every, "new": {}}),
        round_at(50_000, 2, {"new": every}),
        topics={"t": 1_200},
    )
    page = opened(show(trace))
    (mixed,) = pixels(page, 300, [75_000], lane=1, duration=100_000)
    both = zip(rgb(PALETTE[0]), rgb(PALETTE[1]), strict=True)
    assert mixed == pytest.approx([sum(pair) / 2 for pair in both], abs=1)


@pytest.mark.slow
def test_with_too_many_members_for_colours_overlaps_are_divided(opened):
    names = [f"m{n:02}" for n in range(30)]
    trace = trace_of(
        [(0, started(name, "t")) for name in names],
        round_at(1_000, 1, {name: {"t": [n]} for n, name in enumerate(names)}),
        round_at(50_000, 2, {"m01": {"t": [0, 1]}}),
        topics={"t": 30},
    )
    page = opened(show(trace))
    halves = [pixels(page, 0, [75_000], duration=100_000, y=y) for y in (3, 12)]
    assert halves == [[rgb("#5a5a5a")], [rgb("#b5b5b5")]]
    assert pixels(page, 2, [75_000], duration=100_000, y=3) == pixels(
        page, 2, [75_000], duration=100_000, y=12
    )
    assert "several owners" in all_texts(page, ".rbl-legend >> nth=0 >> span")


@pytest.mark.slow
def test_the_history_names_those_who_own_at_the_same_time(late):
    click_lane(late, 4, LATE, duration=MINUTE)
    lines = [line.partition(": ")[2] for line in all_texts(late, ".rbl-past li")]
    assert lines == ["c3", "c2, a part of it together with c3", "c3, a part of it together with c2"]


@pytest.mark.slow
def test_the_pointer_finds_the_owner_in_its_part_of_the_lane(late):
    go_to(late, LATE)
    box = late.locator("canvas").first.bounding_box()
    for part, name in ((0.2, "c2"), (0.8, "c3")):
        late.mouse.move(box["x"] + LATE / MINUTE * box["width"], box["y"] + (4 + part) * 18)
        assert svg_texts(late, ".rbl-row.rbl-hot title") == [name]
        tops = late.locator(".rbl-highlights .rbl-hot").evaluate_all(
            "(found) => found.map((each) => each.y.baseVal.value)"
        )
        assert [round(top / 18) for top in tops] == ([3, 4, 5] if name == "c2" else [4, 5])


@pytest.mark.slow
def test_a_lane_that_nobody_ever_owns_is_hatched_from_the_time_at_which_it_exists(opened):
    page = opened(show(ran(TWO_TOPICS, "rocketmq")))
    spans = spans_of(ran(TWO_TOPICS, "rocketmq"))
    begin = min(since for _, _, since, _ in spans)
    never = set(range(8)) - {partition for partition, *_ in spans}
    assert never == {0, 6, 7}  # the slice of s of the member without s, and the topic u of nobody
    times = range(begin + 1_500, MINUTE, 500)
    assert set(pixels(page, 0, times, duration=MINUTE)) <= HATCH
    for partition in (6, 7):
        assert set(pixels(page, partition, range(1_000, 29_500, 500), duration=MINUTE)) == {None}
        assert set(pixels(page, partition, range(30_500, MINUTE, 500), duration=MINUTE)) <= HATCH


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy", ["watcher", "rocketmq", "range+server-side", "cooperative-sticky+delay=60s"]
)
def test_states_of_the_group_and_its_members_have_patterns(opened, strategy):
    """A group at rest is plain, one that rebalances is hatched; no state of a member is without a pattern."""
    late_view = "  - {at: 29s, lag_view: {member: c2, by: 10s}}\n"
    scenario = LATE_VIEW if strategy in ("watcher", "rocketmq") else LATE_VIEW.replace(late_view, "")
    trace = ran(scenario, strategy)
    page = opened(show(trace))
    document = view_model(trace).document
    fills = page.locator(".rbl-states rect").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('fill').match(/\\w+(?=\\)?$)/)[0])"
    )
    expected = {"vacant": "transparent", "begun": "round", "between": "wait", "resting": "rest"}
    times = [at for at, _ in document["states"]] + [document["duration"]]
    shown = [
        state
        for (_, state), until, at in zip(document["states"], times[1:], times, strict=False)
        if until > at
    ]
    assert fills == [expected[document["machine"]["kinds"][state]] for state in shown]
    assert page.evaluate(ARROWS_IN_BOXES) == 0
    assert "ended" not in page.inner_text(".rbl-view h3")
    is_coordinated = "server" in strategy or "delay" in strategy
    assert ("Coordinator" in all_texts(page, "h4")) == is_coordinated
    seen = {state for member in document["members"] for _, state in member["states"]} - {"outside"}
    assert set(all_texts(page, ".rbl-legend >> nth=1 >> span")) - {""} == seen
    assert None not in pixels(page, 0, range(10_000, MINUTE, 1_000), canvas=LANES, y=8, duration=MINUTE)


@pytest.mark.slow
def test_events_of_the_family_are_listed_with_the_round_and_shown_at_their_dots(opened):
    trace = ran(LATE_VIEW, "watcher")
    page = opened(show(trace))
    go_to(page, 0)
    assert page.locator(".rbl-events").is_hidden()
    go_to(page, 35_000)
    document = view_model(trace).document
    (began,) = [each["began"] for each in document["rounds"] if each["began"] <= 35_000][-1:]
    c3 = [(at, document["sentences"][n]) for at, n in document["members"][2]["told"] if at >= began]
    lines = all_texts(page, ".rbl-events li")
    assert lines[0] == f"{clock(c3[0][0])} c1, c2 and c3: {c3[0][1]}"
    assert [line for line in lines[1:] if " c3: " in line] == [
        f"{clock(at)} c3: {said}" for at, said in c3[1:]
    ]
    assert len(c3) == 6
    at_ms, said = c3[2]
    dots = page.locator(".rbl-told").evaluate_all("(found) => found.map((each) => each.getAttribute('d'))")
    assert [path.count("M") for path in dots] == [len(member["told"]) for member in document["members"]]
    lanes = page.locator("canvas").nth(LANES).bounding_box()
    page.mouse.move(lanes["x"] + at_ms / MINUTE * lanes["width"], lanes["y"] + 2 * MEMBER + 8)
    wait_until(page, "!document.querySelector('.rbl-tip').hidden")
    assert f"{clock(at_ms)} {said}" in all_texts(page, ".rbl-tip div")
    page.mouse.move(lanes["x"] + 0.5 * lanes["width"] - 60, lanes["y"] + 2 * MEMBER + 8)
    wait_until(page, "document.querySelectorAll('.rbl-tip div').length === 4")


@pytest.mark.slow
def test_what_the_delay_does_is_beside_the_counts_of_the_round(opened):
    trace = ran(BACK, "cooperative-sticky+delay=60s")
    page = opened(show(trace))
    for each in view_model(trace).document["rounds"]:
        go_to(page, each["stable"])
        assert (each["report"] or "delay") in page.inner_text(".rbl-counts") or not each["report"]
    assert any(each["report"] for each in view_model(trace).document["rounds"])

"""Lanes in the page: who owns what, its history, members and their figures."""

import math
import re
from itertools import pairwise

import pytest

from coordinator_core.protocol import events as ev
from rebalance_jupyter import show
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    BORDER,
    DURATION,
    HATCH,
    LANES,
    MEMBER,
    MEMBERS,
    STEPS,
    all_texts,
    click_lane,
    go_to,
    history_of,
    owner_of,
    pixels,
    rgb,
    shown_ms,
    svg_texts,
    time_of,
    wait_until,
)
from tests.rebalance_jupyter.samples import CUT_OFF, MULTITUDE, NOBODY, clock, owned_at, ran, spans_of
from tests.rebalance_lab.traces.traces import round_at, started, trace_of

pytestmark = pytest.mark.slow

# --- ownership


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_gaps_are_hatched_handovers_marked_and_nothing_is_drawn_before_the_first_owner(opened, strategy):
    trace = ran(strategy=strategy)
    page = opened(show(trace))
    spans = spans_of(trace)
    gaps = marks = 0
    for (p, owner, _, until), (q, heir, since, _) in pairwise(spans):
        if p == q and since - until > 2_000:
            times = [until + (since - until) * n / 40 for n in range(4, 35)]
            assert set(pixels(page, p, times)) <= HATCH
            gaps += 1
        if p == q and owner != heir:
            assert BORDER in pixels(page, p, [since + 200 * n for n in range(6)])  # beside a gap
            marks += 1
    assert (gaps, marks) == (
        {"range": 2, "cooperative-sticky": 4}[strategy],
        {"range": 5, "cooperative-sticky": 4}[strategy],
    )
    assert pixels(page, 0, [0, 4_000, 8_000]) == [None] * 3


@pytest.mark.parametrize("width", [700, 811, 1_003])
def test_an_owner_to_the_end_is_drawn_to_the_last_pixel(opened, width):
    page = opened(show(ran()), viewport={"width": width, "height": 800})
    ends = [pixels(page, partition, [DURATION - 1]) for partition in range(6)]
    owners = [owner_of(ran(), partition, DURATION - 1) for partition in range(6)]
    assert ends == [[rgb(PALETTE[MEMBERS.index(owner)])] for owner in owners]


def test_what_nobody_owns_to_the_end_is_hatched_to_the_end(opened):
    trace = trace_of(
        (0, started("m", "t")),
        round_at(10_000, 1, {"m": {"t": [0]}}),
        (40_000, ev.MemberStopped(client="m", how="closed")),
        topics={"t": 1},
    )
    page = opened(show(trace))
    shown = pixels(page, 0, [20_000, *range(42_000, 100_000, 700)], duration=100_000)
    assert shown[0] == rgb(PALETTE[0])
    assert set(shown[1:]) == HATCH


def test_whoever_took_over_is_drawn_over_one_who_has_not_heard_yet(opened):
    trace = ran(CUT_OFF, "range")
    page = opened(show(trace))
    names = ["c-0", "c-1", "c-2"]
    both = 0
    for at_ms in range(83_500, 120_000, 4_000):
        for partition in range(4):
            owners = [
                o for p, o, since, until in spans_of(trace) if p == partition and since <= at_ms < until
            ]
            both += len(owners) > 1
            edges = [t for p, _, *ends in spans_of(trace) if p == partition for t in ends]
            if owners and min(abs(at_ms - edge) for edge in edges) > 600:  # a border is a pixel wide
                assert pixels(page, partition, [at_ms]) == [rgb(PALETTE[names.index(owners[-1])])]
    assert both > 3


def test_lanes_have_names_letters_and_marks(page):
    texts = svg_texts(page, ".rbl-stack >> nth=0 >> text")
    assert [text for text in texts if "clicks" in text] == [f"clicks-{n}clicks-{n}" for n in range(6)]
    wide = [owner for _, owner, since, until in spans_of(ran()) if until - since > 10_000]
    assert sorted(text for text in texts if "→" in text) == ["✕ B → A", "✕ B → C"]  # after the crash
    assert sorted(t for t in texts if len(t) == 1) == sorted("ABC"[MEMBERS.index(owner)] for owner in wide)
    assert svg_texts(page, ".rbl-mark title") == ["0:00:30.000 join c3", "0:01:30.000 crash c2"]
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == [
        "A c1",
        "B c2",
        "C c3",
        "nobody",
        "✕ its owner had ended",
    ]


@pytest.mark.parametrize(("count", "lane"), [(4, 18), (48, 12)])
def test_letters_are_within_lanes_of_every_height(opened, count, lane):
    owned = {"a": {"t": list(range(count))}}
    page = opened(show(trace_of((0, started("a", "t")), round_at(1_000, 1, owned), topics={"t": count})))
    heights = sorted(
        page.locator(".rbl-owner").evaluate_all("(all) => all.map((each) => +each.getAttribute('y'))")
    )
    assert len(heights) == count
    assert all(lane * row + 8 <= y <= lane * (row + 1) - 2 for row, y in enumerate(heights))


def test_lanes_are_striped_while_their_owner_is_paused(opened):
    trace = trace_of(
        (0, started("a", "t")),
        round_at(1_000, 1, {"a": {"t": [0]}}),
        (40_000, ev.MemberPaused(client="a")),
        (60_000, ev.MemberResumed(client="a")),
        topics={"t": 1},
    )
    page = opened(show(trace))
    colour = rgb(PALETTE[0])

    def during(from_ms):
        return set(pixels(page, 0, range(from_ms, from_ms + 19_000, 100), duration=100_000))

    assert (during(20_000), during(40_500), during(61_000)) == ({colour}, {colour, BORDER}, {colour})
    assert all_texts(page, ".rbl-legend >> nth=0 >> span") == ["A a", "nobody", "owner paused"]


def test_of_several_owners_the_part_of_the_one_that_is_paused_is_striped(opened):
    trace = trace_of(
        (0, started("a", "t")),
        (0, started("b", "t")),
        round_at(1_000, 1, {"a": {"t": [0]}, "b": {}}),
        (20_000, ev.MemberPaused(client="a")),
        round_at(40_000, 2, {"b": {"t": [0]}}),
        (80_000, ev.MemberResumed(client="a")),
        topics={"t": 1},
    )
    page = opened(show(trace))

    def during(from_ms, y):
        return set(pixels(page, 0, range(from_ms, from_ms + 15_000, 100), duration=100_000, y=y))

    upper, lower = rgb(PALETTE[0]), rgb(PALETTE[1])
    assert (during(60_000, 3), during(60_000, 14)) == ({upper, BORDER}, {lower})
    assert (during(82_000, 3), during(82_000, 14)) == ({upper}, {lower})


def lane_names(page):
    names = svg_texts(page, ".rbl-stack >> nth=0 >> text title")
    return [int(name.rpartition("-")[2]) for name in names]


def test_lanes_are_grouped_by_topic_or_by_member(page):
    for at_ms in (0, 20_000, 60_000, 100_000, DURATION - 1):
        go_to(page, at_ms)
        assert lane_names(page) == list(range(6))
        page.get_by_label("Lanes grouped by").select_option("member")
        owners = {p: owner_of(ran(), p, at_ms) or "" for p in range(6)}
        expected = sorted(range(6), key=lambda p: (owners[p], p))
        assert lane_names(page) == expected
        for row, partition in enumerate(expected):
            if owners[partition]:
                assert pixels(page, row, [at_ms]) == [rgb(PALETTE[MEMBERS.index(owners[partition])])]
        page.get_by_label("Lanes grouped by").select_option("topic")
        assert lane_names(page) == list(range(6))


def test_groups_by_member_follow_the_cursor_when_it_rests(page):
    page.get_by_label("Lanes grouped by").select_option("member")
    go_to(page, 0)
    page.focus(".rbl")
    for at_ms in STEPS:
        page.keyboard.press("ArrowRight")
        owners = {p: owner_of(ran(), p, at_ms) or "" for p in range(6)}
        assert lane_names(page) == sorted(range(6), key=lambda p: (owners[p], p))


# --- a partition's history


def test_a_click_shows_the_history_and_goes_to_that_time(page):
    assert page.locator(".rbl-past").is_hidden()
    for partition in range(6):
        click_lane(page, partition, 60_000)
        assert shown_ms(page) == pytest.approx(60_000, abs=400)
        assert page.inner_text(".rbl-past strong") == f"clicks-{partition}, owner by owner"
        assert all_texts(page, ".rbl-past li") == history_of(ran(), partition)
        outline = page.locator(".rbl-selected").bounding_box()
        lanes = page.locator("canvas").first.bounding_box()
        assert outline["y"] + outline["height"] / 2 == pytest.approx(
            lanes["y"] + 18 * (partition + 0.5), abs=2
        )


def test_a_click_on_a_name_shows_the_history_and_leaves_the_time(page):
    go_to(page, 50_000)
    page.locator(".rbl-stack >> nth=0 >> text", has_text="clicks-3").click(force=True)
    assert page.inner_text(".rbl-past strong") == "clicks-3, owner by owner"
    assert time_of(page) == clock(50_000)


def test_a_click_on_members_or_states_goes_to_that_time(page):
    for canvas, selector in ((1, "canvas >> nth=1"), (1, ".rbl-band")):
        go_to(page, 0)
        page.locator(selector).scroll_into_view_if_needed()
        lanes = page.locator("canvas").nth(canvas).bounding_box()
        page.mouse.click(lanes["x"] + lanes["width"] / 3, page.locator(selector).bounding_box()["y"] + 8)
        assert shown_ms(page) == pytest.approx(60_000, abs=400)


def test_up_and_down_choose_a_partition(page):
    page.focus(".rbl")
    for key, partition in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 0)):
        page.keyboard.press(key)
        assert all_texts(page, ".rbl-past li") == history_of(ran(), partition)


def test_a_partition_that_nobody_ever_owned(opened):
    page = opened(show(ran(NOBODY)))
    click_lane(page, 1, 5_000, duration=20_000)
    assert page.inner_text(".rbl-past strong") == "t-1: nobody ever owned it"
    assert all_texts(page, ".rbl-past li") == []


# --- members


def generation_at(trace, client, at_ms):
    joins = [
        e.event.generation
        for e in trace.events
        if isinstance(e.event, ev.Joined) and e.event.client == client and e.at_ms <= at_ms
    ]
    return joins[-1] if joins else None


def lag_at(trace, client, at_ms):
    """The last measure, or None if the member owns other partitions since."""
    lag, taken_ms = None, None
    for line in trace.events:
        event = line.event
        if line.at_ms > at_ms:
            break
        if isinstance(event, ev.LagMeasured) and line.at_ms != taken_ms:
            lag = event.by_client.get(client, 0.0)
        elif getattr(event, "client", None) == client and isinstance(event, (ev.Revoked, ev.Lost)):
            lag = None
        elif getattr(event, "client", None) == client and getattr(event, "added", None):
            lag, taken_ms = None, line.at_ms
    return lag


def test_members_have_their_figures(page):
    for at_ms in (0, 2_400, 8_332, 29_000, 31_000, 32_360, 60_000, 100_000, 150_000, DURATION):
        go_to(page, at_ms)
        labels = page.locator(".rbl-row").evaluate_all(
            "(rows) => rows.map((row) => row.getAttribute('aria-label'))"
        )
        for name, label in zip(MEMBERS, labels, strict=True):
            generation = generation_at(ran(), name, at_ms)
            assert label.startswith(f"{name}: ")
            if name == "c2" and at_ms >= 90_000:
                assert label == "c2: crashed"
            elif name == "c3" and at_ms < 30_000:
                assert label == "c3: not started"
            elif generation is None:
                assert "·" not in label
            else:
                owned, lag = len(owned_at(ran(), name, at_ms)), lag_at(ran(), name, at_ms)
                shown = "" if lag is None or not owned else f" · lag {math.floor(round(lag, 1) + 0.5):,}"
                load = f", load {100 * owned} of 398/s{', 151 %' if owned == 6 else ''}" if owned else ""
                assert re.fullmatch(rf"{name}: \w+ g{generation} · {owned}{shown}{load}", label)


def test_the_lag_of_partitions_without_an_owner_is_beside_the_legend(page):
    go_to(page, 130_000)
    text = page.inner_text(".rbl-legend >> nth=1")
    (shown,) = re.findall(r"partitions without an owner: lag ([\d,]+)", text)
    assert int(shown.replace(",", "")) > 1_000
    go_to(page, 60_000)
    assert "without an owner" not in page.inner_text(".rbl-legend >> nth=1")


def test_lanes_of_members_have_their_hues_and_the_patterns_of_the_legend(page):
    """At rest the hue is plain; in a round it is pale with lines, and nothing of it is left after a crash."""
    patterns = page.locator(".rbl-legend >> nth=1 >> span").evaluate_all(
        "(found) => found.map((each) => [each.textContent, each.firstChild.dataset.pattern])"
    )
    assert dict(patterns) == {"joining": "round", "waiting": "wait", "stable": "rest", "crashed": "ended"}
    for i in range(3):
        hue = rgb(PALETTE[i])
        assert set(pixels(page, i, range(60_000, 80_000, 100), canvas=LANES, lane=MEMBER, y=8)) == {hue}
    joining = set(pixels(page, 0, range(6_000, 11_000, 100), canvas=LANES, lane=MEMBER, y=8))
    pale = tuple(round(part + (255 - part) * 0.6) for part in rgb(PALETTE[0]))
    assert pale in joining
    assert rgb(PALETTE[0]) not in joining
    assert min(sum(colour) for colour in joining) < sum(pale) / 2
    crashed = set(pixels(page, 1, range(100_000, 170_000, 100), canvas=LANES, lane=MEMBER, y=8))
    assert all(max(colour) - min(colour) <= 30 for colour in crashed)
    assert pixels(page, 2, [10_000], canvas=LANES, lane=MEMBER, y=8) == [None]


def test_callbacks_are_ticks_above_and_below_the_lanes(page):
    width = page.locator("canvas").first.bounding_box()["width"]
    drawn = page.locator(".rbl-calls").evaluate_all("(found) => found.map((each) => each.getAttribute('d'))")
    for i, (member, path) in enumerate(zip(view_model(ran()).document["members"], drawn, strict=True)):
        ticks = [tuple(map(float, tick)) for tick in re.findall(r"M([\d.]+) ([\d.]+)h3", path)]
        assert len(ticks) == len(member["calls"]) > 0
        for (left, top), (at_ms, kind, _) in zip(ticks, member["calls"], strict=True):
            assert left - ticks[0][0] == pytest.approx(
                (at_ms - member["calls"][0][0]) / DURATION * width, abs=0.2
            )
            assert top == MEMBER * i + (0 if kind == "assigned" else 12)


def test_figures_beside_the_lanes_are_explained(page):
    assert "beside: generation, partitions, lag" in page.inner_text(".rbl-legend >> nth=1")


def test_members_below_the_first_ones_are_drawn_when_they_are_scrolled_to(opened):
    page = opened(show(ran(MULTITUDE.replace("count: 30", "count: 24"))))  # of more there is a map
    box, last = page.locator(".rbl-scroll"), page.locator(".rbl-calls").last
    assert not last.get_attribute("d")
    box.evaluate("(box) => { box.scrollTop = box.scrollHeight; }")
    wait_until(page, "document.querySelectorAll('.rbl-calls')[23].getAttribute('d')")
    canvas, overlay = (box.locator(name).bounding_box() for name in ("canvas", ".rbl-plot"))
    assert canvas["y"] + canvas["height"] == pytest.approx(overlay["y"] + overlay["height"], abs=1)
    assert canvas["height"] < 0.6 * overlay["height"]

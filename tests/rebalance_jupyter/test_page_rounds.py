"""The group and its rounds in the page, what links the panels, and strategies side by side."""

from itertools import pairwise

import pytest

from rebalance_jupyter import compare_view, show
from rebalance_jupyter.view_model import view_model
from rebalance_lab.verdicts.looks import PALETTE
from tests.rebalance_jupyter.browser import (
    ARROWS_IN_BOXES,
    DURATION,
    LANES,
    MEMBERS,
    STABLE,
    all_texts,
    go_to,
    hover_lane,
    owner_of,
    pixels,
    rgb,
    shown_ms,
    svg_texts,
)
from tests.rebalance_jupyter.samples import ran, told_at
from tests.rebalance_lab.traces.traces import revoked, round_at, started, trace_of

pytestmark = pytest.mark.slow

# --- coordinator


def test_the_band_has_the_states_with_their_times(page):
    states = view_model(ran()).document["states"]
    lanes = page.locator("canvas").first.bounding_box()
    boxes = page.locator(".rbl-states rect").evaluate_all(
        "(found) => found.map((each) => each.getBoundingClientRect().left)"
    )
    assert boxes == pytest.approx([lanes["x"] + at / DURATION * lanes["width"] for at, _ in states], abs=1)


def test_the_machine_has_all_states_and_moves_and_no_arrow_crosses_a_box(page):
    machine = view_model(ran()).document["machine"]
    assert svg_texts(page, ".rbl-state text") == [name for name, *_ in machine["states"]]
    assert page.locator(".rbl-edge").count() == len(machine["moves"])
    assert page.evaluate(ARROWS_IN_BOXES) == 0


# --- this round


def test_each_round_has_its_sentence_counts_causes_and_flows(page):
    rounds = view_model(ran()).document["rounds"]
    for number, each in enumerate(rounds):
        for at_ms in (each["began"], each["stable"]):
            go_to(page, at_ms)
            assert page.inner_text(".rbl-number") == f"Round {number + 1} of {len(rounds)}, with the start"
            assert page.inner_text(".rbl-sentence") == told_at(each, at_ms)
            counts = ", ".join(f"{what} {count}" for what, count in each["counts"].items() if count)
            said = [counts, f"because {'; '.join(each['causes'])}", *filter(None, [each["waited"]])]
            assert page.inner_text(".rbl-counts") == " · ".join(said)
            assert page.locator(".rbl-gave").count() == len(each["flows"])
            assert svg_texts(page, ".rbl-flow > text") == [str(count) for _, _, count in each["flows"]]
        go_to(page, each["began"] - 1)
        assert page.inner_text(".rbl-sentence") != each["sentence"]


def test_the_flow_says_what_each_member_gave_and_got(page):
    for each in view_model(ran(strategy="cooperative-sticky")).document["rounds"]:
        go_to(page, each["stable"])
        labels = svg_texts(page, ".rbl-node text:nth-of-type(2)")
        for i, name in enumerate(MEMBERS):
            own = each["members"].get(str(i))
            gave = own["revoked"] + own["lost"] if own else 0
            got = own["assigned"] if own else 0
            assert labels[i] == f"{name}{f' −{gave}' if gave else ''}{f' +{got}' if got else ''}"
        absent = page.locator(".rbl-absent").count()
        assert absent == len(MEMBERS) - len(each["members"])


# --- hover and focus link the panels


def hot(page):
    """By panel: names of hot members; which partitions; how many rounds."""
    rows = svg_texts(page, ".rbl-row.rbl-hot title")
    nodes = svg_texts(page, ".rbl-node.rbl-hot title")
    tops = page.locator(".rbl-highlights .rbl-hot").evaluate_all(
        "(found) => found.map((each) => each.y.baseVal.value)"
    )
    return rows, nodes, [round(top / 18) for top in tops], page.locator(".rbl-took .rbl-hot").count()


def expected_hot(name, at_ms):
    rounds = view_model(ran()).document["rounds"]
    number = str(MEMBERS.index(name))
    owned = [p for p in range(6) if owner_of(ran(), p, at_ms) == name]
    return [name], [name], owned, sum(number in each["members"] for each in rounds)


def test_to_point_at_a_partition_links_its_owner_in_every_panel(page):
    go_to(page, 60_000)
    for partition, at_ms in ((0, 60_000), (1, 20_000), (1, 160_000), (4, 100_000)):
        hover_lane(page, partition, at_ms)
        assert hot(page) == expected_hot(owner_of(ran(), partition, at_ms), 60_000)
    hover_lane(page, 1, 100_000)  # nobody's
    assert hot(page) == ([], [], [], 0)
    hover_lane(page, 0, 60_000)
    page.mouse.move(1, 1)
    assert hot(page) == ([], [], [], 0)


def test_to_point_at_a_member_links_it_in_every_panel(page):
    for selector in (".rbl-row", ".rbl-node"):
        go_to(page, 60_000)
        for i, name in enumerate(MEMBERS):
            page.locator(selector).nth(i).hover(force=True)
            assert hot(page) == expected_hot(name, 60_000)


def test_focus_links_too_and_members_are_walked_with_up_and_down(page):
    go_to(page, 60_000)
    page.locator(".rbl-row").first.focus()
    for name, key in (
        ("c1", "ArrowDown"),
        ("c2", "ArrowDown"),
        ("c3", "ArrowDown"),
        ("c3", "ArrowUp"),
        ("c2", "Tab"),
    ):
        assert hot(page) == expected_hot(name, 60_000)
        page.keyboard.press(key)
    assert hot(page) == ([], [], [], 0)
    assert page.locator(".rbl-row[tabindex='0']").count() == 1


def test_what_is_linked_follows_the_cursor(page):
    page.locator(".rbl-row").first.focus()
    for at_ms in (0, *STABLE, DURATION - 1):
        go_to(page, at_ms)
        page.locator(".rbl-row").first.focus()
        assert hot(page) == expected_hot("c1", at_ms)


def test_to_choose_a_partition_by_key_links_its_owner(page):
    go_to(page, 60_000)
    page.focus(".rbl")
    page.keyboard.press("ArrowDown")
    assert hot(page) == expected_hot("c1", 60_000)


# --- several strategies


def test_strategies_stand_one_above_another_in_step(both):
    assert all_texts(both, ".rbl-view h3") == ["range", "cooperative-sticky"]
    tops = [view.bounding_box()["y"] for view in both.locator(".rbl-view").all()]
    assert tops == sorted(tops)
    models = [view_model(ran(strategy=name)).document for name in ("range", "cooperative-sticky")]
    go_to(both, 0)
    both.focus(".rbl")
    steps = []
    while shown_ms(both) < DURATION:
        both.keyboard.press("ArrowRight")
        steps.append(at_ms := shown_ms(both))
        expected = [[r for r in model["rounds"] if r["began"] <= at_ms] for model in models]
        shown = [told_at(rounds[-1], at_ms) if rounds else "before the first round" for rounds in expected]
        assert all_texts(both, ".rbl-sentence") == shown
        states = [[state for when, state in model["states"] if when <= at_ms][-1] for model in models]
        assert svg_texts(both, ".rbl-lit text") == states
    times = [[entry["began"], entry["stable"]] for model in models for entry in model["rounds"]]
    assert {*steps} - {DURATION} <= {at_ms for pair in times for at_ms in pair}
    assert all(any(abs(at_ms - step) < 900 for step in steps) for pair in times for at_ms in pair)
    assert all(later - step >= 50 for step, later in pairwise(steps))
    cursors = both.locator(".rbl-cursor").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('x1'))"
    )
    assert (len(cursors), len(set(cursors))) == (8, 1)


def test_a_member_is_linked_in_every_strategy(both):
    both.locator(".rbl-more summary").first.click()  # shows the members of all strategies
    both.locator(".rbl-row").nth(1).hover(force=True)
    assert svg_texts(both, ".rbl-row.rbl-hot title") == ["c2", "c2"]
    assert svg_texts(both, ".rbl-node.rbl-hot title") == ["c2", "c2"]


def test_what_failed_is_said_before_the_views(both):
    assert both.locator(".rbl-error + .rbl-verdict").count() == 1
    assert all_texts(both, ".rbl-error") == ["broken: it <failed>"]


def test_ids_are_unique_and_used(both):
    both.focus(".rbl")
    both.keyboard.press("End")
    ids = both.locator("[id]").evaluate_all("(found) => found.map((each) => each.id)")
    used = both.locator("[marker-end]").evaluate_all(
        "(found) => found.map((each) => each.getAttribute('marker-end'))"
    )
    assert len(ids) == len(set(ids))
    assert {use.removeprefix("url(#").removesuffix(")") for use in used} <= set(ids)
    assert len(set(used)) == 4  # two machines, two flows


def test_the_second_view_of_a_document_has_other_ids(opened):
    ids = []
    for _ in range(2):
        page = opened(show(ran()))
        ids.append(page.locator("svg [id]").evaluate_all("(found) => found.map((each) => each.id)"))
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])


# --- traces that are not of one run


def short_and_long():
    """The same group, seen after 50 and after 100 seconds."""
    owned = {"a": {"t": [0]}, "b": {"t": [1]}}
    begun = [(0, started("a", "t")), (0, started("b", "t"))]
    return [
        trace_of(begun, round_at(1_000, 1, owned), topics={"t": 2}, duration_ms=duration_ms)
        for duration_ms in (50_000, 100_000)
    ]


def edges(drawn):
    box = drawn.bounding_box()
    return box["x"], box["x"] + box["width"]


def test_a_trace_that_ends_earlier_is_drawn_up_to_its_end(opened):
    page = opened(compare_view(short_and_long()))
    page.locator(".rbl-more summary").first.click()
    assert pixels(page, 0, [40_000, 60_000], duration=100_000) == [rgb(PALETTE[0]), None]
    drawn = pixels(page, 0, [40_000, 60_000], canvas=LANES, y=8, duration=100_000)
    assert [colour is None for colour in drawn] == [False, True]
    ends = [edges(band.locator(".rbl-states rect").last)[1] for band in page.locator(".rbl-band").all()]
    left, right = edges(page.locator("canvas").first)
    assert ends == pytest.approx([(left + right) / 2, right], abs=1)


def test_at_the_end_a_member_has_what_it_had_last(opened):
    page = opened(compare_view(short_and_long()))
    page.locator(".rbl-more summary").first.click()
    page.focus(".rbl")
    page.keyboard.press("End")
    page.locator(".rbl-row").nth(1).hover(force=True)
    assert [view.locator(".rbl-highlights .rbl-hot").count() for view in page.locator(".rbl-view").all()] == [
        1,
        1,
    ]


def test_traces_of_one_strategy_are_told_apart_as_in_the_table(opened):
    page = opened(compare_view(short_and_long()))
    assert all_texts(page, ".rbl-view h3") == ["range (1)", "range (2)"]
    assert all_texts(page, ".rbl-figures thead button") == ["range (1)", "range (2)"]


def test_traces_of_several_scenarios_are_named_by_both(opened):
    page = opened(compare_view([ran(strategy="range"), short_and_long()[1]]))
    assert page.inner_text("h2") == "scale-out, by-hand"
    assert all_texts(page, ".rbl-view h3") == ["range (1) on scale-out", "range (2) on by-hand"]


# --- arrows between members


def swapped(count):
    """Two members that exchange all they have."""
    low, high = {"t": list(range(count))}, {"t": list(range(count, 2 * count))}
    return trace_of(
        [(0, started("a", "t")), (0, started("b", "t"))],
        round_at(1_000, 1, {"a": low, "b": high}),
        (50_000, revoked("a", low)),
        (50_000, revoked("b", high)),
        round_at(50_001, 2, {"a": high, "b": low}),
        topics={"t": 2 * count},
    )


def test_what_goes_both_ways_is_drawn_side_by_side(opened):
    page = opened(show(swapped(3)))
    go_to(page, 60_000)
    one, other = (float(line.get_attribute("y1")) for line in page.locator(".rbl-gave").all())
    assert abs(one - other) > 6
    first, second = (each.bounding_box() for each in page.locator(".rbl-flow > text").all())
    assert abs(first["y"] - second["y"]) > first["height"]


def test_an_arrow_of_many_partitions_is_thinner_than_its_head(opened):
    page = opened(show(swapped(200)))
    go_to(page, 60_000)
    head = float(page.locator(".rbl-flow marker").get_attribute("markerWidth"))
    for line in page.locator(".rbl-gave").all():
        assert float(line.get_attribute("stroke-width")) <= head / 2

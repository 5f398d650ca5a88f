"""Findings made by hand, as a page."""

import re
from dataclasses import replace
from functools import cache

from rebalance_spark.choices import Statistic
from rebalance_spark.findings import OnFront
from rebalance_spark.page import as_page
from tests.rebalance_spark.made_findings import PLAIN, TWO, Page, figures, findings_of, texts_of


@cache
def page_of_two():
    return as_page(TWO)


def test_the_page_has_a_table_for_each_statistic_and_the_best_is_bold():
    page = Page(page_of_two())
    assert page.tables["mean of 10"] == [
        ["metric", "range", "sticky"],
        ["rounds", "3", "3"],
        ["moved_partitions", "50", "20*"],
        ["imbalance", "1.25*", "1.5"],
    ]
    assert page.tables["worst of 10"][2] == ["moved_partitions", "54", "24*"]
    assert {f"{statistic} of 10" for statistic in Statistic} <= set(page.tables)


def test_the_best_is_what_the_metric_calls_better(monkeypatch):
    for module in ("findings", "report_tables"):
        monkeypatch.setattr(f"rebalance_spark.{module}.higher_is_better", lambda name: name == "imbalance")
    assert Page(as_page(PLAIN)).tables["mean of 10"][2:] == [
        ["moved_partitions", "50", "20*"],
        ["imbalance", "1.25", "1.5*"],
    ]


def test_the_page_says_what_became_of_the_rows_and_which_scenario_was_the_worst():
    statuses = {**TWO.statuses, "range": {"ok": 1_230, "error": 3, "timeout": 1}}
    page = Page(as_page(replace(PLAIN, statuses=statuses)))
    assert page.tables["Rows"] == [
        ["strategy", "ok", "error", "timeout"],
        ["range", "1,230", "3", "1"],
        ["sticky", "10", "0", "0"],
    ]
    assert page.tables["the worst scenario"][1] == ["rounds", "day-7", "day-7"]


def test_the_page_says_how_often_one_strategy_is_better_than_another():
    changed = replace(PLAIN, wins={**TWO.wins, ("rounds", "sticky", "range"): (0, 0, 0)})
    tables = Page(as_page(changed)).tables
    assert tables["imbalance"] == [
        ["better than", "range", "sticky"],
        ["range", "", "50.0 %"],
        ["sticky", "50.0 %", ""],
    ]
    assert tables["rounds"][2] == ["sticky", "", ""]


def test_the_page_is_headed_by_what_was_scored_with_what():
    made = replace(PLAIN, fidelities=["plan", "protocol"], versions=["rebalance-lab 1", "rebalance-lab 2"])
    texts = texts_of(as_page(made))
    assert texts.count("1,234 scenarios, plan and protocol fidelity") == 2  # the title, and the heading
    assert "rebalance-lab 1; rebalance-lab 2" in texts


def test_the_page_fetches_nothing_and_runs_nothing():
    page = Page(page_of_two())
    policies = [v for tag, key, v in page.attributes if (tag, key) == ("meta", "content")]
    assert "default-src 'none'; style-src 'unsafe-inline'" in policies
    assert not {"script", "link", "img", "iframe", "object", "embed", "image", "base"} & set(page.elements)
    for _, key, value in page.attributes:
        assert not key.startswith("on")
        if key in ("src", "href", "xlink:href", "srcset", "action", "data"):
            assert value.startswith("#")
        if not key.startswith("xmlns") and key != "rdf:resource":
            assert "http" not in (value or "")
    assert "@import" not in page_of_two()
    assert re.findall(r"url\((?!#)", page_of_two()) == []


def test_the_same_findings_are_the_same_bytes():
    assert page_of_two() == as_page(replace(TWO))


def test_the_page_does_not_say_when_it_was_made():
    assert not re.search(r"20\d\d-\d\d-\d\d", page_of_two())


def test_every_metric_has_a_plot_and_so_has_the_front():
    labels = [v for tag, key, v in Page(page_of_two()).attributes if (tag, key) == ("svg", "aria-label")]
    assert labels == [
        "Each strategy by moved_partitions and imbalance",
        *(f"Distribution of {metric} by strategy" for metric in TWO.metrics),
    ]


def test_strategies_with_the_same_means_share_a_name_on_the_front():
    front = [OnFront("sticky", 20.0, 1.5, True), OnFront("range", 20.0, 1.5, True)]
    assert "sticky, range" in texts_of(as_page(replace(PLAIN, front=front)))
    assert "sticky, range" not in texts_of(page_of_two())


def test_without_a_front_there_is_no_plot_of_it():
    page = as_page(replace(TWO, front=[]))
    assert "Moves against imbalance" not in page
    assert "Distributions" in page


NASTY = "<script>alert('x')</script>&amp;\"$\\nothing{$"


def test_whatever_a_strategy_or_scenario_is_called_stands_there_as_it_is():
    means = {NASTY: {"rounds": 1.0}, "_$x$": {"rounds": 2.0}}
    made = findings_of(means, front=[OnFront(NASTY, 1.0, 1.0, True), OnFront("_$x$", 2.0, 2.0, False)])
    made = replace(
        made,
        versions=[NASTY],
        figures={**made.figures, ("rounds", NASTY): figures(1.0, worst_scenario=NASTY)},
    )
    page = as_page(made)
    read = Page(page)
    assert "script" not in read.elements
    assert read.tables["mean of 10"][0] == ["metric", NASTY, "_$x$"]
    assert read.tables["the worst scenario"][1][1] == NASTY
    drawn = texts_of(page[page.index("<svg") :])
    assert drawn.count(NASTY) >= 4  # on the front, in the key, and in tables
    key = texts_of(page[page.index('<ul class="key">') : page.index("<h2>Figures")])
    assert NASTY in key
    assert "_$x$" in key


def test_one_strategy_alone_has_no_best_and_no_pairs():
    page = Page(as_page(findings_of({"range": {"rounds": 3.0}})))
    assert page.tables["mean of 10"] == [["metric", "range"], ["rounds", "3"]]
    assert page.tables["rounds"] == [["better than", "range"], ["range", ""]]


def test_a_metric_that_a_strategy_does_not_have_is_a_dash():
    means = {"range": {"rounds": 3.0, "messages": 7.0}, "failing": {"rounds": 2.0}}
    made = findings_of(means)
    page = Page(as_page(made))
    assert page.tables["mean of 10"][1:] == [["rounds", "3", "2*"], ["messages", "7", "-"]]
    assert page.tables["the worst scenario"][2] == ["messages", "day-7", "-"]


def test_findings_of_rows_that_all_failed_are_a_page_too():
    failed = {"range": {"ok": 0, "error": 9, "timeout": 1}}
    page = Page(as_page(replace(findings_of({"range": {}}), statuses=failed)))
    assert page.tables["Rows"][1] == ["range", "0", "9", "1"]
    assert page.tables["mean of 10"] == [["metric", "range"]]


def test_there_may_be_more_strategies_than_colours():
    means = {f"strategy-{n}": {"rounds": float(n)} for n in range(20)}
    front = [OnFront(name, each["rounds"], each["rounds"], False) for name, each in means.items()]
    assert len(Page(as_page(findings_of(means, front=front))).tables["mean of 10"][0]) == 21


def test_units_and_definitions_are_in_the_page():
    made = replace(PLAIN, units={"rounds": "rounds"}, definitions={"rounds": "The number of rebalances."})
    assert "The number of rebalances. (rounds)" in texts_of(as_page(made))


def test_the_worst_scenarios_lead_to_their_views():
    page = Page(as_page(PLAIN, {"day-7": "page-scenarios/0 1.html"}))
    assert ("a", "href", "page-scenarios/0%201.html") in page.attributes

"""Findings made by hand: as a page, as CSV, and as tables on a terminal."""

import csv
import io
import re
from dataclasses import replace
from functools import cache
from html import unescape
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest
from rich.console import Console

from rebalance_spark.advising import Advice
from rebalance_spark.choices import Statistic
from rebalance_spark.commands.report import as_csv, print_findings
from rebalance_spark.findings import Figures, Findings, OnFront, Part
from rebalance_spark.gains import Gains
from rebalance_spark.page import as_page
from rebalance_spark.paired import Difference
from rebalance_spark.parts import Subjects
from rebalance_spark.plots import is_heavy, label, overlap, plot
from rebalance_spark.report_tables import differences_table, notes


def figures(mean, *, worst_scenario="day-7"):
    return Figures(
        10, mean, mean + 1, mean + 2, mean + 3, mean + 4, worst_scenario, [mean, mean + 1, mean + 5]
    )


def findings_of(means, **changes):
    """Findings of {strategy: {metric: mean}}."""
    strategies = list(means)
    metrics = list(dict.fromkeys(metric for each in means.values() for metric in each))
    made = {(m, s): figures(mean) for s, each in means.items() for m, mean in each.items()}
    plain = Findings(
        scenarios=1_234,
        fidelities=["protocol"],
        versions=["rebalance-lab 0.1.0"],
        strategies=strategies,
        metrics=metrics,
        figures=made,
        statuses={s: {"ok": 10, "error": 0, "timeout": 0} for s in strategies},
        wins={(m, s, o): (5, 3, 2) for m in metrics for s in strategies for o in strategies if s != o},
        common=10,
    )
    return replace(plain, **changes)


def constant(made):
    """The figures of findings without distributions."""
    return {key: each._replace(curve=[1.0]) for key, each in made.figures.items()}


TWO = findings_of(
    {
        "range": {"rounds": 3.0, "moved_partitions": 50.0, "imbalance": 1.25},
        "sticky": {"rounds": 3.0, "moved_partitions": 20.0, "imbalance": 1.5},
    },
    front=[OnFront("sticky", 20.0, 1.5, True), OnFront("range", 50.0, 1.25, False)],
)
PLAIN = replace(TWO, figures=constant(TWO), front=[])
"""The same without plots, which are most of the work on a page."""


class Page(HTMLParser):
    """Tables of a page by caption, as rows of cells with a star where one is best; and all attributes."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.attributes, self.elements = {}, [], []
        self._open, self._text, self._rows, self._caption = [], "", [], ""
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, key, value) for key, value in attributes]
        if tag != "meta":
            self._open.append(tag)
        self._text, self._best = "", tag == "b"
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])

    def handle_startendtag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += [(tag, key, value) for key, value in attributes]

    def handle_data(self, data):
        self._text += data

    def handle_endtag(self, tag):
        assert self._open.pop() == tag
        if tag in ("td", "th"):
            self._rows[-1].append(self._text + "*" * self._best)
        elif tag == "caption":
            self._caption = self._text
        elif tag == "table":
            self.tables[self._caption] = self._rows


def texts_of(page):
    return [unescape(t) for t in re.findall(r">([^<>]+)<", page)]


@cache
def page_of_two():
    return as_page(TWO)


# --- the page


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


# --- CSV


def test_csv_has_a_row_for_each_strategy_and_metric_with_every_statistic():
    rows = list(csv.DictReader(io.StringIO(as_csv(TWO))))
    assert [(r["strategy"], r["metric"]) for r in rows] == [
        (s, m) for s in ("range", "sticky") for m in ("rounds", "moved_partitions", "imbalance")
    ]
    assert rows[2] == {
        "strategy": "range",
        "metric": "imbalance",
        "unit": "",
        "rows": "10",
        "mean": "1.25",
        "p50": "2.25",
        "p95": "3.25",
        "p99": "4.25",
        "worst": "5.25",
        "worst_scenario": "day-7",
    }


def test_csv_leaves_out_what_there_is_not_and_quotes_what_needs_it():
    made = findings_of({'a,"b"': {"rounds": 1 / 3}, "failing": {}})
    (row,) = csv.DictReader(io.StringIO(as_csv(made)))
    assert (row["strategy"], row["mean"]) == ('a,"b"', "0.333333333333")


def test_csv_of_nothing_is_its_head():
    assert as_csv(findings_of({"range": {}})).splitlines() == [
        "strategy,metric,unit,rows,mean,p50,p95,p99,worst,worst_scenario"
    ]


# --- the terminal


def printed(findings, *statistics, width=200, terminal=False, everything=True):
    text = io.StringIO()
    console = Console(
        file=text,
        width=width,
        highlight=False,
        emoji=False,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        _environ={},
    )
    print_findings(findings, list(statistics) or [Statistic.mean], console, everything=everything)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_a_wide_terminal_shows_all_strategies_beside_one_another():
    assert printed(TWO) == [
        "1,234 scenarios, protocol fidelity (rebalance-lab 0.1.0)",
        "",
        "sticky: no other strategy is better in moved_partitions or imbalance and as good in the other."
        " --baseline STRATEGY adds the change from today's strategy.",
        "",
        "mean of 10        range  sticky",
        "rounds                3       3",
        "moved_partitions     50      20",
        "imbalance          1.25     1.5",
        "",
        "front, of 10 scenarios  moved_partitions  imbalance",
        "sticky                                20        1.5",
        "(range)                               50       1.25",
    ]


MANY = findings_of({f"a-rather-long-name-{n}": {"rounds": n * 1e6, "messages": 2.0} for n in range(5)})


def test_a_narrow_terminal_shows_the_rest_below_and_cuts_nothing():
    for width in range(32, 130):
        lines = printed(MANY, width=width)
        assert max(map(len, lines[2:])) <= width
        shown = [word for line in lines if line.startswith("mean ") for word in line.split()[3:]]
        assert shown == list(MANY.strategies)
        rounds = [word for line in lines if line.startswith("rounds") for word in line.split()[1:]]
        assert rounds == ["0", "1,000,000", "2,000,000", "3,000,000", "4,000,000"]
        assert not any("…" in line for line in lines)


def test_as_many_strategies_stand_beside_one_another_as_fit():
    width = len("mean of 10  ") + 2 * len("a-rather-long-name-0  ")
    per_table = [len(line.split()) - 3 for line in printed(MANY, width=width) if line.startswith("mean ")]
    assert per_table == [2, 2, 1]
    per_table = [len(line.split()) - 3 for line in printed(MANY, width=200) if line.startswith("mean ")]
    assert per_table == [5]


def test_a_name_that_is_wider_than_the_terminal_is_folded_and_its_metrics_are_whole():
    long = "/a/folder/of/somebody" * 5 + ".py:Mine"
    means = {long: {"rounds": 1_000_000.0, "messages": 5.0}, "range": {"rounds": 2.0, "messages": 3.0}}
    lines = printed(findings_of(means), width=60)
    assert max(map(len, lines)) <= 60
    first, second = (i for i, line in enumerate(lines) if line.startswith("mean "))
    assert "".join(line.removeprefix("mean of 10").strip() for line in lines[2 : first + 1]) == long
    rows = [line.split() for line in lines[first + 1 : second]]
    assert rows == [["rounds", "1,000,000"], ["messages", "5"], []]
    assert lines[second].split() == ["mean", "of", "10", "range"]


SEVERAL = ["avoidable_moves", "imbalance", "moved_partitions", "optimality_gap", "rounds"]


@pytest.mark.parametrize(
    ("metrics", "balance", "shown"),
    [
        (SEVERAL, "imbalance", ["imbalance", "moved_partitions", "rounds"]),
        (SEVERAL, "optimality_gap", ["moved_partitions", "optimality_gap", "rounds"]),
        (["rounds", "custom"], "imbalance", ["rounds"]),
        (["avoidable_moves", "custom"], "imbalance", ["avoidable_moves", "custom"]),
    ],
)
def test_the_short_form_has_the_headlines_and_the_metric_of_the_front(metrics, balance, shown):
    made = findings_of({name: dict.fromkeys(metrics, 1.0) for name in ("a", "b")}, balance=balance)
    everything, short = printed(made)[3:], printed(made, everything=False)[3:]
    rest = [] if shown == metrics else ["", "--all shows the other metrics"]
    assert [line.split()[0] for line in everything] == metrics
    assert [line.split()[0] for line in short[: len(shown)]] == shown
    assert short[len(shown) :] == rest


def test_each_statistic_asked_for_has_its_table():
    heads = [line.split()[0] for line in printed(TWO, Statistic.p99, Statistic.worst) if " range " in line]
    assert heads == ["p99", "worst"]


def test_the_best_is_bold_and_green_where_there_is_one():
    lines = printed(TWO, terminal=True)
    (moves,) = (line for line in lines if "moved_partitions" in line and "50" in line)
    assert re.search(r"\x1b\[1;32m *20\x1b\[0m", moves)
    assert not re.search(r"\x1b\[1;32m *50", moves)
    (rounds,) = (line for line in lines if line.startswith("rounds"))
    assert "\x1b[1;32m" not in rounds


def test_scenarios_that_are_not_compared_are_named():
    sentence = "8 scenarios are left out, because not all completed them: range did not complete 8 (day-7)"
    assert printed(replace(TWO, left_out=[sentence]))[1] == sentence
    assert sentence in texts_of(as_page(replace(PLAIN, left_out=[sentence])))


def test_names_are_no_markup():
    made = findings_of({"[red]x[/]": {"rounds": 1.0}}, versions=["[b]1[/b]"])
    lines = printed(made)
    assert lines[0].endswith("([b]1[/b])")
    assert lines[2].split() == ["mean", "of", "10", "[red]x[/]"]


def test_a_strategy_without_a_figure_and_findings_without_metrics_can_be_shown():
    made = findings_of({"range": {"rounds": 3.0}, "failing": {}})
    assert printed(made)[2:] == ["mean of 10  range  failing", "rounds          3        -"]
    assert printed(findings_of({"range": {}}))[2:] == ["mean of 10  range"]


# --- the strategy of today, parts and sweeps

CHANGES = {
    ("moved_partitions", "sticky"): Difference(-30.0, -33.0, -27.0),
    ("imbalance", "sticky"): Difference(0.25, 0.2, 0.31),
    ("rounds", "sticky"): Difference(0.0, -0.1, 0.1),
}
CHANGED = {key: made._replace(change=CHANGES.get(key)) for key, made in TWO.figures.items()}
ADVICE = Advice(
    "range",
    ["moved_partitions", "imbalance"],
    ["range", "sticky"],
    Subjects("group", ["g-0", "g-1", "g-2"], np.array([0, 1, 1, 2])),
    np.array([0, 1, 1]),
    np.array([0, 8, 6]),
    np.array([np.nan, 0.75, 0.75]),
    np.array([np.nan, 0.01, 0.01]),
    np.array([0, 0, 0]),
    {
        "moved_partitions": Gains(np.array([np.nan, -30.0, -32.0]), np.array([np.nan, 1.0, 1.0])),
        "imbalance": Gains(np.array([np.nan, 0.0, 0.0]), np.array([np.nan, 0.0, 0.0])),
        "rounds": Gains(np.array([np.nan, 0.4, 0.4]), np.array([np.nan, 0.1, 0.1])),
    },
    {"sticky": ["rounds"]},
    (),
    0.05,
)
ADVISED = replace(TWO, figures=CHANGED, advice=ADVICE)
VERDICT = [
    "switch 2 of 3 groups to sticky: -31 [-32.4, -29.7] moved_partitions, 0 [0, 0] imbalance; but"
    " +0.4 [+0.257, +0.531] rounds",
    "leave 1 of 3 groups as they are, with range (1 of them have no figures)",
    "1 of 3 groups does not have enough data for a switch yet: score more hours (--keys) or --draws",
]


def test_the_verdict_comes_first_and_names_what_becomes_worse():
    lines = printed(ADVISED)
    assert lines[2:5] == VERDICT
    assert lines[5].startswith("A group switches to a strategy that is known to be better in at least one of")
    texts = texts_of(as_page(ADVISED))
    assert texts.index(VERDICT[0]) < texts.index("Moves against imbalance")


def test_after_the_rule_come_what_is_not_measured_and_what_a_switch_takes():
    weighted = "lag-aware+tolerance=5%"
    advice = replace(ADVICE, strategies=["range", weighted])
    made = replace(ADVISED, fidelities=["plan"], advice=advice)
    _, changes, agreeing, stops, clients = notes(made)
    assert changes == (
        "Changes are of the median group that switches, with intervals of 95 %. The mean difference of a"
        " group is drawn towards those of the others, as far as chance would explain it."
    )
    assert agreeing == (
        "The figures of each scenario alone give the strategy of its group in 75 % of them, in the mean."
    )
    assert stops.startswith("Plan fidelity does not measure how long partitions stop")
    assert clients == (
        "Kafka's own clients do not have lag-aware+tolerance=5%; kafka-python, aiokafka and the Consumer of"
        " rebalance_kafka do. Under lag-aware+tolerance=5%, members must report their rates; otherwise"
        " partitions are counted."
    )
    assert {stops, clients} <= set(texts_of(as_page(made)))
    assert {stops, clients} <= set(printed(made, width=300))
    *_, assumed = notes(replace(ADVISED, fidelities=["protocol"]))
    assert assumed.startswith("Members without process_rate, if there are any, handle records at once")


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ((1, 1), "Each scenario has 1 event. "),
        ((2, 2), "Each scenario has 2 events. "),
        ((1, 1_500), "Each scenario has 1 to 1,500 events. "),
    ],
)
def test_what_happens_to_the_groups_is_in_the_assumptions(events, text):
    assert notes(replace(ADVISED, fidelities=["protocol"], events=events))[-1].startswith(text)


def test_a_metric_that_some_scenarios_lack_has_the_number_of_the_others():
    made = replace(TWO, common=12)
    assert printed(made)[4:6] == [
        "mean of 12               range  sticky",
        "rounds, of 10                3       3",
    ]


def test_differences_to_the_strategy_of_today_have_intervals_and_a_colour_if_they_are_clear():
    lines = printed(ADVISED)
    at = next(n for n, line in enumerate(lines) if line.startswith("less range, of 10 [95 %]"))
    assert [line.split(None, 1) for line in lines[at + 1 : at + 4]] == [
        ["rounds", "0 [-0.1, +0.1]"],
        ["moved_partitions", "-30 [-33, -27]"],
        ["imbalance", "+0.25 [+0.2, +0.31]"],
    ]
    rows = {row[0].text: row[1].style for row in differences_table(ADVISED, ADVISED.metrics).rows}
    assert rows == {"rounds": "", "moved_partitions": "green", "imbalance": "yellow"}


def test_csv_has_the_differences_and_their_intervals():
    rows = {(r["strategy"], r["metric"]): r for r in csv.DictReader(io.StringIO(as_csv(ADVISED)))}
    found = rows["sticky", "imbalance"]
    assert [found[f"difference{end}"] for end in ("", "_low", "_high")] == ["0.25", "0.2", "0.31"]
    assert rows["range", "imbalance"]["difference"] == ""


def test_parts_have_a_table_for_moves_and_one_for_balance():
    means = {("moved_partitions", "range"): figures(5.0), ("moved_partitions", "sticky"): figures(4.0)}
    made = replace(PLAIN, by="team", parts=[Part("blue", 7, means), Part("green", 0, {})])
    lines = printed(made)
    at = next(n for n, line in enumerate(lines) if line.startswith("moved_partitions by team"))
    assert [line.split() for line in lines[at + 1 : at + 3]] == [
        ["blue", "7", "5", "4"],
        ["green", "0", "-", "-"],
    ]
    assert "<h2>By team</h2>" in as_page(made)


def test_parts_have_the_differences_to_the_strategy_of_today():
    change = figures(4.0)._replace(change=Difference(-1.0, -2.0, -0.5))
    parts = [Part("blue", 7, {("rounds", "range"): figures(5.0), ("rounds", "sticky"): change})]
    made = replace(ADVISED, by="team", parts=[*parts, Part("green", 0, {})])
    lines = printed(made)
    at = next(n for n, line in enumerate(lines) if line.startswith("rounds less range [95 %]"))
    assert [line.split(None, 1) for line in lines[at + 1 : at + 3]] == [
        ["blue", "-1 [-2, -0.5]"],
        ["green", "-"],
    ]
    assert Page(as_page(made)).tables["rounds less range [95 %]"][1] == ["blue", "-1 [-2, -0.5]"]


SWEEP = findings_of(
    {
        "optimal+tolerance=1%": {"rounds": 3.0},
        "optimal+tolerance=5%": {"rounds": 2.0},
        "sticky": {"rounds": 4.0},
    }
)


def test_a_sweep_has_its_parameters_as_columns():
    assert [line.split() for line in printed(SWEEP)[2:6]] == [
        ["mean", "of", "10", "tolerance", "rounds"],
        ["optimal", "1%", "3"],
        ["optimal", "5%", "2"],
        ["sticky", "-", "4"],
    ]
    rows = list(csv.DictReader(io.StringIO(as_csv(SWEEP))))
    assert [(r["strategy"], r["tolerance"]) for r in rows][1:] == [
        ("optimal+tolerance=5%", "5%"),
        ("sticky", "-"),
    ]


def test_units_and_definitions_are_in_the_page():
    made = replace(PLAIN, units={"rounds": "rounds"}, definitions={"rounds": "The number of rebalances."})
    assert "The number of rebalances. (rounds)" in texts_of(as_page(made))


def test_the_worst_scenarios_lead_to_their_views():
    page = Page(as_page(PLAIN, {"day-7": "page-scenarios/0 1.html"}))
    assert ("a", "href", "page-scenarios/0%201.html") in page.attributes


# --- plots


def test_a_metric_with_one_figure_is_a_sentence_in_place_of_a_plot():
    same = {key: each._replace(curve=[3.0, 3.0]) for key, each in TWO.figures.items() if key[0] == "rounds"}
    page = as_page(replace(TWO, figures=TWO.figures | same))
    assert "The same in all scenarios and under all strategies: rounds." in texts_of(page)
    assert "Distribution of rounds" not in page


def test_a_heavy_tail_has_a_logarithmic_axis():
    assert is_heavy(1_000.0, 10.0, 1.0)
    assert not is_heavy(100.0, 10.0, 1.0)
    assert not is_heavy(15.0, 0.0, 1.0)


def test_labels_of_close_points_do_not_overlap():
    front = [OnFront(f"a-strategy-{n}", 10 + n * 1e-3, 1 + n * 1e-3, False) for n in range(8)]
    labels = [(point.moves, point.balance, point.strategy) for point in front]
    figure, axes = plot(7.2, 3.8)
    axes.scatter([x for x, _, _ in labels], [y for _, y, _ in labels])
    boxes = label(figure, axes, labels)
    assert len(boxes) == 8
    assert not any(overlap(one, other) for one, other in combinations(boxes, 2))

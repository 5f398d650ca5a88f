"""The sentences of a comparison agree with its table and with one another: of figures, of simulated runs."""

import re
from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from coordinator_core.registry.hookspecs import MetricSpec
from coordinator_core.registry.registry import default_registry
from rebalance_lab.scenarios.scenario import parse_scenario
from rebalance_lab.simulation.run import simulate
from rebalance_lab.verdicts.answers import answers
from rebalance_lab.verdicts.comparison import Comparison, Remedy
from rebalance_lab.verdicts.comparison_tables import MARK, front_line, tables_of
from rebalance_lab.verdicts.dimensions import dimension_of
from rebalance_lab.verdicts.grid import Candidate, Figure
from rebalance_lab.verdicts.of_traces import comparison_of_traces
from rebalance_lab.verdicts.reasons import STOPS
from rebalance_lab.verdicts.rule import Order
from rebalance_lab.verdicts.tables import as_text
from tests.examples import scaled

SPECS = [
    MetricSpec(STOPS, "partition seconds", float, group="stops", headline=True),
    MetricSpec("moved_partitions", "partitions", float, group="moves", headline=True),
    MetricSpec("rounds", "rounds", float, group="cost", headline=True),
    MetricSpec("max_lag", "records", float, group="lag", headline=True),
    MetricSpec("lag_at_end", "records", float, group="lag"),
    MetricSpec("utilization", "ratio", float, group="balance", optional=True),
]
LOAD = ("max_lag", "lag_at_end", "utilization")
NUMBER = r"\d[\d,]*(?:\.\d+)?"


class Said:
    """A verdict taken apart: what each of its sentences says of which candidates."""

    def __init__(self, comparison):
        self.comparison = comparison
        self.metric = next(m for m in comparison.metrics if m.name == STOPS)
        self.labels = [comparison.label(candidate) for candidate in comparison.candidates]
        self.sentences = answers(comparison)
        found = [text for text in self.sentences if re.search("stops? partitions|In one run", text)]
        assert len(found) <= 1
        self.verdict = found[0] if found else ""

    def named(self, pattern):
        """The positions of the candidates in the first group of a pattern, or None if it is not there."""
        match = re.search(pattern, self.verdict)
        if match is None:
            return None
        return [self.labels.index(name) for name in re.split(", | and | or ", match.group(1))]

    def order(self, one, other):
        return self.comparison.order(self.metric, one, other)

    def median(self, number):
        return self.comparison.figures(self.metric)[number].median

    def starred(self):
        (table,) = tables_of(self.comparison, everything=False, units=False)
        row = next(row for row in table.rows if row[0].text == STOPS)
        return [i for i, cell in enumerate(row[1:]) if MARK in cell.text]

    def kinds(self):
        """Which of the four verdicts it is."""
        patterns = (" partitions least: .* seconds", "alike, within", "^Not known from", "^In one run")
        found = [bool(re.search(pattern, self.verdict)) for pattern in patterns]
        return [found[0] and not found[2], *found[1:]]


def check(comparison):
    """Fail if two sentences contradict each other, or one of them the table."""
    said = Said(comparison)
    working = comparison.working
    named_out = [
        name
        for text in said.sentences
        if (match := re.match("(.+) (?:is|are) left out: ", text))
        for name in re.split(", | and ", match.group(1))
    ]
    out = [said.labels[i] for i in range(len(said.labels)) if i not in working]
    assert sorted(named_out) == (sorted(out) if len(said.labels) > 1 else [])
    if len(working) < 2:
        assert not said.verdict
        return
    is_least, is_alike, is_unknown, is_one = kinds = said.kinds()
    assert sum(kinds) == 1, said.verdict
    assert is_one == (len(comparison.seeds) == 1)
    assert ("ll others" in said.verdict) <= bool(out)
    winners = said.named("^(?:All others)?(.+?) stops? partitions least: ") if is_least else []
    assert sorted(winners) == sorted(said.starred())
    others = [i for i in working if i not in winners]
    assert all(i in working for i in winners)
    assert all(
        said.order(i, j) is Order.BETTER and said.median(i) < said.median(j)
        for i in winners
        for j in others
        if is_least
    )
    pairs = {said.order(i, j) for i, j in combinations(working, 2)}
    assert is_alike == (pairs == {Order.ALIKE} and not is_one)
    if is_least:
        ties = {said.order(i, j) for i, j in combinations(winners, 2)} <= {Order.ALIKE}
        assert ("stops them least is not known" in said.verdict) is not ties
        if (most := said.named(r"\. ([^.]+?) stops? them most")) is not None:
            greatest = max(map(said.median, working))
            assert most == [i for i in working if said.median(i) == greatest]
    if is_unknown:
        contenders = said.named("which of (.+?) stops partitions least") or working
        beaten = said.named(r"seconds\. (.+?) do(?:es)? not: ") or []
        assert sorted([*contenders, *beaten]) == sorted(working)
        assert all(any(said.order(j, i) is Order.BETTER for j in working) for i in beaten)
        assert not any(said.order(j, i) is Order.BETTER for i in contenders for j in working)
    check_change(said, winners)
    check_figures(said)
    check_shares(said, winners)
    check_remedies(said)


def check_change(said, winners):
    comparison = said.comparison
    now, label = comparison.now, said.labels[comparison.now]
    instead, dominating = said.named(r"Choose (.+?) instead of "), said.named(r"Choose (.+?) for ")
    stays = "Nothing has to change" in said.verdict
    assert sum([instead is not None, dominating is not None, stays]) <= 1
    better = [
        i for i in comparison.working if said.order(i, now) is Order.BETTER and now in comparison.working
    ]
    lighter, heavier = check_load(said, [*(instead or []), *(dominating or [])])
    if instead is not None:
        assert f"instead of {label}." in said.verdict
        assert now not in winners
        assert set(instead) <= set(better if now in comparison.working else comparison.working)
        assert not winners or set(instead) <= set(winners) or set(heavier) & set(winners)
        assert not lighter
    leading = [i for i in comparison.working if now in comparison.working and comparison.dominates(i, now)]
    on_front = [
        said.labels.index(name) for name in front_line(comparison).partition(": ")[2].split(", ") if name
    ]
    if lighter:
        assert set(dominating) <= set(lighter)
    elif dominating is not None:
        assert set(dominating) <= set(leading)
        assert set(dominating) <= set(on_front) or not (set(leading) - set(heavier)) & set(on_front)
        assert set(better) <= set(heavier)
    elif set(leading) - set(heavier):
        assert instead is not None
    if stays:
        assert not better
        assert f"than {label}." in said.verdict
        assert not any(
            said.order(i, now) is Order.ALIKE and comparison.order(headline, i, now) is Order.BETTER
            for i in comparison.working
            for headline in comparison.headlines
        )
    if now in comparison.working:
        check_price(said, instead or dominating or [])
    if set(better) - set(heavier) and not lighter:
        assert instead is not None
    refused = said.named(r"\. ([^.]+?) stops? them less than [^.]+ not carry the load as well: ")
    assert refused == (better if better and not lighter and set(better) <= set(heavier) else None)


def check_load(said, chosen):
    """Return the candidates that lessen and that worsen an overload or the lag that is left in all seeds.

    A chosen one worsens none. Nothing has to change only where there is none.
    """
    comparison = said.comparison
    if comparison.now not in comparison.working or not comparison.is_decided:
        return [], []
    harms = [harm(candidate) for candidate in comparison.candidates]
    now = harms[comparison.now]
    if "Nothing has to change" in said.verdict:
        assert not any(value > 0 for pairs in now for value, _ in pairs)
    worse = [i for i in comparison.working if any(map(is_less, now, harms[i]))]
    lighter = [i for i in comparison.working if i not in worse and any(map(is_less, harms[i], now))]
    assert not set(chosen) & set(worse)
    return lighter, worse


def harm(candidate):
    """The overload and the lag that is left in each seed, 0 if they do no harm, and the figures."""
    most, left, loaded = (candidate.figures[name].values for name in LOAD)
    return (
        [(0.0 if value <= 1 else value, value) for value in loaded],
        [(0.0 if v <= max(high / 2, 1) else v, v) for v, high in zip(left, most, strict=True)],
    )


def is_less(one, other):
    return all(
        a < 0.99 * b
        for ours, theirs in zip(one, other, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )


def check_price(said, chosen):
    """What is worse than now under one that is to be chosen is a price, and nothing else."""
    comparison = said.comparison
    _, _, price = said.verdict.partition("The price: ")
    parts = price.removesuffix(".").split("; ")
    for metric in comparison.metrics:
        is_load = metric.name in LOAD
        if not is_load and metric not in comparison.front_metrics:
            continue
        worse = [
            i for i in chosen if comparison.compare(dimension_of(metric), comparison.now, i) is Order.BETTER
        ]
        told = [part for part in parts if f"{metric.name} " in part]
        assert len(told) == bool(worse), said.verdict
        for part in told:
            _, _, under = part.partition(" under ")
            named = [said.labels.index(name) for name in re.split(", | and ", under)] if under else chosen
            assert named == worse


def check_shares(said, winners):
    """Each percentage has its noun; a share of the stopped time is that of all seeds."""
    nouns = " of what it can handle| less than| of the stopped time| of the records came then|:"
    for text in said.sentences:
        assert len(re.findall(r"\d %", text)) == len(re.findall(rf"\d %(?:{nouns})", text)), text
    comparison = said.comparison
    several = " of all seeds" if len(comparison.seeds) > 1 else ""
    for candidate, label in zip(comparison.candidates, said.labels, strict=True):
        for text in said.sentences:
            found = re.match(rf"{re.escape(label)}, (\d+) % of the stopped time(.*?): ", text)
            if found:
                sums = {n: sum(f.values) for n, f in candidate.figures.items() if n.startswith("stopped_")}
                whole = sums.pop(STOPS)
                assert found.group(2) == several
                assert any(abs(100 * part / whole - int(found.group(1))) < 0.6 for part in sums.values())
    shown = re.search(rf"\((?:under )?({NUMBER})(?: to ({NUMBER}))? % of the records", said.verdict)
    if shown and "under" not in shown.group():
        shares = [comparison.candidates[i].figures["capacity_lost"].median for i in winners]
        ends = {as_text(100 * end) for end in (min(shares), max(shares))}
        assert {one for one in shown.groups() if one} == ends


def check_remedies(said):
    """What is compared is not told as a remedy again, and nothing helps only where nothing does."""
    comparison = said.comparison
    for i, label in enumerate(said.labels):
        for text in said.sentences:
            found = re.match(
                rf"{re.escape(label)}, .*?(?:What|No) (.*?)(?:helps|change|setting).*?: (.*)\.$", text
            )
            if found:
                is_beaten = any(said.order(j, i) is Order.BETTER for j in comparison.working)
                assert (found.group(1) != "") == is_beaten
                told = {part.split(": ")[0] for part in re.split(", |; ", found.group(2))}
                assert told.isdisjoint(said.labels)


def check_figures(said):
    """Every number is a median of the table, a percentage of two of them, or a number of seeds."""
    comparison = said.comparison
    medians = {as_text(f.median) for c in comparison.candidates for f in c.figures.values()}
    text = said.verdict
    for label in sorted(said.labels, key=len, reverse=True):
        text = text.replace(label, "X")
    for percent in re.findall(rf"({NUMBER}(?: to {NUMBER})?) % less than", text):
        known = {
            f"{100 * (1 - said.median(i) / said.median(j)):.0f}"
            for i in comparison.working
            for j in comparison.working
            if said.median(j) > said.median(i)
        }
        assert set(percent.split(" to ")) <= known
    text = re.sub(rf"(?:over )?{NUMBER}(?: to {NUMBER})? % less than", "", text)
    text = re.sub(r"within 1 %|\(6 are needed\)", "", text)
    text = text.replace(f"{len(comparison.seeds)} seeds", "")
    text = re.sub(r"\([^()]+ % of the records came then\)", "", text)
    assert set(re.findall(NUMBER, text)) <= medians, text


VALUES = st.one_of(
    st.sampled_from([0.0, 10.0, 10.05, 10.2, 20.0, 5.0]), st.floats(0.5, 500).map(lambda x: round(x, 3))
)


@st.composite
def comparisons(draw):
    seeds = draw(st.sampled_from([1, 2, 5, 6, 9, 10, 20]))
    names = ["range", "sticky", "eager", "own", "mine"][: draw(st.integers(1, 5))]
    first = draw(st.lists(VALUES, min_size=seeds, max_size=seeds))
    candidates = []
    for name in names:
        factor = draw(st.sampled_from([0.5, 0.995, 1.0, 1.005, 1.02, 2.0]))
        noise = draw(st.lists(st.sampled_from([1.0, 1.0, 1.0, 1.5, 0.7]), min_size=seeds, max_size=seeds))
        stops = [
            value * factor * (n if draw(st.booleans()) else 1.0)
            for value, n in zip(first, noise, strict=True)
        ]
        rest = {m.name: Figure((float(draw(st.integers(0, 3))),) * seeds) for m in SPECS[1:4]}
        rest |= {m.name: Figure((draw(st.sampled_from([0.0, 0.9, 2.0, 3.0])),) * seeds) for m in SPECS[4:]}
        rest |= parts_of(stops, draw(st.integers(0, 3)))
        rest["capacity_lost"] = Figure((draw(st.sampled_from([0.00001, 0.02, 0.5])),) * seeds)
        findings = draw(st.sampled_from([(), (), (), ("nobody works; start somebody",), ("it failed",)]))
        candidates.append(Candidate(name, {STOPS: Figure(tuple(stops)), **rest}, findings=findings))
    now = draw(st.integers(0, len(names) - 1))
    tried = st.sets(st.sampled_from([*names, "x=1s", "y=2s"]))
    remedies = {
        name: [Remedy(label, 9.0, 3.0, helps=draw(st.booleans())) for label in sorted(draw(tried) - {name})]
        for name in names
    }
    return Comparison("day", range(seeds), SPECS, candidates, now=now, remedies=remedies)


def parts_of(stops, first):
    """Parts of stopped times, of which one is all of it in each seed, in turns."""
    return {
        f"stopped_{part}_partition_seconds": Figure(
            tuple(value if (seed + first) % 3 == number else 0.0 for seed, value in enumerate(stops))
        )
        for number, part in enumerate(("messages", "application", "away"))
    }


@settings(max_examples=scaled(2_000))
@given(comparisons())
@example(
    Comparison(
        "day",
        range(6),
        SPECS,
        [
            Candidate(
                name, {m.name: Figure((0.0,) * 6) for m in SPECS}, findings=("nobody works; start one",)
            )
            for name in ("range", "sticky", "eager", "own", "mine")
        ],
    )
)
def test_no_two_sentences_of_a_comparison_contradict_each_other_or_the_table(comparison):
    check(comparison)


EVENTS = (
    {"at": "15s", "join": {"id": "late", "topics": ["t"], "process_rate": 50}},
    {"at": "15s", "leave": "m-0"},
    {"at": "15s", "crash": "m-1"},
    {"at": "14s", "rolling_restart": {"every": "5s", "down": "3s"}},
    {"at": "15s", "pause": "m-0", "for": "4s"},
)


@settings(max_examples=scaled(300))
@given(
    st.integers(2, 4),
    st.integers(1, 7),
    st.sampled_from([20, 100]),
    st.sampled_from(EVENTS),
    st.sampled_from(["25s", "32s", "45s"]),
    st.lists(
        st.sampled_from(["range", "roundrobin", "sticky", "cooperative-sticky", "range+static"]),
        min_size=2,
        max_size=3,
        unique=True,
    ),
    st.sampled_from([1, 6]),
)
def test_no_two_sentences_of_simulated_groups_contradict_each_other_or_the_table(
    members, partitions, rate, event, duration, strategies, seeds
):
    document = {
        "name": "small",
        "duration": duration,
        "topics": {"t": {"partitions": partitions, "rate": 30}},
        "members": [{"id": "m", "count": members, "topics": ["t"], "process_rate": rate}],
        "events": [event],
        "config": {"session.timeout.ms": 6_000, "max.poll.records": 40},
    }
    registry = default_registry()
    runs = [
        simulate(parse_scenario({**document, "seed": seed}, where="small"), strategy, registry)
        for strategy in strategies
        for seed in range(seeds)
    ]
    made = comparison_of_traces(runs, registry)
    check(made)
    for text in answers(made):
        assert ("static members" in text) <= text.startswith("range+static,")
    if made.load:
        assert all(candidate.figures["lag_at_end"].median > 1 for candidate in made.candidates)


def test_a_load_that_one_of_the_groups_can_carry_is_not_said_to_be_too_high():
    """The batches of the first group have one record each."""
    registry, runs = default_registry(), []
    for name, records in (("small", 1), ("large", 500)):
        document = {
            "name": name,
            "duration": "60s",
            "topics": {"t": {"partitions": 4, "rate": 60}},
            "members": [
                {"id": "m", "count": 2, "topics": ["t"], "process_rate": 60, "batch_overhead": "200ms"}
            ],
            "config": {"max.poll.records": records},
        }
        runs.append(simulate(parse_scenario(document, where=name), "range", registry))
    assert comparison_of_traces(runs[:1], registry).load
    assert comparison_of_traces(runs, registry).load == ()


def test_a_group_without_members_is_not_said_to_have_static_ones():
    document = {
        "name": "small",
        "duration": "60s",
        "topics": {"t": {"partitions": 4, "rate": 60}},
        "members": [{"id": "m", "topics": ["t"]}],
        "events": [{"at": "20s", "leave": "m"}, {"at": "40s", "restart": "m"}],
    }
    run = simulate(parse_scenario(document, where="small"), "range", default_registry())
    (why,) = answers(comparison_of_traces([run], default_registry()))
    assert re.match(r"range, \d+ % of the stopped time: the group had no members", why)


def test_a_member_with_an_overload_has_to_have_less_if_one_of_the_strategies_does_it():
    """Under range the first of two members gets 120 records/s, under sticky 80."""
    document = {
        "name": "hot",
        "duration": "4m",
        "topics": {"t": {"partitions": 3, "rates": [70, 50, 10]}},
        "members": [{"id": "c", "count": 2, "topics": ["t"], "process_rate": 100}],
    }
    registry = default_registry()
    runs = {
        name: [
            simulate(parse_scenario({**document, "seed": seed}, where="hot"), name, registry)
            for seed in range(6)
        ]
        for name in ("range", "sticky")
    }
    for own, told in (
        (runs["range"], ""),
        ([*runs["range"], *runs["sticky"]], "Choose sticky for utilization 0.801 (now 1.2), lag_at_end 0"),
    ):
        made = comparison_of_traces(own, registry)
        assert not any("Nothing has to change" in text for text in answers(made))
        assert told in " ".join(answers(made))

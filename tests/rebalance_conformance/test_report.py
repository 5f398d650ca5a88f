"""A report in a notebook: the counterexample with the wrong partitions marked, and a table of all checks."""

import html
import re

import pytest
from IPython.lib.pretty import pretty

from rebalance_conformance.suite import check_assignor
from rebalance_lab.verdicts.tables import COLOURS
from tests.approved import approved
from tests.rebalance_conformance import wrong

MARKED = re.compile(r"<mark[^>]*>(.*?)</mark>")


def shown(assignor, *checks):
    return check_assignor(assignor, checks=checks, examples=8)._repr_html_()


def rows(page):
    """The texts of the cells of all tables, with marked parts in brackets."""
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    plain = [[re.sub(r"<[^>]*>", "", MARKED.sub(r"[\1]", cell)) for cell in row] for row in cells]
    return [[html.unescape(cell) for cell in row] for row in plain]


class Takes(wrong.Cooperative):
    def assign(self, cluster, group):
        return wrong.dealt(cluster, group)


SHOWN = {
    "a partition of two, found by two checks": (
        wrong.gives_to_two,
        "assigned-twice",
        "more-members",
        "raises",
    ),
    "a partition of nobody": (wrong.drops_the_last, "partition-left-out"),
    "a stranger": (wrong.gives_to_nobody, "assigned-to-unknown-member"),
    "a partition that does not exist": (wrong.counts_from_one, "unknown-partition"),
    "what members owned before": (Takes, "takes-from-owner"),
    "an exception": (wrong.fails_for_three_members, "raises"),
    "no failure": (wrong.dealt, "raises", "assigned-twice"),
}


def test_faults_are_drawn_with_their_groups_and_the_wrong_partitions_are_marked():
    texts = {}
    for title, (assignor, *checks) in SHOWN.items():
        page = shown(assignor, *checks)
        about = re.findall(r"<p>(.*?)</p>|<summary>(.*?)</summary>", page)
        said = [re.sub(r"<[^>]*>", "", html.unescape(one or other)) for one, other in about]
        lines = [*said, *(" | ".join(row).strip() for row in rows(page))]
        texts[title] = re.sub(r"py:\d+\)", "py)", "\n".join(lines))
    approved("conformance-report", texts)


@pytest.mark.parametrize(
    ("check", "sign", "style"),
    [("assigned-twice", "✗", "red"), ("raises", "✓", "green"), ("not-sticky", "-", "")],
)
def test_each_check_has_a_row_with_its_sign_in_its_colour(check, sign, style):
    page = shown(wrong.gives_to_two, check)
    (row,) = (row for row in rows(page) if row[0] == sign)
    assert row[1] == check
    colour = f'style="color:{COLOURS[style]}">{sign}' if style else f'title="not applicable">{sign}'
    assert colour in page


def test_names_are_text_and_not_markup():
    def assign(cluster, group):
        return {"<b>": []}

    assign.__name__ = "<i>"
    page = shown(assign, "assigned-to-unknown-member")
    assert "&lt;b&gt;" in page
    assert "<i>" not in page


def test_plain_text_has_a_line_a_check_and_the_failures():
    report = check_assignor(wrong.gives_to_two, checks=["raises", "assigned-twice", "not-sticky"], examples=8)
    lines = pretty(report).splitlines()
    assert lines[1:4] == [
        "passed          raises",
        "failed          assigned-twice",
        "not applicable  not-sticky",
    ]
    assert (lines[4], len(lines)) == ("assigned-twice: orders-0 went to 'c1' and to 'c2'", 7)

"""A report in a notebook: the counterexample with the wrong partitions marked, and a table of all checks."""

import html
import re

import pytest
from IPython.lib.pretty import pretty

from rebalance_conformance.suite import check_assignor
from rebalance_lab.verdicts.tables import COLOURS
from tests.rebalance_conformance import wrong

MARKED = re.compile(r"<mark[^>]*>(.*?)</mark>")


def shown(assignor, *checks):
    return check_assignor(assignor, checks=checks, examples=8)._repr_html_()


def rows(page):
    """The texts of the cells of all tables, with marked parts in brackets."""
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)]
    plain = [[re.sub(r"<[^>]*>", "", MARKED.sub(r"[\1]", cell)) for cell in row] for row in cells]
    return [[html.unescape(cell) for cell in row] for row in plain]


def test_a_wrong_assignment_is_drawn_with_its_group_and_the_partition_is_marked():
    page = shown(wrong.gives_to_two, "assigned-twice")
    assert rows(page)[:3] == [
        ["member", "topics", "assigned"],
        ["c1", "orders", "[orders-0]"],
        ["c2", "orders", "[orders-0]"],
    ]
    assert "topics and their partitions: orders (1)" in page
    assert "fails 1 of 1 checks" in page
    assert "the group, for rebalance-lab assign</summary>" in page


def test_a_partition_that_nobody_got_has_a_row_of_its_own():
    assert rows(shown(wrong.drops_the_last, "partition-left-out"))[1:3] == [
        ["c1", "orders", ""],
        ["nobody", "", "[orders-0]"],
    ]


def test_who_is_not_in_the_group_is_marked():
    assert rows(shown(wrong.gives_to_nobody, "assigned-to-unknown-member"))[2] == [
        *("[nobody]", "not a member of the group", ""),
    ]


def test_a_partition_that_does_not_exist_is_marked_beside_the_one_left_out():
    found = rows(shown(wrong.counts_from_one, "unknown-partition"))
    assert found[1:3] == [["c1", "orders", "[orders-1]"], ["nobody", "", "orders-0"]]


def test_what_members_owned_before_is_shown_where_it_matters():
    class Takes(wrong.Cooperative):
        def assign(self, cluster, group):
            return wrong.dealt(cluster, group)

    head, *members = rows(shown(Takes, "takes-from-owner"))
    assert head[2:4] == ["owned", "generation"]
    assert any(cells[2].startswith("[") for cells in members if len(cells) == 5)


def test_an_exception_has_its_group_and_no_assignment():
    page = shown(wrong.fails_for_three_members, "raises")
    assert rows(page)[0] == ["member", "topics"]
    assert "three is a crowd" in page
    assert "the traceback</summary>" in page


def test_checks_that_find_the_same_fault_share_its_drawing():
    page = shown(wrong.gives_to_two, "assigned-twice", "more-members", "raises")
    assert page.count("topics and their partitions") == 1
    assert "<b>assigned-twice, more-members</b>" in page


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


def test_a_report_without_failures_says_so():
    assert "fails none of 2 checks" in shown(wrong.dealt, "raises", "assigned-twice")


def test_plain_text_has_a_line_a_check_and_the_failures():
    report = check_assignor(wrong.gives_to_two, checks=["raises", "assigned-twice", "not-sticky"], examples=8)
    lines = pretty(report).splitlines()
    assert lines[0] == "assignor 'tests/rebalance_conformance/wrong.py:gives_to_two':"
    assert lines[1:4] == [
        "passed          raises",
        "failed          assigned-twice",
        "not applicable  not-sticky",
    ]
    assert lines[4] == "assigned-twice: orders-0 went to 'c1' and to 'c2'"
    assert len(lines) == 7

"""Which regular expressions of topics are refused."""

import pytest

from coordinator_core.reading.patterns import NESTED, re2_matcher, topic_pattern


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+$",
        "(a*)*",
        "((a+))+b",
        "(?:a|aa)+$",
        "(?P<name>[a-z]+)*$",
        "(a?){30}a{30}",
        "(x(a{1,9})y){2,}",
        r"(\w+\.)+x",
        "(?=(a+)+$)a*",
        "(a+)+?b",
        "([)]+)+",
    ],
)
def test_repetitions_of_what_varies_are_refused(text):
    with pytest.raises(ValueError, match=NESTED.partition(":")[0]):
        topic_pattern(text)


@pytest.mark.parametrize(
    "text",
    [
        ".*",
        "orders-.*|payments-[0-9]+",
        "(orders|payments)-v[0-9]{1,3}",
        "(orders-.*)?",
        "(abc){2}x*",
        "(ab)+",
        "(?:a{3}b)+",
        r"(\(\|\+)+",
        "([+*|()]x)+",
        "([]+|]x)+",
        "(?i:orders)-.+?",
        "(?#a|b+)(c)+",
        "a{}b+",
    ],
)
def test_other_patterns_are_regular_expressions(text):
    assert topic_pattern(text).pattern == text


@pytest.mark.parametrize("text", ["(", "a**", "[", "a{99999999999999}"])
def test_what_is_no_regular_expression_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        topic_pattern(text)


# --- expressions of RE2: what Kafka 4.4 was seen to take and to refuse


@pytest.mark.parametrize(
    "text",
    [
        r"\p{L}",
        "[[:alpha:]]",
        r"\Qt\E",
        "(?<n>t)",
        "(?P<n>t)",
        "(?U)t+",
        "t(?i)",
        r"\x{74}",
        r"t\z",
        "(t+)+",
        "(?i)T",
        "t{1,1000}",
    ],
)
def test_an_expression_of_re2_matches(text):
    assert re2_matcher(text)("t")


@pytest.mark.parametrize(
    "text",
    [r"\Z", "t{1001}", "(?#c)", "(?x)t", r"\u0074", "(?a)t", "(?=t)", r"(t)\1", "t++", "t**", "[", "(", "\\"],
)
def test_an_expression_that_re2_does_not_have_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        re2_matcher(text)


def test_an_expression_matches_whole_names_by_characters():
    matches = re2_matcher(".|t")
    assert [matches(name) for name in ("t", "é", "tt", "")] == [True, True, False, False]


def test_a_refusal_names_the_part_that_is_wrong_and_writes_nothing(capfd):
    with pytest.raises(ValueError, match="missing \\): \\(t"):
        re2_matcher("(t")
    assert capfd.readouterr() == ("", "")

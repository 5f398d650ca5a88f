"""Which regular expressions of topics are refused."""

import pytest

from coordinator_core.reading.patterns import NESTED, topic_pattern


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

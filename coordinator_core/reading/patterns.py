"""Regular expressions that people write for the names of topics."""

import re
from collections.abc import Callable
from functools import lru_cache

_QUANTIFIER = re.compile(r"[*+?]|\{(\d*)(,?)(\d*)\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_PREFIX = re.compile(r"\?(?:#[^)]*|P[<=]\w*[>]?|<?[=!]|[aiLmsux-]*:|\(\w+\)|>)?")

NESTED = "a repetition or alternatives within a repetition: it could take for ever on a long name"


def topic_pattern(text: str) -> re.Pattern[str]:
    """Return a regular expression whose search ends in time, whatever the name is.

    A repeated group that has a repetition or alternatives itself, such as (a+)+, can match in exponentially
    many ways. The standard library has no limit for them, so that they are refused.

    Raises:
        ValueError: if the text is no regular expression, or has such a group.
    """
    try:
        compiled = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if _is_nested(text):
        raise ValueError(NESTED)
    return compiled


@lru_cache(maxsize=1_000)
def re2_matcher(text: str) -> Callable[[str], bool]:
    """Return a function that returns whether a name matches a regular expression of RE2 as a whole.

    Kafka's brokers match those that members of the consumer protocol send, by RE2/J. Some expressions differ:
    RE2/J has no ``\\C``, no group name twice and no repetition of a brace that begins none, and no limit of
    the memory, by which RE2 refuses large ones.

    Raises:
        ValueError: if the text is no regular expression.
    """
    import re2  # not before the first expression, which few processes have

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(text, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None
    return lambda name: compiled.fullmatch(name) is not None


def _is_nested(text: str) -> bool:
    """Return whether a valid regular expression repeats a group in which something varies."""
    varies, place, last = [False], 0, False
    # `varies` has for each open group whether it repeats something or has alternatives, `last` whether the
    # item before the place does.
    while place < len(text):
        quantifier = _QUANTIFIER.match(text, place)
        if quantifier is not None and quantifier[0] != "{}":
            least, most = _times(quantifier)
            if last and most > 1:
                return True
            last = last or most > least
            varies[-1] = varies[-1] or last
            place = quantifier.end()
            place += text[place : place + 1] in ("?", "+")  # lazy or possessive
            continue
        character, last = text[place], False
        if character == "[":
            found = _CLASS.match(text, place)
            place = place + 1 if found is None else found.end()
        elif character == "(":
            varies.append(False)
            prefix = _PREFIX.match(text, place + 1)
            place = place + 1 if prefix is None else prefix.end()
        elif character == ")" and len(varies) > 1:
            last = varies.pop()
            varies[-1] = varies[-1] or last
            place += 1
        else:
            varies[-1] = varies[-1] or character == "|"
            place += 2 if character == "\\" else 1
    return False


def _times(quantifier: re.Match[str]) -> tuple[float, float]:
    """Return how often a quantifier repeats, at least and at most."""
    if quantifier[0] in "*+?":
        return (0, 1) if quantifier[0] == "?" else (0, float("inf"))
    least = float(quantifier[1] or 0)
    most = float(quantifier[3] or "inf") if quantifier[2] else least
    return least, most

"""Suggestions for names that are not known: "did you mean ...?"."""

from collections.abc import Iterable

from coordinator_core.errors import InputError

LONGEST_NAME = 60
"""Only this many characters of a name are compared."""

LONGEST_LIST = 12
"""Only this many names are listed beside a suggestion."""


def close_to(name: str, known: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` if a known name is close to ``name``, else an empty text."""
    from difflib import get_close_matches

    close = get_close_matches(name[:LONGEST_NAME], sorted(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def one_of(name: str, known: Iterable[str]) -> str:
    """Return the expectation ``one of a, b, c``, with a suggestion if a known name is close to ``name``.

    The suggestion stands in place of a list of more than `LONGEST_LIST` names.
    """
    names = list(known)
    suggestion = close_to(name, names)
    listed = f"{len(names)} names" if suggestion and len(names) > LONGEST_LIST else ", ".join(names)
    return f"one of {listed}{suggestion}"


def unknown_name(where: str, name: str, known: Iterable[str]) -> InputError:
    """Return the error for a name that is not among the known names, which are listed in sorted order."""
    return InputError(where, repr(name), one_of(name, sorted(known)))

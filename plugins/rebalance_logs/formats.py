"""What coordinators and clients write, as tables: a wording is an entry, with an example that is its test.

The tables of this package are the files of ``wordings``. The words of an entry are fixed, and the rest are
fields of the fact, by the names of groups. Wordings have changed over the years: each entry accepts all that
are known.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from coordinator_core.errors import InputError
from rebalance_logs.facts import Kind

NAME = r"[^\s,;\])]+"
"""The form of the name of a group, a member or an instance."""

PATTERNS = {"NAME": NAME, "NUMBER": r"\d+", "REST": ".*"}
"""The patterns that every file knows: ``%{NUMBER}`` in a form, or ``%{NUMBER:generation}`` for a field."""

_REFERENCE = re.compile(r"%\{(\w+)(?::(\w+))?\}")


@dataclass(frozen=True, slots=True)
class Wording:
    """One message: the fact that it states, words that it always contains, its form and an example.

    The groups of ``form`` are fields of `Fact`; ``text``, ``partitions``, ``assignments`` and ``others`` are
    read from the text of their group. ``example``: a message that has the form.
    """

    kind: Kind
    words: str
    form: re.Pattern[str]
    example: str


@dataclass(frozen=True, slots=True)
class LogFormat:
    """The messages of one program. ``name`` is how it is shown; ``library`` is that of a client, or empty.

    ``context``: where lines have the names of the group and its member, for all wordings. ``needs_context``:
    a line without them is of another program, unless its wording names the member.
    """

    name: str
    library: str
    wordings: tuple[Wording, ...]
    context: tuple[re.Pattern[str], ...] = field(default=())
    needs_context: bool = False


def wording(kind: Kind, words: str, form: str, example: str) -> Wording:
    """Return an entry of a table."""
    return Wording(kind, words, re.compile(form), example)


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Kind
    words: str
    form: str
    example: str


class _Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of wordings. The fields are those of `LogFormat`; ``patterns`` are its own, by name."""

    name: str
    wordings: list[_Row]
    library: str = ""
    context: list[str] = []
    needs_context: bool = False
    patterns: dict[str, str] = {}


def read_format(path: Path) -> LogFormat:
    """Return the format that a TOML file describes.

    Raises:
        InputError: if the file cannot be read, or a key, a kind or a regular expression is wrong.
    """
    try:
        program = msgspec.toml.decode(path.read_bytes(), type=_Program)
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise InputError(str(path), str(error), "a table of wordings") from None
    patterns = dict(PATTERNS)
    for name, form in program.patterns.items():
        patterns[name] = _expanded(form, patterns, f"{path}: {name}")
    return LogFormat(
        program.name,
        program.library,
        tuple(
            Wording(row.kind, row.words, _compiled(row.form, patterns, f"{path}: {row.words}"), row.example)
            for row in program.wordings
        ),
        tuple(_compiled(form, patterns, f"{path}: context") for form in program.context),
        program.needs_context,
    )


def _compiled(form: str, patterns: Mapping[str, str], where: str) -> re.Pattern[str]:
    try:
        return re.compile(_expanded(form, patterns, where))
    except re.error as error:
        raise InputError(where, f"{form!r} ({error})", "a regular expression") from None


def _expanded(form: str, patterns: Mapping[str, str], where: str) -> str:
    """Return a regular expression with the patterns that it names in place of their names."""

    def pattern(found: re.Match[str]) -> str:
        name, group = found.groups()
        if name not in patterns:
            raise InputError(where, f"the pattern {name}", f"one of {', '.join(patterns)}")
        return f"(?P<{group}>{patterns[name]})" if group else patterns[name]

    return _REFERENCE.sub(pattern, form)

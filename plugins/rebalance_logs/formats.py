"""What coordinators and clients write, as tables: a wording is an entry, with an example that is its test.

The words of an entry are fixed, and the rest are fields of the fact, by the names of groups. Wordings have
changed over the years: each entry accepts all that are known.
"""

import re
from dataclasses import dataclass, field

from rebalance_logs.facts import Kind

NAME = r"[^\s,;\])]+"
"""The form of the name of a group, a member or an instance."""


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

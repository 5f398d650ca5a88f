"""What the members of a table with a row per partition are besides: their client, and their application.

Tables of monitoring systems do not have it, and stopped time depends on it: it is given with the table, for
all members, by a column, or as several values, of which each makes a scenario of each group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.reading.durations import parse_duration
from coordinator_core.reading.suggestions import one_of
from rebalance_lab.scenarios.application import Application
from rebalance_lab.scenarios.fields import NewMemberFields
from rebalance_lab.scenarios.files import load_scenario_text, read_document, read_text
from rebalance_lab.scenarios.groups import SCENARIO_DURATION
from rebalance_lab.scenarios.variants import expanded


@dataclass(frozen=True, slots=True)
class Several:
    """Values of a field of which each makes a scenario of each group."""

    values: Sequence[Any]


OF_COLUMN = "@"
"""The first character of a value that names a column of the table."""

_OF_TABLE = ("id", "count", "topics", "topics_pattern")
FIELDS = tuple(
    field.name
    for fields in (NewMemberFields, Application)
    for field in msgspec.structs.fields(fields)
    if field.name not in _OF_TABLE
)
"""The fields of a member that can be given."""


def read_application(texts: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return fields with the values of their texts: as in YAML, and `Several` of alternatives in braces.

    Raises:
        InputError: if a text has another form.
    """
    found: dict[str, Any] = {}
    for name, text in texts.items():
        values = [_read(each, where) for each in expanded([text], where)]
        found[name] = Several(values) if len(values) > 1 else values[0]
    return found


def _read(text: str, where: str) -> Any:
    return text if column_of(text) else read_document(text, where)


def check_application(fields: Mapping[str, Any], where: str) -> None:
    """Check fields of members.

    Raises:
        InputError: if there is no such field, or if it cannot have one of the values.
    """
    for name, value in fields.items():
        if name not in FIELDS:
            raise InputError(where, repr(name), one_of(name, FIELDS))
        for each in value.values if isinstance(value, Several) else [value]:
            if column_of(each):
                continue
            member = {"id": "m", "topics": ["t"], name: each}
            document = {
                "name": "g",
                "duration": "1m",
                "topics": {"t": {"partitions": 1}},
                "members": [member],
            }
            try:
                load_scenario_text(msgspec.json.encode(document).decode(), where)
            except InputError as error:
                raise InputError(f"{where} {name}", error.found, error.expected) from None


def column_of(value: Any) -> str:
    """Return the column of the table that a value names, "" if it names none."""
    return value[1:] if isinstance(value, str) and value.startswith(OF_COLUMN) else ""


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a file, which the events of a scenario could be.

    Raises:
        InputError: if they could not.
    """
    found = read_document(read_text(path), str(path))
    if not isinstance(found, list) or not all(isinstance(event, dict) for event in found):
        raise InputError(
            str(path), "no list of events", "one, such as [{at: 2m, rolling_restart: {every: 20s, down: 5s}}]"
        )
    last_ms = parse_duration(SCENARIO_DURATION, "")
    for number, event in enumerate(found):
        where = f"{path}: [{number}].at"
        if isinstance(at := event.get("at"), str) and parse_duration(at, where) > last_ms:
            raise InputError(where, repr(at), f"at most {SCENARIO_DURATION}, the length of each scenario")
    return found

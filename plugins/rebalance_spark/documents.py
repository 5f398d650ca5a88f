"""The documents of a workload: scenarios, groups in the format of ``assign``, and lines with either."""

from contextlib import suppress
from typing import Any

import msgspec

from coordinator_core.documents.files import load_scenario_text, read_document
from coordinator_core.documents.groups import parse_group, scenario_document
from coordinator_core.documents.scenario import Scenario
from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry
from rebalance_spark.sizes import size_of_text


def load_scenario_or_group(text: str, where: str, registry: Registry) -> Scenario:
    """Return the scenario of a text. A group becomes a scenario in which its first member leaves.

    Raises:
        InputError: if the text is neither.
    """
    try:
        return load_scenario_text(text, where, registry=registry)
    except InputError:
        document: Any = None
        with suppress(InputError):
            document = read_document(text, where)
        if not is_group(document):
            raise
        made = scenario_document(parse_group(document, where), str(document.get("name") or where))
        return load_scenario_text(msgspec.json.encode(made).decode(), where, registry=registry)


def is_group(document: Any) -> bool:
    """Return whether a document is a group, right or wrong, and not a scenario."""
    return isinstance(document, dict) and "topics" in document and "duration" not in document


def workload_row(name: str, line: str) -> dict[str, Any]:
    """Return the row of a line with a scenario or a group. Another line becomes the text of a row `name`."""
    scenario_id, text = name, line
    try:
        document = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, dict) and "scenario" in document:
        scenario = document["scenario"]
        given = document.get("scenario_id")
        scenario_id = name if given in (None, "") else str(given)
        text = scenario if isinstance(scenario, str) else msgspec.json.encode(scenario).decode()
    elif is_group(document):
        scenario_id, text = group_scenario(document, name)
    elif isinstance(document, dict):
        scenario_id = str(document.get("name") or name)
    return {"scenario_id": scenario_id, "scenario": text, **size_of_text(text)._asdict()}


def group_scenario(document: dict[str, Any], name: str) -> tuple[str, str]:
    """Return the name of a group in the format of ``assign``, and the group as a scenario.

    An invalid group is kept as it is, so that scoring reports the error.
    """
    group_name = str(document.get("name") or name)
    with suppress(InputError):
        document = scenario_document(parse_group(document, group_name), group_name)
    return group_name, msgspec.json.encode(document).decode()

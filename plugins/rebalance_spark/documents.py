"""The lines of a workload in JSON: scenarios, or groups in the format of ``assign``."""

from contextlib import suppress
from typing import Any

import msgspec

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.groups import parse_group, scenario_document
from rebalance_lab.scoring.documents import is_group
from rebalance_spark.sizes import size_of_text


def _decoded(line: str) -> Any:
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def workload_row(name: str, line: str) -> dict[str, Any]:
    """Return the row of a line with a scenario or a group. Another line becomes the text of a row `name`."""
    scenario_id, text = name, line
    document = _decoded(line)
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

"""The documents of a workload: scenarios, and groups in the format of ``assign``."""

from dataclasses import replace
from typing import Any
from zlib import crc32

import msgspec

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import Registry
from rebalance_lab.scenarios.fields import LAST_SEED
from rebalance_lab.scenarios.files import read_document
from rebalance_lab.scenarios.groups import parse_group, scenario_document
from rebalance_lab.scenarios.scenario import Scenario, parse_scenario

_UNREADABLE = "# rebalance-lab cannot read: "
"""Begins the text of a scenario of which a file cannot be read. The error follows, as JSON."""


def seed_of(scenario_id: str, base: int = 0) -> int:
    """Return the seed of a scenario that has none: another one for each hour and draw of a group.

    With one seed for all, their heartbeats and latencies would be alike, and a difference due to chance would
    be there in each of them.
    """
    return (base + crc32(scenario_id.encode())) % (LAST_SEED + 1)


def load_scenario_or_group(text: str, where: str, registry: Registry, *, seed: int) -> Scenario:
    """Return the scenario of a text. A group becomes a scenario in which a member leaves.

    ``seed``: of a text without one.

    Raises:
        InputError: if the text is neither, or the error of a text of `unreadable`.
    """
    if text.startswith(_UNREADABLE):
        raise InputError(*msgspec.json.decode(text.removeprefix(_UNREADABLE), type=tuple[str, str, str]))
    document = read_document(text, where)
    try:
        scenario = parse_scenario(document, where=where, registry=registry)
    except InputError:
        if not is_group(document):
            raise
        scenario = parse_scenario(of_group(document, where), where=where, registry=registry)
    return scenario if "seed" in document else replace(scenario, seed=seed)


def of_group(document: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the document of the scenario of a group, in which a member leaves.

    Raises:
        InputError: if the group is malformed.
    """
    return scenario_document(parse_group(document, where), str(document.get("name") or where))


def unreadable(error: InputError) -> str:
    """Return the text of a scenario of which a file cannot be read. Scoring reports the error."""
    return _UNREADABLE + msgspec.json.encode((error.where, error.found, error.expected)).decode()


def is_group(document: Any) -> bool:
    """Return whether a document is a group, right or wrong, and not a scenario."""
    return isinstance(document, dict) and "topics" in document and "duration" not in document

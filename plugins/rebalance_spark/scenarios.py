"""A scenario of a workload as it is scored, as a document for other commands."""

from typing import TYPE_CHECKING

import yaml

from coordinator_core.client.subscription import partition_map
from coordinator_core.errors import InputError
from coordinator_core.model import Partitions
from rebalance_lab.scenarios.files import read_document
from rebalance_lab.scoring.documents import is_group, of_group
from rebalance_lab.scoring.rows import Job, Scorer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shown(workload: "DataFrame", scenario_id: str, job: Job) -> str:
    """Return the scenario of an id as it is scored, as YAML: with its seed, and the owners at its start.

    Raises:
        InputError: if there is no such scenario, or it is malformed.
    """
    from pyspark.sql import functions as sf

    row = workload.where(sf.col("scenario_id") == scenario_id).select("scenario").first()
    if row is None:
        first = workload.select("scenario_id").first()
        such = f", such as {first[0]}" if first is not None else ""
        raise InputError("--show", repr(scenario_id), f"an id of the workload{such}")
    scenario = Scorer(job).scenario(scenario_id, row[0])
    document = read_document(row[0], scenario_id)
    if is_group(document):
        document = of_group(document, scenario_id)
    owned = {member.id: member.owned for member in scenario.members if member.owned is not None}
    for member in document["members"]:
        if member.get("id") in owned:
            member["owned"] = partition_map(Partitions.of(owned[member["id"]]))
    whole = {**document, "seed": scenario.seed}
    return yaml.safe_dump(whole, sort_keys=False, default_flow_style=None, width=100)

"""The command ``rebalance-lab generate``, which writes a workload."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coordinator_core.errors import InputError
from rebalance_lab.cli.output import stderr, stdout
from rebalance_lab.scenarios.workloads import workloads
from rebalance_spark.commands.options import Conf, Master, Plugins, pairs, session_of_a_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def generate(
    profile: Annotated[
        str,
        typer.Option(
            help=f"The profile: {', '.join(w.name for w in workloads())}, or one of a plugin;"
            " `rebalance-lab plugins` describes them."
        ),
    ],
    rows: Annotated[int, typer.Option(min=1, help="The number of scenarios.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The new folder.")],
    seed: Annotated[int, typer.Option(min=0, help="The seed of the scenarios.")] = 0,
    option: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="NAME=VALUE", help="An option of the profile; repeatable."),
    ] = None,
    output: Annotated[
        Literal["parquet", "jsonl"], typer.Option("--format", help="The format of the files.")
    ] = "parquet",
    plugin: Plugins = None,
    master: Master = None,
    conf: Conf = None,
) -> None:
    """Write a workload: scenarios in the columns scenario_id and scenario, and the size of each.

    Row n of a profile and a seed is the same on every machine and for every number of parts.
    """
    from rebalance_spark.sessions import check_pyspark, context_of

    check_pyspark()
    from rebalance_spark.generator import FORMAT, WorkloadReader

    options = {**pairs(option, "--with"), "profile": profile, "rows": str(rows), "seed": str(seed)}
    if plugin:
        options["plugins"] = ",".join(plugin)
    WorkloadReader(options)  # reports wrong options before Spark starts
    spark = session_of_a_command(master, pairs(conf, "--conf"))
    _check_free(spark, out)
    with stderr().status(f"{rows:,} scenarios ..."):
        workload = spark.read.format(FORMAT).options(**options).load()
        writer = workload.write.mode("error" if context_of(spark) is None else "overwrite")
        writer.parquet(out) if output == "parquet" else writer.json(out)
    stdout().print(f"{rows:,} scenarios of {profile}, seed {seed}, in {out}")


def _check_free(spark: "SparkSession", out: str) -> None:
    """Check that the folder does not exist, or has only the files of an interrupted run.

    Raises:
        InputError: if it has other files.
    """
    from rebalance_spark.files import StoredPath
    from rebalance_spark.sessions import context_of

    if context_of(spark) is None:
        return  # the job is refused then
    place = StoredPath(spark, out)
    if place.exists() and not (place.is_folder() and _is_unfinished(place.names())):
        raise InputError("--out", f"{out}, which exists", "a folder that does not exist yet")


def _is_unfinished(names: Sequence[str]) -> bool:
    return "_SUCCESS" not in names and all(name.startswith(("_", ".", "part-")) for name in names)

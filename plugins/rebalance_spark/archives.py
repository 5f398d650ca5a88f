"""Code that workers need and do not have installed: modules, archives and wheels."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator_core.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = (".py", ".zip", ".egg", ".whl")


def importable_here(files: Sequence[str]) -> None:
    """Put files on this process's search path, as workers will have them. Raises InputError."""
    for name in files:
        path = Path(name)
        if path.suffix not in _KINDS or not path.is_file():
            found = "another kind of file" if path.is_file() else "nothing there"
            raise InputError(
                f"--py-files {name}", found, f"a file with one of the endings {', '.join(_KINDS)}"
            )
        entry = str(path.parent.resolve() if path.suffix == ".py" else path.resolve())
        if entry not in sys.path:
            sys.path.insert(0, entry)


def send_to_workers(spark: "SparkSession", files: Sequence[str]) -> None:
    """Send files to every worker of a session, on whose search path they then are.

    A wheel goes as the zip that it is; plugins that its metadata name are found there like installed ones.
    """
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-") as folder:
        for name in files:
            path = Path(name)
            if path.suffix == ".whl":
                path = Path(shutil.copy(path, Path(folder) / f"{path.stem}.zip"))
            spark.addArtifacts(str(path), pyfile=True)

"""Code that workers need and do not have installed: modules, archives and wheels."""

import atexit
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
            other = "a folder" if path.is_dir() else "another kind of file"
            found = other if path.exists() else "nothing there"
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
    for name in files:
        path = Path(name)
        if path.suffix == ".whl":
            path = Path(shutil.copy(path, _kept_folder() / f"{path.stem}.zip"))
        spark.addArtifacts(str(path), pyfile=True)


def _kept_folder() -> Path:
    """A new folder that is there until this process ends: workers fetch their files when they start."""
    folder = tempfile.mkdtemp(prefix="rebalance-lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)

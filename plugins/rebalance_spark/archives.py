"""Modules, archives and wheels that are sent to the workers of a session."""

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
    """Add files to the search path of this process, as the workers do.

    Raises:
        InputError: if a file does not exist or is not a module, archive or wheel.
    """
    for name in files:
        path = Path(name)
        if path.suffix not in _KINDS or not path.is_file():
            kind = "a folder" if path.is_dir() else "another kind of file"
            found = kind if path.exists() else "no such file"
            raise InputError(
                f"--py-files {name}", found, f"a file with one of the endings {', '.join(_KINDS)}"
            )
        entry = str(path.parent.resolve() if path.suffix == ".py" else path.resolve())
        if entry not in sys.path:
            sys.path.insert(0, entry)


def send_to_workers(spark: "SparkSession", files: Sequence[str]) -> None:
    """Send files to all workers of a session, and add them to the search path there.

    A wheel is sent as a zip file. The workers find the plugins in its metadata like installed ones.
    """
    for name in files:
        path = Path(name)
        if path.suffix == ".whl":
            path = Path(shutil.copy(path, kept_folder() / f"{path.stem}.zip"))
        spark.addArtifacts(str(path), pyfile=True)


def kept_folder() -> Path:
    """Return a new folder that exists until this process ends. Workers fetch files when they start."""
    folder = tempfile.mkdtemp(prefix="rebalance-lab-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)

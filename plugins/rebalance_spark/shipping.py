"""Modules, archives, and the package itself, which are sent to the workers of a session."""

import atexit
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.requirements import Requirement

from coordinator_core.errors import InputError
from coordinator_core.registry.registry import DISTRIBUTION
from rebalance_spark.sessions import check_pyspark, cores, described, in_short, is_local, spark_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UNPACKED = "rebalance-lab"
"""The folder in which the workers find the archive, below their working directory."""

_GROUP = "rebalance_lab"
_BESIDE = ("pyarrow",)
"""Distributions that the workers need, beside those that are required without an extra."""

_LEFT_OUT = {"__pycache__", "tests", "include"}
_SPARK = {"pyspark", "py4j"}
"""Distributions that every worker has, in the version of its cluster."""

_PYTHON = """\
#!/bin/sh
here=$(cd "$(dirname "$0")/.." && pwd)
PYTHONPATH="$here/lib${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
for python in {version} {path}; do
  if command -v "$python" >/dev/null 2>&1; then exec "$python" "$@"; fi
done
echo "rebalance-lab: no {version} on this machine" >&2
exit 127
"""


_KINDS = (".py", ".zip", ".egg", ".whl")
_NEEDED = ("pyarrow", "rebalance_spark.worker")
_MOST_TASKS = 64
_EXPECTED = "a Python with the package on every worker: ship(spark) or --ship sends it, or install it there"
_PYTHON_OF_WORKERS = "spark.sql.execution.pyspark.python"


def ship(spark: "SparkSession", plugins: Sequence[str] = ()) -> None:
    """Send this package, and all that it requires, to the workers of a session, and check that it is there.

    The workers need the same minor version of Python, and the same kind of machine. They run the Python of
    the archive from then on. The workers of a local master are processes of this Python: nothing is sent.
    `plugins`: further modules that the workers must be able to import.

    Raises:
        InputError: if the session cannot receive an archive, or if its workers cannot run it.
    """
    check_pyspark()
    if not is_local(spark):
        archive = kept_folder() / "rebalance-lab.tar.gz"
        write_archive(archive)
        try:
            spark.addArtifacts(f"{archive}#{UNPACKED}", archive=True)
            spark.conf.set(_PYTHON_OF_WORKERS, f"./{UNPACKED}/bin/python")
        except spark_errors() as error:
            raise InputError(
                "ship", f"a session that takes no archive ({in_short(error)})", _EXPECTED
            ) from None
    check_workers(spark, plugins)


def write_archive(path: Path) -> None:
    """Write a .tar.gz with ``bin/python``, which runs the Python of a worker with the packages in ``lib``."""
    version = f"python3.{sys.version_info.minor}"
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    script = _PYTHON.format(version=version, path=f"'{base}'").encode()
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        entry = tarfile.TarInfo("bin/python")
        entry.size, entry.mode = len(script), 0o755
        archive.addfile(entry, BytesIO(script))
        written: set[str] = set()
        for source, name in _files():
            if name not in written:
                written.add(name)
                archive.add(source, f"lib/{name}", recursive=False)


def _files() -> Iterator[tuple[Path, str]]:
    """Yield each file with its name in ``lib``."""
    plugins = {entry.dist.name: entry.dist for entry in entry_points(group=_GROUP) if entry.dist is not None}
    found: dict[str, Distribution] = {}
    for name in (DISTRIBUTION, *_BESIDE, *sorted(plugins)):
        _require(name, found)
    for dist in found.values():
        for file in dist.files or ():
            if ".." not in file.parts and file.suffix not in (".pth", ".pyi"):
                yield from _kept(Path(str(dist.locate_file(file))), str(file))
        for package in _packages(dist):
            for source in sorted(package.rglob("*")) if package.is_dir() else [package]:
                yield from _kept(source, source.relative_to(package.parent).as_posix())


def _kept(source: Path, name: str) -> Iterator[tuple[Path, str]]:
    if not _LEFT_OUT & set(Path(name).parts) and source.is_file():
        yield source, name


def _require(name: str, found: dict[str, Distribution]) -> None:
    """Add a distribution and those that it requires."""
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key in found or key in _SPARK:
        return
    try:
        found[key] = distribution(name)
    except PackageNotFoundError:
        return
    for text in found[key].requires or ():
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _require(requirement.name, found)


def _packages(dist: Distribution) -> list[Path]:
    """Return the packages with the plugins of a distribution, where they are if it is installed in place."""
    names = {entry.module.partition(".")[0] for entry in dist.entry_points if entry.group == _GROUP}
    specs = [find_spec(name) for name in sorted(names)]
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    return [origin.parent if origin.name == "__init__.py" else origin for origin in origins]


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


def check_workers(spark: "SparkSession", plugins: Sequence[str] = ()) -> None:
    """Check that the workers can import the package and further modules.

    The workers of a local master are processes of the same Python: nothing is checked there.

    Raises:
        InputError: if they cannot, with the module that is missing and the machine.
    """
    from pyspark.sql import functions as sf

    if is_local(spark):
        return
    tasks = min(_MOST_TASKS, max(2, cores(spark)))
    missing: Any = sf.udf(_probe((*_NEEDED, *plugins)), "string", useArrow=False)
    try:
        with described(spark, "look whether the workers can import the package"):
            found = (
                spark.range(0, tasks, 1, tasks).select(missing("id").alias("missing")).distinct().collect()
            )
    except spark_errors() as error:
        raise InputError("workers", in_short(error), _EXPECTED) from None
    problems = sorted(row["missing"] for row in found if row["missing"])
    if problems:
        raise InputError("workers", "; ".join(problems[:3]), _EXPECTED)


def _probe(modules: Sequence[str]) -> Callable[[int], str]:
    """Return the function of the job. It is sent by value, because a worker may not have this module."""
    names = tuple(modules)

    def missing(_row: int) -> str:
        import importlib
        import platform
        import socket

        for name in names:
            try:
                importlib.import_module(name)
            except Exception as error:
                where = f"Python {platform.python_version()} on {socket.gethostname()}"
                return f"{type(error).__name__}: {error} ({where})"
        return ""

    return missing

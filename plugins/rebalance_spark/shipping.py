"""The package and all that it requires as an archive for the workers of a cluster."""

import os
import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from packaging.requirements import Requirement

from coordinator_core.registry.registry import DISTRIBUTION

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


def shipped(archive: Path, conf: Mapping[str, str]) -> dict[str, str]:
    """Write the archive, and return the settings of a session whose workers use it.

    The workers need the same minor version of Python, and the same kind of machine. The environment variable
    PYSPARK_PYTHON of this process is set, because Spark reads the Python of the workers from there.
    """
    write_archive(archive)
    python = f"./{UNPACKED}/bin/python"
    os.environ["PYSPARK_PYTHON"] = python
    archives = [*filter(None, [conf.get("spark.archives")]), f"{archive}#{UNPACKED}"]
    return {**conf, "spark.archives": ",".join(archives), "spark.pyspark.python": python}


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

